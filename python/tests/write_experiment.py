"""Writes a small experiment with tiledbsoma. Run by Python with tiledbsoma, which the tests of
somafeed do not need otherwise.

Usage: write_experiment.py URI START STOP STEP N_GENES [TYPE...]

Cells have the joinids of a range. Values are those of `board.py`. For each TYPE, X has a layer of that
name, of counts of that type; for int64 also a layer `large`, whose last value float32 does not have,
and for float64 a layer `fractions`.
"""

import sys

import board
import numpy as np
import pyarrow as pa
import tiledbsoma


def write_frame(uri, rows, largest):
    """Creates a data frame and writes it in a second step, as enumerations need."""
    domain = [(0, largest)]
    tiledbsoma.DataFrame.create(uri, schema=rows.schema, domain=domain).close()
    with tiledbsoma.open(uri, "w") as frame:
        frame.write(rows)


def write_array(collection, name, joinids, values):
    """Creates a sparse array as a member of a collection, with the values that are not zero."""
    rows, columns = values.nonzero()
    uri = f"{collection}/{name}"
    shape = (int(joinids[-1]) + 1, values.shape[1])
    of_type = pa.from_numpy_dtype(values.dtype)
    with tiledbsoma.SparseNDArray.create(uri, type=of_type, shape=shape) as array:
        array.write(
            pa.table({
                "soma_dim_0": pa.array(joinids[rows], pa.int64()),
                "soma_dim_1": pa.array(columns, pa.int64()),
                "soma_data": pa.array(values[rows, columns], of_type),
            })
        )
    with tiledbsoma.open(collection, "w") as members:
        members.set(name, tiledbsoma.open(uri), use_relative_uri=True)


def write(uri, joinids, n_genes, types):
    with tiledbsoma.Experiment.create(uri) as experiment:
        measurements = experiment.add_new_collection("ms")
        rna = measurements.add_new_collection("RNA", tiledbsoma.Measurement)
        rna.add_new_collection("X", tiledbsoma.Collection)
        rna.add_new_collection("obsm", tiledbsoma.Collection)
    obs = pa.table(board.obs_columns(joinids))
    var = pa.table(board.var_columns(n_genes))
    largest = int(joinids[-1])
    write_frame(f"{uri}/obs", obs, largest)
    write_frame(f"{uri}/ms/RNA/var", var, n_genes - 1)
    with tiledbsoma.open(uri, "w") as experiment:
        experiment.set("obs", tiledbsoma.open(f"{uri}/obs"), use_relative_uri=True)
    with tiledbsoma.open(f"{uri}/ms/RNA", "w") as rna:
        rna.set("var", tiledbsoma.open(f"{uri}/ms/RNA/var"), use_relative_uri=True)
    values = board.values(joinids, n_genes)
    write_array(f"{uri}/ms/RNA/X", "raw", joinids, values)
    write_array(f"{uri}/ms/RNA/X", "squared", joinids, values**2)
    for name in types:
        write_array(f"{uri}/ms/RNA/X", name, joinids, board.counts(joinids, n_genes).astype(name))
    if "int64" in types:
        large = board.counts(joinids, n_genes)
        large[-1, -1] = board.LARGE
        write_array(f"{uri}/ms/RNA/X", "large", joinids, large)
    if "float64" in types:
        write_array(f"{uri}/ms/RNA/X", "fractions", joinids, board.fractions(joinids, n_genes))
    write_array(f"{uri}/ms/RNA/obsm", "places", joinids, board.places(joinids))


if __name__ == "__main__":
    uri, *numbers = sys.argv[1:6]
    start, stop, step, n_genes = map(int, numbers)
    write(uri, np.arange(start, stop, step), n_genes, sys.argv[6:])
