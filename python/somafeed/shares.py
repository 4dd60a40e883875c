"""The cells of a data set in their own order, divided between ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from somafeed.splits import GroupsOf, Rows


@dataclass(frozen=True)
class RankShares:
    """A split into one contiguous part per rank, whose sizes differ by at most one.

    >>> [part.tolist() for part in RankShares(3).parts(8, groups_of=None)]
    [[0, 1, 2], [3, 4, 5], [6, 7]]
    """

    world_size: int

    def parts(self, n_rows: int, groups_of: GroupsOf | None) -> list[Rows]:
        """The rows of each rank, ascending."""
        return np.array_split(np.arange(n_rows), self.world_size)


def even_batch_size(n_rows: int, world_size: int, batch_size: int) -> int:
    """The size nearest to `batch_size` with which all ranks have equally many batches.

    Ranks whose shares differ by one cell have another number of batches only if the smaller share
    is a multiple of the batch size.

    >>> even_batch_size(101, 2, batch_size=10), even_batch_size(100, 2, batch_size=10)
    (9, 10)
    """
    smaller, larger_shares = divmod(n_rows, world_size)
    if larger_shares == 0 or smaller == 0:
        return batch_size
    return next(size for size in _nearest(batch_size) if smaller % size > 0)


def _nearest(size: int) -> Iterator[int]:
    """Sizes above 0, by their distance from one. The smaller one comes first."""
    yield size
    distance = 1
    while True:
        if size > distance:
            yield size - distance
        yield size + distance
        distance += 1
