"""Fields in the order and the direction asked, missing numbers by what they are, and rollouts."""

import pickle
import subprocess

import numpy as np
import pytest
from conftest import tiledbsoma_python
from somafeed import FieldDataset, Stack, Variable
from somafeed.missing import Missing

WRITE = """
import sys
import numpy as np, xarray as xr, zarr
n = 12
lat, lon, level = np.array([-30.0, 0.0, 30.0]), np.arange(4) * 90.0, np.array([850, 500])
coords = {"time": np.datetime64("2020-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D"), "lat": lat, "lon": lon, "level": level}
of_time = 1000.0 * np.arange(n)
t = of_time[:, None, None] + lat[:, None] + np.arange(4)
z = of_time[:, None, None, None] + 100 * np.arange(4)[:, None, None] + level[:, None] + lat
mask = np.arange(4)[:, None] + lat
data = xr.Dataset(
    {
        "t": (("time", "lat", "lon"), t.astype("f4")),
        "z": (("time", "lon", "level", "lat"), z.astype("f4")),
        "mask": (("lon", "lat"), mask.astype("f4")),
    },
    coords,
)
encoding = {
    "t": {"chunks": (1, 3, 4), "_FillValue": None, "missing_value": np.float32(-9)},
    "z": {"chunks": (2, 4, 1, 3)},
}
data.to_zarr(sys.argv[1], zarr_format=2, encoding=encoding, consolidated=False)
t = zarr.open_array(sys.argv[1] + "/t", mode="r+")
t[3, 1, 2] = np.nan
t[5, 1, 2] = -9
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("axes") / "axes.zarr"
    subprocess.run([tiledbsoma_python(), "-W", "ignore", "-c", WRITE, str(path)], check=True)
    (path / "t/7.0.0").unlink()
    return str(path)


LAT, LON, LEVEL = np.array([-30.0, 0.0, 30.0]), np.arange(4), np.array([850, 500])
NORTH_FIRST = (LON[:, None] + LAT[::-1]).T


def opened(store, variables, **options):
    options = {"dim": "time", "dims": ["lat", "lon"], "orient": {"lat": "descending"}, **options}
    return FieldDataset(store, variables, shuffle=False, **options)


def test_a_mask_and_fields_are_turned_and_transposed_alike(store):
    stack = Stack(["t", Variable("z", sel={"level": [500, 850]})])
    ds = opened(store, {"t": "t", "mask": "mask", "z": "z", "x": stack}, batch_size=2)
    assert ds.shapes == {"t": (3, 4), "mask": (3, 4), "z": (2, 3, 4), "x": (3, 3, 4)}
    batch = next(iter(pickle.loads(pickle.dumps(ds))))
    assert np.array_equal(batch["mask"], NORTH_FIRST)
    of_time = np.array([0, 1000])[:, None, None]
    assert np.array_equal(batch["t"], of_time + NORTH_FIRST)
    z = of_time[..., None] + LEVEL[:, None, None] + LAT[::-1][:, None] + 100 * LON
    assert np.array_equal(batch["z"], z)
    assert np.array_equal(batch["x"], np.concatenate([batch["t"][:, None], z[:, ::-1]], axis=1))
    batch["mask"][:] = 0
    assert np.array_equal(next(iter(ds))["mask"], NORTH_FIRST)

    own = opened(store, {"z": Variable("z", isel={"level": 1}, dims=["lon", "lat"])}, orient=None)
    assert np.array_equal(next(iter(own))["z"][0], 100 * LON[:, None] + 500 + LAT)


LABELLED = """
import sys
import numpy as np
from somafeed import FieldDataset, Variable
target = Variable("z", steps=["1D", "2D", "3D"], rollout={0: 1, 1: 2, 2: 3})
options = {"dim": "time", "dims": ["lat", "lon"], "orient": {"lat": "descending"}, "form": "xarray"}
ds = FieldDataset(sys.argv[1], {"input": "z", "mask": "mask", "target": target}, 4, **options)
for n in [1, 2, 3, 3]:
    for batch in ds:
        assert batch["input"].dims == ("sample", "level", "lat", "lon")
        assert batch["mask"].dims == ("lat", "lon")
        assert batch["mask"]["lat"].values.tolist() == [30, 0, -30]
        part = batch["input"].sel(level=500, lat=30, lon=90)
        assert (part.values == 1000 * part["sample"].values + 630).all()
        target = batch["target"]
        assert target.dims == ("sample", "step", "level", "lat", "lon")
        days = np.arange(1, n + 1) * np.timedelta64(1, "D")
        assert (target["step"].values == days).all()
        assert (target["time"].values - batch["input"]["time"].values[:, None] == days).all()
