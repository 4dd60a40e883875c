"""What docs/frameworks.md and the notebooks show, is run."""

import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def sections():
    """The Python of each section of the page, below that of its beginning."""
    first, *others = re.split(r"\n(?=## )", (DOCS / "frameworks.md").read_text())
    found = {}
    for text in others:
        blocks = [*re.findall(r"```python\n(.*?)```", first + text, re.DOTALL)]
        found[text.partition("\n")[0].removeprefix("## ")] = "\n".join(blocks)
    return found


@pytest.mark.parametrize("name", sections())
def test_sections(name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(sections()[name])
    ran = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def shown(notebook):
    """The kinds of output of each cell, without warnings."""
    return [
        [one.output_type for one in cell.outputs if one.get("name") != "stderr"]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda p: p.name)
def test_notebooks(path, tmp_path):
    """It runs, and every cell shows what was saved with it: times and numbers may differ."""
    notebook = nbformat.read(path, as_version=4)
    saved = shown(notebook)
    assert any(saved), "the notebook was saved without outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    assert shown(notebook) == saved
