"""Fields of several stores, static variables, samples that are chosen by their times, channels that
are stacked, and numbers that are normalised."""

import datetime
import os
import pickle
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import tiledbsoma_python
from somafeed import ClassBalanced, FieldDataset, Mixture, Stack, Variable
from somafeed.statistics import statistics_of

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
    of_times = {"ends": 2, "gaps": 2, "doubled": 0, "invalid": 0}
    assert ds.left_out == {**of_times, "chunk": 0, "fill": 0, "nan": 0}
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
    mixed = ds.with_sampling(Mixture("store", {"2001": 3, "2002": 1}, n_samples=8_000))
    again = pickle.loads(pickle.dumps(mixed))
    for one in (mixed, again):
        drawn = np.concatenate([batch["t"][:, 1, 0, 0] for batch in one])
        share = (drawn < 1460).mean()
        assert len(drawn) == 8_000
        assert 0.72 < share < 0.78
    alone = ds.with_sampling(Mixture("store", {"2001": 0, "2002": 1}))
    assert min(batch["t"][:, 1].min() for batch in alone) >= 1460
    balanced = ds.with_sampling(ClassBalanced("store", 4_000))
    share = np.concatenate([batch["t"][:, 1, 0, 0] < 1460 for batch in balanced]).mean()
    assert 0.45 < share < 0.55
    assert len(in_2001) == 1459
    for batch in mixed:
        assert np.array_equal(batch["store"], batch["t"][:, 1, 0, 0] >= 1460)
    with pytest.raises(ValueError, match="2003"):
        next(iter(ds.with_sampling(Mixture("store", {"2003": 1}))))
    with pytest.raises(ValueError, match="year"):
        next(iter(ds.with_sampling(Mixture("year", {"2001": 1}))))
    with pytest.raises(ValueError, match="is the name of the stores"):
        FieldDataset(years, {"store": "t"})


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
    # Chosen by dates, and beside variables of which parts are selected, too.
    of_part = {"mask": variables["mask"], "whole": "mask", "t": Variable("t", isel={"lat": [1, 0]})}
    batch = next(iter(FieldDataset(years, of_part, 8, dim="time", start="2002-02", shuffle=False)))
    assert np.array_equal(batch["mask"], right) and batch["t"].shape == (8, 2, 4)
    assert np.array_equal(batch["whole"][[2, 0]], right)


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
    ({"uri": []}, ValueError, "there is no store"),
    ({"uri": [3]}, TypeError, "among several stores is 3"),
    ({"uri": 3}, TypeError, "neither a store nor several"),
    ({"variables": {"mask": "mask"}, "dim": "time"}, ValueError, "no array has the dimension time"),
    ({"variables": {"t": "t", "mask": Variable("mask", steps=["6h"])}, "dim": "time"}, ValueError,
     "mask has no dimension time"),
])  # fmt: skip
def test_what_does_not_fit_is_said(years, options, error, message):
    with pytest.raises(error, match=message):
        steps = options.pop("steps", (0,))
        variables = options.pop("variables", {"t": Variable("t", steps=steps)})
        FieldDataset(options.pop("uri", years), variables, **options)

LEVELS = """
import sys
import numpy as np, xarray as xr
rng = np.random.default_rng(0)
z = 5e4 + rng.standard_normal((40, 3, 4, 5)).astype("f4") * [[[1]], [[10]], [[100]]]
t = rng.standard_normal((40, 4, 5)).astype("f4")
t[3, 2, 1] = np.nan
data = xr.Dataset(
    {"z": (("time", "level", "lat", "lon"), z.astype("f4")), "t": (("time", "lat", "lon"), t),
     "flat": (("time", "lat", "lon"), np.ones((40, 4, 5), "f4"))},
    {"time": np.arange(40), "level": [850, 500, 250]},
)
data.to_zarr(sys.argv[1], zarr_format=2, consolidated=False)
np.savez(sys.argv[1] + ".npz", z=z.astype("f4"), t=t)
"""


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("levels") / "levels.zarr")
    subprocess.run([tiledbsoma_python(), "-W", "ignore", "-c", LEVELS, path], check=True)
    return path, np.load(path + ".npz")


