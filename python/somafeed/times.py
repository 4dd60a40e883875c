"""Lengths of time and dates, as users write them."""

from __future__ import annotations

import datetime
import re
from typing import TypeAlias

import numpy as np

from somafeed.settings import shown

TimeSpan: TypeAlias = "str | datetime.timedelta | np.timedelta64"
"""A length of time: `"6h"`, `"-30min"`, `"1D"`, a `datetime.timedelta` or a `numpy.timedelta64`."""

Date: TypeAlias = "str | datetime.date | np.datetime64"
"""A date: `"2020"`, `"2020-03"`, `"2020-03-01"`, `"2020-03-01 06:00"`, or an object that prints as
one. One without a time of the day is all of its year, month or day."""

MICROSECONDS_PER_HOUR = 3_600_000_000

_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}


def microseconds(name: str, span: object) -> int:
    """The microseconds of a length of time.

    Raises:
        ValueError: It has no fixed length, or is no whole number of microseconds.
        TypeError: It is no length of time.
    """
    if isinstance(span, np.timedelta64):
        exact = span.astype("timedelta64[us]")
        if np.isnat(span) or exact != span:
            raise ValueError(f"{name} is a whole number of microseconds, not {shown(span)}")
        return int(exact.astype(np.int64))
    if isinstance(span, datetime.timedelta):
        return span // datetime.timedelta(microseconds=1)
    if not isinstance(span, str):
        raise TypeError(f"{name} is a length of time like '6h', not {shown(span)}")
    found = re.fullmatch(r"\s*([+-]?)\s*(\d{0,12})\s*([A-Za-z]+)\s*", span)
    unit = (
        None if found is None else _UNITS.get(found[3] if found[3] in _UNITS else found[3].lower())
    )
    # "M" is a month, which has no fixed length.
    if found is None or unit is None or found[3] == "M":
        raise ValueError(
            f"{name} is {shown(span)}, no length of time: a number and one of {', '.join(_UNITS)}"
        )
    return (-1 if found[1] == "-" else 1) * int(found[2] or 1) * unit


def date_text(name: str, date: Date) -> str:
    """A date as a text.

    Raises:
        TypeError: It is no date.
    """
    if isinstance(date, str):
        return date
    if isinstance(date, np.datetime64) and not np.isnat(date):
        return str(date.astype("datetime64[us]") if date.dtype.str.endswith("ns]") else date)
    # pandas.Timestamp is one, too; cftime's dates print alike.
    if isinstance(date, datetime.date) or hasattr(date, "calendar"):
        return str(date)
    raise TypeError(f"{name} is a date like '2020-03-01', not {shown(date)}")


__all__ = ["Date", "TimeSpan"]
