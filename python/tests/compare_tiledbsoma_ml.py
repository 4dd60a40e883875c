"""Compares `ExperimentDataset` with that of tiledbsoma_ml 0.1.0, on queries of tiledbsoma.

Not among the tests of `cargo xtask test`, because tiledbsoma_ml needs older packages than they use.
docs/python-package.md has the command.
"""

import itertools
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tiledbsoma
import tiledbsoma_ml
from conftest import tiledbsoma_python
from pandas.testing import assert_frame_equal
from scipy import sparse
from somafeed import ExperimentDataset

REPOSITORY = Path(__file__).parents[2]
COLUMNS = ["soma_joinid", "cell_type", "stage", "donor", "share", "text", "size"]
NULLABLE = ["count_or_none", "truth_or_none", "soma_joinid"]


@pytest.fixture(scope="session")
def uri(tmp_path_factory):
    """What `tiledbsoma.io.from_anndata` writes: categories, nulls, a gap in the joinids."""
    uri = str(tmp_path_factory.mktemp("experiments") / "experiment")
    script = f"import default_experiment; default_experiment.write({uri!r})"
    folder = REPOSITORY / "crates/loader/tests/python"
    subprocess.run([tiledbsoma_python(), "-c", script], cwd=folder, check=True)
    return uri


QUERIES = {
    "all": {},
    "filter": {"obs_query": tiledbsoma.AxisQuery(value_filter="cell_type == 'B cell' and share > 20")},
    "list": {"obs_query": tiledbsoma.AxisQuery(coords=([3, 9, 4, 600, 755],))},
    "genes": {"var_query": tiledbsoma.AxisQuery(value_filter="kind in ['coding', 'pseudo']")},
    "range": {
        "obs_query": tiledbsoma.AxisQuery(coords=(slice(100, 300),)),
        "var_query": tiledbsoma.AxisQuery(coords=(slice(10, 90),)),
    },
    "none": {"obs_query": tiledbsoma.AxisQuery(value_filter="cell_type == 'no such type'")},
}


@pytest.fixture(params=QUERIES)
def query(uri, request):
    with tiledbsoma.Experiment.open(uri) as experiment:
        with experiment.axis_query("RNA", **QUERIES[request.param]) as query:
            yield query


def both(query, **options):
    options = {"layer_name": "data", "obs_column_names": COLUMNS, **options}
    return tiledbsoma_ml.ExperimentDataset(query, **options), ExperimentDataset(query, **options)


def assert_same_x(theirs, ours):
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if sparse.issparse(theirs):
        assert ours.indices.dtype == theirs.indices.dtype
        assert ours.indptr.dtype == theirs.indptr.dtype
        theirs, ours = theirs.toarray(), ours.toarray()
    else:
        assert ours.flags.c_contiguous == theirs.flags.c_contiguous
        assert ours.flags.writeable == theirs.flags.writeable
    np.testing.assert_array_equal(ours, theirs, strict=True)


def assert_same(theirs, ours):
    for (their_x, their_obs), (our_x, our_obs) in itertools.zip_longest(theirs, ours):
        assert_same_x(their_x, our_x)
        assert_frame_equal(our_obs, their_obs, check_index_type="exact")
        assert type(our_obs.index) is type(their_obs.index)


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
@pytest.mark.parametrize("sparse_x", [False, True])
def test_batches_in_order(query, batch_size, sparse_x):
    """Batch for batch the same, if nothing is shuffled."""
    theirs, ours = both(query, shuffle=False, batch_size=batch_size, return_sparse_X=sparse_x)
    assert ours.shape == theirs.shape and len(ours) == len(theirs)
    assert_same(theirs, ours)


TYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float64"
)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sparse_x", [False, True])
def test_types_of_values(make_board, dtype, sparse_x):
    uri = make_board(0, 100, 1, 6, TYPES).uri
    options = {"layer_name": dtype, "obs_column_names": ["soma_joinid", "kind", "flag_or_none"]}
    with tiledbsoma.Experiment.open(uri) as experiment, experiment.axis_query("RNA") as query:
        assert_same(*both(query, shuffle=False, batch_size=7, return_sparse_X=sparse_x, **options))


