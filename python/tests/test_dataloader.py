"""DataLoader and StatefulDataLoader, without workers and with them."""

import json
import multiprocessing
import warnings

import pytest
import torch
from batches import assert_board, joinids_of
from somafeed import ExperimentDataset, experiment_dataloader
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

OPTIONS = {"batch_size": 6, "shuffle_chunk_size": 2, "io_batch_size": 12, "seed": 11}
N_BATCHES = 17
pytestmark = pytest.mark.filterwarnings("ignore:num_workers is above 0", "ignore:This DataLoader")


def dataset(board, **options):
    return ExperimentDataset(uri=board.uri, **{**OPTIONS, **options})


def numbers(batches):
    return [obs["soma_joinid"].tolist() for _, obs in batches]


@pytest.fixture(scope="module")
def epochs(experiment):
    """Three epochs without a DataLoader."""
    ds = dataset(experiment)
    return [numbers(ds) for _ in range(3)]


@pytest.mark.parametrize("argument", ["shuffle", "batch_size", "sampler", "batch_sampler"])
def test_refused_arguments(experiment, argument):
    with pytest.raises(ValueError, match=argument):
        experiment_dataloader(dataset(experiment), **{argument: True})


def test_batches_come_as_they_are(experiment, epochs):
    loader = experiment_dataloader(dataset(experiment))
    assert isinstance(loader, DataLoader) and loader.batch_size is None
    assert len(loader) == N_BATCHES
    assert numbers(loader) == epochs[0]
    assert numbers(loader) == epochs[1]
    assert_board(experiment, loader)


def test_a_collate_function(experiment):
    loader = experiment_dataloader(dataset(experiment), collate_fn=lambda batch: len(batch[1]))
    assert sum(loader) == 100


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_workers_give_the_same_batches(experiment, epochs, n_workers):
    loader = experiment_dataloader(dataset(experiment), num_workers=n_workers)
    assert len(loader) == N_BATCHES
    with warnings.catch_warnings():
        # Torch compares the number of batches with the length.
        warnings.filterwarnings("error", message="Length of IterableDataset")
        assert numbers(loader) == epochs[0]
        assert numbers(loader) == epochs[1]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_workers_of_every_kind(experiment, epochs, method):
    ds = dataset(experiment)
    # The data set is in use, so that its threads must not be needed by the workers.
    iterator = iter(ds)
    next(iterator)
    loader = experiment_dataloader(ds, num_workers=2, multiprocessing_context=method)
    assert numbers(loader) == epochs[0]
    assert numbers(iterator) == epochs[0][1:]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_persistent_workers_get_every_epoch(experiment, epochs, method):
    ds = dataset(experiment)
    loader = experiment_dataloader(
        ds, num_workers=2, persistent_workers=True, multiprocessing_context=method
    )
    assert [numbers(loader) for _ in range(3)] == epochs
    ds.set_epoch(0)
    assert numbers(loader) == epochs[0]
    # An epoch that was left comes again, in all workers.
    for _ in range(5):
        ds.set_epoch(1)
        for _ in loader:
            break
        assert ds.epoch == 1
        ds.set_epoch(2)
        assert numbers(loader) == epochs[2]


def test_persistent_workers_of_a_plain_dataloader_follow_set_epoch(experiment, epochs):
    ds = dataset(experiment)
    loader = DataLoader(
        ds, batch_size=None, num_workers=3, persistent_workers=True,
        collate_fn=lambda batch: batch[1]["soma_joinid"].tolist(),
    )
    for epoch in (0, 2, 1, 1):
        ds.set_epoch(epoch)
        for _ in loader:
            break
        assert list(loader) == epochs[epoch]


def passes_of_rank(ds, sender, first_epoch):
    loader = experiment_dataloader(ds, num_workers=2, persistent_workers=True)
    for epoch in range(first_epoch, first_epoch + 3):
        ds.set_epoch(epoch)
        sender.send(numbers(loader))


def test_ranks_that_were_started_with_one_data_set_have_their_own_epochs(experiment):
    ds = dataset(experiment)
    context = multiprocessing.get_context("fork")
    started = []
    for rank in range(2):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=passes_of_rank, args=(ds, sender, rank))
        process.start()
        started.append((receiver, process))
    expected = dataset(experiment)
    for rank, (receiver, process) in enumerate(started):
        for epoch in range(rank, rank + 3):
            assert receiver.poll(60)
            expected.set_epoch(epoch)
            assert receiver.recv() == numbers(expected)
        process.join(20)
        assert process.exitcode == 0


def test_workers_that_cannot_learn_the_epoch_say_so(experiment):
    def use_plain_dataloader(ds, sender):
        loader = DataLoader(ds, batch_size=None, num_workers=1, persistent_workers=True)
        found = [len(list(loader))]
        try:
            list(loader)
        except RuntimeError as error:
            found.append(str(error))
        sender.send(found)

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=use_plain_dataloader, args=(dataset(experiment), sender))
    process.start()
    assert receiver.poll(60)
    n_batches, error = receiver.recv()
    assert n_batches == N_BATCHES and "set_epoch" in error
    process.join(20)


@pytest.mark.parametrize("form", ["numpy", "torch", "torch_csr", "torch_coo", "f16"])
@pytest.mark.parametrize("sparse_X", [False, True])
def test_every_form_crosses_processes(experiment, form, sparse_X):
    if sparse_X and form != "numpy":
        return
    ds = dataset(experiment, form=form, return_sparse_X=sparse_X)
    batches = list(experiment_dataloader(ds, num_workers=1))
    assert sorted(joinids_of(batches)) == list(range(100))
    if form != "f16":
        assert_board(experiment, batches)


