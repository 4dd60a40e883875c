"""The soak of the package, for some seconds; SOMAFEED_SOAK_MINUTES=60 makes it an hour."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import tiledbsoma_python

TESTS = Path(__file__).parent
MINUTES = float(os.environ.get("SOMAFEED_SOAK_MINUTES", 0.3))
SEED = os.environ.get("SOMAFEED_SOAK_SEED", "1")


def test_each_cell_comes_once_in_a_process_that_does_not_grow(make_board, tmp_path):
    anndata = str(tmp_path / "cells.zarr")
    subprocess.run([tiledbsoma_python(), TESTS / "write_anndata.py", anndata, "100", "6"], check=True)
    uris = [make_board(0, 100).uri, anndata]
    command = [sys.executable, TESTS / "soak.py", str(MINUTES), SEED, *uris]
    subprocess.run(command, check=True, timeout=60 * MINUTES + 300)
