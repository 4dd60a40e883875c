"""Several processes that train together."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from batches import assert_board, joinids_of
from somafeed import ExperimentDataset
from somafeed.world import current_world

TESTS = Path(__file__).parent


def dataset(board, **options):
    return ExperimentDataset(uri=board.uri, **{"batch_size": 4, "seed": 1, **options})


def joinids_by_rank(board, world_size, **options):
    return [
        joinids_of(dataset(board, world=(rank, world_size), **options))
        for rank in range(world_size)
    ]


@pytest.mark.parametrize("world_size", [2, 3, 4, 7])
@pytest.mark.parametrize("shuffle", [True, False])
def test_dropping_ranks_have_equally_many_cells_and_none_twice(experiment, world_size, shuffle):
    by_rank = joinids_by_rank(experiment, world_size, shuffle=shuffle)
    n = 100 // (4 * world_size) * 4
    assert [len(joinids) for joinids in by_rank] == [n] * world_size
    assert len(set(sum(by_rank, []))) == n * world_size


@pytest.mark.parametrize("world_size", [2, 3, 7])
def test_padding_ranks_have_every_cell(experiment, world_size):
    by_rank = joinids_by_rank(experiment, world_size, remainder="pad")
    assert len({len(joinids) for joinids in by_rank}) == 1
    assert sorted(set(sum(by_rank, []))) == list(range(100))
    assert len(by_rank[0]) == -(-100 // (4 * world_size)) * 4


def test_ranks_draw_from_all_cells_in_every_epoch(experiment):
    """A rank sees other cells in each epoch, from the whole experiment."""
    ds = dataset(experiment, world=(0, 2), batch_size=5, shuffle_chunk_size=1)
    first, second = joinids_of(ds), joinids_of(ds)
    assert len(first) == 50 and set(first) != set(second)
    assert min(first) < 30 and max(first) > 70
    assert_board(experiment, ds)


def test_batches_of_a_drop_are_counted(experiment):
    ds = dataset(experiment, world=(1, 3))
    assert len(ds) == len(list(ds)) == 8
    assert dataset(experiment, world=(1, 3), remainder="pad").shape == (9, 6)
    assert (ds.rank, ds.world_size) == (1, 3)


def test_several_ranks_need_a_seed(experiment):
    ds = dataset(experiment, world=(0, 2), seed=None)
    with pytest.raises(ValueError, match="seed"):
        next(iter(ds))
    with pytest.raises(ValueError, match="seed"):
        ds.random_split(0.5, 0.5)
    assert len(list(dataset(experiment, world=(0, 2), seed=None, shuffle=False))) == 12


def test_too_few_cells_for_all_ranks(experiment):
    ds = dataset(experiment, world=(0, 30))
    with pytest.raises(ValueError, match="remainder='pad'"):
        next(iter(ds))
    with pytest.raises(ValueError, match="short|keep|remainder"):
        next(iter(dataset(experiment, world=(0, 2), remainder="keep")))


def with_variables(**variables):
    cleared = {name: text for name, text in os.environ.items() if "RANK" not in name and "WORLD" not in name}
    return mock.patch.dict(os.environ, {**cleared, **variables}, clear=True)


def test_the_launcher_is_asked(experiment):
    with with_variables(RANK="2", WORLD_SIZE="3"):
        assert current_world() == (2, 3)
        assert dataset(experiment).rank == 2
    with with_variables():
        assert current_world() == (0, 1)
    with with_variables(NODE_RANK="1", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2", WORLD_SIZE="4"):
        assert current_world() == (3, 4)
    with with_variables(RANK="2"), pytest.raises(ValueError, match="WORLD_SIZE"):
        current_world()
    with with_variables(RANK="3", WORLD_SIZE="3"), pytest.raises(ValueError, match="RANK"):
        current_world()


def test_torch_is_asked_first(experiment):
    ds = dataset(experiment)
    assert ds.world_size == 1
    torch = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 1,
        get_world_size=lambda: 2,
    )
    with with_variables(RANK="2", WORLD_SIZE="3"), mock.patch.dict(sys.modules, {"torch.distributed": torch}):
        assert (ds.rank, ds.world_size) == (1, 2)
        assert len(ds) == 12


@pytest.mark.parametrize("world_size", [2, 4])
def test_torchrun(experiment, world_size):
    """Ranks that synchronise at each batch see each cell once, and none waits for ever."""
    script = TESTS / "ranks.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={world_size}", script, experiment.uri]
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, env=variables)
    assert ran.returncode == 0, ran.stderr
    assert f"{world_size} ranks agree" in ran.stdout
