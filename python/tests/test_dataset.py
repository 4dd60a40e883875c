"""`ExperimentDataset` in one process: its batches, their order, and what it refuses."""

import os
import re

import numpy as np
import pandas as pd
import pytest
import somafeed
import torch
from batches import assert_board, joinids_of
from pandas.testing import assert_frame_equal
from scipy import sparse
from somafeed import ExperimentDataset


def dataset(board, **options):
    """All cells of an experiment, in their order unless shuffled."""
    return ExperimentDataset(**{"uri": board.uri, "shuffle": False, "batch_size": 3, **options})


def numbers(batches):
    return [obs["soma_joinid"].tolist() for _, obs in batches]


@pytest.mark.parametrize("io_batch_size", [2, 6, 10, 65536])
def test_in_order_batches_are_cut_across_io_batches(make_board, io_batch_size):
    board = make_board(0, 10)
    ds = dataset(board, io_batch_size=io_batch_size)
    assert numbers(ds) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert ds.shape == (4, 6)
    assert len(ds) == 4
    assert_board(board, ds)


@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 64, 99, 100, 101, 1000])
@pytest.mark.parametrize("chunk, block", [(1, 1), (1, 100), (2, 4), (7, 21), (64, 65536)])
def test_shuffled_epochs_have_each_cell_once(experiment, batch_size, chunk, block):
    ds = dataset(
        experiment, shuffle=True, batch_size=batch_size, shuffle_chunk_size=chunk,
        io_batch_size=block, seed=7,
    )
    batches = list(ds)
    assert_board(experiment, batches)
    assert sorted(joinids_of(batches)) == experiment.joinids.tolist()
    sizes = [len(obs) for _, obs in batches]
    assert sizes[:-1] == [batch_size] * (len(sizes) - 1)
    assert len(sizes) == len(ds) == -(-100 // batch_size)


def test_exactly_one_batch(make_board):
    board = make_board(0, 3, 1, 3)
    assert numbers(dataset(board)) == [[0, 1, 2]]
    ds = dataset(board, shuffle=True, shuffle_chunk_size=3, io_batch_size=3)
    assert sorted(numbers(ds)[0]) == [0, 1, 2]


def test_blocks_mix_their_chunks_and_no_others(experiment):
    ds = dataset(
        experiment, shuffle=True, batch_size=20, shuffle_chunk_size=5, io_batch_size=20, seed=1
    )
    for batch in numbers(ds):
        assert len({joinid // 5 for joinid in batch}) == 4
        assert batch != sorted(batch)


def test_a_batch_of_one_has_rank_one_if_dense(experiment):
    X, obs = next(iter(dataset(experiment, batch_size=1)))
    assert X.shape == (6,) and X.dtype == np.float32
    assert obs.shape == (1, 1)
    X, _ = next(iter(dataset(experiment, batch_size=1, return_sparse_X=True)))
    assert X.shape == (1, 6)
    X, _ = next(iter(dataset(experiment, batch_size=1, form="torch")))
    assert X.shape == (6,)


def test_defaults_are_those_of_tiledbsoma_ml(experiment):
    ds = ExperimentDataset(uri=experiment.uri)
    found = (
        ds.obs_column_names, ds.batch_size, ds.io_batch_size, ds.shuffle, ds.shuffle_chunk_size,
        ds.return_sparse_X, ds.use_eager_fetch, ds.epoch, ds.rank, ds.world_size,
    )
    assert found == (["soma_joinid"], 1, 65536, True, 64, False, True, 0, 0, 1)
    assert 0 <= ds.seed < 2**32
    assert ds.seed != ExperimentDataset(uri=experiment.uri).seed
    assert (ds.measurement_name, ds.layer_name) == ("RNA", "raw")
    assert isinstance(ds, torch.utils.data.IterableDataset)


def test_dense_batches(experiment):
    X, obs = next(iter(dataset(experiment)))
    assert type(X) is np.ndarray and X.dtype == np.float32 and X.shape == (3, 6)
    assert X.flags.c_contiguous and X.flags.writeable
    assert type(obs) is pd.DataFrame
    assert_frame_equal(obs, pd.DataFrame({"soma_joinid": [0, 1, 2]}))


def test_sparse_batches(experiment):
    batches = list(dataset(experiment, return_sparse_X=True, batch_size=64))
    X, _ = batches[0]
    assert type(X) is sparse.csr_matrix and X.shape == (64, 6)
    assert X.dtype == np.float32 and X.indices.dtype == X.indptr.dtype == np.int32
    X.check_format(full_check=True)
    assert_board(experiment, batches)


@pytest.mark.parametrize("genes", [[0], [5, 0, 3], [0, 1, 2, 3, 4, 5]])
def test_genes_come_in_the_order_of_their_list(experiment, genes):
    for sparse_X in (False, True):
        ds = dataset(experiment, var_joinids=genes, return_sparse_X=sparse_X)
        assert ds.shape == (34, len(genes))
        for X, obs in ds:
            X = X.toarray() if sparse_X else X
            expected = experiment.values(obs["soma_joinid"])[:, genes]
            np.testing.assert_array_equal(X, expected)


def test_genes_by_name_with_one_that_is_absent(experiment):
    ds = dataset(experiment, genes=("feature_id", ["ENSG00004", "none", "ENSG00001"]))
    for X, obs in ds:
        expected = experiment.values(obs["soma_joinid"])[:, [4, 0, 1]]
        expected[:, 1] = 0
        np.testing.assert_array_equal(X, expected)


def test_cells_without_values_and_single_cells(make_board):
    board = make_board(0, 10, 2, 1)
    X, _ = next(iter(dataset(board, batch_size=10)))
    assert not X.any()
    X, _ = next(iter(dataset(board, batch_size=10, return_sparse_X=True)))
    assert X.nnz == 0 and X.shape == (5, 1)


def test_joinids_with_gaps(gaps):
    for shuffle in (False, True):
        batches = list(dataset(gaps, shuffle=shuffle, batch_size=7, obs_column_names=["soma_joinid", "label"]))
        assert_board(gaps, batches)
        assert sorted(joinids_of(batches)) == gaps.joinids.tolist()
        for _, obs in batches:
            assert obs["label"].tolist() == obs["soma_joinid"].astype(str).tolist()


def test_large_joinids(make_board):
    board = make_board(100_000_000, 100_000_003, 1, 2)
    assert numbers(dataset(board)) == [[100_000_000, 100_000_001, 100_000_002]]


def test_cells_by_filter_and_joinids(experiment):
    ds = dataset(experiment, obs_filter="kind == 'T cell' and donor > 2", batch_size=100)
    expected = [j for j in range(100) if j % 3 == 2 and j // 7 % 5 > 2]
    assert numbers(ds) == [expected]
    assert numbers(dataset(experiment, obs_joinids=[9, 4, 5], batch_size=5)) == [[4, 5, 9]]
    assert numbers(dataset(experiment, obs_joinids=range(90, 96), batch_size=9)) == [[*range(90, 96)]]
    both = dataset(experiment, obs_joinids=range(0, 50), obs_filter="donor == 0", batch_size=50)
    assert numbers(both) == [[j for j in range(50) if j // 7 % 5 == 0]]
    assert dataset(experiment, var_filter="feature_id in ['ENSG00002', 'ENSG00003']").shape == (34, 2)


@pytest.mark.parametrize("options", [{"obs_joinids": []}, {"obs_filter": "donor == 77"}])
@pytest.mark.parametrize("eager", [True, False])
def test_no_cells(experiment, options, eager):
    ds = dataset(experiment, use_eager_fetch=eager, **options)
    assert ds.shape == (0, 6)
    assert list(ds) == []
    assert list(ds) == []


def test_obs_columns_come_in_the_asked_order_with_the_types_of_tiledbsoma(experiment):
    columns = ["share", "soma_joinid", "kind", "label", "donor", "count_or_none", "flag_or_none"]
    batches = list(dataset(experiment, obs_column_names=columns, batch_size=4))
    for _, obs in batches:
        assert list(obs.columns) == columns
        assert list(obs.index) == list(range(len(obs)))
        joinids = obs["soma_joinid"]
        assert obs["share"].tolist() == (joinids / 8).tolist()
        assert obs["donor"].tolist() == (joinids // 7 % 5).tolist()
        kinds = ["B cell", "Müller glia", "T cell", "never seen"]
        assert obs["kind"].cat.categories.tolist() == kinds
        assert obs["kind"].tolist() == [kinds[joinid % 3] for joinid in joinids]
        found = [None if np.isnan(count) else int(count) for count in obs["count_or_none"]]
        assert found == [None if j % 5 == 4 else j * 2 for j in joinids]
        assert obs["flag_or_none"].tolist() == [None if j % 6 == 1 else j % 2 == 0 for j in joinids]
        # The same types in batches with and without a null.
        assert obs["count_or_none"].dtype == np.float64
        assert obs["flag_or_none"].dtype == object
    assert {obs["kind"].dtype for _, obs in batches} == {batches[0][1]["kind"].dtype}


def test_each_epoch_has_its_own_order(experiment):
    ds = dataset(experiment, shuffle=True, seed=3, batch_size=100, shuffle_chunk_size=1)
    first, second = numbers(ds), numbers(ds)
    assert ds.epoch == 2
    assert first != second
    ds.set_epoch(0)
    assert numbers(ds) == first
    ds.set_epoch(1)
    assert numbers(ds) == second
    again = dataset(experiment, shuffle=True, seed=3, batch_size=100, shuffle_chunk_size=1)
    assert [numbers(again), numbers(again)] == [first, second]
    other = dataset(experiment, shuffle=True, seed=4, batch_size=100, shuffle_chunk_size=1)
    assert numbers(other) != first


def test_an_epoch_that_was_left_comes_again(experiment):
    ds = dataset(experiment, shuffle=True, seed=3)
    for batch in ds:
        first = batch[1]["soma_joinid"].tolist()
        break
    assert ds.epoch == 0
    assert next(iter(ds))[1]["soma_joinid"].tolist() == first


def test_two_iterators_do_not_disturb_each_other(experiment):
    ds = dataset(experiment, shuffle=True, seed=3)
    alone = numbers(ds)
    ds.set_epoch(0)
    together = list(zip(iter(ds), iter(ds)))
    assert numbers(one for one, _ in together) == numbers(other for _, other in together) == alone


def test_kept_batches_are_never_overwritten(experiment):
    ds = dataset(experiment, shuffle=True, batch_size=2)
    kept = [batch for _ in range(4) for batch in ds]
    assert len(kept) == 200
    assert_board(experiment, kept)


def test_batches_may_be_changed(experiment):
    for X, obs in dataset(experiment):
        before = X.copy()
        np.log1p(X, out=X)
        obs["soma_joinid"] += 1
        np.testing.assert_array_equal(X, np.log1p(before))
    assert_board(experiment, dataset(experiment))


def test_iterators_end_for_good(experiment):
    iterator = iter(dataset(experiment))
    assert len(list(iterator)) == 34
    assert list(iterator) == []
    iterator = iter(dataset(experiment))
    next(iterator)
    iterator.close()
    iterator.close()
    assert list(iterator) == []


def test_statistics(experiment):
    ds = dataset(experiment)
    iterator = iter(ds)
    assert iterator.stats() == {}
    assert iterator.waited_for() == "waiting for the loader's first batch"
    for _ in iterator:
        assert iterator.stats()["n_rows"] > 0
    assert iterator.stats()["n_rows"] == 100
    assert iterator.stats()["nnz"] == 300
    line = r"waiting for the loader (\d+) %, for the model (\d+) % of the time"
    shares = re.fullmatch(line, iterator.waited_for())
    assert sum(map(int, shares.groups())) == 100


def test_transforms(experiment):
    ds = dataset(experiment, batch_size=100, target_sum=1e4, log1p=True, clip=(0.0, 8.0))
    X, obs = next(iter(ds))
    values = experiment.values(obs["soma_joinid"]).astype(np.float64)
    sums = values.sum(axis=1, keepdims=True)
    scaled = np.divide(values * 1e4, sums, out=np.zeros_like(values), where=sums > 0)
    np.testing.assert_allclose(X, np.log1p(scaled).clip(0, 8), rtol=2e-7)


def test_totals_of_obs(experiment):
    ds = dataset(experiment, obs_joinids=range(8, 16), batch_size=8, target_sum=10.0, totals="share")
    X, obs = next(iter(ds))
    expected = experiment.values(obs["soma_joinid"]) * 10 / (obs["soma_joinid"].to_numpy() / 8)[:, None]
    np.testing.assert_allclose(X, expected, rtol=2e-7)


def test_memory_has_a_limit(experiment):
    assert_board(experiment, dataset(experiment, memory="256 MiB", shuffle=True))
    with pytest.raises(MemoryError):
        next(iter(dataset(experiment, memory=100, shuffle=True)))


def test_several_experiments_as_one(experiment, gaps):
    genes = ("feature_id", [f"ENSG{gene:05}" for gene in (4, 2)])
    columns = ["label", "soma_joinid"]
    parts = [
        dataset(board, genes=genes, obs_column_names=columns, shuffle=True, seed=5)
        for board in (experiment, gaps)
    ]
    both = ExperimentDataset.concat(parts)
    assert both.shape == (60, 2)
    found = {}
    for X, obs in both:
        for row, joinid in zip(X, obs["soma_joinid"]):
            found[joinid] = row.tolist()
    assert sorted(found) == sorted([*experiment.joinids.tolist(), *gaps.joinids.tolist()])
    joinids = np.array(list(found))
    expected = np.concatenate([board_values(joinids)[:, [4, 2]]])
    np.testing.assert_array_equal(np.array(list(found.values()), np.float32), expected)
    with pytest.raises(ValueError):
        ExperimentDataset.concat([dataset(experiment), dataset(gaps)])
    with pytest.raises(ValueError, match="no data set"):
        ExperimentDataset.concat([])


def board_values(joinids):
    import board

    return board.values(joinids, 6)


def test_indexing_raises(experiment):
    with pytest.raises(NotImplementedError):
        dataset(experiment)[0]


def test_representation(experiment):
    assert repr(dataset(experiment)) == "ExperimentDataset(100 cells x 6 genes in batches of 3)"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"obs_column_names": ()}, "at least one"),
        ({"obs_column_names": ["label", "label"]}, "twice"),
        ({"obs_column_names": ["no_such_column"]}, "no_such_column"),
        ({"batch_size": 0}, "batch_size"),
        ({"io_batch_size": -1}, "io_batch_size"),
        ({"shuffle_chunk_size": 0, "shuffle": True}, "shuffle_chunk_size"),
        ({"shuffle": True, "io_batch_size": 100, "shuffle_chunk_size": 64}, "multiple"),
        ({"seed": -1}, "seed"),
        ({"layer_name": "no_such_layer"}, "no_such_layer"),
        ({"measurement_name": "ATAC"}, "ATAC"),
        ({"obs_filter": "kind =="}, "kind =="),
        ({"obs_filter": "no_such_column == 1"}, "no_such_column"),
        ({"obs_joinids": [0, 1, 1]}, "twice"),
        ({"obs_joinids": [-1]}, "from 0"),
        ({"obs_joinids": [100_000]}, "100000"),
        ({"var_joinids": [0, 99]}, "99"),
        ({"obs_joinids": [0.5]}, "integers"),
        ({"genes": ("feature_id", ["a", "a"])}, "a"),
        ({"form": "jax"}, "jax"),
        ({"obs_form": "polars"}, "polars"),
        ({"remainder": "some"}, "some"),
        ({"form": "torch", "return_sparse_X": True}, "return_sparse_X"),
        ({"memory": "much"}, "much"),
        ({"world": (2, 2)}, "rank"),
        ({"encoders": ["no_such_column"]}, "no_such_column"),
        ({"totals": "label"}, "label"),
        ({"form": []}, "form"),
        ({"dtype": []}, "dtype"),
        ({"memory": "9" * 400}, "memory"),
        ({"layers": ["raw", "raw"]}, "already beside X"),
        ({"uri": os.fsdecode(b"not-\xff-utf-8")}, "not UTF-8"),
    ],
)
def test_wrong_arguments(experiment, options, message):
    with pytest.raises(ValueError, match=message):
        dataset(experiment, **options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"batch_size": 2.5}, "batch_size must be an integer, not 2.5"),
        ({"seed": "a"}, "seed must be an integer"),
        ({"no_such_option": 1}, "no_such_option"),
        ({"ramp_blocks": 1.5}, "ramp_blocks must be an integer"),
        ({"world": 3}, "rank, world size"),
        ({"world": (0.5, 2)}, "the rank must be an integer"),
        # The letters of a text are no names.
        ({"obs_column_names": "kind"}, "obs_column_names.*'kind'"),
        ({"obs_column_names": [1]}, "must have names, not 1"),
        ({"layers": "raw"}, "layers"),
        ({"obsm": 3}, "obsm"),
        ({"obs_form": "codes", "encoders": "kind"}, "encoders"),
        ({"genes": "feature_id"}, "genes must be a var column and names"),
        ({"genes": ("feature_id", "ENSG00001")}, "genes.*'ENSG00001'"),
        ({"config": 3}, "config must be a dictionary"),
        ({"sampling": 3}, "WithReplacement"),
        ({"timestamp": 1.5}, "timestamp"),
        ({"obs_filter": 3}, "obs_filter"),
        ({"obs_form": "codes", "encoders": [3]}, "names of columns or encoders"),
        ({"uri": 3}, "not 3"),
    ],
)
def test_arguments_of_a_wrong_type(experiment, options, message):
    with pytest.raises(TypeError, match=message):
        dataset(experiment, **options)


