"""Checks of arguments."""

from __future__ import annotations

import operator
import re
from typing import Any

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_BINARY_UNITS = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def positive(name: str, value: Any) -> int:
    """An integer above 0.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is not above 0.
    """
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, not {value!r}") from error
    if number <= 0:
        raise ValueError(f"{name} must be above 0, not {number}")
    return number


def checked_seed(seed: Any) -> int:
    """A seed: an integer from 0 to 2^64 - 1.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is outside the range.
    """
    try:
        number = operator.index(seed)
    except TypeError as error:
        raise TypeError(f"seed must be an integer, not {seed!r}") from error
    if not 0 <= number < 1 << 64:
        raise ValueError(f"seed must be from 0 to 2^64 - 1, not {number}")
    return number


def bytes_of(memory: int | str | None) -> int | None:
    """A number of bytes, given as such or like `"2GiB"`, `"500 MB"`.

    >>> bytes_of("2GiB"), bytes_of("1.5 kB"), bytes_of(10), bytes_of(None)
    (2147483648, 1500, 10, None)

    Raises:
        ValueError: It is not a number of bytes above 0.
    """
    if memory is None:
        return None
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", memory.lower())
        unit = found and {**_UNITS, **_BINARY_UNITS}.get(found[2])
        if found is None or unit is None:
            raise ValueError(f'memory must be bytes, like 2000000000 or "2GiB", not {memory!r}')
        memory = int(float(found[1]) * unit)
    return positive("memory", memory)
