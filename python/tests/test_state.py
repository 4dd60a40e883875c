"""States: an epoch that was interrupted goes on with the batches that would have come."""

import json
import pickle

import pytest
from batches import joinids_of
from somafeed import ExperimentDataset

OPTIONS = {"batch_size": 6, "shuffle_chunk_size": 2, "io_batch_size": 12, "seed": 11}
N_BATCHES = 17


def dataset(board, **options):
    return ExperimentDataset(uri=board.uri, **{**OPTIONS, **options})


def numbers(batches):
    return [obs["soma_joinid"].tolist() for _, obs in batches]


def taken(iterator, n):
    return [next(iterator)[1]["soma_joinid"].tolist() for _ in range(n)]


@pytest.fixture(scope="module")
def epochs(experiment):
    """Three epochs without interruption."""
    ds = dataset(experiment)
    found = [numbers(ds) for _ in range(3)]
    assert all(len(epoch) == N_BATCHES for epoch in found)
    return found


@pytest.mark.parametrize("n", [0, 1, 5, N_BATCHES - 1, N_BATCHES])
def test_an_epoch_goes_on_after_any_batch(experiment, epochs, n):
    before = dataset(experiment)
    iterator = iter(before)
    assert taken(iterator, n) == epochs[0][:n]
    assert before.state_dict() == iterator.state_dict()
    state = json.loads(json.dumps(before.state_dict()))
    assert len(json.dumps(state)) < 2000

    resumed = dataset(experiment)
    resumed.load_state_dict(state)
    assert numbers(resumed) == epochs[0][n:]
    assert resumed.epoch == 1
    assert numbers(resumed) == epochs[1]

    by_iterator = iter(dataset(experiment))
    by_iterator.load_state_dict(state)
    assert numbers(by_iterator) == epochs[0][n:]


def test_resuming_again_and_again(experiment, epochs):
    """Each process takes three batches, over the borders of epochs."""
    expected = [batch for epoch in epochs for batch in epoch]
    found, state = [], None
    while len(found) < len(expected) - 3:
        ds = dataset(experiment)
        if state is not None:
            ds.load_state_dict(state)
        wanted = 3
        while wanted > 0:
            for _, obs in ds:
                found.append(obs["soma_joinid"].tolist())
                wanted -= 1
                if wanted == 0:
                    break
        state = ds.state_dict()
    assert found == expected[: len(found)]


def test_after_the_end_comes_the_next_epoch(experiment, epochs):
    ds = dataset(experiment)
    assert numbers(ds) == epochs[0]
    state = ds.state_dict()
    assert state["epoch"] == 1
    resumed = dataset(experiment)
    resumed.load_state_dict(state)
    assert resumed.epoch == 1
    assert numbers(resumed) == epochs[1]
    assert numbers(resumed) == epochs[2]


def test_the_state_outlives_the_loop(experiment, epochs):
    ds = dataset(experiment)
    for batch_idx, _ in enumerate(ds):
        if batch_idx == 3:
            break
    state = ds.state_dict()
    # Without loading the state, the epoch begins anew.
    assert numbers(ds) == epochs[0]
    resumed = dataset(experiment)
    resumed.load_state_dict(state)
    assert numbers(resumed) == epochs[0][4:]


def test_iter_may_be_called_twice_after_loading(experiment, epochs):
    first = dataset(experiment)
    taken(iter(first), 5)
    ds = dataset(experiment)
    ds.load_state_dict(first.state_dict())
    unused = iter(ds)
    assert unused.state_dict() == first.state_dict()
    assert numbers(iter(ds)) == epochs[0][5:]
    assert numbers(ds) == epochs[1]


def test_a_loaded_place_is_the_state_until_the_next_batch(experiment):
    first = dataset(experiment)
    taken(iter(first), 5)
    ds = dataset(experiment)
    ds.load_state_dict(first.state_dict())
    assert ds.state_dict() == first.state_dict()
    assert ds.epoch == 0


