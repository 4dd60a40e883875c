"""Neighbours of cells by a graph of obsp, whose rows of X come beside X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from somafeed.settings import integer, shown

Nearest: TypeAlias = Literal["smallest", "largest"]

NEIGHBOURS = "neighbours"
"""The name of the table of rows in a batch."""


@dataclass(frozen=True)
class Neighbours:
    """The `k` nearest cells of each cell by a graph of obsp, nearest first; of equal values the cell
    with the lower joinid first. The cell itself is never among them.

    >>> Neighbours("spatial_distances", k=6).k
    6
    """

    obsp: str
    """The graph in obsp of the measurement of X, for example `distances` or `connectivities`."""
    k: int = 10
    """Number of neighbours, from 1 to 65,536."""
    nearest: Nearest | None = None
    """Whether the smallest or the largest stored values are those of the nearest cells, compared as
    float32. None means the smallest if the name ends in `distances`, the largest if it ends in
    `connectivities`. A value that is not stored is no neighbour."""
    selected_only: bool = False
    """Whether neighbours are only cells of this data set, in a part of a split those of the part.
    Otherwise they come from all cells of obs, also from those that other parts or filters have."""
    allow_fewer: bool = True
    """Whether a cell may have fewer than `k` neighbours; otherwise a batch with it is an error."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            TypeError: A field is of another type.
            ValueError: `k` is below 1, or `nearest` is unknown.
        """
        if not isinstance(self.obsp, str):
            raise TypeError(f"obsp must be the name of a graph, not {shown(self.obsp)}")
        object.__setattr__(self, "k", integer("k", self.k))
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k}")
        if self.nearest not in (None, "smallest", "largest"):
            raise ValueError(f"nearest must be 'smallest' or 'largest', not {shown(self.nearest)}")


def checked_neighbours(neighbours: Neighbours | None) -> Neighbours | None:
    """The neighbours that batches have; None for none.

    Raises:
        TypeError: They are not a `Neighbours`.
    """
    if neighbours is None or isinstance(neighbours, Neighbours):
        return neighbours
    raise TypeError(f"neighbours must be somafeed.Neighbours, not {shown(neighbours)}")
