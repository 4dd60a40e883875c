"""Labels of samples: a table beside them, joined by the samples' names."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed.settings import shown

Table: TypeAlias = Any
"""A `pandas.DataFrame`, `pyarrow.Table` or `polars.DataFrame`, a dictionary of columns, or the path
of a CSV file with the columns' names in its first line."""


class LabelColumn(Protocol):
    """The label of each sample: a number, and the label of each number."""

    @property
    def labels(self) -> list[Any]:
        """The labels."""
        ...

    def codes_of(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The place of the label of each of some samples among them."""
        ...

    def described(self) -> dict[str, Any]:
        """The column as the native meter of its entropy takes it."""
        ...


@dataclass(frozen=True)
class Column:
    """The labels of samples, each distinct one once."""

    labels: list[Any]
    codes: npt.NDArray[np.uint32]
    """The place of each sample's label among them."""

    @classmethod
    def of(cls, values: Iterable[Any]) -> Column:
        """The column of these labels. Missing ones are equal to each other."""
        places: dict[Any, int] = {}
        # NaN is not equal to itself.
        codes = [places.setdefault(None if one != one else one, len(places)) for one in values]
        return cls(list(places), np.array(codes, np.uint32))

    def codes_of(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """The place of the label of each of some samples."""
        return self.codes[samples]

    def described(self) -> dict[str, Any]:
        """The column as the native meter of its entropy takes it."""
        return {"n_classes": len(self.labels), "codes": self.codes, "ends": np.zeros(0, np.int64)}


class Labels:
    """Columns of labels, in the order of the samples."""

    def __init__(self, columns: Mapping[str, LabelColumn]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of_table(cls, table: Table, names: Mapping[str, Sequence[Any]]) -> Labels:
        """The rows of a table in the order of the samples, which have these names by a column: by
        the first one alone if the table does not have the others.

        Raises:
            ValueError: There is no such column, or not exactly one row for a name.
            TypeError: It is no table, or a label cannot be compared with others.
        """
        columns = _columns(table)
        first, *others = names
        if first not in columns:
            raise ValueError(
                f"labels= has no column {first!r} with the samples' names: it has "
                f"{', '.join(columns) or 'none'}"
            )
        used = [name for name in names if name in columns]
        wanted = list(zip(*(names[name] for name in used)))
        if len(used) < len(names) and len(set(wanted)) < len(wanted):
            raise ValueError(
                f"several samples have one name in {first!r}: give labels= the column "
                f"{', '.join(map(repr, others))}, too"
            )
        rows: dict[Any, int] = {}
        for row, of_row in enumerate(zip(*(columns[name] for name in used))):
            if rows.setdefault(of_row, row) != row:
                raise ValueError(
                    f"labels= has {_joined(of_row)} twice in {', '.join(map(repr, used))}"
                )
        missing = [one for one in wanted if one not in rows]
        if missing:
            raise ValueError(
                f"labels= has no row for {len(missing)} of {len(wanted)} samples, "
                f"{_joined(missing[0])} is the first of them: select samples, or add the rows"
            )
        order = [rows[one] for one in wanted]
        made: dict[str, Column] = {}
        for name, values in columns.items():
            try:
                made[name] = Column.of(values[row] for row in order)
            except (TypeError, ValueError) as error:
                problem = f"labels= has values in {name!r} that are no labels: {error}"
                raise TypeError(problem) from None
        return cls(made)

    def beside(self, others: Labels) -> Labels:
        """These columns and those of others, which replace columns of the same name."""
        return Labels({**self._columns, **others._columns})

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._columns)

    def column(self, name: str) -> LabelColumn:
        """A column.

        Raises:
            ValueError: There is none of that name.
        """
        if name not in self._columns:
            others = f"; there are {', '.join(self.names)}" if self._columns else ""
            raise ValueError(f"these samples have no column {shown(name)}{others}")
        return self._columns[name]

    def groups(
        self, columns: Sequence[str], samples: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint32]:
        """A number for each of some samples; equal numbers if they agree in all these columns."""
        codes = np.stack([self.column(name).codes_of(samples) for name in columns])
        return np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1).astype(np.uint32)

    def weights(self, column: str, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The numbers of a column."""
        found = self.column(column)
        try:
            numbers = np.array([float(label) for label in found.labels])
        except (TypeError, ValueError):
            raise ValueError(f"column {shown(column)} has labels that are not numbers") from None
        weights: npt.NDArray[np.float64] = numbers[found.codes_of(samples)]
        return weights

    def equals(
        self, column: str, label: Any, samples: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Whether each of some samples has this label.

        Raises:
            ValueError: None has it.
        """
        found = self.column(column)
        is_like_it = np.array([one == label for one in found.labels], np.bool_)
        equal: npt.NDArray[np.bool_] = is_like_it[found.codes_of(samples)]
        if not equal.any():
            raise ValueError(f"no sample has {shown(label)} in {column}")
        return equal

    def described(self, n_samples: int) -> list[dict[str, Any]]:
        """The columns whose entropy is measured: those in which not every sample has a label of its
        own."""
        columns = self._columns.items()
        return [
            {"name": name, **column.described()}
            for name, column in columns
            if len(column.labels) < n_samples
        ]

    def values(self, column: str, samples: npt.NDArray[np.int64]) -> list[Any]:
        """The labels of some samples."""
        found = self.column(column)
        return [found.labels[code] for code in found.codes_of(samples).tolist()]


def _columns(table: Table) -> dict[str, list[Any]]:
    if isinstance(table, str | os.PathLike):
        return _of_csv(table)
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if isinstance(table, Mapping):
        names = table.keys()
    if names is None:
        raise TypeError(
            "labels= is a table, a dictionary of columns or the path of a CSV file, not "
            f"{shown(table)}"
        )
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError("the columns of labels= have names that are no texts")
    columns = {name: _listed(table[name]) for name in names}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of labels= differ in length: {lengths}")
    return columns


def _joined(name: tuple[Any, ...]) -> str:
    return " of ".join(map(shown, name))


def _listed(column: Any) -> list[Any]:
    """The values of a column as plain objects."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _of_csv(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        place = shown(os.fspath(path))
        raise type(error)(error.errno, f"cannot read labels= {place}: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise ValueError(f"labels= is no CSV file in UTF-8: {error}") from None
    if not rows:
        raise ValueError("the CSV file of labels= is empty")
    names, *lines = rows
    lines = [line for line in lines if line]
    unlike = [number for number, line in enumerate(lines, 2) if len(line) != len(names)]
    if unlike:
        raise ValueError(
            f"line {unlike[0]} of the CSV file of labels= has another number of columns than the "
            f"{len(names)} in its first line"
        )
    return {name: [line[at] for line in lines] for at, name in enumerate(names)}


__all__ = ["Labels", "Table"]