def test_set_epoch_of_the_loaded_epoch_keeps_the_place(experiment, epochs):
    first = dataset(experiment)
    first.set_epoch(1)
    taken(iter(first), 5)
    state = first.state_dict()

    def resumed():
        ds = dataset(experiment)
        ds.load_state_dict(state)
        return ds

    ds = resumed()
    found = []
    for epoch in range(state["epoch"], 3):
        ds.set_epoch(epoch)
        found.append(numbers(ds))
    assert found == [epochs[1][5:], epochs[2]]
    ds = resumed()
    ds.set_epoch(2)
    assert numbers(ds) == epochs[2]


def test_unshuffled_and_dropping(experiment):
    for options in ({"shuffle": False}, {"remainder": "drop"}, {"remainder": "pad"}):
        whole = numbers(dataset(experiment, **options))
        ds = dataset(experiment, **options)
        taken(iter(ds), 7)
        resumed = dataset(experiment, **options)
        resumed.load_state_dict(ds.state_dict())
        assert numbers(resumed) == whole[7:]


def test_a_drawn_seed_becomes_that_of_the_state(experiment):
    ds = dataset(experiment, seed=None)
    whole = numbers(ds)
    ds.set_epoch(0)
    iterator = iter(ds)
    taken(iterator, 4)
    resumed = dataset(experiment, seed=None)
    resumed.load_state_dict(iterator.state_dict())
    assert numbers(resumed) == whole[4:]
    with pytest.raises(ValueError, match="seed"):
        dataset(experiment, seed=12).load_state_dict(iterator.state_dict())


# Ranks and batch sizes with one product: global batches of 24.
WORLDS = [(8, 3), (4, 6), (6, 4), (1, 24), (2, 12)]


def ranks(board, world_size, batch_size, state=None, **options):
    made = []
    for rank in range(world_size):
        ds = dataset(board, world=(rank, world_size), batch_size=batch_size, **options)
        if state is not None:
            ds.load_state_dict(state)
        made.append(ds)
    return made


def global_batches(datasets, n):
    """The next batches of all ranks, and the iterators."""
    iterators = [iter(ds) for ds in datasets]
    return [sum((taken(one, 1)[0] for one in iterators), []) for _ in range(n)], iterators


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_other_numbers_of_ranks_resume_the_same_global_batches(make_board, remainder):
    """8 ranks, then 4, 6, 1 and 2: each takes up where the one before stopped."""
    board = make_board(0, 500)
    options = {"remainder": remainder}
    expected, _ = global_batches(ranks(board, 8, 3, **options), 20)
    found, state = [], None
    for world_size, batch_size in WORLDS:
        batches, iterators = global_batches(ranks(board, world_size, batch_size, state, **options), 4)
        found += batches
        states = [one.state_dict() for one in iterators]
        assert all(one == states[0] for one in states)
        state = states[0]
    assert [sorted(batch) for batch in found] == [sorted(batch) for batch in expected]
    assert found == expected


def test_the_next_epoch_keeps_the_order_of_the_first_world(make_board):
    board = make_board(0, 480)
    eight = ranks(board, 8, 3)
    global_batches(eight, 20)
    expected, _ = global_batches(after_end(eight), 20)
    for ds in eight:
        ds.set_epoch(0)
    _, iterators = global_batches(eight, 7)
    six = ranks(board, 6, 4, iterators[0].state_dict())
    for ds in six:
        assert len(list(ds)) == 13
        assert ds.epoch == 1
    assert global_batches(six, 20)[0] == expected
    # All of epoch 1 was delivered, so four ranks have nothing of it, and then epoch 2.
    four = ranks(board, 4, 6, six[0].state_dict())
    assert all(list(ds) == [] for ds in four)
    for ds in (*eight, *four):
        ds.set_epoch(2)
    assert global_batches(four, 20)[0] == global_batches(eight, 20)[0]


def after_end(datasets):
    for ds in datasets:
        ds.set_epoch(1)
    return datasets


