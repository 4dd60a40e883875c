"""Splits of a data set, and several as one."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from somafeed.cells import Cells
from somafeed.settings import checked_seed
from somafeed.sources import Concat
from somafeed.splits import (
    GroupSplit,
    LabelSplit,
    RandomSplit,
    SamplingMethod,
    Split,
    checked_fractions,
)


class Parts:
    """What makes other data sets of a data set's cells."""

    _cells: Cells

    @property
    @abstractmethod
    def world_size(self) -> int:
        """Number of processes that train together."""

    @abstractmethod
    def _with(self, cells: Cells) -> Self:
        """A data set with the same settings and other cells, at its first epoch."""

    def random_split(
        self,
        *fracs: float,
        seed: int | None = None,
        method: SamplingMethod = "stochastic_rounding",
    ) -> tuple[Self, ...]:
        """Splits the cells at random, one part per fraction. One seed gives the same parts always,
        which are those of tiledbsoma_ml.

        Raises:
            ValueError: The fractions do not sum to 1; the method is unknown; several ranks would
                each draw their own seed.
        """
        return self._parts(RandomSplit(checked_fractions(fracs), self._split_seed(seed), method))

    def split_by_group(
        self,
        columns: str | Sequence[str],
        *fracs: float,
        seed: int | None = None,
        label: str | None = None,
    ) -> tuple[Self, ...]:
        """Splits the cells so that those with equal values in obs `columns` stay together, for
        example each donor's. With `label`, each part also gets its share of that column's labels.

        Raises:
            ValueError: Like `random_split`, or there is no such column.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        split = GroupSplit(names, checked_fractions(fracs), self._split_seed(seed), label)
        return self._parts(split)

    def split_by_label(
        self, column: str, *fracs: float, seed: int | None = None
    ) -> tuple[Self, ...]:
        """Splits the cells so that each part gets its share of every label of an obs column.

        Raises:
            ValueError: Like `random_split`, or there is no such column.
        """
        return self._parts(LabelSplit(column, checked_fractions(fracs), self._split_seed(seed)))

    @classmethod
    def concat(cls, datasets: Sequence[Self]) -> Self:
        """The cells of several data sets, shuffled as one, with the settings and encoders of the
        first. All need equally many genes: select them by `genes=`.

        Raises:
            ValueError: There is none; their genes or obs columns differ.
        """
        if not datasets:
            raise ValueError("there is no data set to concatenate")
        first = datasets[0]
        source = Concat(tuple(one._cells.source for one in datasets))
        return first._with(first._cells.of(source))

    def _split_seed(self, seed: int | None) -> int:
        if seed is not None:
            return checked_seed(seed)
        if self.world_size > 1:
            raise ValueError("several ranks need the same split: give a seed")
        return random.SystemRandom().randrange(1 << 32)

    def _parts(self, split: Split) -> tuple[Self, ...]:
        return tuple(self._with(part) for part in self._cells.parts(split))
