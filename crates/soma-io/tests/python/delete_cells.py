"""Deletes cells of an experiment that write_experiment.py made, in every way that tiledbsoma has. Prints the time after each
deletion, and what tiledbsoma reads as of it.

Usage: delete_cells.py URI
"""

import json
import sys
import time

import pyarrow as pa
import tiledbsoma

from check_experiment import read_experiment


def moment():
    """The time in milliseconds, apart from what is before and what comes after."""
    time.sleep(0.003)
    now = time.time_ns() // 1_000_000
    time.sleep(0.003)
    return now


def of_axis(uri, axis, *arguments, **options):
    with tiledbsoma.Experiment.open(uri, mode="d") as experiment:
        delete = experiment.obs_axis_delete if axis == "obs" else experiment.var_axis_delete
        delete(*arguments, **options)


def of_frame(uri, value_filter, coords=()):
    with tiledbsoma.DataFrame.open(uri, mode="d") as frame:
        frame.delete_cells(coords, value_filter=value_filter)


def of_layer(uri, coords):
    with tiledbsoma.SparseNDArray.open(uri, mode="d") as x:
        x.delete_cells(coords)


def write(uri, rows, genes, values):
    with tiledbsoma.SparseNDArray.open(uri, mode="w") as x:
        columns = {"soma_dim_0": rows, "soma_dim_1": genes, "soma_data": pa.array(values, pa.float32())}
        x.write(pa.table(columns))


def steps(uri):
    obs, var, x = f"{uri}/obs", f"{uri}/ms/RNA/var", f"{uri}/ms/RNA/X"
    yield lambda: None
    yield lambda: of_axis(uri, "obs", value_filter="kind == 'kind 1 ü'")
    yield lambda: of_axis(uri, "obs", ([0, 5, 8, 900, 2000],))
    yield lambda: of_axis(uri, "var", measurement_name="RNA", coords=(slice(10, 50),))
    yield lambda: of_layer(f"{x}/raw", (slice(0, 100), slice(200, 400)))
    # Cells in places that were deleted, and another deletion of one of them.
    yield lambda: write(f"{x}/default", [0, 0, 5, 8], [60, 61, 60, 60], [1.5, 2.5, 3.5, 4.5])
    yield lambda: of_layer(f"{x}/default", ([0, 100, 104], slice(None, 60)))
    # Null values meet no comparison, neither this one nor its opposite.
    yield lambda: of_frame(obs, "text_or_none == 'éxx' or (int32 < -110 and truth == True)")
    yield lambda: of_frame(obs, "kind_or_none in ['kind 3 ü', 'kind 4 ü']", (slice(0, 700),))
    yield lambda: of_frame(obs, "uint16 not in [1, 2, 3] and float32 > 9.0 or level == 'low'", (slice(1300, 2500),))
    yield lambda: of_frame(var, "text >= 'éé' and moment_ms < 0 and moment_ms > -100000000000")


def main(uri):
    states = []
    for step in steps(uri):
        step()
        at = moment()
        states.append({"at": at, "holds": read_experiment(uri, timestamp=at)})
    json.dump(states, sys.stdout)


main(*sys.argv[1:])
