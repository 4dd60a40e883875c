"""Writes an experiment with the defaults of `tiledbsoma.io.from_anndata`, then appends rows after a gap."""

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse
import tiledbsoma
import tiledbsoma.io

N_OBS, N_VAR = 700, 300
# No cell has a joinid from N_OBS to below FIRST_ADDED.
FIRST_ADDED, N_ALL = 720, 760


def obs_frame(rows):
    types, stages = ["B cell", "T cell", "Müller glia", "never seen"], ["early", "mid", "late"]
    return pd.DataFrame(
        {
            "cell_type": pd.Categorical([None if row % 11 == 3 else types[row % 3] for row in rows], types),
            "stage": pd.Categorical([stages[row // 7 % 3] for row in rows], stages, ordered=True),
            "donor": pd.Categorical([f"donor {row % 40}" for row in rows], [f"donor {code}" for code in range(40)]),
            "count_or_none": pd.array([None if row % 5 == 0 else row % 90 for row in rows], "Int64"),
            "truth_or_none": pd.array([None if row % 7 == 0 else row % 2 == 0 for row in rows], "boolean"),
            "share": [np.nan if row % 13 == 0 else row / 7 for row in rows],
            "text": [f"é{row}" for row in rows],
            "size": [1000.0 + row / 3 for row in rows],
        },
        index=[f"cell {row}" for row in rows],
    )


def var_frame():
    kinds = ["coding", "ribosomal", "pseudo"]
    return pd.DataFrame(
        {
            "feature_id": [f"ENSG{97 * gene % N_VAR:05}" for gene in range(N_VAR)],
            "kind": pd.Categorical([None if gene % 9 == 4 else kinds[gene % 3] for gene in range(N_VAR)]),
            "length_or_none": pd.array([None if gene % 4 == 0 else 10 * gene for gene in range(N_VAR)], "Int64"),
        },
        index=[f"gene {gene}" for gene in range(N_VAR)],
    )


def counts(rows, seed):
    """A tenth of the values, some beyond 16 bits; every sixth row has none."""
    drawn = np.random.default_rng(seed)
    values = drawn.geometric(0.2, (len(rows), N_VAR)).astype(np.float32)
    values[drawn.random(values.shape) < 0.001] = 70_001
    values[drawn.random(values.shape) > 0.1] = 0
    values[[row % 6 == 2 for row in rows]] = 0
    return scipy.sparse.csr_matrix(values)


def columns_of_cells(n_columns, seed, dtype):
    """Numbers of either sign, a fifth of them zeros, which are not stored."""
    drawn = np.random.default_rng(seed)
    values = drawn.normal(size=(N_OBS, n_columns)).astype(dtype)
    values[drawn.random(values.shape) < 0.2] = 0
    return values


def add_rows(uri):
    """Appends cells after a gap in the joinids."""
    rows = np.arange(FIRST_ADDED, N_ALL)
    tiledbsoma.io.resize_experiment(uri, nobs=N_ALL, nvars={"RNA": N_VAR})
    with tiledbsoma.open(f"{uri}/obs", "r") as obs:
        schema = obs.schema
    frame = obs_frame(rows).assign(soma_joinid=rows, obs_id=[f"cell {row}" for row in rows])
    with tiledbsoma.open(f"{uri}/obs", "w") as obs:
        obs.write(pa.Table.from_pandas(frame, schema=schema, preserve_index=False))
    added = counts(rows, 2).tocoo()
    with tiledbsoma.open(f"{uri}/ms/RNA/X/data", "w") as x:
        x.write(
            pa.table({
                "soma_dim_0": pa.array(added.row + FIRST_ADDED, pa.int64()),
                "soma_dim_1": pa.array(added.col, pa.int64()),
                "soma_data": pa.array(added.data, pa.float32()),
            })
        )


    # Of the added cells only some have values in obsm.
    with tiledbsoma.open(f"{uri}/ms/RNA/obsm/X_pca", "w") as array:
        some = np.arange(FIRST_ADDED, N_ALL, 3)
        array.write(
            pa.table({
                "soma_dim_0": pa.array(some, pa.int64()),
                "soma_dim_1": pa.array(some % 5, pa.int64()),
                "soma_data": pa.array(some / 7, pa.float32()),
            })
        )


def write(uri):
    x = counts(range(N_OBS), 1)
    layers = {"doubles": x.astype(np.float64) / 7, "integers": x.astype(np.int32)}
    obsm = {"X_pca": columns_of_cells(5, 3, np.float32), "X_umap": columns_of_cells(2, 4, np.float64)}
    data = anndata.AnnData(X=x, obs=obs_frame(range(N_OBS)), var=var_frame(), layers=layers, obsm=obsm)
    tiledbsoma.io.from_anndata(uri, data, measurement_name="RNA")
    with tiledbsoma.open(f"{uri}/ms/RNA/X", "w") as layers:
        layers.add_new_dense_ndarray("dense", type=pa.float32(), shape=(N_OBS, N_VAR))
    add_rows(uri)
