"""Further layers and arrays of obsm beside X."""

import pickle

import board as values_of
import numpy as np
import pytest
import torch
from batches import dense
from somafeed import ExperimentDataset, experiment_dataloader
from test_query import Query


def dataset(board, **options):
    options = {"layers": ["squared"], "obsm": ["places"], "batch_size": 7, "seed": 1, **options}
    return ExperimentDataset(uri=board.uri, **options)


def assert_beside(board, batches, dtype=np.float32):
    n_cells = 0
    for X, obs, beside in batches:
        joinids = obs["soma_joinid"].to_numpy()
        n_cells += len(joinids)
        assert sorted(beside) == ["places", "squared"]
        expected = board.values(joinids).astype(dtype)
        np.testing.assert_array_equal(dense(X), expected)
        assert type(beside["squared"]) is type(X) and beside["squared"].dtype == X.dtype
        np.testing.assert_array_equal(dense(beside["squared"]), board.values(joinids) ** 2)
        np.testing.assert_array_equal(dense(beside["places"]), values_of.places(joinids))
    assert n_cells == len(board.joinids)


@pytest.mark.parametrize("form", ["numpy", "torch", "torch_csr", "torch_coo"])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_rows_fit_to_those_of_x(experiment, gaps, form, batch_size, travelling):
    for board in (experiment, gaps):
        ds = dataset(board, form=form, batch_size=batch_size)
        assert_beside(board, ds)
        if form.startswith("torch"):
            copied = dataset(board, form=form, batch_size=batch_size, device="cpu")
            assert_beside(board, copied)
        _, _, beside = next(iter(ds))
        assert isinstance(beside["places"], torch.Tensor if form != "numpy" else np.ndarray)
        assert beside["places"].ndim == (1 if batch_size == 1 else 2)


def test_sparse_batches(experiment):
    assert_beside(experiment, dataset(experiment, return_sparse_X=True))


def test_one_of_both(experiment):
    (_, _, beside), *_ = dataset(experiment, obsm=[])
    assert list(beside) == ["squared"]
    (_, _, beside), *_ = dataset(experiment, layers=[])
    assert list(beside) == ["places"]
    assert len(next(iter(dataset(experiment, layers=[], obsm=[])))) == 2


def test_parts_workers_pickles_and_queries(experiment):
    ds = dataset(experiment)
    train, test = ds.random_split(0.5, 0.5, seed=1)
    assert_beside(experiment, [*train, *test])
    assert_beside(experiment, pickle.loads(pickle.dumps(ds)))
    assert_beside(experiment, experiment_dataloader(ds, num_workers=2))
    query = Query(experiment.uri, list(range(100)), list(range(6)))
    assert_beside(experiment, ExperimentDataset(query, "raw", layers=["squared"], obsm=["places"]))


def test_genes_are_selected_in_all_layers(experiment):
    for X, _, beside in dataset(experiment, var_joinids=[5, 2], obsm=[]):
        np.testing.assert_array_equal(beside["squared"], X**2)


@pytest.mark.parametrize("options", [{"layers": ["none"]}, {"obsm": ["none"]}])
def test_what_is_not_there(experiment, options):
    with pytest.raises(ValueError, match="none"):
        dataset(experiment, **options)
