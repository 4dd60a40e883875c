"""Compares an experiment with the copy of it that was laid out anew, as tiledbsoma reads both. Fails where they differ."""

import json
import sys

import numpy as np
import scipy.sparse
import tiledbsoma


def read(uri):
    with tiledbsoma.Experiment.open(uri) as experiment:
        obs = experiment.obs.read().concat().to_pandas()
        rna = experiment.ms["RNA"]
        var = rna.var.read().concat().to_pandas()
        cells = rna.X["raw"].read().tables().concat()
        names = [str(field.type) for field in cells.schema]
        parts = [cells.column(name).to_numpy() for name in ("soma_dim_0", "soma_dim_1", "soma_data")]
        x = scipy.sparse.csr_matrix((parts[2], (parts[0], parts[1])), shape=rna.X["raw"].shape)
    return obs, var, x, names[2]


def main():
    obs, var, x, _ = read(sys.argv[1])
    new_obs, new_var, new_x, value_type = read(sys.argv[2])
    shuffled = "source_joinid" in new_obs.columns
    order = new_obs["source_joinid"].to_numpy() if shuffled else np.arange(len(obs))
    assert sorted(order) == list(range(len(obs)))
    assert shuffled == bool((order != np.arange(len(obs))).any())
    assert list(new_obs["soma_joinid"]) == list(range(len(obs)))
    for name in obs.columns.drop("soma_joinid"):
        assert new_obs[name].dtype == obs[name].dtype, name
        assert new_obs[name].astype(object).tolist() == obs[name].astype(object).to_numpy()[order].tolist(), name
    assert set(new_obs.columns) - {"source_joinid"} == set(obs.columns)
    assert new_var.equals(var)
    wanted = x[order]
    assert new_x.shape == wanted.shape
    assert new_x.nnz == wanted.nnz
    new_x.sort_indices()
    wanted.sort_indices()
    assert (new_x.indptr == wanted.indptr).all()
    assert (new_x.indices == wanted.indices).all()
    assert (new_x.data.view(np.uint32) == wanted.data.view(np.uint32)).all()
    told = {"cells": len(new_obs), "genes": len(new_var), "nnz": int(new_x.nnz), "shuffled": shuffled, "type": value_type}
    print(json.dumps(told))


main()
