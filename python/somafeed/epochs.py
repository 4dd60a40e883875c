"""Which epoch comes next, and where in it: the part of a data set that changes while it is used."""

from __future__ import annotations

import os

from somafeed.iteration import Place, Progress
from somafeed.shared_epoch import SharedEpoch
from somafeed.world import current_worker


class Epochs:
    """The place of a data set in its epochs."""

    def __init__(self, seed: int, is_seed_drawn: bool) -> None:
        self.seed = seed
        self.is_seed_drawn = is_seed_drawn
        """Whether other ranks have drawn other seeds."""
        self.number = 0
        """The epoch of the next iterator, outside of DataLoader workers."""
        self.lanes: int | None = None
        """Lanes of the order, once an epoch has started."""
        self._is_seed_adopted = False
        self._pending: Place | None = None
        self._progress: Progress | None = None
        self._shared = SharedEpoch.make(0)
        self._started_in: int | None = None
        """The process in which an iterator has begun."""

    def another(self) -> Epochs:
        """Those of another data set with the same seed, at its first epoch."""
        return Epochs(self.seed, self.is_seed_drawn)

    def set(self, number: int) -> None:
        """Sets the next epoch. Keeps a loaded place if it is in this epoch."""
        if self._pending is not None and self._pending.epoch != number:
            self._pending = None
        self._progress = None
        self._set_number(number)

    def _set_number(self, number: int) -> None:
        self.number = number
        if current_worker() is None and self._shared is not None:
            self.own_shared()
            self._shared.write(number)

    def own_shared(self) -> None:
        """Makes memory for this process, if that of another was sent or inherited."""
        if self._shared is not None and not self._shared.is_own():
            self._shared = SharedEpoch.make(self.number)

    def load(self, place: Place) -> None:
        """Lets the next iterator begin at a place."""
        self.adopt_seed(place)
        self._pending = place
        self._progress = None
        self._set_number(place.epoch)

    def forget_loaded(self) -> None:
        """Forgets the loaded place: another process delivers from there."""
        self._pending = None

    def adopt_seed(self, place: Place) -> None:
        """Takes the seed of a place, if this data set's was drawn.

        Raises:
            ValueError: The user gave another.
        """
        if place.seed != self.seed and not (self.is_seed_drawn or self._is_seed_adopted):
            raise ValueError(f"the state has seed {place.seed}, this data set has {self.seed}")
        if self.is_seed_drawn:
            self.is_seed_drawn, self._is_seed_adopted = False, True
        self.seed = place.seed

    def place(self) -> Place:
        """The place after the last batch that was delivered, or where the next iterator begins."""
        if self._pending is None and self._progress is not None:
            return self._progress.place()
        return self.upcoming()

    def upcoming(self) -> Place:
        """Where the next iterator begins."""
        return self._pending or Place(self._next_number(), self.seed, self.lanes)

    def _next_number(self) -> int:
        """The number of the next epoch.

        The workers of a DataLoader must agree on it, whatever batches each has delivered, so only
        their parent decides. A worker begins with the number that it was sent. If it persists, it
        has the later ones from shared memory: the parent sets them before it starts the workers on
        an epoch.
        """
        is_later_in_worker = current_worker() is not None and self._started_in == os.getpid()
        if is_later_in_worker and self._shared is not None:
            return self._shared.read()
        return self.number

    def begin(self, place: Place, progress: Progress) -> None:
        """An iterator is about to deliver its first batch."""
        self._started_in = os.getpid()
        self._progress = progress
        self._pending = None
        self.lanes = progress.place().lanes
        self._set_number(place.epoch)

    def delivered(self) -> tuple[Progress | None, int]:
        """The current epoch's progress, and the number of the batch after the last delivered."""
        progress = self._progress
        return progress, 0 if progress is None else progress.delivered

    def fail_since(self, before: tuple[Progress | None, int]) -> None:
        """Counts the batch that was delivered since `before`, if one was, as not delivered."""
        progress = self._progress
        if progress is not None and self.delivered() != before:
            progress.fail_last()

    def end(self, next_number: int) -> None:
        """An iterator has come to the end of its epoch."""
        if self.number == next_number - 1:
            self._set_number(next_number)

    def __getstate__(self) -> dict[str, object]:
        self.own_shared()
        # A copy delivers nothing of what this one has begun.
        return {**self.__dict__, "_progress": None, "_started_in": None}
