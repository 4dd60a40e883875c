"""Chooses samples of random stores by dates and lengths of time, and compares with xarray's choice.

Usage: python fields_beside_cftime.py FOLDER NUMBER SEED
"""

import datetime
import sys
from pathlib import Path

import cftime
import numpy as np
import xarray as xr

from somafeed import FieldDataset, Variable

CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]
UNITS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def write(folder, rng):
    """A store with a gap here and there, times in some calendar, in steps of an hour or more."""
    calendar = str(rng.choice(CALENDARS))
    unit = str(rng.choice(list(UNITS)))
    year = int(rng.choice([-5, 1, 1500, 1582, 1899, 1999, 2019]))
    if year < 1 and calendar not in ("proleptic_gregorian", "noleap", "all_leap", "360_day"):
        year = 1582
    hours = int(rng.choice([1, 3, 6, 24, 24 * 30]))
    n = int(rng.integers(5, 200))
    gaps = rng.choice([1, 1, 1, 1, 2, 5], size=n)
    seconds = np.cumsum(gaps) * hours * 3_600
    values = seconds / UNITS[unit]
    if (values % 1 == 0).all() and rng.random() < 0.7:
        values = values.astype(rng.choice(["i4", "i8"]))
    elif rng.random() < 0.3 and unit == "days":
        values = values.astype("f4")
    day = int(rng.integers(1, 28))
    since = f"{year:04d}-{rng.integers(1, 13):02d}-{day:02d}"
    if rng.random() < 0.3:
        since += f" {rng.integers(0, 24):02d}:{rng.integers(0, 60):02d}:00"
    attributes = {"units": f"{unit} since {since}", "calendar": calendar}
    time = xr.Variable("time", values, attributes)
    data = xr.Dataset({"x": ("time", np.arange(n, dtype="i4"))}, {"time": time})
    data.to_zarr(folder, zarr_format=int(rng.choice([2, 3])), consolidated=False)
    dates = cftime.num2date(values.astype("f8"), attributes["units"], calendar)
    return np.atleast_1d(dates), hours, calendar


def text(date, precision):
    parts = [f"{date.year:04d}", f"{date.month:02d}", f"{date.day:02d}"]
    return "-".join(parts[:precision])


def first_after(date, precision, calendar):
    """The moment after a date of a year, a month or a day."""
    if precision == 3:
        start = cftime.datetime(date.year, date.month, date.day, calendar=calendar)
        return start + datetime.timedelta(days=1)
    year, month = date.year, date.month
    if precision == 1:
        year, month = year + 1, 1
    else:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    if year == 0 and calendar in ("standard", "julian"):
        year = 1
    return cftime.datetime(year, month, 1, calendar=calendar)


def check_dates(folder, dates, calendar, rng):
    start, end = sorted(int(at) for at in rng.integers(0, len(dates), 2))
    precision = [int(at) for at in rng.integers(1, 4, 2)]
    wanted = [text(dates[start], precision[0]), text(dates[end], precision[1])]
    from_ = cftime.datetime(
        dates[start].year,
        dates[start].month if precision[0] > 1 else 1,
        dates[start].day if precision[0] > 2 else 1,
        calendar=calendar,
    )
    after = first_after(dates[end], precision[1], calendar)
    # Single precision rounds times up to some minutes.
    slack = datetime.timedelta(minutes=5) if precise_to_minutes(dates) else datetime.timedelta(0)
    expected = [at for at, date in enumerate(dates) if from_ - slack <= date < after]
    found = FieldDataset(str(folder), ["x"], start=wanted[0], end=wanted[1]).steps.tolist()
    assert found == expected, (wanted, found[:3], expected[:3], found[-3:], expected[-3:])


def precise_to_minutes(dates):
    return any(date.minute % 15 or date.second or date.microsecond for date in dates)


def check_spans(folder, dates, hours, rng):
    spans = [int(by) for by in rng.integers(-3, 4, 2)]
    near = datetime.timedelta(minutes=10)
    expected = []
    for at, date in enumerate(dates):
        steps = []
        for span in spans:
            wanted = date + datetime.timedelta(hours=hours * span)
            steps += [[i for i, other in enumerate(dates) if abs(other - wanted) < near]]
        if all(len(found) == 1 for found in steps):
            expected.append([at, *(found[0] for found in steps)])
    variables = {"x": Variable("x", steps=[f"{hours * span}h" for span in spans])}
    if not expected:
        try:
            FieldDataset(str(folder), variables)
        except ValueError as error:
            assert "no sample" in str(error), error
            return
        raise AssertionError("samples were found where there are none")
    ds = FieldDataset(str(folder), variables, shuffle=False)
    found = [[step, *batch["x"][0].tolist()] for step, batch in zip(ds.steps.tolist(), ds)]
    assert found == expected, (spans, found[:3], expected[:3])
    assert sum(ds.left_out.values()) == len(dates) - len(expected)


def main(folder, number, seed):
    for index in range(number):
        rng = np.random.default_rng([seed, index])
        store = Path(folder) / f"{index}.zarr"
        dates, hours, calendar = write(store, rng)
        try:
            check_dates(store, dates, calendar, rng)
            check_spans(store, dates, hours, rng)
        except Exception as error:
            error.add_note(f"store {index} of seed {seed}")
            raise
    print(f"{number} stores have the times that cftime says")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
