"""A checkerboard of values that say where they are: the data of most tests.

The value of cell `r` and gene `c` is `r + c / 10,000` where `r + c` is odd, otherwise nothing is
stored. So a batch shows by itself which cells it has. Needs numpy and pyarrow alone, because
tiledbsoma's Python reads this file, too.
"""

import numpy as np
import pyarrow as pa

KINDS = ("B cell", "Müller glia", "T cell", "never seen")


def values(joinids, n_genes):
    """X of these cells: a dense array of float32."""
    rows, columns = np.meshgrid(joinids, np.arange(n_genes), indexing="ij")
    return np.where((rows + columns) % 2 == 1, rows + columns * 1e-4, 0).astype(np.float32)


LARGE = 2**24 + 1
"""The smallest positive integer that float32 does not have."""


def counts(joinids, n_genes):
    """Counts from 0 to 119 where `values` has values: a dense array of int64."""
    rows, columns = np.meshgrid(joinids, np.arange(n_genes), indexing="ij")
    return np.where((rows + columns) % 2 == 1, (rows * 7 + columns * 3) % 120, 0)


def fractions(joinids, n_genes):
    """Multiples of 1/8 up to 2^40: a dense array of float64. float32 has all but `INEXACT`."""
    found = counts(joinids, n_genes) / 8
    rows, columns = np.meshgrid(joinids, np.arange(n_genes), indexing="ij")
    found[(rows == 50) & (columns == 3)] = 2.0**40
    for (cell, gene), value in INEXACT.items():
        found[(rows == cell) & (columns == gene)] = value
    return found


INEXACT = {(40, 3): 0.1, (71, 3): 2.0**40 + 1}
"""Values of `fractions` that float32 does not have, by cell and gene."""


def places(joinids):
    """An array of obsm: three columns of float32."""
    return np.stack([joinids, joinids % 7, -joinids], axis=1).astype(np.float32)


def obs_columns(joinids):
    """Arrow columns of obs for these cells."""
    joinids = np.asarray(joinids, np.int64)
    kinds = pa.array(KINDS, pa.large_string())
    return {
        "soma_joinid": pa.array(joinids),
        "label": pa.array([str(joinid) for joinid in joinids], pa.large_string()),
        "kind": pa.DictionaryArray.from_arrays(pa.array(joinids % 3, pa.int8()), kinds),
        "donor": pa.array(joinids // 7 % 5),
        "count_or_none": pa.array([None if row % 5 == 4 else row * 2 for row in joinids.tolist()]),
        "flag_or_none": pa.array([None if row % 6 == 1 else row % 2 == 0 for row in joinids]),
        "share": pa.array(joinids / 8),
    }


def var_columns(n_genes):
    """Arrow columns of var."""
    return {
        "soma_joinid": pa.array(np.arange(n_genes)),
        "feature_id": pa.array([f"ENSG{gene:05}" for gene in range(n_genes)], pa.large_string()),
    }