def test_variables_are_stacked_as_channels(levels):
    path, right = levels
    stack = Stack({"t": "t", "geo": Variable("z", sel={"level": [250, 850]}), "z500": Variable("z", sel={"level": 500})}, steps=[-1, 0])
    ds = FieldDataset(path, {"x": stack}, 6, seed=1, number_samples=True)
    assert ds.shapes == {"x": (2, 4, 4, 5)}
    channels = [right["t"], right["z"][:, 2], right["z"][:, 0], right["z"][:, 1]]
    whole = np.stack(channels, 1)
    for batch in ds:
        steps = batch["sample"][:, None] + [0, 1]
        assert np.array_equal(batch["x"], whole[steps], equal_nan=True)
    named = FieldDataset(path, {"x": replace(stack, steps=0)})
    assert named.shapes == {"x": (4, 4, 5)}
    again = pickle.loads(pickle.dumps(ds))
    assert np.array_equal(next(iter(again))["x"], next(iter(ds))["x"], equal_nan=True)


def test_statistics_are_those_of_two_passes_and_normalise(levels):
    path, right = levels
    stack = Stack(["t", "z"])
    ds = FieldDataset(path, {"x": stack, "z": "z", "t": "t"}, 7, seed=1)
    found = ds.statistics()
    whole = np.concatenate([right["t"][:, None], right["z"]], axis=1).astype("f8")
    mean, deviation = np.nanmean(whole, axis=(0, 2, 3)), np.nanstd(whole, axis=(0, 2, 3))
    assert np.allclose(found["x"].mean, mean, rtol=1e-12, atol=0)
    assert np.allclose(found["x"].deviation, deviation, rtol=1e-12, atol=0)
    assert found["x"].count.tolist() == [799, 800, 800, 800]
    assert np.array_equal(found["z"].pairs, found["x"].pairs[:, 1:])
    assert found["t"].mean.shape == (1,)
    pairs = found["x"].pairs
    normal = FieldDataset(path, {"x": replace(stack, normalize=pairs)}, 40, shuffle=False)
    [batch] = normal
    expected = (whole - pairs[0][:, None, None]) / pairs[1][:, None, None]
    assert np.allclose(batch["x"], expected, atol=1e-5, equal_nan=True)
    part = FieldDataset(path, {"z": Variable("z", isel={"level": [1]}, normalize=(5e4, 10))}, 40, shuffle=False)
    assert np.allclose(next(iter(part))["z"][:, 0], (right["z"][:, 1] - 5e4) / 10, atol=1e-5)
    with pytest.warns(RuntimeWarning, match="one value only"):
        flat = FieldDataset(path, ["flat"]).statistics()["flat"]
    assert (flat.mean, flat.deviation) == (1, 0)
    with pytest.raises(ValueError, match="cannot be normalised"):
        _ = flat.pairs


def test_statistics_of_large_numbers_are_exact():
    rng = np.random.default_rng(1)
    values = 1e5 + rng.choice([-1.0, 1.0], 1_000_000)
    batches = [{"x": part} for part in np.array_split(values, 37)]
    found = statistics_of(batches, {"x": 1})["x"]
    assert abs(found.mean[0] / values.mean() - 1) < 1e-12
    assert abs(found.deviation[0] / values.std() - 1) < 1e-12
    one = statistics_of([{"x": np.array([1.0, 2.0])}, {"x": np.array([3.0, 4.0])}], {"x": 1})["x"]
    assert (one.mean, one.deviation) == (2.5, 1.118033988749895)
    with_nan = statistics_of([{"x": np.array([1.0, np.nan, 3.0])}], {"x": 1})["x"]
    assert (with_nan.mean, with_nan.deviation, with_nan.count) == (2, 1, 2)


@pytest.mark.parametrize(("variable", "error", "message"), [
    (lambda: Variable("z", normalize=(1, 2, 3)), ValueError, "a mean and a deviation"),
    (lambda: Variable("z", normalize=([1, 2], [1, 1])), ValueError, "3 indices"),
    (lambda: Variable("z", normalize=(1, 0)), ValueError, "deviation 0"),
    (lambda: Stack([]), ValueError, "at least one variable"),
    (lambda: Stack([Stack(["t"])]), ValueError, "needs a name"),
    (lambda: Stack({"a": Stack(["t"])}), TypeError, "not other stacks"),
    (lambda: Stack(["t"], dtype="float64"), ValueError, "dtype"),
    (lambda: Stack(["t", "z"], normalize=(0, 1)), ValueError, "pairs only"),
    (lambda: Stack(["t", Variable("z", isel={"lat": 0})]), ValueError, "must be alike"),
    (lambda: Stack(["t", Variable("z", isel={"depth": 0})]), ValueError, "no dimension 'depth'"),
])  # fmt: skip
def test_what_cannot_be_stacked_is_said(levels, variable, error, message):
    with pytest.raises(error, match=message):
        FieldDataset(levels[0], {"x": variable()})
