"""Cells that a query of tiledbsoma names: objects with its attributes are enough."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from batches import assert_board, joinids_of
from conftest import tiledbsoma_python
from somafeed import ExperimentDataset, QueryIDs, XLocator
from somafeed.sources import config_of


@dataclass
class Query:
    """Stands in for `tiledbsoma.ExperimentAxisQuery`."""

    uri: str
    cells: list
    genes: list
    context: object = field(default_factory=lambda: SimpleNamespace(tiledb_config={}))
    timestamp: int | None = 2**62
    measurement_name: str = "RNA"

    @property
    def experiment(self):
        return SimpleNamespace(
            uri=self.uri, tiledb_timestamp_ms=self.timestamp, context=self.context
        )

    def obs_joinids(self):
        return pa.array(self.cells, pa.int64())

    def var_joinids(self):
        return pa.array(self.genes, pa.int64())


@pytest.fixture
def query(experiment):
    return Query(experiment.uri, [*range(20, 60), 70], [*range(6)])


def test_a_query(experiment, query):
    ds = ExperimentDataset(query, "raw", shuffle=False, batch_size=8)
    assert joinids_of(ds) == query.cells
    assert_board(experiment, ds)
    assert ds.query_ids.obs_joinids.tolist() == query.cells
    assert ds.query_ids.var_joinids.tolist() == query.genes
    assert ds.x_locator.uri == experiment.uri
    assert ds.x_locator.tiledb_timestamp_ms == 2**62
    assert (ds.measurement_name, ds.layer_name) == ("RNA", "raw")
    assert ds.random_split(0.5, 0.5, seed=1)[0].x_locator == ds.x_locator


def test_genes_of_a_query_keep_their_order(experiment, query):
    query.genes = [3, 1]
    ds = ExperimentDataset(query, layer_name="raw", batch_size=41)
    (X, obs), = ds
    np.testing.assert_array_equal(X, experiment.values(obs["soma_joinid"])[:, [3, 1]])
    assert ds.query_ids.var_joinids.tolist() == [3, 1]


def test_cells_of_a_query_in_any_order_come_in_theirs(query):
    query.cells = [9, 2, 50, 1]
    assert joinids_of(ExperimentDataset(query, "raw", shuffle=False)) == [1, 2, 9, 50]


def test_a_query_of_nothing(query):
    query.cells = []
    ds = ExperimentDataset(query, "raw", batch_size=3)
    assert ds.shape == (0, 6) and list(ds) == []


def test_the_timestamp_of_a_query_counts(query):
    query.timestamp = 1
    with pytest.raises((ValueError, OSError)):
        ExperimentDataset(query, "raw")


def test_locator_and_ids(experiment, query):
    locator = XLocator.create(query.experiment, "RNA", "raw")
    assert locator.tiledb_config == {}
    ids = QueryIDs(obs_joinids=np.array([4, 5]), var_joinids=np.arange(6))
    ds = ExperimentDataset(x_locator=locator, query_ids=ids, batch_size=2, shuffle=False)
    assert joinids_of(ds) == [4, 5]
    assert_board(experiment, ds)


def test_query_and_layer_or_locator_and_ids(query):
    locator = XLocator.create(query.experiment, "RNA", "raw")
    ids = QueryIDs(obs_joinids=np.array([4, 5]), var_joinids=np.arange(6))
    wrong = [
        {"query": query}, {"layer_name": "raw"}, {"x_locator": locator}, {"query_ids": ids},
        {"query": query, "layer_name": "raw", "x_locator": locator, "query_ids": ids},
        {"query": query, "layer_name": "raw", "uri": query.uri},
        {"x_locator": locator, "query_ids": ids, "layer_name": "raw"},
    ]
    for options in wrong:
        with pytest.raises(ValueError, match="xor"):
            ExperimentDataset(**options)


@pytest.mark.parametrize(
    "options", [{"obs_filter": "donor == 1"}, {"var_joinids": [1]}, {"config": {"a": "b"}}]
)
def test_filters_are_for_addresses(query, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ExperimentDataset(query, "raw", **options)


def test_contexts_of_both_generations():
    parameters = {"vfs.s3.region": "us-west-2", "sm.memory": 10, "left.out": None, "unset": ""}
    expected = {"vfs.s3.region": "us-west-2", "sm.memory": "10"}
    for context in (
        SimpleNamespace(tiledb_config=parameters),
        SimpleNamespace(tiledb_config=lambda: parameters),
        SimpleNamespace(config=parameters),
    ):
        assert config_of(context) == expected
    assert config_of(None) == {}
    with pytest.raises(TypeError, match="SimpleNamespace"):
        config_of(SimpleNamespace())


def test_parts_by_queries_of_tiledbsoma(experiment):
    script = [tiledbsoma_python(), Path(__file__).parent / "query_parts.py", experiment.uri]
    ran = subprocess.run(script, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "as tiledbsoma has them"