print("labelled")
"""


def test_coordinates_follow(store):
    command = [tiledbsoma_python(), "-W", "ignore", "-c", LABELLED, store]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "labelled\n"), ended.stderr


BAD = {
    "no such dimension": ({"dims": ["depth"]}, ValueError, "no variable has the dimension depth"),
    "a dimension twice": ({"dims": ["lat", "lat"]}, ValueError, "'lat' twice"),
    "a text": ({"dims": "lat"}, TypeError, "list of names"),
    "samples": ({"dims": ["time"]}, ValueError, "dimension time.*come first"),
    "no direction": ({"orient": {"lat": "up"}}, ValueError, "orient of 'lat' is neither"),
    "a list of directions": ({"orient": ["lat"]}, TypeError, "dictionary"),
    "nothing to turn": ({"orient": {"depth": "ascending"}}, ValueError, "dimension depth"),
    "its own": ({"variables": {"t": Variable("t", dims=["level"])}}, ValueError, "dimension level"),
    "channels last": (
        {"variables": {"x": Stack(["t"], dims=["lat", "channel"])}}, ValueError, "channels come first"
    ),
    "another kind": ({"missing": {"hole": "keep"}}, ValueError, "'hole'"),
    "another end": ({"missing": {"nan": "drop"}}, ValueError, "missing 'nan' is none of"),
    "no kinds": ({"missing": "nan"}, TypeError, "dictionary"),
    "a NaN": ({"missing": {"nan": "error"}}, ValueError, "t has 1 numbers that are NaN at step 3"),
    "no epochs": ({"variables": {"t": Variable("t", rollout={3: 1})}}, ValueError, "begin with 0"),
    "too many": ({"variables": {"t": Variable("t", rollout={0: 2})}}, ValueError, "2 steps of 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_said(store, name):
    options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        opened(store, **{"variables": {"t": "t"}, **options})


@pytest.mark.parametrize("make", [
    lambda: Variable("t", rollout=[1]), lambda: Stack(["t"], rollout={"0": 1}),
])  # fmt: skip
def test_rollouts_are_dictionaries(make):
    with pytest.raises(TypeError):
        make()


def test_missing_numbers_are_told_apart_and_left_out(store):
    ds = opened(store, {"t": "t", "z": "z", "mask": "mask"})
    found = ds.missing()
    t, z = found.variables["t"], found.variables["z"]
    assert list(found.variables) == ["t", "z"]
    assert (t.n_elements, t.steps.tolist()) == (12, list(range(12)))
    counts = {kind: np.flatnonzero(getattr(t, kind)).tolist() for kind in ("chunk", "fill", "nan")}
    assert counts == {"chunk": [7], "fill": [5], "nan": [3]}
    assert (t.chunk[7], t.fill[5], t.nan[3]) == (12, 1, 1)
    assert not (z.chunk.any() or z.fill.any() or z.nan.any())
    # The part that is asked about.
    part = ds.isel(slice(4, 8))
    assert part.missing().variables["t"].steps.tolist() == [4, 5, 6, 7]

    missing = {"chunk": "leave out", "fill": "keep", "nan": "leave out"}
    for counted in (None, pickle.loads(pickle.dumps(found))):
        left = opened(store, {"t": "t", "z": "z", "mask": "mask"}, missing=missing, counted=counted)
        assert left.steps.tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]
        assert (left.left_out["chunk"], left.left_out["fill"], left.left_out["nan"]) == (1, 0, 1)
        again = pickle.loads(pickle.dumps(left))
        assert np.array_equal(
            np.concatenate([batch["t"] for batch in again]),
            np.concatenate([batch["t"] for batch in left]), equal_nan=True,
        )  # fmt: skip
    with pytest.raises(ValueError, match="not of the variable t"):
        opened(store, {"t": Variable("t", isel={"lat": 0})}, missing=missing, counted=found)
    with pytest.raises(ValueError, match="at step 4"):
        counted = Missing({"t": ds.isel(slice(0, 4)).missing().variables["t"]})
        opened(store, {"t": "t"}, missing=missing, counted=counted)


def test_a_rollout_has_more_steps_from_epoch_to_epoch(store):
    rollout = {2: 3, 0: 1, 1: 2}
    variables = {
        "input": "z",
        "target": Variable("z", steps=["1D", "2D", "3D"], rollout=rollout),
        "stack": Stack(["z"], steps=[1, 2, 3], rollout=rollout),
    }
    ds = opened(store, variables, batch_size=4, seed=1)
    assert (ds.n_samples, ds.shapes["target"]) == (9, (3, 2, 3, 4))
    for n in [1, 2, 3, 3]:
        batches = list(ds)
        assert sum(len(batch["input"]) for batch in batches) == 9
        for batch in batches:
            assert batch["target"].shape[1] == batch["stack"].shape[1] == n
            step = batch["target"] - batch["input"][:, None]
            assert np.array_equal(step[0, :, 0, 0, 0], 1000 * np.arange(1, n + 1))
    # A state of the second epoch goes on with its steps.
    ds = opened(store, variables, batch_size=4, seed=1)
    list(ds)
    iterator = iter(ds)
    next(iterator)
    again = opened(store, variables, batch_size=4, seed=1)
    again.load_state_dict(iterator.state_dict())
    rest = list(again)
    assert [batch["target"].shape[1] for batch in rest] == [2, 2]
    assert [len(batch["target"]) for batch in list(again)] == [4, 4, 1]
