"""Compares a slice with tiledbsoma's selection of the source, and prints its size.

Usage: check_slice.py SOURCE TARGET LAYER SELECTION

SELECTION is JSON: obs_filter, var_filter (strings or null), obs_joinids, var_joinids (lists or null).
"""

import json
import sys

import numpy as np
import pyarrow as pa
import tiledbsoma

assert tiledbsoma.__version__ == "2.3.0", f"tiledbsoma 2.3.0 is needed, this is {tiledbsoma.__version__}"


def query(selection, axis):
    coords, value_filter = selection[f"{axis}_joinids"], selection[f"{axis}_filter"]
    coords = () if coords is None else (np.asarray(coords, dtype=np.int64),)
    return tiledbsoma.AxisQuery(coords=coords, value_filter=value_filter)


def same_frame(found, expected, what):
    """Every column with its type, categories and order; joinids count on from 0."""
    assert found.schema.names == expected.schema.names, (what, found.schema.names, expected.schema.names)
    assert found["soma_joinid"].to_pylist() == list(range(len(expected))), what
    for field in expected.schema:
        name = field.name
        assert found.schema.field(name).type == field.type, (what, name, found.schema.field(name).type, field.type)
        if name == "soma_joinid":
            continue
        left, right = found[name], expected[name]
        if pa.types.is_dictionary(field.type):
            assert found.schema.field(name).type.ordered == field.type.ordered, (what, name)
            left, right = left.unify_dictionaries(), right.unify_dictionaries()
            if left.num_chunks and right.num_chunks:
                assert left.chunk(0).dictionary.equals(right.chunk(0).dictionary), (what, name)
            left, right = left.to_pylist(), right.to_pylist()
            assert left == right, (what, name)
            continue
        left, right = left.combine_chunks(), right.combine_chunks()
        if pa.types.is_floating(field.type):
            # Two NaNs count as equal.
            bits = {pa.float32(): "i4", pa.float64(): "i8"}[field.type]
            assert left.is_null().equals(right.is_null()), (what, name)
            left, right = (side.drop_null().to_numpy().view(bits) for side in (left, right))
            assert np.array_equal(left, right), (what, name)
        else:
            assert left.equals(right), (what, name)


def triples(table, rows=None, columns=None):
    """Row, column and bits of the value, sorted; joinids looked up among `rows` and `columns`."""
    row, column = table["soma_dim_0"].to_numpy(), table["soma_dim_1"].to_numpy()
    if rows is not None:
        row, column = np.searchsorted(rows, row), np.searchsorted(columns, column)
    values = table["soma_data"].to_numpy()
    bits = values.astype(np.float32).view("i4")
    assert np.array_equal(bits.view("f4").astype(values.dtype), values, equal_nan=values.dtype.kind == "f")
    order = np.lexsort((column, row))
    return np.stack([row[order], column[order], bits[order]])


def main(source, target, layer, selection):
    selection = json.loads(selection)
    with tiledbsoma.open(source) as source, tiledbsoma.open(target) as target:
        asked = {"obs_query": query(selection, "obs"), "var_query": query(selection, "var")}
        with source.axis_query("RNA", **asked) as wanted:
            obs, var = wanted.obs().concat(), wanted.var().concat()
            x = wanted.X(layer).tables().concat()
        measurement = target.ms["RNA"]
        same_frame(target.obs.read().concat(), obs, "obs")
        same_frame(measurement.var.read().concat(), var, "var")
        # Nullability in the schemas.
        for found, expected in ((target.obs, source.obs), (measurement.var, source.ms["RNA"].var)):
            assert [field.nullable for field in found.schema] == [field.nullable for field in expected.schema]
        found = measurement.X[layer]
        assert found.shape == (len(obs), len(var)), found.shape
        assert set(measurement.X) == {layer}
        found_table = found.read().tables().concat()
        assert found.schema.field("soma_data").type == pa.float32()
        expected = triples(x, obs["soma_joinid"].to_numpy(), var["soma_joinid"].to_numpy())
        assert np.array_equal(triples(found_table), expected), "X"
        assert found.nnz == len(x)
        with target.axis_query("RNA") as whole:
            assert whole.to_anndata(layer).shape == (len(obs), len(var))
        json.dump({"cells": len(obs), "genes": len(var), "nnz": len(x)}, sys.stdout)


main(*sys.argv[1:])
