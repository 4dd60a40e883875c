"""Fields of several stores, static variables, and samples that are chosen by their times."""

import datetime
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import tiledbsoma_python
from somafeed import ClassBalanced, FieldDataset, Mixed, Variable

WRITE = """
import sys
import numpy as np, xarray as xr
for year, days in [(2001, 365), (2002, 365)]:
    n = 4 * days
    first = 0 if year == 2001 else 4 * 365
    time = np.datetime64(f"{year}-01-01", "ns") + np.arange(n) * np.timedelta64(6, "h")
    lat, lon = np.array([90.0, 0.0, -90.0]), np.arange(4) * 90.0
    t = (np.arange(n)[:, None, None] + first) * np.ones((1, 3, 4), "f4")
    data = xr.Dataset(
        {"t": (("time", "lat", "lon"), t), "mask": (("lon", "lat"), np.arange(12, dtype="i2").reshape(4, 3))},
        {"time": time, "lat": lat, "lon": lon},
    )
    if year == 2002:
        # A day is missing.
        data = data.isel(time=[at for at in range(n) if not 40 <= at < 44])
    data.to_zarr(f"{sys.argv[1]}/{year}.zarr", zarr_format=3, consolidated=False)
"""


@pytest.fixture(scope="module")
def years(tmp_path_factory):
    folder = tmp_path_factory.mktemp("years")
    subprocess.run([tiledbsoma_python(), "-W", "ignore", "-c", WRITE, folder], check=True)
    return {year: str(folder / f"{year}.zarr") for year in ("2001", "2002")}


def test_samples_have_the_times_that_cftime_says(tmp_path):
    n = os.environ.get("SOMAFEED_RANDOM_FIELDS", "30")
    seed = os.environ.get("SOMAFEED_RANDOM_SEED", "0")
    script = Path(__file__).with_name("fields_beside_cftime.py")
    command = [tiledbsoma_python(), "-W", "ignore", script, str(tmp_path), n, seed]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (
        0, f"{n} stores have the times that cftime says\n"
    ), ended.stderr


def windows(years, spans=("-6h", 0, "6h"), **options):
    variables = {"t": Variable("t", steps=list(spans))}
    return FieldDataset(years, variables, **{"shuffle": False, "batch_size": 100, **options})


def test_windows_cross_years_and_no_gap(years):
    ds = windows(years)
    n = 2 * 1460 - 4
    # The ends, and one step on each side of the missing day.
    assert ds.left_out == {"ends": 2, "gaps": 2, "doubled": 0, "invalid": 0}
    assert ds.n_samples == n - 4
    found = np.concatenate([batch["t"][:, :, 0, 0] for batch in ds])
    assert (np.diff(found, axis=1) == 1).all()
    assert [1459.0, 1460.0, 1461.0] in found.tolist()
    # Steps that are counted cross the gap.
    counted = FieldDataset(years, {"t": Variable("t", steps=[-1, 0, 1])})
    assert (counted.n_samples, sum(counted.left_out.values())) == (n - 2, 0)


def test_stores_are_labels(years):
    ds = windows(years, seed=1)
    in_2001 = ds.sample_numbers[ds.steps < 1460]
    [first] = ds.split_by_group("store", 1.0, seed=1)
    assert first.n_samples == ds.n_samples
    mixed = ds.with_sampling(Mixed("store", {"2001": 3, "2002": 1}, n_samples=8_000))
    again = pickle.loads(pickle.dumps(mixed))
    for one in (mixed, again):
        drawn = np.concatenate([batch["t"][:, 1, 0, 0] for batch in one])
        share = (drawn < 1460).mean()
        assert len(drawn) == 8_000
        assert 0.72 < share < 0.78
    alone = ds.with_sampling(Mixed("store", {"2002": 1}))
    assert min(batch["t"][:, 1].min() for batch in alone) >= 1460
    balanced = ds.with_sampling(ClassBalanced("store", 4_000))
    share = np.concatenate([batch["t"][:, 1, 0, 0] < 1460 for batch in balanced]).mean()
    assert 0.45 < share < 0.55
    assert len(in_2001) == 1459
    for bad, message in [
        (Mixed("store", {"2003": 1}), "'2003'"),
        (Mixed("store", {}), "at least one label"),
        (Mixed("store", {"2001": -1}), "not a positive number"),
        (Mixed("year", {"2001": 1}), "no column 'year'"),
    ]:
        with pytest.raises(ValueError, match=message):
            next(iter(ds.with_sampling(bad)))


