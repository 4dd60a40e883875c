"""What the documentation shows, is run."""

import doctest
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Literal, get_origin

import pytest
import somafeed

REPOSITORY = Path(__file__).parents[2]
MODULES = ["", ".joinids", ".settings", ".splits", ".dataset", ".batches", ".sources",
           ".iteration", ".own_source", ".samplings", ".shares", ".tokens", ".images", ".labels",
           ".augmentation", ".sequences", ".doc2vec", ".engine", ".modalities", ".forcings"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = import_module(f"somafeed{name}")
    assert doctest.testmod(module).failed == 0


def text_of(page):
    """A page; of the README the section on Python."""
    text = (REPOSITORY / page).read_text()
    return text[text.index("## Python") :].partition("\n## ")[0] if page == "README.md" else text


def python_of(page):
    """The Python in a page, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL))


def run(arguments, folder):
    ran = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", ["python/README.md", "README.md", "docs/start.md", "docs/python.md"])
def test_pages(page, tmp_path):
    program = python_of(page)
    assert "ExperimentDataset(" in program
    if page == "README.md":
        # Write what the program reads.
        for command in re.findall(r"^somafeed (.*)$", text_of(page), re.MULTILINE):
            run(["-m", "somafeed", *shlex.split(command)], tmp_path)
    run(["-W", "error::DeprecationWarning", "-c", program], tmp_path)


def test_everything_public_is_there_and_described():
    for name in somafeed.__all__:
        value = getattr(somafeed, name)
        assert name in dir(somafeed)
        # A type of an argument has its text in the reference.
        if callable(value) and get_origin(value) is not Literal:
            assert value.__doc__, name
    with pytest.raises(AttributeError, match="no_such_name"):
        somafeed.no_such_name
