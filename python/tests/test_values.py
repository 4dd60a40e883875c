"""The type of X's values."""

import board as values_of
import numpy as np
import pytest
import somafeed
import torch
from somafeed import ExperimentDataset

# What float32 has without rounding, and what it has up to 2^24.
SMALL = ["float32", "int8", "uint8", "int16", "uint16", "bool"]
LARGE = ["int32", "uint32", "int64", "uint64", "float64"]


@pytest.fixture(scope="module")
def typed(make_board):
    """An experiment with a layer of counts for each type."""
    return make_board(0, 100, 1, 6, (*SMALL, *LARGE))


def dataset(board, layer, **options):
    options = {"shuffle": False, "batch_size": 8, **options}
    return ExperimentDataset(uri=board.uri, layer_name=layer, **options)


def counts(obs, dtype):
    return values_of.counts(obs["soma_joinid"], 6).astype(dtype)


@pytest.mark.parametrize("dtype", [*SMALL, *LARGE])
@pytest.mark.parametrize("reader", ["auto", "libtiledb"])
def test_values_have_the_type_in_which_they_are_stored(typed, dtype, reader):
    kept = []
    for X, obs in dataset(typed, dtype, reader=reader):
        assert X.dtype == dtype and X.flags.writeable and X.flags.c_contiguous
        np.testing.assert_array_equal(X, counts(obs, dtype))
        kept.append((X, obs))
    for X, obs in dataset(typed, dtype, return_sparse_X=True, reader=reader):
        assert X.dtype == dtype and X.indices.dtype == X.indptr.dtype == np.int32
        np.testing.assert_array_equal(X.toarray(), counts(obs, dtype))
    # Memory of another type does not come back to the loader as its own.
    for X, obs in kept:
        np.testing.assert_array_equal(X, counts(obs, dtype))


def test_a_single_cell_and_no_cells(typed):
    X, _ = next(iter(dataset(typed, "int16", batch_size=1)))
    assert X.shape == (6,) and X.dtype == np.int16
    assert list(dataset(typed, "int16", obs_filter="donor == 77")) == []


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_float32_is_there_for_the_asking(typed, dtype):
    for X, obs in dataset(typed, dtype, dtype="float32"):
        assert X.dtype == np.float32
        np.testing.assert_array_equal(X, counts(obs, np.float32))


def test_other_forms_are_of_the_type_in_their_name(typed):
    of = {"torch": torch.float32, "torch_csr": torch.float32, "torch_coo": torch.float32}
    of |= {"torch_f16": torch.float16, "f16": np.float16}
    for form, dtype in of.items():
        X, _ = next(iter(dataset(typed, "int32", form=form)))
        assert X.dtype == dtype, form
    with pytest.raises(ValueError, match="form='numpy'"):
        dataset(typed, "int32", form="torch", dtype="stored")
    with pytest.raises(ValueError, match="unknown dtype 'int8'"):
        dataset(typed, "int32", dtype="int8")


def test_transformed_values_are_float32(typed):
    for layer in ("int32", "float64"):
        X, obs = next(iter(dataset(typed, layer, log1p=True)))
        assert X.dtype == np.float32
        np.testing.assert_allclose(X, np.log1p(counts(obs, np.float64)), rtol=2e-7)


def test_values_that_float32_does_not_have_are_an_error(typed):
    # Blocks of 16 cells, the last of which has the value.
    ds = dataset(typed, "large", batch_size=10, io_batch_size=16)
    iterator = iter(ds)
    for _ in range(9):
        X, obs = next(iterator)
        np.testing.assert_array_equal(X, counts(obs, np.int64))
    with pytest.raises(ValueError, match='int64 value of cell 99 and gene 5 of .*dtype="float32"'):
        next(iterator)
    assert ds.epoch == 0
    *_, (X, _) = dataset(typed, "large", dtype="float32")
    assert X[-1, -1] == 2**24 != values_of.LARGE


