"""A program ends as it would without threads, whatever its daemon threads wait for."""

import pytest
from endings import WORKS, ending
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
