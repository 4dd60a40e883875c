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
        self._generation = 0
        self._shared = SharedEpoch.make()
        self._last_start: tuple[int, int, int] | None = None

    def another(self) -> Epochs:
        """Those of another data set with the same seed, at its first epoch."""
        return Epochs(self.seed, self.is_seed_drawn)

    def set(self, number: int) -> None:
        """Sets the next epoch. Keeps a loaded place if it is in this epoch."""
        if self._pending is not None and self._pending.epoch != number:
            self._pending = None
        self._progress = None
        self.number = number
        self._generation += 1
        if self._shared is not None:
            self._shared.write(self._generation, number)

    def load(self, place: Place) -> None:
        """Lets the next iterator begin at a place."""
        self.adopt_seed(place)
        self._pending = place
        self._progress = None
        self.number = place.epoch

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

        All workers of a DataLoader must agree on it, whatever batches each has delivered. So a
        worker counts the times that it was told to start; those that persist learn of `set_epoch`
        through shared memory.
        """
        if current_worker() is None or self._last_start is None:
            return self.number
        pid, generation, last = self._last_start
        if pid != os.getpid():
            return self.number
        now, number = (generation, 0) if self._shared is None else self._shared.read()
        return last + 1 if now == generation else number

    def begin(self, place: Place, progress: Progress) -> None:
        """An iterator is about to deliver its first batch."""
        is_first = self._last_start is None or self._last_start[0] != os.getpid()
        generation = self._generation
        if not is_first and self._shared is not None and current_worker() is not None:
            generation = self._shared.read()[0]
        self._last_start = os.getpid(), generation, place.epoch
        self._pending = None
        self._progress = progress
        self.lanes = progress.place().lanes
        self.number = place.epoch

    def end(self, next_number: int) -> None:
        """An iterator has come to the end of its epoch."""
        if self.number == next_number - 1:
            self.number = next_number

    def __getstate__(self) -> dict[str, object]:
        # A copy delivers nothing of what this one has begun.
        return {**self.__dict__, "_progress": None, "_last_start": None}