@pytest.mark.parametrize("reader", ["auto", "libtiledb"])
@pytest.mark.parametrize("sparse_x", [False, True])
def test_float64_is_exact_or_an_error_that_names_the_value(typed, reader, sparse_x):
    options = {"reader": reader, "return_sparse_X": sparse_x, "batch_size": 7}

    def values(X):
        return X.toarray() if sparse_x else X

    with pytest.raises(ValueError, match='float64 value of cell (40|71) and gene 3 of .*dtype="float32"'):
        list(dataset(typed, "fractions", **options))
    for selected in ({"obs_filter": "soma_joinid < 40 or soma_joinid > 71"},
                     {"obs_joinids": [3, 39, 41, 72, 99]}, {"var_joinids": [5, 0, 2]},
                     {"var_filter": "soma_joinid > 3"}):
        found = 0
        ds = dataset(typed, "fractions", **options, **selected)
        for X, obs in ds:
            expected = values_of.fractions(obs["soma_joinid"], 6)[:, ds.query_ids.var_joinids]
            assert X.dtype == np.float64
            np.testing.assert_array_equal(values(X), expected)
            found += len(obs)
        assert found == ds.dataset.shape[0] > 4
    with pytest.raises(ValueError, match="cell 71 and gene 3"):
        list(dataset(typed, "fractions", obs_joinids=[1, 71], var_joinids=[5, 3], **options))
    # The nearest, for the asking.
    for X, obs in dataset(typed, "fractions", dtype="float32", **options):
        expected = values_of.fractions(obs["soma_joinid"], 6)
        assert X.dtype == np.float32
        np.testing.assert_array_equal(values(X), expected.astype(np.float32))


def test_exact_and_rounded_epochs_of_one_data_set(typed):
    """Neither uses decoded values that the other keeps."""
    opened = dataset(typed, "fractions").dataset
    exact, rounded = (
        somafeed.Loader(opened, dtype=dtype, batch_size=100, memory=400 << 20, shuffle=False)
        for dtype in ("stored", "float32")
    )
    expected = values_of.fractions(range(100), 6)
    for number in range(3):
        for batch in rounded.epoch(number):
            np.testing.assert_array_equal(batch.dense(), expected.astype(np.float32))
        with pytest.raises(ValueError, match="and gene 3"):
            list(exact.epoch(number))


def test_several_experiments_of_several_types(typed):
    def concat(*layers, **options):
        return ExperimentDataset.concat([dataset(typed, layer, **options) for layer in layers])

    def stored(*layers):
        return concat(*layers).dataset.stored_dtype()

    assert stored("int32", "int32") == "int32" and stored("float64", "float64") == "float64"
    assert stored("int8", "bool") == stored("int32", "float32", "float64") == "float32"
    for X, obs in concat("int32", "float32", "float64"):
        assert X.dtype == np.float32
        np.testing.assert_array_equal(X, counts(obs, np.float32))
    for layers in (("large", "int64"), ("float32", "large")):
        with pytest.raises(ValueError, match='int64 value of cell 99 and gene 5 of .*dtype="float32"'):
            list(concat(*layers))
        assert len(list(concat(*layers, dtype="float32"))) == 25


def test_further_layers_are_float32(typed):
    X, obs, beside = next(iter(dataset(typed, "int32", layers=["int8"])))
    assert X.dtype == np.int32 and beside["int8"].dtype == np.float32
    np.testing.assert_array_equal(beside["int8"], counts(obs, np.float32))


def test_the_native_loader_gives_float32_unless_asked(typed):
    opened = dataset(typed, "uint16").dataset
    for form in ("dense", "csr", "coo"):
        for dtype, expected in (("float32", np.float32), ("stored", np.uint16)):
            loader = somafeed.Loader(opened, form=form, dtype=dtype, batch_size=50)
            batch = next(loader.epoch(0))
            values = batch.dense() if form == "dense" else getattr(batch, form)()[2]
            assert values.dtype == expected
    with pytest.raises(ValueError, match="f16"):
        somafeed.Loader(opened, form="f16", dtype="stored")
    with pytest.raises(ValueError, match="take one of float32, stored"):
        somafeed.Loader(opened, dtype="int8")


def test_converted_batches_are_counted_while_they_are_kept(typed):
    epoch = somafeed.Loader(
        dataset(typed, "int64").dataset, dtype="stored", batch_size=10
    ).epoch(0)
    kept = [next(epoch) for _ in range(3)]
    assert epoch.stats()["kept_bytes"] == 3 * 10 * 6 * 8
    del kept
    assert epoch.stats()["kept_bytes"] == 0
