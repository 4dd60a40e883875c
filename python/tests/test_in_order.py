"""The cells in their own order, divided between ranks."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from batches import assert_board, joinids_of
from programs import hidden
from somafeed import ExperimentDataset, WithReplacement
from somafeed.epoch_loader import EpochLoader
from somafeed.predictions import RankPredictions, join_ranks
from somafeed.shares import RankShares, even_batch_size


def dataset(board, **options):
    return ExperimentDataset(uri=board.uri, **{"batch_size": 7, "seed": 1, **options})


@pytest.mark.parametrize("batch_size", [1, 2, 3, 10, 33, 64])
@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_shares_have_equally_many_batches(world_size, batch_size):
    for n_rows in range(world_size, 200):
        size = even_batch_size(n_rows, world_size, batch_size)
        shares = RankShares(world_size).parts(n_rows, None)
        assert np.concatenate(shares).tolist() == list(range(n_rows))
        assert len({-(-len(share) // size) for share in shares}) == 1, (n_rows, size)


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_all_cells_come_once_and_in_order(experiment, world_size):
    of_ranks = [dataset(experiment).in_order(world=(rank, world_size)) for rank in range(world_size)]
    assert sum((joinids_of(share) for share in of_ranks), []) == list(range(100))
    assert len({len(share) for share in of_ranks}) == 1
    for share in of_ranks:
        assert joinids_of(pickle.loads(pickle.dumps(share))) == share.dataset.joinids().tolist()
        assert_board(experiment, share)


def test_settings_of_training_do_not_matter(experiment):
    ds = dataset(
        experiment, sampling=WithReplacement(30), world=(1, 2), remainder="drop", ramp_blocks=2,
        obs_column_names=["kind"], shuffle_chunk_size=2, io_batch_size=16,
    )
    share = ds.in_order(batch_size=8)
    assert share.obs_column_names == ["kind", "soma_joinid"] and ds.obs_column_names == ["kind"]
    assert joinids_of(share) == list(range(50, 100))
    assert [len(obs) for _, obs in share] == [8] * 6 + [2]
    part, _ = dataset(experiment).random_split(0.5, 0.5, seed=3)
    halves = [joinids_of(part.in_order(world=(rank, 2))) for rank in range(2)]
    assert sum(halves, []) == part.dataset.joinids().tolist()


def test_fewer_cells_than_ranks(experiment):
    few = ExperimentDataset(uri=experiment.uri, obs_joinids=[3, 5], batch_size=4)
    assert [joinids_of(few.in_order(world=(rank, 3))) for rank in range(3)] == [[3], [5], []]
    with pytest.raises(ValueError, match="rank 3"):
        few.in_order(world=(3, 3))


def test_a_state_before_the_last_batch_that_was_taken(experiment):
    """A framework may have taken a batch that it did not train on."""
    whole = [obs["soma_joinid"].tolist() for _, obs in dataset(experiment)]
    loader = EpochLoader(dataset(experiment), lambda: 4)
    loader.set_epoch(0)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    resumed = EpochLoader(dataset(experiment))
    resumed.load_state_dict(loader.state_dict())
    assert [obs["soma_joinid"].tolist() for _, obs in resumed] == whole[4:]
    # After an epoch whose end was never asked for, the next one is set by its number.
    resumed.set_epoch(1)
    second = [obs["soma_joinid"].tolist() for _, obs in resumed]
    loader.set_epoch(1)
    assert [obs["soma_joinid"].tolist() for _, obs in loader] == second != whole


def test_predictions_of_ranks_are_joined(tmp_path):
    joinids = np.arange(10, 17)
    for rank, share in enumerate(np.array_split(joinids, 3)):
        written = RankPredictions(tmp_path, share, rank, 2)
        for rows in (share[:2], share[2:]):
            if len(rows) == 0:
                continue
            written.write({"z": np.stack([rows, -rows], 1).astype(np.float32), "n": rows})
        written.finish()
    join_ranks(tmp_path, 3)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["n.npy", "soma_joinid.npy", "z.npy"]
    assert np.load(tmp_path / "soma_joinid.npy").tolist() == joinids.tolist()
    assert np.load(tmp_path / "n.npy").tolist() == joinids.tolist()
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), np.stack([joinids, -joinids], 1))


def test_wrong_predictions(tmp_path):
    def written(*batches):
        ranks = RankPredictions(tmp_path, np.arange(4), 0, 2)
        for batch in batches:
            ranks.write(batch)

    two = np.zeros((2, 3))
    for kind, text, batches in [
        (TypeError, "row per sample", ["text"]),
        (TypeError, "row per sample", [np.float32(1)]),
        (ValueError, "names", [{}]),
        (ValueError, "names", [{"a/b": two}]),
        (ValueError, "names", [{"soma_joinid": two}]),
        (ValueError, "'b' has 1 rows, but the batch has 2", [{"a": two, "b": two[:1]}]),
        (ValueError, "has 2 rows, but the batch has 0", [two, two, two]),
        (ValueError, "has 1 rows, but the batch has 2", [two[:1]]),
        (ValueError, "type float64, before int64", [two.astype(np.int64), two]),
        (ValueError, "type <U9, before <U6", [np.array(["T cell"] * 2), np.array(["long name"] * 2)]),
        (TypeError, "row per sample", [np.array([object(), object()])]),
        (ValueError, "before", [{"a": two}, {"b": two}]),
        (ValueError, "shape", [two, two[:, :1]]),
    ]:
        with pytest.raises(kind, match=text):
            written(*batches)


def test_ranks_that_predict_other_rows_are_not_joined(tmp_path):
    for rank, rows in enumerate([np.zeros((2, 4)), np.zeros((2, 1))]):
        written = RankPredictions(tmp_path, np.arange(2) + 2 * rank, rank, 2)
        written.write(rows)
        written.finish()
    with pytest.raises(ValueError, match=r"float64 \(1,\), float64 \(4,\)"):
        join_ranks(tmp_path, 2)


@pytest.mark.parametrize("module", ["lightning", "scvi"])
def test_a_framework_that_is_missing_is_named(module):
    program = hidden("lightning") + f"somafeed.{module}.DataModule"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "needs lightning, which is not installed: pip install lightning" in ran.stderr