def test_workers_of_several_ranks(experiment):
    found = []
    for rank in range(2):
        ds = dataset(experiment, world=(rank, 2), remainder="pad", batch_size=5)
        loader = experiment_dataloader(ds, num_workers=2)
        batches = numbers(loader)
        assert batches == numbers(dataset(experiment, world=(rank, 2), remainder="pad", batch_size=5))
        found += sum(batches, [])
    assert sorted(found) == list(range(100))


def test_more_workers_than_batches(experiment):
    ds = dataset(experiment, batch_size=60)
    assert sorted(joinids_of(experiment_dataloader(ds, num_workers=4))) == list(range(100))


def test_workers_of_a_part_and_of_filters(experiment):
    ds = dataset(experiment, obs_filter="donor > 1", obs_column_names=["soma_joinid", "kind"])
    for part in ds.split_by_group("donor", 0.5, 0.5, seed=1):
        loader = experiment_dataloader(part, num_workers=2)
        expected = part.query_ids.obs_joinids.tolist()
        assert sorted(joinids_of(loader)) == expected


def test_workers_begin_at_a_loaded_place(experiment, epochs):
    first = dataset(experiment)
    iterator = iter(first)
    for _ in range(5):
        next(iterator)
    ds = dataset(experiment)
    ds.load_state_dict(first.state_dict())
    loader = experiment_dataloader(ds, num_workers=2)
    assert numbers(loader) == epochs[0][5:]
    assert numbers(loader) == epochs[1]


def test_the_warning_about_workers(experiment):
    with pytest.warns(UserWarning, match="num_workers=0 is as fast"):
        experiment_dataloader(dataset(experiment), num_workers=1)


def test_an_error_in_a_worker_arrives(experiment):
    ds = dataset(experiment, memory=100)
    with pytest.raises(MemoryError):
        list(experiment_dataloader(ds, num_workers=1))


def stateful(board, n_workers=0, **options):
    ds = dataset(board)
    return StatefulDataLoader(ds, batch_size=None, num_workers=n_workers, **options)


def state_after(loader, n):
    """The batches up to a place, and the state there."""
    iterator = iter(loader)
    found = numbers(next(iterator) for _ in range(n))
    return found, json.loads(json.dumps(loader.state_dict(), default=str))


@pytest.mark.parametrize("n_workers", [0, 2])
@pytest.mark.parametrize("n", [1, 4, 7, N_BATCHES])
def test_stateful_dataloader_goes_on(experiment, epochs, n_workers, n):
    loader = stateful(experiment, n_workers)
    iterator = iter(loader)
    assert numbers(next(iterator) for _ in range(n)) == epochs[0][:n]
    state = loader.state_dict()
    resumed = stateful(experiment, n_workers)
    resumed.load_state_dict(state)
    assert numbers(resumed) == epochs[0][n:]
    resumed.dataset.set_epoch(1)
    assert numbers(resumed) == epochs[1]


@pytest.mark.parametrize("n_workers", [0, 2])
def test_stateful_dataloader_goes_on_twice(experiment, epochs, n_workers):
    state, found = None, []
    for n in (3, 6, 2):
        loader = stateful(experiment, n_workers)
        if state is not None:
            loader.load_state_dict(state)
        iterator = iter(loader)
        found += numbers(next(iterator) for _ in range(n))
        state = loader.state_dict()
    assert found == epochs[0][:11]
    loader = stateful(experiment, n_workers)
    loader.load_state_dict(state)
    assert numbers(loader) == epochs[0][11:]


@pytest.mark.parametrize("n_workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_stateful_dataloader_at_the_end_of_an_epoch(experiment, epochs, n_workers, persistent):
    options = {"persistent_workers": True} if persistent and n_workers > 0 else {}
    loader = stateful(experiment, n_workers, **options)
    assert numbers(loader) == epochs[0]
    state = loader.state_dict()
    resumed = stateful(experiment, n_workers, **options)
    resumed.load_state_dict(state)
    if n_workers > 0:
        # The parent's data set delivers nothing, so only its user knows the epoch.
        resumed.dataset.set_epoch(1)
    assert numbers(resumed) == epochs[1]
    resumed.dataset.set_epoch(2)
    assert numbers(resumed) == epochs[2]


def test_stateful_dataloader_has_a_state_before_the_first_batch(experiment, epochs):
    loader = stateful(experiment)
    state = loader.state_dict()
    assert numbers(loader) == epochs[0]
    again = stateful(experiment)
    again.load_state_dict(state)
    assert numbers(again) == epochs[0]


def test_the_state_of_a_worker_is_for_that_worker(experiment):
    loader = stateful(experiment, 2)
    next(iter(loader))
    text = json.dumps(loader.state_dict(), default=str)
    assert '"worker": [0, 2, 0]' in text
    of_worker = find_state(loader.state_dict())
    ds = dataset(experiment)
    ds.load_state_dict(of_worker)
    with pytest.raises(ValueError, match="worker 0 of 2"):
        next(iter(ds))


def find_state(value):
    """The first state of a data set somewhere in a state."""
    if isinstance(value, dict):
        if value.get("format") == "somafeed ExperimentDataset" and value["worker"] is not None:
            return value
        found = [find_state(part) for part in value.values()]
        return next((one for one in found if one is not None), None)
    return None


def test_workers_end_with_their_loader(experiment):
    """An iterator that is left in the middle leaves no process behind."""
    iterator = iter(experiment_dataloader(dataset(experiment), num_workers=2))
    next(iterator)
    del iterator
    assert multiprocessing.active_children() == []


def test_pinning_takes_the_batches(experiment):
    loader = experiment_dataloader(dataset(experiment, form="torch"), pin_memory=torch.cuda.is_available())
    assert sorted(joinids_of(loader)) == list(range(100))
