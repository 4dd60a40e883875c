"""The cells of a data set: their description, and the native data set that it opens as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.samples import Samples
from somafeed.settings import shown
from somafeed.sources import (
    JOINID,
    Part,
    QueryIDs,
    Selection,
    Source,
    XLocator,
    check_unchanged,
    experiment_column_of,
    groups_of,
    split_rows,
    whole_of,
)
from somafeed.splits import Rows, Split

Encoder: TypeAlias = native.LabelEncoder | native.BatchKeyEncoder


class Cells(Samples):
    """Cells with obs columns and codes. Pickled as a description: each process opens its own."""

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        encoders: Sequence[Encoder | str],
        totals: str | None,
    ) -> None:
        """Opens the cells, and fits the encoders that are given as the names of columns.

        Raises:
            TypeError: An encoder is something else.
        """
        for one in encoders:
            if not isinstance(one, str | native.LabelEncoder | native.BatchKeyEncoder):
                raise TypeError(f"encoders must be names of columns or encoders, not {shown(one)}")
        self.source = source
        self._columns = tuple(columns)
        self._totals = totals
        self._by_name = tuple(one for one in encoders if isinstance(one, str))
        self.encoders: tuple[Encoder, ...] = ()
        opened = source.open(self._needed(encoders), totals)
        fitted_to = opened
        whole = whole_of(source)
        if self._by_name and whole is not source:
            # All parts of the same cells then have the same codes.
            fitted_to = whole.open(self._needed(encoders), totals)
        self.encoders = tuple(
            native.LabelEncoder.fit(encoder, fitted_to) if isinstance(encoder, str) else encoder
            for encoder in encoders
        )
        self._opened: native.Dataset | None = self._encoded(opened)

    def _needed(self, encoders: Sequence[Encoder | str]) -> list[str]:
        """The obs columns that are needed in memory, each once."""
        columns = list(self._columns)
        for encoder in encoders:
            columns += [encoder] if isinstance(encoder, str) else encoder.columns
        return [column for column in dict.fromkeys(columns) if column != JOINID]

    def _encoded(self, opened: native.Dataset) -> native.Dataset:
        return opened.with_encoders(self.encoders) if self.encoders else opened

    @property
    def opened(self) -> native.Dataset:
        """The native data set, opened if another process has sent the cells. In a forked process
        it opens its files anew by itself."""
        if self._opened is None:
            opened = self.source.open(self._needed(self.encoders), self._totals)
            self._opened = self._encoded(opened)
        return self._opened

    def of(self, source: Source) -> Cells:
        """Other cells, with these columns and encoders. Encoders that were given as the names of
        columns are fitted anew."""
        encoders = [
            encoder.name if encoder.name in self._by_name else encoder for encoder in self.encoders
        ]
        return Cells(source, self._columns, encoders, self._totals)

    def _rows_of(self, split: Split) -> list[Rows]:
        return split_rows(self.source, split, self.opened)

    def _part(self, split: Split, index: int, rows: Rows) -> Self:
        whole = self.opened
        part = self.copy()
        part.source = Part(self.source, split, index, whole.shape[0])
        part._opened = whole.select(rows)
        return part

    # What samples are drawn by

    @property
    def n_rows(self) -> int:
        """Number of cells."""
        return self.opened.shape[0]

    def numbers(self) -> npt.NDArray[np.int64]:
        """The joinids of the cells."""
        return self.opened.joinids()

    def groups(self, columns: Sequence[str]) -> npt.NDArray[np.uint32]:
        """A number for each cell; equal numbers if cells agree in all these obs columns."""
        return groups_of(self.source, columns, self.n_rows)

    def weights(self, column: str) -> npt.NDArray[np.float64]:
        """The numbers of an obs column."""
        if column == experiment_column_of(self.source):
            return self.opened.experiments().astype(np.float64)
        weights = self.source.open([column]).weights(column)
        check_unchanged(len(weights), self.n_rows)
        return weights

    def equals(self, column: str, label: Any) -> npt.NDArray[np.bool_]:
        """Whether each cell has this label in an obs column of strings or numbers.

        Raises:
            ValueError: No cell has it.
        """
        is_like_it: npt.NDArray[np.bool_]
        if isinstance(label, str):
            row = self.source.open([column]).find(column, label)
            groups = self.groups([column])
            is_like_it = np.zeros(len(groups), np.bool_) if row is None else groups == groups[row]
        else:
            is_like_it = self.weights(column) == label
        if not is_like_it.any():
            raise ValueError(f"no cell has {shown(label)} in {column}")
        return is_like_it

    def __getstate__(self) -> dict[str, Any]:
        encoders = [(type(one).__name__, one.to_json()) for one in self.encoders]
        return {**super().__getstate__(), "encoders": encoders}

    def __setstate__(self, state: dict[str, Any]) -> None:
        encoders = tuple(_encoder(name, text) for name, text in state["encoders"])
        self.__dict__.update({**state, "encoders": encoders})


def _encoder(name: str, text: str) -> Encoder:
    encoder: Encoder = getattr(native, name).from_json(text)
    return encoder


class Selected:
    """What an `ExperimentDataset` tells of its cells and genes."""

    _cells: Cells

    @property
    def query_ids(self) -> QueryIDs:
        """Joinids of the selected cells (ascending in each experiment) and genes."""
        genes = self._cells.opened.var().column(JOINID)
        return QueryIDs(obs_joinids=self._cells.opened.joinids(), var_joinids=genes)

    @property
    def x_locator(self) -> XLocator:
        """The layer of X.

        Raises:
            AttributeError: Cells are of several experiments, or of none.
        """
        source = self._cells.source
        while isinstance(source, Part):
            source = source.whole
        if not isinstance(source, Selection):
            raise AttributeError("this data set is not of one experiment, so it has no x_locator")
        measurement, layer = source.names
        return XLocator(
            uri=source.uri,
            measurement_name=measurement,
            layer_name=layer,
            tiledb_timestamp_ms=source.timestamp,
            tiledb_config=dict(source.config),
        )

    @property
    def measurement_name(self) -> str:
        """The measurement."""
        return self.x_locator.measurement_name

    @property
    def layer_name(self) -> str:
        """The layer of X."""
        return self.x_locator.layer_name

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoders of `obs_form="codes"`, to save with a model: `encoder.to_json()`."""
        return self._cells.encoders
