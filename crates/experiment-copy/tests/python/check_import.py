"""Compares an experiment that was copied from an AnnData with the one that tiledbsoma.io made of it: obs,
and of each measurement var, X, obsm and the plain values of uns. Prints how much was equal.

Usage: check_import.py ours theirs
"""

import json
import sys

import numpy as np
import tiledbsoma
import tiledbsoma.io


def frame(stored):
    """The columns by name, categories as their values."""
    table = stored.read().concat().sort_by("soma_joinid").to_pandas()
    return {name: table[name].astype(object).where(table[name].notna(), None).tolist() for name in table.columns}


def matrix(stored):
    """Places and values as float32, without zeros."""
    table = stored.read().tables().concat()
    rows, columns, values = (table[name].to_numpy() for name in ("soma_dim_0", "soma_dim_1", "soma_data"))
    values = values.astype(np.float32)
    order = np.lexsort((columns, rows))
    order = order[values[order] != 0]
    return rows[order], columns[order], values[order]


def compare_frames(ours, theirs, where):
    ours, theirs = frame(ours), frame(theirs)
    assert sorted(ours) == sorted(theirs), (where, sorted(ours), sorted(theirs))
    for name, expected in theirs.items():
        assert ours[name] == expected, (where, name)
    return len(theirs)


def compare_matrices(ours, theirs, where):
    assert sorted(ours) == sorted(theirs), (where, sorted(ours), sorted(theirs))
    n_values = 0
    for name in theirs:
        assert ours[name].shape == theirs[name].shape, (where, name)
        for mine, expected in zip(matrix(ours[name]), matrix(theirs[name]), strict=True):
            assert np.array_equal(mine, expected), (where, name)
            n_values += len(expected)
    return n_values


def compare_uns(ours, theirs, found):
    """Counts the values that are in both, and lists what only tiledbsoma.io copies."""
    plain = lambda of: {name: value for name, value in of.metadata.items() if not name.startswith("soma_")}
    expected = plain(theirs)
    assert plain(ours) == expected, (plain(ours), expected)
    assert all(type(value) is type(expected[name]) for name, value in plain(ours).items()), expected
    found["values"] += len(expected)
    assert set(ours) <= set(theirs)
    for name in theirs:
        if name not in ours:
            found["left out"].append(name)
        elif isinstance(theirs[name], tiledbsoma.Collection):
            compare_uns(ours[name], theirs[name], found)
        else:
            found["lists"] += compare_frames(ours[name], theirs[name], f"uns {name}") - 1
            assert ours[name].metadata["soma_uns_outgest_hint"] == theirs[name].metadata["soma_uns_outgest_hint"]


def main():
    ours, theirs = (tiledbsoma.open(uri) for uri in sys.argv[1:3])
    told = {"columns": compare_frames(ours.obs, theirs.obs, "obs"), "values of X": 0, "values of obsm": 0}
    assert sorted(ours.ms) == sorted(theirs.ms)
    uns = {"values": 0, "lists": 0, "left out": []}
    for name in theirs.ms:
        mine, expected = ours.ms[name], theirs.ms[name]
        told["columns"] += compare_frames(mine.var, expected.var, f"var of {name}")
        told["values of X"] += compare_matrices(mine.X, expected.X, f"X of {name}")
        assert ("obsm" in mine) == ("obsm" in expected)
        if "obsm" in expected:
            told["values of obsm"] += compare_matrices(mine.obsm, expected.obsm, f"obsm of {name}")
        assert ("uns" in mine) == ("uns" in expected)
        if "uns" in expected:
            compare_uns(mine["uns"], expected["uns"], uns)
    # What is copied goes back to an AnnData, as from tiledbsoma's own.
    back = tiledbsoma.io.to_anndata(ours, "RNA", X_layer_name="X")
    assert back.n_obs == theirs.obs.count
    print(json.dumps(told | {"uns": uns}))


main()