@pytest.mark.parametrize("columns", [["soma_joinid"], ["text", "soma_joinid"], ["cell_type"], NULLABLE])
@pytest.mark.parametrize("eager", [True, False])
def test_columns(query, columns, eager):
    options = {"obs_column_names": columns, "use_eager_fetch": eager}
    assert_same(*both(query, shuffle=False, batch_size=50, **options))


def by_joinid(batches):
    found = {}
    for x, obs in batches:
        x = x.toarray() if sparse.issparse(x) else np.atleast_2d(x)
        for row, (_, cell) in zip(x, obs.iterrows(), strict=True):
            assert cell["soma_joinid"] not in found
            found[cell["soma_joinid"]] = (row.tolist(), cell.fillna("null").tolist())
    return found


@pytest.mark.parametrize("sparse_x", [False, True])
def test_shuffled_cells(query, sparse_x):
    """The same cells with the same values and obs, in another order."""
    options = {"shuffle_chunk_size": 4, "io_batch_size": 16, "batch_size": 10, "seed": 5}
    theirs, ours = both(query, return_sparse_X=sparse_x, **options)
    assert by_joinid(ours) == by_joinid(theirs)


@pytest.mark.parametrize("method", ["deterministic", "multinomial", "stochastic_rounding"])
@pytest.mark.parametrize("fractions", [(0.8, 0.2), (0.5, 0.3, 0.2), (1.0,)])
def test_splits(query, method, fractions):
    theirs, ours = both(query)
    if len(ours) == 0:
        # Theirs fails to split no cells.
        assert [len(part) for part in ours.random_split(*fractions)] == [0] * len(fractions)
        return
    for seed in range(20):
        their_parts = theirs.random_split(*fractions, seed=seed, method=method)
        our_parts = ours.random_split(*fractions, seed=seed, method=method)
        for their_part, our_part in zip(their_parts, our_parts, strict=True):
            np.testing.assert_array_equal(
                our_part.query_ids.obs_joinids, their_part.query_ids.obs_joinids, strict=True
            )


def test_attributes(query):
    theirs, ours = both(query, seed=3, batch_size=7)
    for name in (
        "batch_size", "io_batch_size", "shuffle", "shuffle_chunk_size", "seed", "return_sparse_X",
        "use_eager_fetch", "epoch", "rank", "world_size", "measurement_name", "layer_name",
        "obs_column_names", "shape",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.x_locator.uri == theirs.x_locator.uri
    assert ours.x_locator.tiledb_timestamp_ms == theirs.x_locator.tiledb_timestamp_ms
    np.testing.assert_array_equal(ours.query_ids.var_joinids, theirs.query_ids.var_joinids)


def test_their_locator_and_ids(query):
    theirs = tiledbsoma_ml.ExperimentDataset(query, layer_name="data", batch_size=9, shuffle=False)
    parts = {"x_locator": theirs.x_locator, "query_ids": theirs.query_ids}
    assert_same(theirs, ExperimentDataset(**parts, batch_size=9, shuffle=False))


def test_pickled_queries(query):
    _, ours = both(query, batch_size=9, shuffle=False)
    pickled = pickle.dumps(ours)
    assert len(pickled) < 10_000
    assert_same(ours, pickle.loads(pickled))


def test_the_time_at_which_the_experiment_was_opened_counts(uri):
    times = sorted(
        int(file.name.split("_")[2]) for file in Path(f"{uri}/ms/RNA/X/data/__fragments").iterdir()
    )
    with tiledbsoma.Experiment.open(uri, tiledb_timestamp=times[0]) as experiment:
        with experiment.axis_query("RNA") as query:
            _, ours = both(query, shuffle=False, batch_size=100, obs_column_names=["soma_joinid"])
            assert ours.x_locator.tiledb_timestamp_ms == times[0]
            assert_same(*both(query, shuffle=False, batch_size=100, obs_column_names=["soma_joinid"]))
