"""Splits of a data set, and several as one."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from somafeed.cells import Cells
from somafeed.samplings import Sample, checked_sample
from somafeed.settings import checked_seed, names_of, positive, shown
from somafeed.shares import RankShares, even_batch_size
from somafeed.sources import JOINID, Concat, check_same_genes
from somafeed.splits import (
    GroupSplit,
    LabelSplit,
    RandomSplit,
    SamplingMethod,
    Split,
    checked_fractions,
)
from somafeed.world import checked_world


class Parts:
    """What makes other data sets of a data set's cells."""

    _cells: Cells
    sampling: Sample | None
    """The sample that each epoch draws."""
    experiment_column: str | None
    """The name of the column of obs with the number of each cell's experiment."""

    obs_column_names: list[str]
    """The columns of obs in a batch."""
    batch_size: int
    """Cells of a batch."""

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """The columns of obs in a batch."""

    @property
    @abstractmethod
    def world(self) -> tuple[int, int]:
        """Rank and world size."""

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
        names = (columns,) if isinstance(columns, str) else names_of("columns", columns)
        if not names:
            raise ValueError("name at least one column of obs by which cells are grouped")
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
    def concat(cls, datasets: Sequence[Self], *, experiment_column: str | None = None) -> Self:
        """The cells of several data sets, shuffled as one, with the settings and encoders of the
        first.

        Encoders that were given as the names of columns are fitted to all, for parts of splits to
        the whole data sets, so that all parts have the same codes. Different experiments need the
        same `genes=`, because their joinids are not those of the same genes. For data sets that were
        given opened (`dataset=`) only the number of genes is compared.

        `experiment_column` adds a column of that name to obs: the number of each cell's data set,
        from 0, in the order of `datasets`. One that is a result of `concat` itself counts as the
        data sets that it was made of, so `concat([concat([a, b]), c])` numbers them 0, 1 and 2.
        None means that of the first, if it has one.

        Raises:
            ValueError: There is none; their genes or obs columns differ; `experiment_column` is
                already a column of obs.
            TypeError: They are not data sets.
        """
        if isinstance(datasets, Parts) or not isinstance(datasets, Sequence):
            raise TypeError(f"concat takes a list of data sets, not {shown(datasets)}")
        if not datasets:
            raise ValueError("there is no data set to concatenate")
        other_kind = [one for one in datasets if not isinstance(one, Parts)]
        if other_kind:
            raise TypeError(f"concat takes data sets, not {shown(other_kind[0])}")
        first = datasets[0]
        if experiment_column is None:
            experiment_column = first.experiment_column
        elif experiment_column in first.column_names and (
            experiment_column != first.experiment_column
        ):
            raise ValueError(f"{shown(experiment_column)} is already a column of obs in a batch")
        cells = [one._cells for one in datasets]
        check_same_genes([(one.source, one.opened) for one in cells])
        source = Concat(tuple(one.source for one in cells))
        other = first._with(first._cells.of(source))
        other.experiment_column = experiment_column
        return other

    def with_sampling(self, sampling: Sample | None) -> Self:
        """The same cells, of which each epoch draws a sample; None for each cell once.

        For example for the training part of a split alone, since the parts of a data set with a
        sample draw samples, too.
        """
        other = self._with(self._cells.copy())
        other.sampling = checked_sample(sampling)
        return other

    def in_order(
        self, *, world: tuple[int, int] | None = None, batch_size: int | None = None
    ) -> Self:
        """This rank's share of the cells, each once and in their own order: for validation and
        inference.

        A share is contiguous, so the shares of all ranks, one after another, are the cells in
        order: none is left out and none comes twice. All ranks have equally many batches; if the
        cells do not divide, batches have a few cells fewer or more than `batch_size`. If there are
        fewer cells than ranks, the last ranks have none. `soma_joinid` is added to the columns of
        obs.

        Args:
            world: `(rank, world size)`; None means that of this data set.
            batch_size: Cells of a batch; None means that of this data set.

        Raises:
            ValueError: The rank is not below the world size.
        """
        rank, world_size = self.world if world is None else checked_world(world)
        size = self.batch_size if batch_size is None else positive("batch_size", batch_size)
        if world_size == 1:
            cells = self._cells.copy()
        else:
            size = even_batch_size(self._cells.n_cells, world_size, size)
            cells = self._cells.part(RankShares(world_size), rank)
        other = self._with(cells)
        other.batch_size = size
        other.sampling = None
        if JOINID not in other.obs_column_names:
            other.obs_column_names.append(JOINID)
        other._read_in_order()
        return other

    @abstractmethod
    def _read_in_order(self) -> None:
        """Has this data set deliver all of its cells, unshuffled, to this process."""

    def _split_seed(self, seed: int | None) -> int:
        if seed is not None:
            return checked_seed(seed)
        if self.world_size > 1:
            raise ValueError("several ranks need the same split: give a seed")
        return random.SystemRandom().randrange(1 << 32)

    def _parts(self, split: Split) -> tuple[Self, ...]:
        return tuple(self._with(part) for part in self._cells.parts(split))
