"""Experiments for the tests, written once per run by tiledbsoma."""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import board
import numpy as np
import pytest
from somafeed import ExperimentDataset

TESTS = Path(__file__).parent

# A process that a shell or a scheduler runs in the background ignores Ctrl-C, and so would the
# processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def tiledbsoma_python() -> Path:
    """Python with tiledbsoma: SOMAFEED_PYTHON, or the environment of `cargo xtask test`."""
    if named := os.environ.get("SOMAFEED_PYTHON"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = cache / "somafeed/python-tiledbsoma-2.3.0/bin/python"
    assert python.exists(), (
        f"no Python with tiledbsoma at {python}: run `cargo xtask test` once, or set SOMAFEED_PYTHON"
    )
    return python


@dataclass(frozen=True)
class Board:
    """A small experiment: `board.py` has its values."""

    uri: str
    joinids: np.ndarray
    n_genes: int

    def values(self, joinids) -> np.ndarray:
        """X of these cells."""
        return board.values(joinids, self.n_genes)


@pytest.fixture
def travelling(monkeypatch):
    """Makes batches for `device="cpu"` as for another device."""
    travels = property(lambda samples: samples.device is not None)
    monkeypatch.setattr(ExperimentDataset, "_travels", travels)


@pytest.fixture(scope="session")
def make_board(tmp_path_factory):
    """Writes experiments; one with the same cells and genes only once."""
    made = {}

    def make(start: int, stop: int, step: int = 1, n_genes: int = 6, types: tuple = ()) -> Board:
        key = (start, stop, step, n_genes, *types)
        if key not in made:
            uri = str(tmp_path_factory.mktemp("experiments") / "experiment")
            script = [tiledbsoma_python(), TESTS / "write_experiment.py", uri, *map(str, key)]
            ran = subprocess.run(script, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            made[key] = Board(uri, np.arange(start, stop, step), n_genes)
        return made[key]

    return make


# Modules of tests to which it must be the same whether cells lie in SOMA or in AnnData.
OF_BOTH_FORMATS = ["dataloader", "forms", "in_order", "ranks", "samplings", "splits", "state"]


def pytest_generate_tests(metafunc):
    if "experiment" in metafunc.fixturenames:
        of_both = metafunc.module.__name__.removeprefix("test_") in OF_BOTH_FORMATS
        formats = ["soma", "anndata"] if of_both else ["soma"]
        metafunc.parametrize("experiment", formats, indirect=True, scope="session")


@pytest.fixture(scope="session")
def experiment(request, make_board, tmp_path_factory) -> Board:
    """100 cells x 6 genes with the joinids 0 to 99: an experiment, or an AnnData in Zarr."""
    if request.param == "soma":
        return make_board(0, 100)
    uri = str(tmp_path_factory.mktemp("anndata") / "cells.zarr")
    script = [tiledbsoma_python(), TESTS / "write_anndata.py", uri, "100", "6"]
    ran = subprocess.run(script, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return Board(uri, np.arange(100), 6)


@pytest.fixture(scope="session")
def gaps(make_board) -> Board:
    """80 cells x 5 genes with every third joinid from 1,000 on."""
    return make_board(1000, 1240, 3, 5)
