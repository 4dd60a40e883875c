"""Samples as recipes: which cells an epoch has, if it does not have each cell once.

A recipe pickles in a hundred bytes, and is applied to the cells that there are: those of a part of
a split, or of several experiments. One seed and epoch give the same sample everywhere, and the
ranks take parts of it.

>>> import numpy as np
>>> import pyarrow as pa
>>> import somafeed
>>> cells = somafeed.Dataset.in_memory(
...     np.zeros(101, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32), n_columns=2,
...     obs=pa.table({"cell_type": ["common"] * 99 + ["rare"]}),
... )
>>> ds = somafeed.ExperimentDataset(
...     dataset=cells, obs_column_names=["cell_type"], batch_size=10_000, seed=1,
...     sampling=somafeed.ClassBalanced("cell_type", 10_000),
... )
>>> X, obs = next(iter(ds))
>>> 4_800 < int((obs["cell_type"] == "rare").sum()) < 5_200
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.settings import at_least_0, names_of, number, positive, shown


class Labelled(Protocol):
    """Samples whose labels can be read: cells by their obs columns, images by a table beside them."""

    @property
    def n_rows(self) -> int:
        """Number of cells."""
        ...

    def groups(self, columns: Sequence[str]) -> npt.NDArray[np.uint32]:
        """A number for each cell; equal numbers if cells agree in all these obs columns."""
        ...

    def weights(self, column: str) -> npt.NDArray[np.float64]:
        """The numbers of an obs column."""
        ...

    def equals(self, column: str, label: Any) -> npt.NDArray[np.bool_]:
        """Whether each cell has this label in an obs column of strings or numbers."""
        ...


class Recipe(Protocol):
    """How an epoch's cells are drawn."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells.

        Raises:
            ValueError: There is no such column, or the sample cannot be drawn from these cells.
        """
        ...


Sample: TypeAlias = Recipe | native.Sampling
"""A recipe, or a native sampling of as many rows as there are cells, which cannot be pickled."""


@dataclass(frozen=True)
class WithReplacement:
    """Each draw takes any cell with equal probability."""

    n_samples: int | None = None
    """Draws of an epoch; None means as many as there are cells."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells."""
        return native.Sampling.with_replacement(cells.n_rows, _n_samples(self.n_samples, cells))


@dataclass(frozen=True)
class Weighted:
    """Each draw takes a cell in proportion to its number in an obs column."""

    column: str
    n_samples: int | None = None
    """Draws of an epoch; None means as many as there are cells."""
    replacement: bool = True
    """Whether a cell may come several times."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells."""
        weights, n_samples = cells.weights(self.column), _n_samples(self.n_samples, cells)
        return native.Sampling.weighted(weights, n_samples, replacement=self.replacement)


@dataclass(frozen=True)
class ClassBalanced:
    """Each draw takes a class with equal probability, then one of its cells: a class is the cells
    that agree in the obs columns."""

    columns: str | Sequence[str]
    n_samples: int | None = None
    """Draws of an epoch; None means as many as there are cells."""
    replacement: bool = True
    """Whether a cell may come several times."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells."""
        labels, n_samples = cells.groups(_names(self.columns)), _n_samples(self.n_samples, cells)
        return native.Sampling.class_balanced(labels, n_samples, replacement=self.replacement)


@dataclass(frozen=True)
class Mixture:
    """Each draw takes a label of a column by its weight, whatever its number of samples, then one of
    its samples with equal probability: for instance of several stores, whose column is `store`.

    >>> Mixture("store", {"genomes": 0.8, "plasmids": 0.2}).n_samples
    """

    column: str
    weights: Mapping[Any, float]
    """The weight of each label, of any sum. Samples with weight 0 do not come."""
    n_samples: int | None = None
    """Draws of an epoch; None means as many as there are samples."""
    replacement: bool = True
    """Whether a sample may come several times."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these samples."""
        if not isinstance(self.weights, Mapping):
            raise TypeError(f"weights are a dictionary by labels, not {shown(self.weights)}")
        weights = [number("a weight", weight) for weight in self.weights.values()]
        groups = np.full(cells.n_rows, len(weights), np.uint32)
        for group, (label, weight) in enumerate(zip(self.weights, weights)):
            try:
                groups[cells.equals(self.column, label)] = group
            except ValueError:
                # A part of a split may have none of those that do not come.
                if weight != 0:
                    raise
        n_without = int((groups == len(weights)).sum())
        if n_without:
            raise ValueError(
                f"{n_without} samples have a label in {shown(self.column)} without a weight: give "
                "each label one, 0 for those that shall not come"
            )
        return native.Sampling.by_group(
            groups, weights, _n_samples(self.n_samples, cells), replacement=self.replacement
        )


@dataclass(frozen=True)
class Stratified:
    """A fixed number of cells, each at most once, of every class in proportion to its size."""

    columns: str | Sequence[str]
    n_samples: int

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells."""
        return native.Sampling.stratified(
            cells.groups(_names(self.columns)), at_least_0("n_samples", self.n_samples)
        )


@dataclass(frozen=True)
class AtMostPerClass:
    """At most a fixed number of cells of every class, each at most once, others in each epoch."""

    columns: str | Sequence[str]
    most: int

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells."""
        return native.Sampling.at_most_per_class(
            cells.groups(_names(self.columns)), at_least_0("most", self.most)
        )