def test_what_cannot_be_resumed(experiment):
    ds = dataset(experiment)
    iterator = iter(ds)
    taken(iterator, 2)
    state = iterator.state_dict()

    def resume(state, **options):
        other = dataset(experiment, **options)
        other.load_state_dict(state)
        return next(iter(other))

    for options, message in [
        ({"batch_size": 7}, "batch size"),
        ({"obs_filter": "donor == 1", "remainder": "keep"}, "cells|samples"),
        ({"shuffle": False}, "order"),
        ({"shuffle_chunk_size": 3}, "chunk"),
        ({"world": (0, 2), "batch_size": 4, "remainder": "drop"}, "batch size"),
    ]:
        with pytest.raises(ValueError, match=message):
            resume(state, **options)
    wrong = [{}, {**state, "format": "other"}, {**state, "version": 2}, {**state, "more": 1}, None]
    for other in wrong:
        with pytest.raises(ValueError, match="state"):
            resume(other)
    with pytest.raises(ValueError):
        resume({**state, "loader": "{}"})
    with pytest.raises(RuntimeError, match="first batch"):
        iterator.load_state_dict(state)


def test_a_pickled_data_set_keeps_a_loaded_place_and_no_other(experiment, epochs):
    ds = dataset(experiment)
    taken(iter(ds), 5)
    assert numbers(pickle.loads(pickle.dumps(ds))) == epochs[0]
    resumed = dataset(experiment)
    resumed.load_state_dict(ds.state_dict())
    assert numbers(pickle.loads(pickle.dumps(resumed))) == epochs[0][5:]


def test_parts_have_states_of_their_own(experiment):
    def train(state=None):
        part = dataset(experiment).random_split(0.7, 0.3, seed=3)[0]
        if state is not None:
            part.load_state_dict(state)
        return part

    whole = numbers(train())
    part = train()
    taken(iter(part), 3)
    assert numbers(train(part.state_dict())) == whole[3:]
    other = dataset(experiment).random_split(0.7, 0.3, seed=4)[0]
    other.load_state_dict(part.state_dict())
    with pytest.raises(ValueError, match="cells|samples"):
        joinids_of(other)


@pytest.mark.parametrize("ramp_blocks", [1, 3, 40])
def test_a_ramp_is_resumed(experiment, ramp_blocks):
    options = {"ramp_blocks": ramp_blocks, "shuffle_chunk_size": 1, "io_batch_size": 32}
    whole = numbers(dataset(experiment, **options))
    assert sorted(sum(whole, [])) == list(range(100))
    assert whole != numbers(dataset(experiment, **{**options, "ramp_blocks": 0}))
    for n in (1, 4, 12):
        before = dataset(experiment, **options)
        assert taken(iter(before), n) == whole[:n]
        resumed = dataset(experiment, **options)
        resumed.load_state_dict(json.loads(json.dumps(before.state_dict())))
        assert numbers(resumed) == whole[n:]
        other = dataset(experiment, **{**options, "ramp_blocks": ramp_blocks + 1})
        other.load_state_dict(before.state_dict())
        with pytest.raises(ValueError, match="blocks that grow"):
            next(iter(other))


def test_a_ramp_reads_fewer_cells_before_the_first_batch(experiment):
    # Two batches from the smallest block: a block that is used up is read into again at once.
    options = {"shuffle_chunk_size": 1, "io_batch_size": 64, "batch_size": 2}

    def values_of_first_block(ramp_blocks):
        ds = dataset(experiment, ramp_blocks=ramp_blocks, use_eager_fetch=False, **options)
        iterator = iter(ds)
        next(iterator)
        return iterator.stats()["nnz"]

    # A block of 4 cells, 3 values each, and one of 64.
    assert values_of_first_block(4) == 4 * 3
    assert values_of_first_block(0) == 64 * 3


@pytest.mark.parametrize(
    "change, message",
    [
        ({"epoch": "x"}, "epoch is 'x'"), ({"epoch": -1}, "epoch is -1"),
        ({"seed": 0.5}, "seed is 0.5"), ({"seed": 1 << 64}, "seed is"),
        ({"lanes": 0}, "lanes is 0"), ({"lanes": "1"}, "lanes is '1'"),
        ({"loader": 5}, "loader is 5"), ({"loader": "junk"}, "junk|JSON|state"),
        ({"worker": 7}, "worker is 7"), ({"worker": [0, 1]}, "worker is"),
        ({"worker": ["a", 1, 2]}, "worker is"),
    ],
)
def test_states_with_wrong_values(experiment, change, message):
    state = {**dataset(experiment).state_dict(), **change}
    ds = dataset(experiment)
    with pytest.raises(ValueError, match=message):
        ds.load_state_dict(state)
        next(iter(ds))
