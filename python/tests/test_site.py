"""The pages of the documentation site: their places, their links, and the help of commands.

`cargo xtask site` builds the site, and fails if Sphinx warns.
"""

import doctest
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "docs/site"))

import commands
import pages

INDEX = """# x

- [not a page](https://example.org)

## Start

- [First](first.md): what comes first

## How-to

- [Several](several.md): a page with others
  - [One](more/one.ipynb)
- [The rest](../benches/peers/README.md): elsewhere
"""
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# One\n", "see [it](../first.md)"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [
            {"output_type": "stream", "name": "stderr", "text": ["a warning"]},
            {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
            {"output_type": "display_data", "data": {"image/png": "AAAA"}},
        ]},
    ]
}


@pytest.fixture
def root(tmp_path):
    """A repository with pages."""
    files = {
        "docs/index.md": INDEX,
        "docs/first.md": "# First\n",
        "docs/several.md": "# Several\n",
        "docs/more/one.ipynb": json.dumps(NOTEBOOK),
        "benches/peers/README.md": "# Peers\n",
        "results/2026-01-01-x/README.md": "# X\n\n![p](p.svg) [rows](rows.txt)\n",
        "results/2026-01-01-x/p.svg": "<svg/>",
        "results/2026-01-01-x/rows.txt": "1",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def site(root, repository=""):
    files = [str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()]
    return pages.Site(root, files, root / "out", repository)


def test_parts_are_the_lists_of_the_index():
    start, how_to = pages.read_parts(INDEX)
    assert [one.title for one in start.pages] == ["First"]
    assert [one.name for one in how_to.pages] == ["how-to/several", "how-to/peers"]
    assert [one.name for one in how_to.pages[0].children] == ["how-to/more/one"]
    with pytest.raises(ValueError, match="no link"):
        pages.read_parts("## Start\n\n- a page\n")


@pytest.mark.parametrize("text, expected", [
    ("[a](several.md#b)", "[a](../how-to/several.md#b)"),
    ("[a `b[0]` c\nd](../benches/peers/README.md)", "[a `b[0]` c\nd](../how-to/peers.md)"),
    ("[rows](../results/2026-01-01-x/README.md)", "[rows](../explanation/results/2026-01-01-x.md)"),
    ("[a](https://example.org/b.md), [c](#d)", "[a](https://example.org/b.md), [c](#d)"),
    ("`[a](several.md)`", "`[a](several.md)`"),
    ("```md\n[a](several.md)\n```\n[a](several.md)", "```md\n[a](several.md)\n```\n[a](../how-to/several.md)"),
    ("```rust,no_run\n```", "```rust\n```"),
    ("```sh no-run\n```", "```sh\n```"),
])
def test_links_fit_the_site(root, text, expected):
    assert site(root).with_links("docs/first.md", text) == expected


def test_other_files_are_in_the_repository(root):
    known = site(root, "https://example.org/x/")
    text = "[a](../results/2026-01-01-x/rows.txt), [b](../benches)"
    base = "https://example.org/x"
    linked = f"[a]({base}/blob/main/results/2026-01-01-x/rows.txt), [b]({base}/tree/main/benches)"
    assert known.with_links("docs/first.md", text) == linked and known.waiting == 0
    unknown = site(root)
    assert "](" not in unknown.with_links("docs/first.md", text) and unknown.waiting == 2
    with pytest.raises(ValueError, match=r"gone\.md"):
        known.with_links("docs/first.md", "[a](gone.md)")


def test_a_page_must_be_listed(root):
    (root / "docs/lost.md").write_text("# Lost\n")
    with pytest.raises(ValueError, match=r"lost\.md"):
        site(root)
    (root / "docs/lost.md").unlink()
    (root / "docs/first.md").unlink()
    with pytest.raises(ValueError, match=r"first\.md"):
        site(root)


def test_pages_are_written(root):
    made = site(root)
    made.add("Start", "Made", "start/made", "# Made\n", ["start/below"])
    made.write()
    index = (root / "out/index.md").read_text()
    assert "Made </start/made>\nFirst </start/first>\n" in index
    notebook = (root / "out/how-to/more/one.md").read_text()
    assert "```python\nprint(1)\n```" in notebook and "\n\n1\n```" in notebook
    assert "a warning" not in notebook and "[it](../../start/first.md)" in notebook
    assert (root / "out/how-to/more/one-1-2.png").is_file()
    assert (root / "out/pictures/results/2026-01-01-x/p.svg").is_file()
    assert "/how-to/more/one" in (root / "out/how-to/several.md").read_text()


def test_help_is_read():
    assert doctest.testmod(commands).failed == 0
    found = commands.parse(
        "Measures.\n\nMore.\n\nUsage: x sweep [OPTIONS] [URI]\n\nArguments:\n  [URI]\n          An address\n\n"
        "Options:\n  -b, --blocks <B>\n          Blocks, like `a*b`\n\n          Possible values:\n"
        "          - one: the *first*\n          - two\n\n  -h, --help  Print help\n\n"
        "Sizes:\n  2x4  two of four\n\n"
        "Examples:\n  somafeed sweep --blocks\n  2x4\n  srun somafeed sweep\n\nAll at once.\n"
    )
    assert found.about[0] == "Measures." and [one.name for one in found.groups["Arguments"]] == ["[URI]"]
    blocks = found.groups["Options"][0]
    assert commands.paragraphs(blocks.text) == [
        "Blocks, like `a*b`", "Possible values:", "- one: the \\*first\\*\n- two"
    ]
    assert commands.escape("with --blocks=1 and `--a`, a_b") == "with `--blocks`=1 and `--a`, a\\_b"
    page = commands._page("somafeed sweep", found)
    assert "```sh\nsomafeed sweep --blocks 2x4\nsrun somafeed sweep\n```" in page
    assert "- `2x4`: two of four\n" in page and page.endswith("All at once.\n")
    assert "````{option} -b, --blocks <B>\nBlocks, like `a*b`\n\nPossible" in page and "--help" not in page
