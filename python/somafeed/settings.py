"""Checks of arguments."""

from __future__ import annotations

import operator
import re
from typing import Any

from somafeed import _somafeed as native

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_BINARY_UNITS = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def shown(value: Any) -> str:
    """A value in a message: numbers and texts, without the credentials of addresses. Any other
    object may hold secrets, so its type is named.

    >>> shown(0.5), shown("s3://ada:password@bucket/cells"), shown({"key": "secret"})
    ('0.5', "'s3://bucket/cells'", 'an object of type dict')
    """
    if value is None or isinstance(value, bool | int | float):
        return repr(value)[:200]
    if isinstance(value, str):
        # A path that is not UTF-8 has surrogates, which are no text to Rust.
        text = value.encode(errors="backslashreplace").decode()
        return repr(native._address_without_credentials(text))[:200]
    return f"an object of type {type(value).__name__}"


def integer(name: str, value: Any) -> int:
    """An integer of Python or numpy.

    Raises:
        TypeError: It is not one.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, not {shown(value)}") from error


def number(name: str, value: Any) -> float:
    """A number of Python or numpy.

    Raises:
        TypeError: It is not one.
        ValueError: It is beyond the range of double precision.
    """
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, not {shown(value)}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number, not {shown(value)}") from error
    except OverflowError as error:
        raise ValueError(f"{name} is beyond the range of double precision") from error


def no_text(name: str, value: Any) -> Any:
    """The value of a dictionary. A text in it may be a secret that was meant for `config=`, so it is
    not shown.

    Raises:
        TypeError: It is a text.
    """
    if isinstance(value, str):
        raise TypeError(f"{name} must be a number, not a text")
    return value


def positive(name: str, value: Any) -> int:
    """An integer from 1 to 2^63 - 1.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is outside the range.
    """
    number = integer(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be above 0, not {number}")
    if number >= 1 << 63:
        raise ValueError(f"{name} must be below 2^63, not {number}")
    return number


def at_least_0(name: str, value: Any, bits: int = 64) -> int:
    """An integer from 0 to 2^bits - 1.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is outside the range.
    """
    number = integer(name, value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} must be from 0 to 2^{bits} - 1, not {number}")
    return number


def checked_seed(seed: Any) -> int:
    """A seed: an integer from 0 to 2^64 - 1.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is outside the range.
    """
    return at_least_0("seed", seed)


def names_of(name: str, values: Any) -> tuple[str, ...]:
    """Several names, for example of columns.

    Raises:
        TypeError: It is one text, whose letters would be taken as names, or not of texts.
    """
    if isinstance(values, str):
        text = shown(values)
        raise TypeError(f"{name} must be several names, like [{text}], not the text {text}")
    try:
        names = tuple(values)
    except TypeError as error:
        raise TypeError(f"{name} must be a sequence of names, not {shown(values)}") from error
    other = [one for one in names if not isinstance(one, str)]
    if other:
        raise TypeError(f"{name} must have names, not {shown(other[0])}")
    return names


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
            given = shown(memory)
            raise ValueError(f'memory must be bytes, like 2000000000 or "2GiB", not {given}')
        if len(found[1]) > 30:
            raise ValueError(f"memory must be below 2^63 bytes, not {memory:.60}")
        memory = int(float(found[1]) * unit)
    return positive("memory", memory)
