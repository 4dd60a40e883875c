"""The iterator over the batches of one epoch, and its state."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

from somafeed import _somafeed as native
from somafeed.settings import shown
from somafeed.world import current_worker

if TYPE_CHECKING:
    from somafeed.epochs import Epochs
    from somafeed.loaders import Loaders
    from somafeed.samples import SampleDataset

B = TypeVar("B", covariant=True)

_log = logging.getLogger("somafeed.epochs")

_FORMAT = "somafeed ExperimentDataset"
_VERSION = 1


@dataclass(frozen=True)
class Place:
    """A place between two batches: where a data set or one of its iterators continues."""

    epoch: int
    seed: int
    lanes: int | None = None
    """Lanes of the order, once it is known; ranks that resume keep them."""
    loader: str | None = None
    """State of the native loader; None at the beginning of the epoch."""
    worker: tuple[int, int, int] | None = None
    """Number of the DataLoader worker that delivered the batches, how many there were, and the
    batch with which they began."""

    def to_dict(self) -> dict[str, Any]:
        """The place as a dictionary of numbers and texts, of less than 2 KB."""
        return {"format": _FORMAT, "version": _VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Place:
        """Reads what `to_dict` made.

        Raises:
            ValueError: It is the state of something else, or of a newer release.
        """
        fields = dict(state) if isinstance(state, dict) else {}
        form, version = fields.pop("format", None), fields.pop("version", None)
        if form != _FORMAT:
            raise ValueError(f"this is not the state of a data set: {shown(state)}")
        if version != _VERSION:
            raise ValueError(
                f"the state has version {shown(version)}, this release reads {_VERSION}"
            )
        try:
            place = cls(**fields)
        except TypeError as error:
            raise ValueError(f"this is not the state of a data set: {error}") from error
        problem = place._problem()
        if problem is not None:
            raise ValueError(f"this is not the state of a data set: {problem}")
        return place

    def _problem(self) -> str | None:
        """What is wrong with the values of a saved place; None if nothing is."""
        numbers = {"epoch": self.epoch, "seed": self.seed}
        if self.lanes is not None:
            numbers["lanes"] = self.lanes
        for name, number in numbers.items():
            if type(number) is not int or not 0 <= number < 1 << 64:
                return f"{name} is {shown(number)}"
        if self.lanes == 0:
            return "lanes is 0"
        if self.loader is not None and not isinstance(self.loader, str):
            return f"loader is {shown(self.loader)}"
        worker = () if self.worker is None else self.worker
        is_worker = isinstance(worker, list | tuple) and len(worker) in (0, 3)
        if not is_worker or any(type(number) is not int for number in worker):
            return f"worker is {shown(self.worker)}"
        return None


class Progress:
    """How far an epoch has come. Outlives its iterator: a state can be saved after `break`."""

    def __init__(self, place: Place, loader_state: str, worker: tuple[int, int] | None) -> None:
        """At the beginning, or where an epoch was resumed.

        Raises:
            ValueError: Another DataLoader worker saved the place, or a worker saved it and this is
                none.
        """
        self._loader_state: dict[str, Any] = json.loads(loader_state)
        self.is_exhausted = False
        self.delivered = int(self._loader_state["batches_delivered"])
        """Number of the next global batch."""
        self.failed_at: int | None = None
        """The first batch that was taken and could not be delivered."""
        self._last: int | None = None
        saved = None if place.worker is None else tuple(place.worker[:2])
        if saved not in (None, worker):
            raise ValueError(
                f"worker {saved[0]} of {saved[1]} of a DataLoader saved this state, which only "
                "the same worker of as many can continue: load the state of the whole DataLoader"
            )
        self.begin = self.delivered if place.worker is None else int(place.worker[2])
        """The batch with which worker 0 began."""
        self._place = replace(
            place,
            lanes=int(self._loader_state["lanes"]),
            worker=None if worker is None else (*worker, self.begin),
        )

    def deliver(self, batch_idx: int) -> None:
        """Counts a batch as delivered."""
        self._last, self.delivered = self.delivered, batch_idx + 1

    def fail_last(self) -> None:
        """Counts the last batch as not delivered."""
        self.fail_at(self._last)

    def fail_at(self, batch_idx: int | None) -> None:
        """Counts the batches from this one on as not delivered. None changes nothing."""
        if self.failed_at is None:
            self.failed_at = batch_idx

    def place(self) -> Place:
        """The place after the last batch that was delivered; after the last `StopIteration`, the
        beginning of the next epoch."""
        if self.is_exhausted:
            return replace(self._place, epoch=self._place.epoch + 1, loader=None)
        delivered = self.delivered if self.failed_at is None else self.failed_at
        state = {**self._loader_state, "batches_delivered": delivered}
        return replace(self._place, loader=json.dumps(state))


class ExperimentIterator(Iterator[B], Generic[B]):
    """Iterates the batches of one epoch. Threads start at the first `next`.

    Threads of Python may share it: each batch goes to one of them.

    In a DataLoader worker it delivers only its share of the batches: worker `w` of `n` those with
    the numbers `w`, `w + n`, and so on, counted from the first batch of the pass.
    """

    def __init__(self, dataset: SampleDataset[B], epochs: Epochs, loaders: Loaders) -> None:
        self._dataset = dataset
        self._epochs = epochs
        self._loaders = loaders
        self._loaded: Place | None = None
        self._progress: Progress | None = None
        self._batches: Iterator[Any] = iter(())
        self._epoch: native.Epoch | None = None
        self._worker = (0, 1)
        self._stats: dict[str, Any] = {}
        self._make: Callable[[Any], B] | None = None
        self._lock, self._pid = threading.RLock(), os.getpid()

    def __iter__(self) -> ExperimentIterator[B]:
        return self

    def __next__(self) -> B:
        if self._pid != os.getpid():
            # A fork copies a lock as it is, and no thread that would release it.
            self._lock, self._pid = threading.RLock(), os.getpid()
        taken = None
        try:
            with self._lock:
                first = None
                try:
                    if self._make is None:
                        self._make = self._start()
                    make, progress = self._make, self._progress
                    if progress is not None:
                        first = progress.delivered
                    batch = self._next_of_worker()
                    if batch is None or progress is None:
                        self._finish()
                    else:
                        made = make(batch)
                        taken = (first, batch.batch_idx + 1)
                        progress.deliver(batch.batch_idx)
                        return made
                except BaseException:
                    # Before another thread takes the next batch.
                    self._fail_at(first)
                    raise
        except BaseException:
            self._fail_after(taken)
            raise
        raise StopIteration

    def _fail_at(self, batch_idx: int | None) -> None:
        """Ends the iterator, though not the epoch. A resumed epoch has the batches from this one
        on, which was taken and perhaps not delivered."""
        if self._progress is not None:
            self._progress.fail_at(batch_idx)
            self._make = self._make or _closed
        # Its threads end when it is dropped.
        self._batches, self._epoch = iter(()), None

    def _fail_after(self, taken: tuple[int | None, int] | None) -> None:
        """Ends a call that failed on its way out of the lock, with a batch or without one. If
        another thread has begun with the next batch, this one counts as delivered."""
        if taken is not None and self._lock.acquire(blocking=False):
            if self._progress is not None and self._progress.delivered == taken[1]:
                self._fail_at(taken[0])
            self._lock.release()
        # A debugger can end a call between the lock's block and its release.
        with suppress(RuntimeError):
            self._lock.release()

    def _next_of_worker(self) -> Any:
        """The next batch of this worker's share; None at the end."""
        worker, n_workers = self._worker
        for batch in self._batches:
            progress = self._progress
            assert progress is not None
            if (batch.batch_idx - progress.begin) % n_workers == worker:
                return batch
        return None

    def _start(self) -> Callable[[Any], B]:
        place = self._loaded or self._epochs.upcoming()
        loader, make = self._loaders.of(self._dataset, self._epochs, place)
        epoch = loader.epoch(place.epoch) if place.loader is None else loader.resume(place.loader)
        worker = current_worker()
        self._progress = Progress(place, epoch.state(), worker)
        self._epochs.begin(place, self._progress)
        self._loaders.keep_lanes(self._epochs.lanes)
        self._worker = worker or (0, 1)
        self._epoch, self._batches = epoch, epoch
        return make

    def _finish(self) -> None:
        epoch, progress = self._epoch, self._progress
        if epoch is None or progress is None:
            return
        # Other workers may not be at the end, and all of them resume in one epoch.
        if current_worker() is not None:
            progress.delivered = epoch.n_batches
        # Otherwise another thread closed the epoch before its end.
        elif epoch.n_batches <= progress.delivered:
            self._epochs.end(progress.place().epoch + 1)
            progress.is_exhausted = True
        self.close()
        self._log_end()

    def _log_end(self) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        stats, dataset = self._stats, self._dataset
        left_out = f", {stats['n_skipped']} skipped" if stats["n_skipped"] else ""
        _log.info(
            "%s: epoch %d: %d batches of %d %s%s in %.1f s, %s", type(dataset).__name__,
            stats["epoch"], stats["n_batches"], stats["n_rows"], dataset._noun, left_out,
            stats["elapsed_secs"], self.waited_for(),
        )

    def __reduce__(self) -> Never:
        raise TypeError(
            "cannot pickle or copy an iterator: pickle its state_dict(), or its data set"
        )

    def close(self) -> None:
        """Ends the epoch here and stops its threads. Batches that were delivered stay valid."""
        if self._epoch is not None:
            self._epoch.close()
            self.stats()
        self._batches, self._epoch = iter(()), None
        self._make = self._make or _closed

    def stats(self) -> dict[str, Any]:
        """Counts and times so far, from the native loader's `Epoch.stats`; empty before the first
        batch."""
        if self._epoch is not None:
            self._stats = self._epoch.stats()
        return self._stats

    def waited_for(self) -> str:
        """Says what is waited for, the loader or the model, for the line of a progress bar."""
        if self._epoch is not None:
            return waiting_line(*self._epoch.utilization())
        share = self._stats.get("accelerator_utilization")
        return waiting_line(len(self._stats.get("waits", ())), share)

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that was delivered, for a checkpoint: less than 2 KB."""
        if self._progress is not None:
            return self._progress.place().to_dict()
        return (self._loaded or self._epochs.upcoming()).to_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues at a saved place.

        Raises:
            RuntimeError: A batch was already asked for.
            ValueError: The state is of something else, or of another seed. Whether its cells and
                sizes fit is checked at the next batch.
        """
        if self._make is not None:
            raise RuntimeError("load_state_dict must come before an iterator's first batch")
        place = Place.from_dict(state)
        self._epochs.adopt_seed(place)
        self._loaded = place


def waiting_line(n_batches: int, share: float | None) -> str:
    """Says whether the loader or the model is waited for, given the number of batches so far and the
    share of the time in which the model was.

    >>> waiting_line(2, 0.25)
    'waiting for the loader 75 %, for the model 25 % of the time'
    """
    if n_batches == 0:
        return "waiting for the loader's first batch"
    if share is None:
        return "the first batch is there"
    loader = round(100 * (1 - share))
    return f"waiting for the loader {loader} %, for the model {100 - loader} % of the time"


def _closed(_: Any) -> Never:
    raise AssertionError("a closed iterator has no batches")
