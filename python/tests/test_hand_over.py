"""The hand-over of a batch: wherever it fails, a resumed epoch has each cell once."""

import random
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import somafeed
from somafeed import ExperimentDataset, experiment_dataloader
from somafeed.iteration import ExperimentIterator

OPTIONS = {"batch_size": 6, "shuffle_chunk_size": 2, "io_batch_size": 12, "seed": 11}
N_BATCHES = 17
PACKAGE = str(Path(somafeed.__file__).parent)
FORMS = {
    "frames": {},
    "scipy": {"return_sparse_X": True},
    "tensors": {"form": "torch", "obs_form": "arrow"},
    "sparse tensors": {"form": "torch_csr", "obs_form": "arrow"},
}


@pytest.fixture(scope="module")
def cells(make_board):
    return make_board(0, 100)


def dataset(cells, **options):
    return ExperimentDataset(uri=cells.uri, **{**OPTIONS, **options})


def ids_of(batch):
    obs = batch[1]
    ids = obs["soma_joinid"] if not hasattr(obs, "column") else obs.column("soma_joinid")
    return np.asarray(ids).tolist()


class Interrupt:
    """Raises KeyboardInterrupt before the n-th line that the package runs."""

    def __init__(self, n: int) -> None:
        self.n_left = n

    def __enter__(self):
        sys.settrace(self._call)

    def __exit__(self, *_):
        sys.settrace(None)

    def _call(self, frame, event, argument):
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame, event, argument):
        if event == "line":
            self.n_left -= 1
            if self.n_left == 0:
                raise KeyboardInterrupt
        return self._line


def rest_of(cells, state, **options):
    """The cells of the rest of the first epoch."""
    resumed = dataset(cells, **options)
    resumed.load_state_dict(state)
    return [] if state["epoch"] == 1 else [ids_of(batch) for batch in resumed]


def failing(iterator, n_before, at_line):
    """Takes batches, and the next one with an interrupt at a line: their cells, and whether the
    interrupt came."""
    seen = [ids_of(next(iterator)) for _ in range(n_before)]
    taken = []
    try:
        with Interrupt(at_line):
            # Keeps each batch that is returned, and runs no line between that and the next.
            taken.extend([next(iterator)])
    except KeyboardInterrupt:
        return seen, True
    except StopIteration:
        pass
    return seen + [ids_of(batch) for batch in taken], False


@pytest.mark.parametrize("n_before, form", [
    *((3, form) for form in FORMS), (0, "frames"), (N_BATCHES - 1, "frames"), (N_BATCHES, "frames"),
])
@pytest.mark.parametrize("by_loader", [False, True])
def test_an_interrupt_at_any_line_loses_nothing(cells, n_before, form, by_loader):
    options = FORMS[form]
    expected = [ids_of(batch) for batch in dataset(cells, **options)]
    for at_line in count(1):
        ds = dataset(cells, **options)
        iterator = iter(experiment_dataloader(ds) if by_loader else ds)
        seen, is_interrupted = failing(iterator, n_before, at_line)
        states = [ds.state_dict()] if by_loader else [ds.state_dict(), iterator.state_dict()]
        for state in states:
            assert seen + rest_of(cells, state, **options) == expected, at_line
        if not is_interrupted:
            break
        # It is over, unless nothing was taken; without its state the epoch begins anew.
        after = [ids_of(batch) for batch in iterator]
        assert seen + after in (seen, expected), at_line
        if not after and n_before < N_BATCHES:
            assert [ids_of(batch) for batch in ds] == expected
    assert at_line > 5


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, KeyboardInterrupt, StopIteration])
def test_a_batch_that_cannot_be_made_comes_again(cells, error, monkeypatch):
    expected = [ids_of(batch) for batch in dataset(cells)]
    ds = dataset(cells)
    make, n_made = ds._loaders.batch_maker(ds), count()

    def maker(batch):
        if next(n_made) == 3:
            raise error
        return make(batch)

    monkeypatch.setattr(ds._loaders, "_make_batch", maker)
    seen, iterator = [], iter(ds)
    with pytest.raises(error):
        while True:
            seen.append(ids_of(next(iterator)))
    assert len(seen) == 3
    assert seen + rest_of(cells, ds.state_dict()) == expected


