"""A program ends as it would without threads, whatever its daemon threads wait for."""

import subprocess
import sys

import pytest
from endings import WORKS, WORKS_WITH_IMAGES, ending
from somafeed import generate_example


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    uri = str(tmp_path_factory.mktemp("endings") / "cells")
    generate_example(uri, n_cells=5_000, n_genes=50, seed=1)
    return uri


@pytest.mark.parametrize("work", WORKS)
def test_a_program_ends_while_daemon_threads_wait(uri, work):
    code, written = ending(uri, work)
    assert (code, written) == (0, "trained\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings")
    sizes = ["--images", "40", "--size", "24x32x10", "--formats", "raw16", "--level", "1"]
    command = [sys.executable, "-m", "somafeed", "cubes", "generate", "images", *sizes]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return str(folder / "images")


@pytest.mark.parametrize("work", WORKS_WITH_IMAGES)
def test_a_program_ends_while_daemon_threads_wait_for_images(uri, folder, work):
    code, written = ending(uri, work, images=[folder])
    assert (code, written) == (0, "trained\n")
