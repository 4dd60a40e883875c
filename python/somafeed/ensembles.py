"""Where the members of an ensemble lie among the dimensions of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from somafeed.variables import AnyVariable, Stack


def ensemble_of(variable: AnyVariable) -> str | None:
    """The dimension of the members, if the variable is an ensemble."""
    return variable.ensemble if isinstance(variable, Stack) else None


def place_of_members(
    dimensions: Sequence[str], variable: AnyVariable, dims: Sequence[str]
) -> tuple[int, int] | None:
    """From where to where the members move among these dimensions, by the order of the variable, or
    else of all (`dims`); None if they stay."""
    if not isinstance(variable, Stack) or variable.ensemble is None:
        return None
    ensemble, order = variable.ensemble, list(variable.dims or dims)
    if ensemble not in order or ensemble not in dimensions:
        return None
    at = list(dimensions).index(ensemble)
    rest = [*dimensions[:at], *dimensions[at + 1 :]]
    later = [one for one in order[order.index(ensemble) + 1 :] if one in rest]
    return at, rest.index(later[0]) if later else len(rest)


T = TypeVar("T")


def placed(all_of: Sequence[T], moved: tuple[int, int] | None) -> list[T]:
    """A list with an entry for each dimension, where the members have moved."""
    found = list(all_of)
    if moved is not None:
        found.insert(moved[1], found.pop(moved[0]))
    return found