@pytest.mark.parametrize("seed", range(20))
def test_threads_that_share_an_iterator_lose_and_double_nothing(cells, seed, monkeypatch):
    """Threads share each piece of an epoch, in which batches fail in one of them at moments of a
    seed; then it is resumed."""
    def slow_fail_at(iterator, batch_idx):
        # Other threads would take the next batches meanwhile.
        time.sleep(0.005)
        fail_at(iterator, batch_idx)

    fail_at = ExperimentIterator._fail_at
    monkeypatch.setattr(ExperimentIterator, "_fail_at", slow_fail_at)
    moments = random.Random(seed)
    expected = sorted(cell for batch in dataset(cells) for cell in ids_of(batch))
    found, state, n_failures = [], None, 0
    while state is None or state["epoch"] == 0:
        ds = dataset(cells)
        if state is not None:
            ds.load_state_dict(state)
        make, n_made, fails_at = ds._loaders.batch_maker(ds), count(), moments.randrange(12)

        def maker(batch, make=make, n_made=n_made, fails_at=fails_at):
            # In the middle of it, other threads wait for the lock.
            time.sleep(0.0005)
            if next(n_made) == fails_at:
                raise MemoryError
            return make(batch)

        monkeypatch.setattr(ds._loaders, "_make_batch", maker)
        iterator, kept, failed = iter(ds), [], []

        def consume(iterator=iterator, kept=kept, failed=failed):
            try:
                for batch in iterator:
                    kept.extend(ids_of(batch))
            except MemoryError as error:
                failed.append(error)

        threads = [threading.Thread(target=consume) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failed) <= 1
        n_failures += len(failed)
        found += kept
        state = ds.state_dict()
    assert sorted(found) == expected
    assert n_failures > 0


def test_an_interrupt_of_a_thread_that_waits_for_the_lock_changes_nothing(cells, monkeypatch):
    expected = sorted(cell for batch in dataset(cells) for cell in ids_of(batch))
    ds = dataset(cells)
    make, is_making, may_go_on = ds._loaders.batch_maker(ds), threading.Event(), threading.Event()

    def maker(batch):
        is_making.set()
        may_go_on.wait()
        return make(batch)

    monkeypatch.setattr(ds._loaders, "_make_batch", maker)
    iterator, kept = iter(ds), []
    other = threading.Thread(target=lambda: kept.extend(ids_of(next(iterator))))
    other.start()
    is_making.wait()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        signal.signal(signal.SIGALRM, before)
    may_go_on.set()
    other.join()
    assert len(kept) == OPTIONS["batch_size"]
    kept.extend(cell for batch in iterator for cell in ids_of(batch))
    assert sorted(kept) == expected


def test_what_a_collate_function_refuses_comes_again(cells):
    expected = [ids_of(batch) for batch in dataset(cells)]
    for n in range(N_BATCHES):
        ds, n_collated = dataset(cells), count()

        def collate(batch, n=n, n_collated=n_collated):
            if next(n_collated) == n:
                raise ValueError("refused")
            return batch

        seen = []
        with pytest.raises(ValueError, match="refused"):
            for batch in experiment_dataloader(ds, collate_fn=collate):
                seen.append(ids_of(batch))
        assert seen + rest_of(cells, ds.state_dict()) == expected


def test_workers_shares_are_whole_after_an_interrupt(cells, monkeypatch):
    """Each of two workers is interrupted at some line, and resumed."""
    expected = sorted(joinid for batch in dataset(cells) for joinid in ids_of(batch))
    for at_line in range(1, 60, 7):
        found = []
        for worker in [0, 1]:
            monkeypatch.setattr("somafeed.iteration.current_worker", lambda of=worker: (of, 2))
            monkeypatch.setattr("somafeed.epochs.current_worker", lambda of=worker: (of, 2))
            ds = dataset(cells)
            seen, _ = failing(iter(ds), 2 + worker, at_line)
            found += seen + rest_of(cells, ds.state_dict())
        assert sorted(joinid for batch in found for joinid in batch) == expected


# A signal within a callback of a weak reference is printed by Python, and nobody's error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("by_loader", [False, True])
def test_signals_at_any_moment_lose_nothing(cells, by_loader):
    """Real signals, at moments of a seed; each run goes on where the last was interrupted."""
    expected = [ids_of(batch) for batch in dataset(cells)]
    moments, before = random.Random(7), signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    n_interrupts = 0
    try:
        for _ in range(6):
            kept, state, longest = [], None, 0.01
            while len(kept) < len(expected):
                n_before = len(kept)
                ds = dataset(cells)
                if state is not None:
                    ds.load_state_dict(state)
                iterator = iter(experiment_dataloader(ds) if by_loader else ds)
                try:
                    signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.0005, longest))
                    # No line of Python runs between the return of a batch and its place in the list.
                    kept.extend(iterator)
                except KeyboardInterrupt:
                    n_interrupts += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                state = ds.state_dict()
                # A slow machine needs longer for a first batch.
                longest *= 2 if len(kept) == n_before else 1
            assert [ids_of(batch) for batch in kept] == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert n_interrupts > 0
