"""Random forecasts and analyses that xarray wrote, against what xarray selects.

Usage: fields_of_forecasts.py FOLDER NUMBER SEED
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import xarray as xr
from somafeed import FieldDataset, Stack, Variable

warnings.simplefilter("ignore")
folder, n_stores, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random = np.random.default_rng(seed)
HOUR = np.timedelta64(1, "h")


def times(n, most):
    return np.datetime64("2020-01-01", "ns") + np.cumsum(random.integers(1, most, n)) * 6 * HOUR


def written(name, dims, coordinates):
    shape = [len(coordinates.get(dim, range(3))) for dim in dims]
    data = xr.Dataset({"x": (dims, random.normal(size=shape).astype("f4"))}, coordinates)
    chunks = tuple(int(random.integers(1, n + 1)) for n in shape)
    path = str(folder / name)
    data.to_zarr(path, encoding={"x": {"chunks": chunks}}, consolidated=False, mode="w")
    return path, data.x


def shuffled(*dims):
    return [str(dim) for dim in random.permutation(dims)]


def check_forecasts(number):
    inits, valid = times(random.integers(2, 6), 4), times(random.integers(3, 20), 3)
    leads = np.cumsum(random.integers(1, 3, random.integers(2, 7))) * 6 * HOUR.astype("m8[ns]")
    level = np.array([850, 500, 300])
    named = str(random.choice(["time", "valid_time"]))
    forecast, of_forecast = written(
        f"{number}-forecast.zarr", shuffled("time", "lead", "level", "lat"),
        {"time": inits, "lead": leads, "level": level},
    )
    analysis, of_analysis = written(
        f"{number}-analysis.zarr", shuffled(named, "level", "lat"), {named: valid, "level": level}
    )
    levels = random.permutation(level)[: random.integers(1, 4)].tolist()
    first = int(random.integers(0, len(leads)))
    hours = [["0h"], ["0h", "6h"], ["-6h", "0h"]][random.integers(0, 3)]
    variables = {
        "forecast": Variable(
            "x", store="forecast", steps=hours, sel={"level": levels},
            isel={"lead": slice(first, None)}, dims=["lat", "level"],
        ),
        "target": Variable("x", dim=named, store="analysis", sel={"level": levels}, dims=["lat", "level"]),
    }
    spans = [np.timedelta64(int(one[:-1]), "h") for one in hours]
    right = {}
    for init in inits:
        for lead in leads[first:]:
            wanted = [lead + span for span in spans]
            if all(one in leads[first:] for one in wanted) and init + lead in valid:
                at = of_forecast.sel(time=init, lead=wanted, level=levels)
                right[init, lead] = (
                    at.transpose("lead", "lat", "level").values,
                    of_analysis.sel({named: init + lead, "level": levels}).transpose("lat", "level").values,
                )
    options = {"dim": "time", "lead": "lead", "batch_size": 4, "seed": number, "form": "xarray"}
    stores = {"forecast": forecast, "analysis": analysis}
    if not right:
        try:
            FieldDataset(stores, variables, **options)
        except ValueError as error:
            assert "no sample" in str(error), error
            return
        raise AssertionError("samples without targets")
    ds = FieldDataset(stores, variables, **options)
    assert ds.n_samples == len(right)
    assert sum(ds.left_out.values()) == len(inits) * len(leads[first:]) - len(right)
    found = {}
    for batch in ds:
        predicted, target = batch["forecast"], batch["target"]
        many = "step" in predicted.dims
        for at in range(predicted.sizes["sample"]):
            one = predicted.isel(sample=at)
            own = int(np.flatnonzero(np.array(spans) == 0 * HOUR)[0])
            of_step = one.isel(step=own) if many else one
            key = of_step.time.values[()], of_step.lead.values[()]
            assert batch["lead"][at] == key[1] / HOUR
            assert target[named].values[at] == key[0] + key[1]
            found[key] = one.values if many else one.values[None], target.values[at]
    assert found.keys() == right.keys()
    for key, (one, other) in right.items():
        assert np.array_equal(found[key][0], one) and np.array_equal(found[key][1], other)


def check_ensembles(number):
    n, dims = int(random.integers(1, 4)), shuffled("time", "level", "lat", "lon")
    coordinates = {"time": times(6, 2), "level": np.array([850, 500, 300])}
    stores, arrays = {}, []
    for member in range(n):
        path, array = written(f"{number}-{member}.zarr", dims, coordinates)
        stores[f"m{member}"] = path
        arrays.append(array)
    whole = xr.concat(arrays, xr.Variable("number", np.arange(n)))
    order = shuffled("number", "lat", "lon", "level")[: random.integers(1, 5)]
    given = random.integers(0, 2)
    ensemble = Stack(
        {str(at): Variable("x", store=name, isel={"lon": 1}) for at, name in enumerate(stores)},
        steps=[0, 1], ensemble="number", dims=order if given else (),
    )
    ds = FieldDataset(
        stores, {"x": ensemble}, 3, dim="time", dims=() if given else order, shuffle=False,
        form="xarray",
    )
    others = ["number", *(dim for dim in dims if dim not in ("time", "lon"))]
    named = [dim for dim in order if dim != "lon"]
    last = [dim for dim in others if dim not in named] + named
    right = [
        whole.isel(time=slice(step, step + 2), lon=1).transpose("time", *last).values
        for step in range(5)
    ]
    found = [batch["x"] for batch in ds]
    assert found[0].dims == ("sample", "step", *last), (found[0].dims, last)
    assert ds.shapes["x"] == right[0].shape
    assert found[0].number.values.tolist() == list(range(n))
    assert np.array_equal(np.concatenate(found), right)


for number in range(n_stores):
    check_forecasts(number)
    check_ensembles(number)
print(f"{n_stores} stores have the pairs and members that xarray selects")