@pytest.mark.parametrize("name", ["batch_size", "io_batch_size", "shuffle_chunk_size", "memory"])
@pytest.mark.parametrize("value", [0, -1, 2**63, 2**70])
def test_sizes_out_of_range(experiment, name, value):
    with pytest.raises(ValueError, match=name):
        dataset(experiment, **{name: value})


def test_numbers_of_epochs(experiment):
    ds = dataset(experiment)
    for value, kind in ((-1, ValueError), (1 << 64, ValueError), ("x", TypeError), (1.5, TypeError)):
        with pytest.raises(kind, match="epoch must be"):
            ds.set_epoch(value)


def test_an_address_is_no_query(experiment):
    with pytest.raises(TypeError, match="uri="):
        ExperimentDataset(experiment.uri, "raw")
    with pytest.raises(TypeError, match="uri="):
        ExperimentDataset(experiment.uri)


def test_cells_are_named_in_one_way(experiment):
    for options in ({}, {"layer_name": "raw"}, {"uri": experiment.uri, "x_locator": object()}):
        with pytest.raises(ValueError, match="xor"):
            ExperimentDataset(**options)


def test_what_is_not_concatenated(experiment):
    ds = dataset(experiment)
    for wrong in (3, ds, [3], [ds, None]):
        with pytest.raises(TypeError, match="concat takes"):
            ExperimentDataset.concat(wrong)
    with pytest.raises(TypeError, match="somafeed.Dataset"):
        ExperimentDataset(dataset=3)


def test_what_is_not_an_experiment(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        ExperimentDataset(uri=tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises((ValueError, OSError)):
        ExperimentDataset(uri=tmp_path / "empty")


def test_damaged_values_are_an_error_with_a_place(make_board, tmp_path):
    import shutil

    uri = tmp_path / "damaged"
    shutil.copytree(make_board(0, 100).uri, uri)
    for file in (uri / "ms/RNA/X/raw/__fragments").rglob("a0.tdb"):
        file.write_bytes(file.read_bytes()[:-40])
    ds = ExperimentDataset(uri=uri, shuffle=False, batch_size=3)
    iterator = iter(ds)
    with pytest.raises(Exception, match="a0.tdb") as raised:
        next(iterator)
    assert isinstance(raised.value, (OSError, somafeed.SomafeedError))
    assert list(iterator) == []
    assert ds.epoch == 0
