"""Every way of selecting a part by a query of tiledbsoma: the loader delivers what the query has. Run
by Python with tiledbsoma and somafeed.

Usage: query_parts.py URI
"""

import dataclasses
import sys

import numpy as np
import pyarrow as pa
import somafeed
import tiledbsoma
from tiledbsoma import AxisQuery

uri = sys.argv[1]
QUERIES = {
    "all": (None, None),
    "cells from to": (AxisQuery(coords=(slice(10, 29),)), None),
    "one cell": (AxisQuery(coords=(7,)), None),
    "listed cells": (AxisQuery(coords=([40, 3, 9],)), None),
    "cells of an array": (AxisQuery(coords=(np.array([5, 2], np.int64),)), None),
    "cells of Arrow": (AxisQuery(coords=(pa.array([5, 2, 30]),)), None),
    "filtered cells": (AxisQuery(value_filter="soma_joinid > 60"), None),
    "both": (AxisQuery(coords=(slice(0, 50),), value_filter="soma_joinid > 40"), None),
    "no cell": (AxisQuery(value_filter="soma_joinid < 0"), None),
    "genes": (None, AxisQuery(coords=([4, 1],))),
    "filtered genes": (None, AxisQuery(value_filter="soma_joinid != 2")),
    "cells and genes": (AxisQuery(coords=(slice(20, 80),)), AxisQuery(coords=(slice(1, 3),))),
}


def delivered(data):
    """All rows of X, and their joinids."""
    rows = [(X, obs["soma_joinid"]) for X, obs in data]
    if not rows:
        return np.zeros(data.dataset.shape), []
    return np.concatenate([X for X, _ in rows]), np.concatenate([ids for _, ids in rows]).tolist()


def stored(query):
    """What tiledbsoma itself reads."""
    cells, genes = (ids.to_pylist() for ids in (query.obs_joinids(), query.var_joinids()))
    values = np.zeros((len(cells), len(genes)))
    for table in query.X("raw").tables():
        rows = np.searchsorted(cells, table["soma_dim_0"])
        columns = [genes.index(gene) for gene in table["soma_dim_1"].to_pylist()]
        values[rows, columns] = table["soma_data"]
    return values, cells


def check(data, query):
    X, joinids = delivered(data)
    values, cells = stored(query)
    assert joinids == cells, (joinids, cells)
    np.testing.assert_array_equal(X, values)


options = {"batch_size": 16, "shuffle": False}
with tiledbsoma.Experiment.open(uri) as experiment:
    for name, (cells, genes) in QUERIES.items():
        with experiment.axis_query("RNA", obs_query=cells, var_query=genes) as query:
            try:
                check(somafeed.ExperimentDataset(query, "raw", **options), query)
                locator = somafeed.XLocator.create(experiment, "RNA", "raw")
                ids = somafeed.QueryIDs(
                    obs_joinids=query.obs_joinids(), var_joinids=query.var_joinids()
                )
                by_ids = {"x_locator": locator, "query_ids": ids}
                check(somafeed.ExperimentDataset(**by_ids, **options), query)
            except Exception as error:
                raise AssertionError(f"{name}: {error}") from error

    # Parts of ids and other places are honoured, and changes after the data set was made are not.
    with experiment.axis_query("RNA") as query:
        joinids = query.obs_joinids().to_numpy().copy()
        config = dict(locator.tiledb_config)
        locator = dataclasses.replace(locator, tiledb_config=config)
        ids = somafeed.QueryIDs(obs_joinids=joinids, var_joinids=query.var_joinids())
        data = somafeed.ExperimentDataset(x_locator=locator, query_ids=ids, **options)
        config["vfs.s3.region"] = "elsewhere"
        joinids[:] = 0
        check(data, query)
        assert "vfs.s3.region" not in data.x_locator.tiledb_config
        few = dataclasses.replace(ids, obs_joinids=[8, 4], var_joinids=[2])
        data = somafeed.ExperimentDataset(x_locator=locator, query_ids=few, **options)
        assert (delivered(data)[1], data.dataset.shape) == ([4, 8], (2, 1))
        nowhere = dataclasses.replace(locator, layer_name="none")
        try:
            somafeed.ExperimentDataset(x_locator=nowhere, query_ids=few)
        except ValueError as error:
            assert "none" in str(error)
        else:
            raise AssertionError("another layer was read")
    opened = somafeed.Experiment(uri)
    for name in ("uri", "config", "timestamp"):
        try:
            setattr(opened, name, None)
        except AttributeError:
            continue
        raise AssertionError(f"{name} of an experiment can be set")
    opened.config["vfs.s3.region"] = "elsewhere"
    assert "vfs.s3.region" not in opened.config
print("as tiledbsoma has them")
