"""Numbers on the way: logarithms, ends, halves, differences, what is computed of times, weights."""

import pickle
import subprocess

import numpy as np
import pytest
import torch
from conftest import tiledbsoma_python
from somafeed import (
    FieldDataset,
    Forcing,
    Patches,
    Stack,
    Variable,
    experiment_dataloader,
    latitude_weights,
)

N, N_LAT, N_LON = 24, 7, 12
WRITE = """
import sys
import numpy as np, zarr
root = zarr.open_group(sys.argv[1], mode="w", zarr_format=3)
units, calendar = sys.argv[2:]
n, lat, lon, level = 24, np.linspace(90, -90, 7), np.arange(12) * 30.0, np.array([850, 500])
rng = np.random.default_rng(0)

def array(name, values, dims, **attributes):
    chunks = tuple(-(-n // 3) for n in values.shape)
    made = root.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, dimension_names=dims, attributes=attributes)
    made[:] = values

t = (rng.standard_normal((n, 7, 12)) * 20 + 280).astype("f4")
t[5, 2, 3] = np.nan
array("t", t, ["time", "lat", "lon"])
array("z", np.cumsum(rng.standard_normal((n, 2, 7, 12)) * [[[1]], [[30]]], 0).astype("f4"), ["time", "level", "lat", "lon"])
array("p", (rng.standard_normal((n, 12, 7)) * 1e-3).astype("f4"), ["time", "lon", "lat"])
array("packed", rng.integers(-9, 99, (n, 7, 12)).astype("i2"), ["time", "lat", "lon"], scale_factor=0.25, add_offset=3.0)
array("index", np.arange(n), ["time"])
array("same", np.ones((n, 7, 12), "f4"), ["time", "lat", "lon"])
array("mask", (rng.random((7, 12)) > 0.5).astype("f4"), ["lat", "lon"])
array("lat", lat, ["lat"], units="degrees_north")
array("lon", lon, ["lon"], units="degrees_east")
array("level", level, ["level"])
hours = 6 * np.arange(n)
array("time", hours.astype("i8"), ["time"], units=units, calendar=calendar)
np.savez(sys.argv[1] + ".npz", **{name: root[name][:] for name in ("t", "z", "p", "packed")})
"""


