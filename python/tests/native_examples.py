"""Data for the tests of the native module: a generated experiment, and small data sets in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory
from functools import cache

import numpy as np
import pyarrow as pa
from somafeed import _somafeed as native

N_CELLS, N_GENES = 1500, 60

_folder = TemporaryDirectory(prefix="somafeed-native-")


@cache
def experiment_uri() -> str:
    """A generated experiment of N_CELLS x N_GENES, written once per run."""
    uri = str(Path(_folder.name) / "experiment")
    native.generate_example(uri, n_cells=N_CELLS, n_genes=N_GENES, seed=3)
    return uri


def dataset(**arguments) -> native.Dataset:
    """All cells of the experiment."""
    return native.Dataset.from_experiment(native.Experiment(experiment_uri()), **arguments)


def matrix(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    """A third of the values are counts, the others zeros."""
    random = np.random.default_rng(seed)
    values = random.integers(1, 50, (n_rows, n_columns)).astype(np.float32)
    values[random.random((n_rows, n_columns)) > 1 / 3] = 0
    return values


def in_memory(values: np.ndarray, **obs) -> native.Dataset:
    """A data set of these rows. obs has their numbers as `row`, and the given columns."""
    rows, columns = np.nonzero(values)
    indptr = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=len(values)), out=indptr[1:])
    table = pa.table({"row": np.arange(len(values)), **obs})
    return native.Dataset.in_memory(
        indptr, columns, values[rows, columns], n_columns=values.shape[1], obs=table
    )


def dense(batch: native.Batch) -> np.ndarray:
    """The values of a batch of any form."""
    if batch.form in ("dense", "f16"):
        return batch.dense().astype(np.float32)
    out = np.zeros((batch.n_rows, batch.n_columns), np.float32)
    if batch.form == "csr":
        indptr, columns, values = batch.csr()
        rows = np.repeat(np.arange(batch.n_rows), np.diff(indptr))
    else:
        rows, columns, values = batch.coo()
    out[rows, columns] = values
    return out
