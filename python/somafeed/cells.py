"""The cells of a data set: their description, and the native data set that it opens as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from somafeed import _somafeed as native
from somafeed.sources import JOINID, Part, Source, split_rows
from somafeed.splits import Split

Encoder: TypeAlias = native.LabelEncoder | native.BatchKeyEncoder


class Cells:
    """Cells with obs columns and codes. Pickled as a description: each process opens its own."""

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        encoders: Sequence[Encoder | str],
        totals: str | None,
    ) -> None:
        """Opens the cells, and fits the encoders that are given as the names of columns."""
        self.source = source
        self._columns = tuple(columns)
        self._totals = totals
        self.encoders: tuple[Encoder, ...] = ()
        opened = source.open(self._needed(encoders), totals)
        self.encoders = tuple(
            native.LabelEncoder.fit(encoder, opened) if isinstance(encoder, str) else encoder
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
        """Other cells, with these columns and encoders."""
        return Cells(source, self._columns, self.encoders, self._totals)

    def parts(self, split: Split) -> list[Cells]:
        """The parts of a split."""
        whole = self.opened
        parts = []
        for index, rows in enumerate(split_rows(self.source, split, whole)):
            part = Cells.__new__(Cells)
            part.__dict__.update(self.__dict__)
            part.source = Part(self.source, split, index)
            part._opened = whole.select(rows)
            parts.append(part)
        return parts

    def __getstate__(self) -> dict[str, Any]:
        encoders = [(type(one).__name__, one.to_json()) for one in self.encoders]
        return {**self.__dict__, "_opened": None, "encoders": encoders}

    def __setstate__(self, state: dict[str, Any]) -> None:
        encoders = tuple(_encoder(name, text) for name, text in state["encoders"])
        self.__dict__.update({**state, "encoders": encoders})


def _encoder(name: str, text: str) -> Encoder:
    if name == "LabelEncoder":
        return native.LabelEncoder.from_json(text)
    return native.BatchKeyEncoder.from_json(text)