def test_dates_choose_samples(years):
    day = windows(years, [0], start="2001-02-28", end="2001-03-01")
    assert day.steps.tolist() == list(range(4 * 58, 4 * 60))
    year = windows(years, [0], start="2002")
    assert (year.steps[0], year.n_samples) == (1460, 1456)
    for start in (datetime.datetime(2001, 2, 1, 6), np.datetime64("2001-02-01T06:00"), "2001-02-01 06:00"):
        found = windows(years, [0], start=start, end=datetime.date(2001, 2, 1))
        assert found.steps.tolist() == [125, 126, 127]
    two = windows(years, [0], periods=[(None, "2001-01-01"), ("2002-12-31", None)])
    assert two.steps.tolist() == [0, 1, 2, 3, 2912, 2913, 2914, 2915]
    daily = windows(years, ["0h"], frequency=datetime.timedelta(days=1), start=2)
    assert daily.steps[:3].tolist() == [2, 6, 10]
    assert daily.n_samples == 2 * 365 - 1


def test_a_static_variable_comes_once_a_batch(years):
    variables = {"t": "t", "mask": Variable("mask", sel={"lon": [180.0, 0.0]})}
    ds = FieldDataset(years, variables, 8, seed=1, dim="time")
    assert ds.shapes == {"t": (3, 4), "mask": (2, 3)}
    right = np.arange(12, dtype="i2").reshape(4, 3)[[2, 0]]
    batches = iter(ds)
    first, second = next(batches), next(batches)
    assert np.array_equal(first["mask"], right)
    assert first["t"].shape == (8, 3, 4)
    first["mask"][:] = -1
    assert np.array_equal(second["mask"], right)
    tensors = FieldDataset(years, variables, 8, dim="time", form="torch")
    assert next(iter(tensors))["mask"].tolist() == right.tolist()


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"steps": ["6"]}, ValueError, "no length of time"),
    ({"steps": ["1M"]}, ValueError, "no length of time"),
    ({"steps": ["6h", 1]}, TypeError, "length of time"),
    ({"steps": [0.5]}, TypeError, "length of time"),
    ({"steps": [np.timedelta64(1, "ns")]}, ValueError, "microseconds"),
    ({"start": "soon"}, ValueError, "soon"),
    ({"start": 1.5}, TypeError, "date"),
    ({"end": "1999"}, ValueError, "no sample"),
    ({"periods": [("2001",)]}, ValueError, "pair"),
    ({"periods": [("2001", None)], "start": "2001"}, ValueError, "not both"),
    ({"frequency": "0h"}, ValueError, "frequency"),
    ({"frequency": "6h", "stride": 2}, ValueError, "stride"),
    ({"uri": []}, ValueError, "at least one store"),
    ({"uri": [3]}, TypeError, "address"),
    ({"uri": ["a", "a"]}, ValueError, "twice"),
    ({"variables": {"mask": "mask"}, "dim": "time"}, ValueError, "no array has the dimension time"),
    ({"variables": {"t": "t", "mask": Variable("mask", steps=["6h"])}, "dim": "time"}, ValueError,
     "mask has no dimension time"),
])  # fmt: skip
def test_what_does_not_fit_is_said(years, options, error, message):
    with pytest.raises(error, match=message):
        steps = options.pop("steps", (0,))
        variables = options.pop("variables", {"t": Variable("t", steps=steps)})
        FieldDataset(options.pop("uri", years), variables, **options)