@dataclass(frozen=True)
class GroupBatches:
    """Batches of one group each, for instance of a perturbation, a donor or a slide, in random
    order; a group is the cells that agree in the obs columns.

    Each cell that is not a control comes once in an epoch, except those of a group that do not
    fill a batch. With `control`, each batch also has `n_controls` control cells, drawn anew; with
    `match`, these agree with the batch's other cells in the obs columns `match`, for instance the
    donor.
    Several ranks leave up to one batch for each rank out of an epoch, others in the next, unless
    `remainder="pad"` repeats some.
    """

    columns: str | Sequence[str]
    batch_size: int
    """Cells of a batch, controls included: the `batch_size` of the data set."""
    control: str | None = None
    """The label of controls in the first of `columns`."""
    n_controls: int = 0
    match: str | Sequence[str] = ()
    fill: bool = False
    """Whether further cells of a group fill its last batch, so that each cell comes at least
    once."""
    shuffle_chunk_size: int = 64
    """Consecutive cells that pass by together while batches are composed."""
    window: int = 65_536
    """Cells that are shuffled together: a batch of a larger window is more random, and lies in more
    places of the storage."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these cells."""
        columns = _names(self.columns)
        n_controls = at_least_0("n_controls", self.n_controls)
        if (self.control is None) != (n_controls == 0):
            raise ValueError("give both control and n_controls, or neither")
        is_control = contexts = None
        if self.control is not None:
            is_control = cells.equals(columns[0], self.control)
            match = (self.match,) if isinstance(self.match, str) else names_of("match", self.match)
            contexts = cells.groups(match) if match else None
            if contexts is not None:
                _check_controls(is_control, contexts, match)
        return native.Sampling.group_batches(
            cells.groups(columns),
            positive("batch_size", self.batch_size),
            is_control=None if is_control is None else is_control.astype(np.uint32),
            contexts=contexts,
            n_controls=n_controls,
            fill=self.fill,
            chunk_rows=positive("shuffle_chunk_size", self.shuffle_chunk_size),
            window_rows=positive("window", self.window),
        )


@dataclass(frozen=True)
class Hierarchical:
    """Batches with samples of every domain, for instance of a camera, from different subjects: like
    htc's `HierarchicalSampler`.

    A batch is drawn in rounds. Each takes one sample of every domain: first a subject of the domain,
    then one of its samples, each with equal probability and with replacement. With `label`, each
    round draws a class, too, and takes samples that have it.
    """

    domain: str | Sequence[str]
    subject: str | Sequence[str]
    batch_size: int
    """Samples of a batch, at least one for each domain: the `batch_size` of the data set, times the
    number of ranks if each rank's batches need not have every domain."""
    n_batches: int | None = None
    """Batches of an epoch; None means as many as hold all samples."""
    label: str | Sequence[str] | None = None
    class_draw: Literal["uniform", "least_drawn"] = "uniform"
    """How a round's class is drawn: each with equal probability, or that which the fewest samples of
    the epoch have so far."""

    def of(self, cells: Labelled) -> native.Sampling:
        """The sampling of these samples."""
        if self.class_draw not in ("uniform", "least_drawn"):
            raise ValueError(
                f"class_draw is 'uniform' or 'least_drawn', not {shown(self.class_draw)}"
            )
        batch_size = positive("batch_size", self.batch_size)
        n_batches = -(-cells.n_rows // batch_size)
        if self.n_batches is not None:
            n_batches = at_least_0("n_batches", self.n_batches)
        return native.Sampling.hierarchical(
            cells.groups(_names(self.domain)),
            cells.groups(_names(self.subject)),
            batch_size,
            n_batches,
            labels=None if self.label is None else cells.groups(_names(self.label)),
            least_drawn=self.class_draw == "least_drawn",
        )


def _check_controls(
    is_control: npt.NDArray[np.bool_], contexts: npt.NDArray[np.uint32], match: Sequence[str]
) -> None:
    has_control = np.zeros(int(contexts.max(initial=0)) + 1, np.bool_)
    has_control[contexts[is_control]] = True
    n_without = int((~has_control[contexts]).sum())
    if n_without:
        raise ValueError(
            f"{n_without} cells have no control that agrees with them in {', '.join(match)}: leave "
            "them out by obs_filter=, or match other columns"
        )


def checked_sample(sample: Sample | None) -> Sample | None:
    """The sample, if it is one.

    Raises:
        TypeError: It is something else.
    """
    is_recipe = callable(getattr(sample, "of", None))
    if sample is None or is_recipe or isinstance(sample, native.Sampling):
        return sample
    raise TypeError(f"sampling must be a sample like WithReplacement(1000), not {shown(sample)}")


def _names(columns: str | Sequence[str]) -> Sequence[str]:
    names = (columns,) if isinstance(columns, str) else names_of("columns", columns)
    if not names:
        raise ValueError("name at least one column of obs whose values are classes")
    return names


def _n_samples(n_samples: int | None, cells: Labelled) -> int:
    return cells.n_rows if n_samples is None else at_least_0("n_samples", n_samples)
