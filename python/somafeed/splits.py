"""Splits as recipes: pickled in a hundred bytes, and the same rows wherever they are applied."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.settings import shown

Rows = npt.NDArray[np.int64]
"""Positions in a data set, ascending."""

GroupsOf = Callable[[Sequence[str]], npt.NDArray[np.uint32]]
"""A number for each row; equal numbers if rows agree in all these obs columns."""

SamplingMethod = Literal["deterministic", "multinomial", "stochastic_rounding"]
"""How `random_split` turns fractions into sizes.

- `"deterministic"`: the cumulative fraction times the number of rows, rounded.
- `"multinomial"`: each row is assigned independently; sizes vary.
- `"stochastic_rounding"`: each part gets at least the rounded-down size; the rows that remain go
  to distinct parts, drawn so that the expected sizes fit the fractions.
"""

SAMPLING_METHODS: tuple[SamplingMethod, ...] = typing.get_args(SamplingMethod)


class Split(Protocol):
    """A recipe for dividing rows into parts."""

    def parts(self, n_rows: int, groups_of: GroupsOf) -> list[Rows]:
        """The rows of each part. Each row of `0..n_rows` is in exactly one."""
        ...


def checked_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    """The fractions as floats.

    Raises:
        TypeError: They are not numbers.
        ValueError: There is none, one is negative or not a number, or their sum is not 1.
    """
    try:
        checked = tuple(float(fraction) for fraction in fractions)
    except (TypeError, ValueError):
        raise TypeError(f"fractions must be numbers, not {shown(fractions)}") from None
    if any(not fraction >= 0 for fraction in checked):
        raise ValueError(f"fractions must be at least 0: {checked}")
    if not checked or not math.isclose(sum(checked), 1.0, rel_tol=1e-5, abs_tol=1e-8):
        raise ValueError(f"Fractions must sum to 1: {checked}")
    return checked


@dataclass(frozen=True)
class Between:
    """A split whose one part is the rows from one place to another."""

    places: slice

    def parts(self, n_rows: int, groups_of: GroupsOf | None) -> list[Rows]:
        """The rows, ascending."""
        return [np.sort(np.arange(n_rows)[self.places])]


@dataclass(frozen=True, eq=False)
class Places:
    """A split whose one part is the rows at these places, ascending."""

    places: Rows

    def parts(self, n_rows: int, groups_of: GroupsOf | None) -> list[Rows]:
        """The rows."""
        return [self.places]


@dataclass(frozen=True)
class RandomSplit:
    """Parts of random rows; for one seed the same parts as tiledbsoma_ml's `random_split`.

    >>> split = RandomSplit((0.7, 0.3), seed=111, method="deterministic")
    >>> [part.tolist() for part in split.parts(10, groups_of=None)]
    [[0, 1, 4, 5, 7, 8, 9], [2, 3, 6]]
    """

    fractions: tuple[float, ...]
    seed: int
    method: SamplingMethod

    def __post_init__(self) -> None:
        if self.method not in SAMPLING_METHODS:
            raise ValueError(
                f"unknown sampling method {shown(self.method)}; there are "
                f"{', '.join(SAMPLING_METHODS)}"
            )

    def parts(self, n_rows: int, groups_of: GroupsOf | None) -> list[Rows]:
        """The rows of each part, ascending."""
        generator = np.random.default_rng(self.seed)
        order = generator.permutation(np.arange(n_rows))
        ends = self._ends(generator, n_rows)
        return [np.sort(part) for part in np.split(order, ends[:-1])]

    def _ends(self, generator: np.random.Generator, n_rows: int) -> npt.NDArray[np.intp]:
        """The end of each part in the permuted rows."""
        fractions = np.array(self.fractions)
        if self.method == "deterministic":
            return np.round(np.cumsum(self.fractions) * n_rows).astype(np.intp)
        if self.method == "multinomial":
            return np.cumsum(generator.multinomial(n_rows, fractions)).astype(np.intp)
        exact = fractions * n_rows
        sizes = exact.astype(np.intp)
        remainders = exact - sizes
        for _ in range(round(float(remainders.sum()))):
            chosen = generator.choice(len(sizes), p=remainders / remainders.sum())
            sizes[chosen] += 1
            remainders[chosen] = 0
        return np.cumsum(sizes)


@dataclass(frozen=True)
class GroupSplit:
    """Parts that keep rows with equal values in `columns` together, for example a donor's cells.

    With `label`, each part also gets its share of that column's labels, as far as whole groups
    allow.
    """

    columns: tuple[str, ...]
    fractions: tuple[float, ...]
    seed: int
    label: str | None = None

    def parts(self, n_rows: int, groups_of: GroupsOf) -> list[Rows]:
        """The rows of each part, ascending."""
        labels = None if self.label is None else groups_of((self.label,))
        groups = groups_of(self.columns)
        parts = native.split_by_group(groups, self.fractions, seed=self.seed, labels=labels)
        return _signed(parts)


@dataclass(frozen=True)
class LabelSplit:
    """Parts that each have their share of the rows of every label of `column`."""

    column: str
    fractions: tuple[float, ...]
    seed: int

    def parts(self, n_rows: int, groups_of: GroupsOf) -> list[Rows]:
        """The rows of each part, ascending."""
        labels = groups_of((self.column,))
        return _signed(native.split_by_label(labels, self.fractions, seed=self.seed))


def _signed(parts: Sequence[npt.NDArray[Any]]) -> list[Rows]:
    return [part.astype(np.int64) for part in parts]
