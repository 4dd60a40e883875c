"""Writes a small AnnData in Zarr with the cells of `write_experiment.py`. Run by Python with anndata.

Usage: write_anndata.py PATH N_CELLS N_GENES
"""

import sys

import anndata
import board
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse

path, n_cells, n_genes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
joinids = np.arange(n_cells)
# The types of Arrow that have nulls, as pandas names them.
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
obs = pa.table(board.obs_columns(joinids)).drop_columns("soma_joinid")
frame = obs.to_pandas()
for name in ("count_or_none", "flag_or_none"):
    frame[name] = obs[name].to_pandas(types_mapper=NULLABLE.get)
frame.index = [f"cell {joinid}" for joinid in joinids]
var = pa.table(board.var_columns(n_genes)).drop_columns("soma_joinid").to_pandas()
var.index = [f"gene {gene}" for gene in range(n_genes)]
values = board.values(joinids, n_genes)
data = anndata.AnnData(scipy.sparse.csr_matrix(values), obs=frame, var=var)
data.layers["squared"] = scipy.sparse.csr_matrix(values**2)
data.obsm["places"] = board.places(joinids)
data.write_zarr(path)
