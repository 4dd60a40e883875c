"""Forecasts by initial and lead time, members of an ensemble in several stores, stores with other
times."""

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import tiledbsoma_python
from somafeed import FieldDataset, Stack, Variable

WRITE = """
import sys
import numpy as np, xarray as xr
folder = sys.argv[1]
start, hour = np.datetime64("2020-01-01", "ns"), np.timedelta64(1, "h")
lat, lon = np.array([60.0, 0.0, -60.0]), np.arange(4) * 90.0
grid = {"lat": lat, "lon": lon}
times = {"init_time": start + np.arange(20) * 12 * hour, "lead_time": (np.arange(6) * 6 * hour).astype("m8[ns]")}
values = np.arange(20)[:, None] * 12.0 + np.arange(6) * 6.0
xr.Dataset(
    {"t2m": (("init_time", "lead_time", "lat", "lon"), (values[:, :, None, None] * np.ones((3, 4))).astype("f4"))},
    {**times, **grid},
).to_zarr(f"{folder}/forecast.zarr", zarr_format=3, consolidated=False)
for name, every, n in [("analysis", 6, 40), ("hourly", 1, 240)]:
    time = start + np.arange(n) * every * hour
    of = np.arange(n)[:, None, None] * float(every) * np.ones((1, 3, 4))
    xr.Dataset({"t2m": (("time", "lat", "lon"), of.astype("f4"))}, {"time": time, **grid}).to_zarr(
        f"{folder}/{name}.zarr", zarr_format=3, consolidated=False)
for member in range(3):
    scale = {"scale_factor": 0.25 * 2.0**member, "add_offset": 10.0 * member, "dtype": "i2", "_FillValue": -999}
    of = np.arange(8)[:, None, None] * 3.0 * (1 + member) * np.ones((1, 3, 4))
    xr.Dataset({"p": (("time", "lat", "lon"), of)}, {"time": start + np.arange(8) * 6 * hour, **grid}).to_zarr(
        f"{folder}/member-{member}.zarr", zarr_format=2, consolidated=False, encoding={"p": scale})
of = np.arange(8 * 3).reshape(8, 3, 1, 1) * np.ones((3, 4))
xr.Dataset({"p": (("time", "number", "lat", "lon"), of)}, {"number": [0, 1, 2], **grid}).to_zarr(
    f"{folder}/stored.zarr", zarr_format=2, consolidated=False)
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forecasts")
    subprocess.run([tiledbsoma_python(), "-W", "ignore", "-c", WRITE, folder], check=True)
    return {path.stem: str(path) for path in folder.glob("*.zarr")}


def test_pairs_and_members_are_those_that_xarray_selects(tmp_path):
    n = os.environ.get("SOMAFEED_RANDOM_FIELDS", "30")
    seed = os.environ.get("SOMAFEED_RANDOM_SEED", "0")
    script = Path(__file__).with_name("fields_of_forecasts.py")
    command = [tiledbsoma_python(), "-W", "ignore", script, str(tmp_path), n, seed]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (
        0, f"{n} stores have the pairs and members that xarray selects\n"
    ), ended.stderr


def pairs(stores, target="analysis", variables=None, **options):
    named = {name: stores[name] for name in ("forecast", target)}
    variables = variables or {
        "forecast": Variable("t2m", store="forecast"),
        "target": Variable("t2m", dim="time", store=target),
    }
    options = {"dim": "init_time", "lead": "lead_time", "batch_size": 8, **options}
    return FieldDataset(named, variables, **options)


def test_a_sample_is_an_initial_time_and_a_lead_time(stores):
    ds = pairs(stores, seed=1)
    # The analysis ends at 234 h: of leads up to 30 h, those beyond have no target.
    n_without = sum(init + lead > 234 for init in range(0, 240, 12) for lead in range(0, 36, 6))
    assert (ds.n_samples, ds.left_out["ends"]) == (120 - n_without, n_without)
    assert np.array_equal(ds.steps, np.sort(ds.steps)) and set(ds.leads) == set(range(0, 36, 6))
    assert ds.shapes == {"forecast": (3, 4), "target": (3, 4)}
    for batch in ds:
        assert np.array_equal(batch["forecast"], batch["target"])
        assert set(batch["lead"]) <= set(range(0, 36, 6))
    tensors = next(iter(pairs(stores, form="torch", seed=1)))
    assert tensors["lead"].tolist() == next(iter(ds.in_order()))["lead"].tolist() or len(tensors["lead"]) == 8


def test_parts_ranks_and_states_have_pairs(stores):
    ds = pairs(stores, seed=3)
    first = int(np.searchsorted(ds.steps, 15))
    train, test = ds.isel(slice(0, first)), ds.isel(slice(first, None))
    assert train.steps.max() == 14 and test.steps.min() == 15
    assert np.array_equal(np.concatenate([train.leads, test.leads]), ds.leads)
    later = pickle.loads(pickle.dumps(test))
    own = [(batch["lead"] + 12 * 0, batch["forecast"]) for batch in later.in_order()]
    leads = np.concatenate([lead for lead, _ in own])
    values = np.concatenate([values[:, 0, 0] for _, values in own])
    assert np.array_equal(leads, test.leads)
    assert np.array_equal(values, 12 * test.steps + test.leads)
    ranks = [pairs(stores, seed=3, world=(rank, 2), remainder="drop", batch_size=4) for rank in (0, 1)]
    seen = [batch["forecast"][:, 0, 0] for rank in ranks for batch in rank]
    assert len(np.concatenate(seen)) == ds.n_samples // 8 * 8
    batches = iter(ds)
    head = [next(batches)["forecast"] for _ in range(3)]
    state = batches.state_dict() if hasattr(batches, "state_dict") else ds.state_dict()
    again = pairs(stores, seed=3)
    again.load_state_dict(state)
    rest = [batch["forecast"] for batch in again]
    whole = [batch["forecast"] for batch in pairs(stores, seed=3)]
    assert np.array_equal(np.concatenate([*head, *rest]), np.concatenate(whole))


def test_windows_go_along_the_lead_times(stores):
    variables = {
        "forecast": Variable("t2m", store="forecast", steps=[-1, 0], isel={"lead_time": slice(0, 4)}),
        "change": Variable("t2m", dim="time", store="hourly", steps=["-1h", "0h"], isel={"lat": 0}),
    }
    ds = pairs(stores, "hourly", variables, shuffle=False, end="2020-01-05")
    # The first lead time has none before it.
    assert sorted(set(ds.leads)) == [6, 12, 18] and ds.steps.max() == 9
    for batch in ds:
        assert np.array_equal(batch["forecast"][:, 0] + 6, batch["forecast"][:, 1])
        assert np.array_equal(batch["change"][:, 0] + 1, batch["change"][:, 1])
        assert np.array_equal(batch["forecast"][:, 1, 0], batch["change"][:, 1])
    one = {**variables, "forecast": Variable("t2m", store="forecast", isel={"lead_time": 2})}
    one = pairs(stores, "hourly", one)
    assert set(one.leads) == {12} and one.shapes["forecast"] == (3, 4)
    hours = {**variables, "forecast": Variable("t2m", store="forecast", sel={"lead_time": [18, 6]})}
    assert pairs(stores, "hourly", hours).leads[:2].tolist() == [18, 6]


def test_stores_with_other_times_are_matched(stores):
    named = {name: stores[name] for name in ("analysis", "hourly")}
    variables = {
        "t": Variable("t2m", store="analysis", steps=["0h", "6h"], isel={"lon": slice(0, 2)}),
        "rain": Variable("t2m", store="hourly", steps=["-2h", "-1h", "0h"], sel={"lat": 60.0}),
    }
    ds = FieldDataset(named, variables, 4, dim="time", frequency="12h", seed=1)
    assert ds.shapes == {"t": (2, 3, 2), "rain": (3, 4)}
    # The first one lacks the hours before it.
    assert (ds.n_samples, ds.left_out["ends"]) == (19, 1)
    for batch in ds:
        own = batch["t"][:, 0, 0, 0]
        assert (own % 12 == 0).all() and np.array_equal(batch["t"][:, 1, 0, 0], own + 6)
        assert np.array_equal(batch["rain"][:, :, 0], own[:, None] + [-2, -1, 0])
    # A store need not have all variables.
    named["p"] = stores["member-0"]
    variables["p"] = Variable("p", isel={"lat": [2, 0]}, steps="0h")
    ds = FieldDataset(named, variables, 4, dim="time", frequency="12h", shuffle=False)
    assert np.concatenate([batch["p"][:, 0, 0] for batch in ds]).tolist() == [6, 12, 18]
    del named["p"]
    with pytest.raises(ValueError, match="lengths of time"):
        FieldDataset(named, {name: Variable("t2m", store=name) for name in named}, dim="time")


def test_members_lie_in_stores_that_pack_as_they_like(stores):
    named = {at: stores[f"member-{at}"] for at in range(3)}
    members = {str(at): Variable("p", store=at) for at in named}
    ds = FieldDataset(named, {"p": Stack(members, ensemble="number")}, 8, shuffle=False)
    assert ds.shapes == {"p": (3, 3, 4)}
    [batch] = ds
    right = np.arange(8)[:, None] * 3.0 * (1 + np.arange(3))
    assert np.array_equal(batch["p"][:, :, 0, 0], right)
    of_all = ds.statistics()["p"]
    assert np.allclose([of_all.mean[0], of_all.deviation[0]], [right.mean(), right.std()])
    normalised = Stack(members, ensemble="number", normalize=of_all.pairs)
    [batch] = FieldDataset(named, {"p": normalised}, 8)
    assert abs(batch["p"].mean()) < 1e-6 and abs(batch["p"].std() - 1) < 1e-6
    last = Stack(members, ensemble="number", dims=["lat", "lon", "number"])
    ds = FieldDataset(named, {"p": last}, 8, shuffle=False, form="torch")
    assert next(iter(ds))["p"].shape == (8, 3, 4, 3)
    with pytest.raises(ValueError, match="first"):
        ds.statistics()


def test_members_that_are_stored_as_a_dimension(stores):
    by_order = {"p": Variable("p", isel={"number": [2, 0]}, dims=["lat", "number", "lon"])}
    [batch] = FieldDataset(stores["stored"], by_order, 8, shuffle=False)
    assert batch["p"].shape == (8, 3, 2, 4)
    assert np.array_equal(batch["p"][:, 0, :, 0], np.arange(24).reshape(8, 3)[:, [2, 0]])


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"lead": "step"}, ValueError, "no array has the dimension of lead times step"),
    ({"lead": 1}, TypeError, "name of a dimension"),
    ({"lead": "init_time"}, ValueError, "initial times"),
    ({"lead": "lat"}, ValueError, "no lead times"),
    ({"missing": {"nan": "leave out"}}, ValueError, "missing numbers are not counted by lead times"),
    ({"dims": ["lead_time", "lat"]}, ValueError, "samples are made of lead_time"),
    ({"variables": {"lead": Variable("t2m", store="forecast")}}, ValueError, "'lead' is the name"),
    ({"variables": {"x": Variable("t2m", store="radar")}}, ValueError, "no store 'radar'; there are 'forecast', 'analysis'"),
    ({"variables": {"x": Variable("t2m", store="analysis")}}, ValueError, "no array has the dimension"),
])
def test_what_is_no_forecast_is_named(stores, options, error, message):
    with pytest.raises(error, match=message):
        pairs(stores, **options)


def test_what_is_no_ensemble_is_named(stores):
    with pytest.raises(TypeError, match="ensemble is the name of a dimension"):
        Stack(["p"], ensemble=3)
    members = {"0": Variable("p", store=0), "1": Variable("t2m", store=1)}
    with pytest.raises(ValueError, match="cannot be stacked"):
        FieldDataset([stores["member-0"], stores["analysis"]], {"p": Stack(members, ensemble="number")})
    with pytest.raises(ValueError, match="no store 0: the data set has one, without a name"):
        FieldDataset(stores["member-0"], {"p": Variable("p", store=0)})
    for name in ("sample", "step"):
        with pytest.raises(ValueError, match=f"a batch has a dimension {name} already"):
            Stack(["p"], ensemble=name)
    with pytest.raises(ValueError, match="samples are made of 'time'"):
        FieldDataset(stores["member-0"], {"p": Stack(["p"], ensemble="time")}, dim="time")
    of_both = {
        "p": Stack({"0": Variable("p", store=0), "1": Variable("p", store=0)}, ensemble="number"),
        "stored": Variable("p", store=1),
    }
    both = [stores["member-0"], stores["stored"]]
    with pytest.raises(ValueError, match="which 'stored' has stored: give each variable its own dims"):
        FieldDataset(both, of_both, dims=["lat", "number"])
    own = {**of_both, "stored": Variable("p", store=1, dims=["lat", "number"])}
    batch = next(iter(FieldDataset(both, own, 2, dims=["lat", "number"])))
    assert (batch["p"].shape, batch["stored"].shape) == ((2, 4, 3, 2), (2, 4, 3, 3))


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"store": []}, ValueError, "store names no store"),
    ({"store": 1.5}, TypeError, "the name or the number of a store"),
    ({"dim": -1}, ValueError, "dim must be from 0"),
    ({"dim": 1.5}, TypeError, "dim must be an integer"),
])
def test_what_is_no_store_or_dimension_is_named(stores, given, error, message):
    with pytest.raises(error, match=message):
        FieldDataset([stores["member-0"], stores["analysis"]], {"p": Variable("p", **given)})
