"""Several data sets of cells as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from somafeed.batches import MiniBatch
from somafeed.cells import Cells
from somafeed.samples import SampleDataset
from somafeed.settings import shown
from somafeed.sources import Concat, check_same_genes


class Parts(SampleDataset[MiniBatch]):
    """What makes one data set of several data sets' cells."""

    _cells: Cells
    experiment_column: str | None
    """The name of the column of obs with the number of each cell's experiment."""

    @property
    @abstractmethod
    def column_names(self) -> list[str]:
        """The columns of obs in a batch."""

    @classmethod
    def concat(cls, datasets: Sequence[Self], *, experiment_column: str | None = None) -> Self:
        """The cells of several data sets, shuffled as one, with the settings and encoders of the
        first.

        Encoders that were given as the names of columns are fitted to all, for parts of splits to
        the whole data sets, so that all parts have the same codes. Different experiments need the
        same `genes=`, because their joinids are not those of the same genes. For data sets that were
        given opened (`dataset=`) only the number of genes is compared.

        `experiment_column` adds a column of that name to obs, also for splits and samplings: the
        number of each cell's data set, from 0, in the order of `datasets`. One that is a result of `concat` itself counts as the
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
        source = Concat(tuple(one.source for one in cells), experiment_column)
        other = first._with(first._cells.of(source))
        other.experiment_column = experiment_column
        return other
