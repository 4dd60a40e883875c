"""Writes an experiment whose obs is indexed by name, and has one joinid twice.

Usage: write_twice_numbered.py URI
"""

import sys

import pyarrow as pa
import tiledbsoma

with tiledbsoma.Experiment.create(sys.argv[1]) as experiment:
    rows = pa.table({"soma_joinid": pa.array([3, 4, 4], pa.int64()), "obs_id": ["a", "b", "c"]})
    obs = experiment.add_new_dataframe("obs", schema=rows.schema, index_column_names=["obs_id"], domain=[None])
    experiment.add_new_collection("ms")
    uri = obs.uri
with tiledbsoma.open(uri, "w") as obs:
    obs.write(rows)
print("{}")
