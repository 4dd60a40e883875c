"""The order of dimensions, and the directions of their coordinates, as settings of fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from somafeed.settings import shown

Direction: TypeAlias = Literal["ascending", "descending"]
"""The direction in which coordinates go."""

DIRECTIONS = ("ascending", "descending")


def dimension_names(what: str, names: Any) -> tuple[str, ...]:
    """Names of dimensions, each once.

    Raises:
        TypeError: They are something else.
        ValueError: One comes twice.
    """
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not all(isinstance(one, str) for one in names):
        raise TypeError(f"{what} is a list of names of dimensions, not {shown(names)}")
    twice = [one for at, one in enumerate(names) if one in names[:at]]
    if twice:
        raise ValueError(f"{what} has {shown(twice[0])} twice")
    return tuple(names)


def directions_of(orient: Any) -> list[tuple[str, bool]]:
    """Dimensions, and whether each is delivered descending.

    Raises:
        TypeError: They are no dictionary by names.
        ValueError: A direction is another text.
    """
    if orient is None:
        return []
    if not isinstance(orient, Mapping) or not all(isinstance(one, str) for one in orient):
        raise TypeError(f"orient is a dictionary of directions by dimensions, not {shown(orient)}")
    for name, direction in orient.items():
        if direction not in DIRECTIONS:
            # What is wrong may be a secret that was meant for config=.
            raise ValueError(f"orient of {shown(name)} is neither 'ascending' nor 'descending'")
    return [(name, direction == "descending") for name, direction in orient.items()]


def in_order(dimensions: Sequence[str], named: Sequence[str]) -> list[str]:
    """Dimensions as they are delivered: those that are not named first, as they are."""
    return [*(one for one in dimensions if one not in named), *named]


__all__ = ["Direction"]
