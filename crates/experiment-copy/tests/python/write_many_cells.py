"""Writes an AnnData whose matrices take several fragments, in Zarr and as .h5ad.

Usage: write_many_cells.py FOLDER
"""

import json
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp

folder = Path(sys.argv[1])
n_cells, n_genes = 9_000, 40
rng = np.random.default_rng(1)


def counts(n_columns):
    x = sp.random(n_cells, n_columns, density=0.2, format="csr", dtype="f4", random_state=rng)
    x.data = np.ceil(x.data * 9).astype("f4")
    # The last rows of a fragment, and all of another, are empty.
    kept = np.ones(n_cells, bool)
    kept[2_000:2_048] = kept[4_096:6_144] = False
    x = sp.csr_matrix(sp.diags(kept.astype("f4")) @ x)
    x.eliminate_zeros()
    return x


obs = pd.DataFrame(
    {"donor": pd.Categorical(rng.choice(["a", "b"], n_cells)), "n": np.arange(n_cells)},
    index=[f"cell {i}" for i in range(n_cells)],
)
genes = pd.DataFrame(index=[f"gene {i}" for i in range(n_genes)])
raw = anndata.AnnData(counts(n_genes + 3), obs=obs)
data = anndata.AnnData(counts(n_genes), obs=obs, var=genes)
data.raw = raw
data.layers["second"] = counts(n_genes)
data.obsm["X_pca"] = rng.normal(size=(n_cells, 3)).astype("f4")
data.uns = {"list": ["a", "b"], "title": "many", "nested": {"list": ["c"], "n": 3}}
data.write_h5ad(folder / "many.h5ad")
data.write_zarr(folder / "many.zarr")
print(json.dumps({"n_cells": n_cells}))
