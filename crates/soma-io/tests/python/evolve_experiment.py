"""Writes an experiment whose obs changes again and again, and prints the times between the changes.

Rows are written again, columns come, go and come back with another type, categories are added, the frame grows.

Usage: evolve_experiment.py URI
"""

import json
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import tiledbsoma
import tiledbsoma.io

N_OBS, N_VAR = 700, 30


def moment():
    """The time in milliseconds, apart from what is before and what comes after."""
    time.sleep(0.003)
    now = time.time_ns() // 1_000_000
    time.sleep(0.003)
    return now


def rows(joinids, kinds, step):
    """Some rows: numbers that tell the step, texts of changing length, categories."""
    joinids = np.asarray(joinids)
    kind = pa.DictionaryArray.from_arrays(pa.array(joinids % len(kinds), pa.int32()), pa.array(kinds))
    texts = [None if joinid % 5 == 0 else "ü" * (joinid % 7) + str(step) for joinid in joinids.tolist()]
    return pa.table({
        "soma_joinid": pa.array(joinids, pa.int64()),
        "obs_id": pa.array([f"cell {joinid}" for joinid in joinids.tolist()], pa.large_string()),
        "number": pa.array(joinids * 10 + step, pa.int32()),
        "text": pa.array(texts, pa.large_string()),
        "kind": kind,
    })


def write(uri, table):
    with tiledbsoma.open(f"{uri}/obs", "w") as obs:
        obs.write(table)


def update(uri, change):
    """Changes the columns of obs: `change` is given what obs holds, as pandas."""
    with tiledbsoma.Experiment.open(uri) as experiment:
        frame = experiment.obs.read().concat().to_pandas()
    with tiledbsoma.Experiment.open(uri, "w") as experiment:
        tiledbsoma.io.update_obs(experiment, change(frame).drop(columns="soma_joinid").set_index("obs_id"))


def main(uri):
    kinds = ["b", "a"]
    first = rows(range(500), kinds, 0)
    with tiledbsoma.Experiment.create(uri) as experiment:
        index = {"index_column_names": ["soma_joinid"]}
        experiment.add_new_dataframe("obs", schema=first.schema, domain=[[0, N_OBS - 101]], **index)
        measurement = experiment.add_new_collection("ms").add_new_collection("RNA", kind=tiledbsoma.Measurement)
        genes = pa.table({"soma_joinid": pa.array(range(N_VAR), pa.int64()), "name": [f"gene {gene}" for gene in range(N_VAR)]})
        var = measurement.add_new_dataframe("var", schema=genes.schema, domain=[[0, N_VAR - 1]], **index)
        var.write(genes)
        x = measurement.add_new_collection("X").add_new_sparse_ndarray("raw", type=pa.float32(), shape=(N_OBS - 100, N_VAR))
        x.write(pa.table({"soma_dim_0": [1, 7], "soma_dim_1": [2, 3], "soma_data": pa.array([1.0, 2.0], pa.float32())}))
        x.metadata["note"] = "ü"
        experiment.metadata.update({"answer": 42, "share": 0.25, "empty": ""})
    moments = [moment()]
    write(uri, first)
    moments.append(moment())
    # Some rows again, some twice again, with more categories.
    write(uri, rows(range(100, 300), kinds + ["c"], 1))
    moments.append(moment())
    write(uri, rows([5, 150, 299, 499], kinds + ["c", "d"], 2))
    moments.append(moment())
    # A column comes.
    update(uri, lambda frame: frame.assign(added=np.arange(len(frame)) / 3, word=pd.Categorical(["x", "y"] * (len(frame) // 2))))
    moments.append(moment())
    # Another goes, and comes back with another type.
    update(uri, lambda frame: frame.drop(columns=["number", "word"]))
    moments.append(moment())
    update(uri, lambda frame: frame.assign(number=[f"number {row}" for row in range(len(frame))]))
    moments.append(moment())
    # The frame grows; new rows do not have all columns of the others.
    with tiledbsoma.Experiment.open(uri, "w") as experiment:
        experiment.obs.tiledbsoma_resize_soma_joinid_shape(N_OBS)
        experiment.metadata["answer"] = 43
        del experiment.metadata["share"]
    with tiledbsoma.Experiment.open(uri) as experiment:
        whole = experiment.obs.read().concat()
    more = whole.slice(0, 50)
    more = more.set_column(0, "soma_joinid", pa.array(range(600, 650), pa.int64()))
    write(uri, more)
    moments.append(moment())
    json.dump({"moments": moments}, sys.stdout)


main(*sys.argv[1:])