def written(folder, units="hours since 2003-06-20 18:00", calendar="standard"):
    path = str(folder / "numbers.zarr")
    subprocess.run([tiledbsoma_python(), "-c", WRITE, path, units, calendar], check=True)
    return path, dict(np.load(path + ".npz"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return written(tmp_path_factory.mktemp("numbers"))


def whole(ds):
    """All samples in their order."""
    batches = list(ds.in_order())
    return {name: np.concatenate([np.asarray(one[name]) for one in batches]) for name in batches[0]}


def opened(path, variables, **options):
    options = {"dim": "time", "shuffle": False, "batch_size": 5, **options}
    return FieldDataset(path, variables, **options)


def test_ends_and_logarithms_are_those_of_numpy(store):
    path, right = store
    ds = opened(path, {
        "log": Variable("p", clip=(0, None), log=1e-5),
        "turned": Variable("p", clip=(0, 1e-3), log=0.5, dims=["lat", "lon"], steps=[-1, 0]),
        "clip": Variable("t", clip=(None, 280)),
        "packed": Variable("packed", log=0.5, normalize=(1, 2)),
        "half": Variable("t", dtype="float16", normalize=(280, 20)),
    })  # fmt: skip
    found = whole(ds)
    p, t = right["p"].astype("f8"), right["t"]
    assert np.allclose(found["log"], np.log(np.maximum(p, 0) + 1e-5)[1:], rtol=1e-6)
    turned = np.log(np.clip(p, 0, 1e-3) + 0.5).transpose(0, 2, 1)
    assert np.allclose(found["turned"], np.stack([turned[:-1], turned[1:]], 1), rtol=1e-6)
    assert np.array_equal(found["clip"], np.minimum(t, 280)[1:], equal_nan=True)
    with np.errstate(invalid="ignore"):
        packed = (np.log(right["packed"] * 0.25 + 3.5) - 1) / 2
    assert np.allclose(found["packed"], packed[1:], rtol=1e-6, equal_nan=True)
    half = ((t.astype("f8") - 280) / 20)[1:]
    assert found["half"].dtype == np.float16
    # numpy rounds from double precision, once.
    assert np.allclose(found["half"], half.astype("f2"), rtol=1e-3, equal_nan=True)
    assert (np.asarray(found["half"]) == half.astype("f2")).mean() > 0.999 - np.isnan(half).mean()


def test_bfloat16_is_for_tensors(store):
    path, right = store
    variables = {"t": Variable("t", dtype="bfloat16"), "x": Stack(["z"], dtype="bfloat16")}
    batch = next(iter(opened(path, variables, form="torch")))
    assert batch["t"].dtype == batch["x"].dtype == torch.bfloat16
    assert torch.equal(batch["x"], torch.from_numpy(right["z"][:5]).to(torch.bfloat16))
    statistics = opened(path, {"t": variables["t"]}, form="torch").statistics()["t"]
    assert abs(statistics.mean - np.nanmean(right["t"])) < 0.1
    with pytest.raises(TypeError, match="bfloat16, which numpy does not have"):
        opened(path, variables)
    beyond = opened(path, {"t": Variable("t", clip=(65_520, None), dtype="float16")})
    assert np.isinf(next(iter(beyond))["t"]).all()


def test_residuals_and_tendencies_have_statistics_of_their_own(store):
    path, right = store
    z = Stack(["t", "z"], steps=[1, 2, 3], minus=[0, 1, 2], rollout={0: 1, 4: 3})
    plain = {
        "residual": Variable("z", steps=[1, 2, 3], minus=0, dtype="float32"),
        "tendency": Stack(["t", "z"], steps=[1, 2, 3], minus=[0, 1, 2]),
        "rolled": z,
    }
    train = opened(path, plain).isel(slice(0, 15))
    of_z, of_t = right["z"].astype("f8"), right["t"].astype("f8")[:, None]
    x = np.concatenate([of_t, of_z], 1)
    steps = np.arange(15)
    residual = np.stack([of_z[steps + by] - of_z[steps] for by in (1, 2, 3)], 1)
    tendency = np.stack([x[steps + by] - x[steps + by - 1] for by in (1, 2, 3)], 1)
    found = whole(train)
    assert np.array_equal(found["residual"], residual.astype("f4"))
    assert np.array_equal(found["tendency"], tendency.astype("f4"), equal_nan=True)
    assert np.array_equal(found["rolled"], tendency[:, :1].astype("f4"), equal_nan=True)
    statistics = train.statistics()
    for name, values in (("residual", residual), ("tendency", tendency)):
        values = values.astype("f4").astype("f8")
        assert np.allclose(statistics[name].mean, np.nanmean(values, (0, 1, 3, 4)), rtol=1e-12)
        assert np.allclose(statistics[name].deviation, np.nanstd(values, (0, 1, 3, 4)), rtol=1e-12)
    pairs = statistics["tendency"].pairs
    normal = opened(path, {"x": Stack(["t", "z"], steps=1, minus=0, normalize=pairs)})
    mean, deviation = pairs[:, :, None, None]
    assert np.allclose(
        whole(normal)["x"][:15], (tendency[:, 0] - mean) / deviation, atol=1e-6, equal_nan=True
    )
    by_time = {"z": Variable("z", steps=["6h", "12h"], minus=[0, "6h"])}
    assert np.array_equal(whole(opened(path, by_time))["z"][:15], tendency[:, :2, 1:].astype("f4"))
    same = opened(path, {"x": Variable("same", steps=1, minus=0)})
    with pytest.warns(RuntimeWarning, match="one value only"):
        statistics = same.statistics()
    with pytest.raises(ValueError, match=r"deviation 0\.0"):
        _ = statistics["x"].pairs
    infinite = opened(path, {"x": Variable("p", clip=(0, None), log=0)})
    with pytest.warns(RuntimeWarning, match="infinite values"):
        statistics = infinite.statistics()
    with pytest.raises(ValueError, match="some are infinite"):
        _ = statistics["x"].pairs


def almanac(times, latitude, longitude):
    """The cosine of the solar zenith angle by the low precision formulas of the Astronomical
    Almanac (page C5), good to 0.01 degrees from 1950 to 2050."""
    days = (times - np.datetime64("2000-01-01T12:00")) / np.timedelta64(1, "D")
    mean_longitude, anomaly = 280.460 + 0.985_647_4 * days, np.radians(357.528 + 0.985_600_3 * days)
    of_sun = np.radians(mean_longitude + 1.915 * np.sin(anomaly) + 0.020 * np.sin(2 * anomaly))
    tilt = np.radians(23.439 - 4e-7 * days)
    ascension = np.arctan2(np.cos(tilt) * np.sin(of_sun), np.cos(of_sun))
    declination = np.arcsin(np.sin(tilt) * np.sin(of_sun))
    midnight = times.astype("M8[D]")
    hours = (times - midnight) / np.timedelta64(1, "h")
    of_midnight = (midnight - np.datetime64("2000-01-01T12:00")) / np.timedelta64(1, "D")
    # Greenwich mean sidereal time: that of midnight, and hours since then.
    sidereal = 6.697_375 + 0.065_709_824_2 * (of_midnight + 0.5) - 0.032_854_9 + 1.002_737_909 * hours
    angle = np.radians(15 * sidereal + longitude) - ascension
    phi = np.radians(latitude)
    return np.sin(phi) * np.sin(declination) + np.cos(phi) * np.cos(declination) * np.cos(angle)


NAMES = [
    "cos_solar_zenith_angle", "year_progress_sin", "year_progress_cos", "day_progress_sin",
    "day_progress_cos",
]  # fmt: skip
LAT, LON = np.linspace(90, -90, 7)[:, None], np.arange(12) * 30.0


@pytest.mark.parametrize("start", [
    "1950-01-03 05:00", "1979-12-30", "2000-02-28 03:00", "2023-09-22 20:00", "2049-06-19",
])  # fmt: skip
def test_forcings_are_those_of_numpy(tmp_path, start):
    path, _ = written(tmp_path, f"hours since {start}")
    ds = opened(path, ["t", *(Forcing(name) for name in NAMES)])
    found = whole(ds)
    times = np.datetime64(start.replace(" ", "T")) + np.arange(N) * np.timedelta64(6, "h")
    times = times[:, None, None]
    assert found[NAMES[0]].shape == (N, N_LAT, N_LON)
    assert np.abs(found[NAMES[0]] - almanac(times, LAT, LON)).max() < 0.01
    year = times.astype("M8[Y]")
    length = (year + 1).astype("M8[D]") - year.astype("M8[D]")
    of_year = 2 * np.pi * ((times - year) / length)
    of_day = 2 * np.pi * ((times - times.astype("M8[D]")) / np.timedelta64(1, "D")) + np.radians(LON)
    for name, right in zip(NAMES[1:], [of_year, of_year, of_day, of_day]):
        right = (np.sin if name.endswith("sin") else np.cos)(right)
        assert np.allclose(found[name], right, atol=1e-6), name


def test_forcings_lie_under_their_fields(store):
    path, right = store
    forcings = {name: Forcing(name, steps=["6h", "12h"], rollout={0: 1, 1: 2}) for name in NAMES}
    plain = opened(path, {"t": "t", **{name: Forcing(name) for name in NAMES}})
    alone = whole(plain)
    ds = opened(path, {"p": "p", **forcings}, orient={"lat": "ascending"}, dims=["lon", "lat"])
    assert ds.shapes["year_progress_sin"] == (2, N_LON, N_LAT)
    for n in (1, 2):
        found = {}
        for batch in ds:
            for name in NAMES:
                found.setdefault(name, []).append(batch[name])
        for name in NAMES:
            values = np.concatenate(found[name])
            assert values.shape == (N - 2, n, N_LON, N_LAT)
            expected = alone[name][:, ::-1].transpose(0, 2, 1)
            assert np.array_equal(values[:, 0], expected[1:-1])
            assert np.array_equal(values[:, -1], expected[n : N - 2 + n])
    stack = Stack(["t", Forcing("cos_solar_zenith_angle"), Variable("z", sel={"level": 500})])
    again = pickle.loads(pickle.dumps(opened(path, {"x": stack})))
    found = whole(again)["x"]
    assert np.array_equal(found[:, 1], alone["cos_solar_zenith_angle"])
    assert np.array_equal(found[:, [0, 2]], np.stack([right["t"], right["z"][:, 1]], 1), equal_nan=True)
    patches = Patches({"lat": 3, "lon": 4}, stride=2, padding={"lon": "periodic"})
    variables = {"t": "t", "sun": Forcing(NAMES[0]), "mine": Forcing(my_sun, dtype=None)}
    for form in ("numpy", "torch"):
        ds = opened(path, variables, patches=patches, form=form, number_samples=True)
        for batch in ds:
            for at, (lat, lon) in enumerate(np.asarray(batch["patch"])):
                lons = np.arange(lon, lon + 4) % N_LON
                step = int(batch["sample"][at]) // 18
                expected = alone[NAMES[0]][step, lat : lat + 3][:, lons]
                assert np.array_equal(batch["sun"][at], expected)
                assert np.allclose(batch["mine"][at], expected, atol=0.01)


def my_sun(times, latitude, longitude):
    assert times.dtype == "M8[us]" and times.ndim == latitude.ndim == longitude.ndim
    return almanac(times, latitude, longitude)


def my_year(times, latitude, longitude):
    return times.astype("M8[Y]").astype(np.int64) + 1970


def test_a_function_of_times_is_delivered_like_a_variable(store):
    path, _ = store
    variables = {
        "t": "t",
        "sun": Forcing(NAMES[0], steps=[0, 1]),
        "mine": Forcing(my_sun, steps=[0, 1], rollout={0: 1, 1: 2}),
        "year": Forcing(my_year, dtype=None),
        "half": Forcing(my_sun, dtype="float16"),
    }
    ds = opened(path, variables, dims=["lon", "lat"])
    assert ds.shapes["mine"] == (2, N_LON, N_LAT)
    for n in (1, 2):
        for batch in ds:
            assert batch["mine"].dtype == np.float32 and batch["half"].dtype == np.float16
            assert np.abs(batch["mine"] - batch["sun"][:, :n]).max() < 0.01
            assert batch["year"].shape == batch["t"].shape and (batch["year"] == 2003).all()
            batch["year"][:] = 0
    loaded = experiment_dataloader(opened(path, variables, form="torch"), num_workers=2)
    assert sum(len(batch["mine"]) for batch in loaded) == N - 1
    halves = opened(path, {"t": "t", "x": Forcing(my_sun, dtype="bfloat16")}, form="torch")
    assert next(iter(halves))["x"].dtype == torch.bfloat16
    no_grid = opened(path, {"index": "index", "year": Forcing(lambda times, lat, lon: times.astype("M8[h]").astype(int))})
    assert np.array_equal(np.diff(next(iter(no_grid))["year"]), [6, 6, 6, 6])
    point = opened(path, {"t": Variable("t", isel={"lat": 0, "lon": 0}), "sun": Forcing(NAMES[0])})
    assert point.shapes == {"t": (), "sun": (1, 1)}


XARRAY = """
import sys
import numpy as np, xarray as xr
from somafeed import FieldDataset, Forcing, Patches, Variable
from fields_numbers import my_sun
path = sys.argv[1]
data = xr.open_zarr(path, consolidated=False)
part = data.isel(time=slice(1, None, 2), lat=slice(1, 6))
variables = {
    "z": Variable("z", steps=[1], minus=0),
    "sun": Forcing("cos_solar_zenith_angle", steps=[0, 1]),
    "mine": Forcing(my_sun, steps=[0, 1]),
}
ds = FieldDataset(part, variables, 4, shuffle=False, form="xarray")
z, n = part["z"].values.astype("f8"), 0
for batch in ds:
    at = batch["z"]["sample"].values
    assert np.allclose(batch["z"].values[:, 0] if batch["z"].ndim == 5 else batch["z"].values, (z[1:] - z[:-1])[n : n + len(at)], atol=1e-5)
    n += len(at)
    sun, mine = batch["sun"], batch["mine"]
    assert sun.dims == mine.dims == ("sample", "step", "lat", "lon")
    assert (sun["lat"].values == part["lat"].values).all()
    assert (mine["time"].values == sun["time"].values).all()
    assert (np.diff(sun["time"].values, axis=1) == np.timedelta64(12, "h")).all()
    assert np.abs(sun.values - mine.values).max() < 0.01
assert n == 11
timed = {"z": Variable("z", steps=["6h"], minus="0h"), "sun": Forcing("cos_solar_zenith_angle", steps="6h")}
[batch] = FieldDataset(data, timed, 30, shuffle=False)
z = data["z"].values.astype("f8")
assert np.allclose(batch["z"], z[1:] - z[:-1], atol=1e-5)
cut = FieldDataset(path, {"t": "t", "mine": Forcing(my_sun)}, 4, form="xarray", patches=Patches({"lat": 2}))
batch = next(iter(cut))
assert batch["mine"].dims == ("sample", "patch_lat", "lon"), batch["mine"].dims
assert (batch["mine"]["lat"].values == batch["t"]["lat"].values).all()
print("labelled")
"""


def test_xarray_has_them_too(store, tmp_path):
    source = open(__file__).read()
    functions = source[source.index("def almanac") : source.index("NAMES = [")]
    functions += source[source.index("def my_sun") : source.index("def my_year")]
    (tmp_path / "fields_numbers.py").write_text("import numpy as np\n\n" + functions)
    command = [tiledbsoma_python(), "-W", "ignore", "-c", XARRAY, store[0]]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "labelled\n"), ended.stderr


def test_other_calendars(tmp_path):
    path, _ = written(tmp_path, "hours since 2000-12-29", "360_day")
    found = whole(opened(path, ["t", Forcing("year_progress_cos")]))["year_progress_cos"]
    days = 360 - 2 + np.arange(N) / 4
    assert np.allclose(found[:, 0, 0], np.cos(2 * np.pi * days / 360), atol=1e-6)
    with pytest.raises(ValueError, match="360_day has dates"):
        opened(path, {"t": "t", "x": Forcing(my_year)})


def test_weights_of_latitudes(store):
    path, _ = store
    lat = np.linspace(-90, 90, 721)
    # As WeatherBench 2 has it, of ascending latitudes.
    bounds = np.concatenate([[-90], (lat[:-1] + lat[1:]) / 2, [90]])
    right = np.diff(np.sin(np.radians(bounds)))
    assert np.allclose(latitude_weights(lat), right / right.mean(), rtol=1e-12)
    assert np.allclose(latitude_weights(lat[::-1]), right[::-1] / right.mean(), rtol=1e-12)
    coarse = np.arange(-87.1875, 90, 5.625)
    bounds = np.arange(-90, 91, 5.625)
    right = np.diff(np.sin(np.radians(bounds)))
    assert np.allclose(latitude_weights(coarse), right / right.mean(), rtol=1e-12)
    cosine = latitude_weights([0, 60], method="cosine")
    assert np.allclose(cosine, [4 / 3, 2 / 3])
    assert latitude_weights([12.5]) == 1
    ds = opened(path, {"t": Variable("t", isel={"lat": slice(0, 4)})}, orient={"lat": "ascending"})
    assert np.allclose(ds.latitude_weights(), latitude_weights([0, 30, 60, 90]))
    assert np.allclose(ds.latitude_weights("cosine")[-1], 0)
    for bad, method in (([], "area"), ([91], "area"), ([0, 5, 3], "area"), ([0], "sine"), ([[0]], "area")):
        with pytest.raises(ValueError, match="latitudes|method"):
            latitude_weights(bad, method)
    with pytest.raises(ValueError, match="no variable has latitudes"):
        opened(path, ["index"]).latitude_weights()


BAD = {
    "another type": (lambda: Variable("t", dtype="float64"), ValueError, "dtype"),
    "no ends": (lambda: Variable("t", clip=3), TypeError, "pair of numbers"),
    "three ends": (lambda: Variable("t", clip=(1, 2, 3)), TypeError, "pair of numbers"),
    "ends of a text": (lambda: Variable("t", clip=("a", 2)), TypeError, "end of clip"),
    "ends to and fro": (lambda: Variable("t", clip=(2, 1)), ValueError, "at most"),
    "no logarithm": (lambda: Variable("t", log="e"), TypeError, "log must be a number"),
    "an infinite logarithm": (lambda: Variable("t", log=float("inf")), ValueError, "logarithm"),
    "too few": (lambda: Variable("t", steps=[1, 2, 3], minus=[0, 1]), ValueError, "minus has 2"),
    "times and numbers": (lambda: Variable("t", steps=[1], minus="6h"), TypeError, "length of time"),
    "no steps": (lambda: Variable("mask", minus=0), ValueError, "x has no dimension"),
    "beyond": (lambda: Variable("t", minus=30), ValueError, "no sample"),
    "an end beyond all": (lambda: Variable("t", clip=(0, 10**400)), ValueError, "double precision"),
    "half a step": (lambda: Variable("t", minus=0.5), TypeError, "minus are numbers of steps"),
    "no step at all": (lambda: Variable("t", steps=None), TypeError, "steps are numbers of steps"),
    "a step beyond all": (lambda: Variable("t", minus=2**70), ValueError, "2\\^63"),
    "several forcings": (lambda: Forcing(np.array(NAMES)), ValueError, "one of cos_solar"),
    "an unknown forcing": (lambda: Forcing("moon"), ValueError, "cos_solar_zenith_angle"),
    "a function in a stack": (lambda: Stack(["t", Forcing(my_year)], dtype=None), ValueError, "name"),
    "a named function": (lambda: Stack({"a": "t", "b": Forcing(my_year)}), TypeError, "no functions"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_said(store, name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        opened(store[0], {"first": "t", "x": make()})


def test_a_function_that_does_not_fit_is_said(store):
    ds = opened(store[0], {"t": "t", "x": Forcing(lambda times, lat, lon: np.ones(5))})
    with pytest.raises(ValueError, match=r"forcing 'x' made an array of shape \(5,\)"):
        next(iter(ds))
    for made in (None, "x", np.datetime64("2020")):
        ds = opened(store[0], {"t": "t", "x": Forcing(lambda *_, made=made: made)})
        with pytest.raises(TypeError, match="forcing 'x' made elements of type .* return numbers"):
            next(iter(ds))
    with pytest.raises(ValueError, match="needs the times"):
        opened(store[0], {"x": Forcing("day_progress_sin")})
    with pytest.raises(ValueError, match="give a dictionary"):
        opened(store[0], [Forcing(my_year)])
    with pytest.raises(ValueError, match="needs a grid"):
        opened(store[0], ["index", Forcing(NAMES[0])])
