"""Writes a small experiment with tiledbsoma. Run by Python with tiledbsoma, which the tests of
somafeed do not need otherwise.

Usage: write_experiment.py URI START STOP STEP N_GENES

Cells have the joinids of a range. Values are those of `board.py`.
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


def write(uri, joinids, n_genes):
    with tiledbsoma.Experiment.create(uri) as experiment:
        measurements = experiment.add_new_collection("ms")
        rna = measurements.add_new_collection("RNA", tiledbsoma.Measurement)
        rna.add_new_collection("X", tiledbsoma.Collection)
    obs = pa.table(board.obs_columns(joinids))
    var = pa.table(board.var_columns(n_genes))
    largest = int(joinids[-1])
    write_frame(f"{uri}/obs", obs, largest)
    write_frame(f"{uri}/ms/RNA/var", var, n_genes - 1)
    rows, columns = (part.ravel() for part in np.meshgrid(joinids, range(n_genes), indexing="ij"))
    values = board.values(joinids, n_genes).ravel()
    stored = values != 0
    x_uri = f"{uri}/ms/RNA/X/raw"
    shape = (largest + 1, n_genes)
    with tiledbsoma.SparseNDArray.create(x_uri, type=pa.float32(), shape=shape) as x:
        x.write(
            pa.table({
                "soma_dim_0": pa.array(rows[stored], pa.int64()),
                "soma_dim_1": pa.array(columns[stored], pa.int64()),
                "soma_data": pa.array(values[stored], pa.float32()),
            })
        )
    with tiledbsoma.open(uri, "w") as experiment:
        experiment.set("obs", tiledbsoma.open(f"{uri}/obs"), use_relative_uri=True)
    with tiledbsoma.open(f"{uri}/ms/RNA", "w") as rna:
        rna.set("var", tiledbsoma.open(f"{uri}/ms/RNA/var"), use_relative_uri=True)
    with tiledbsoma.open(f"{uri}/ms/RNA/X", "w") as layers:
        layers.set("raw", tiledbsoma.open(x_uri), use_relative_uri=True)


if __name__ == "__main__":
    uri, *numbers = sys.argv[1:]
    start, stop, step, n_genes = map(int, numbers)
    write(uri, np.arange(start, stop, step), n_genes)
