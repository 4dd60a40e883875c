"""Random stores, opened and selected by xarray in random ways: `FieldDataset` delivers what xarray
has, value by value. What it cannot deliver, it refuses, and names the property.

Usage: fields_from_xarray.py FOLDER N_STORES SEED [CHUNKED]
"""

import pickle
import random
import re
import sys
import warnings

import numpy as np
import pandas as pd
import xarray as xr
import zarr
from somafeed import FieldDataset, Variable
from xarray.coders import CFDatetimeCoder

warnings.simplefilter("ignore")
folder, n_stores, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
# With dask.
CHUNKED = len(sys.argv) > 4
DTYPES = ["float32", "float64", "int16", "uint8", "int64"]


def written(rng, at):
    """A function that opens a store anew by one of xarray's ways, and whether xarray keeps the
    whole address of what is in memory."""
    n_times, zarr_format = rng.randint(6, 20), rng.choice([2, 3])
    sizes = {"level": rng.randint(1, 5), "lat": rng.randint(1, 7), "channel": rng.randint(1, 5)}
    coords = {
        "time": pd.date_range("2020-01-01", periods=n_times, freq="6h"),
        "level": np.sort(np.array(rng.sample(range(100, 1000, 50), sizes["level"]))),
        "lat": np.linspace(90, -90, sizes["lat"]) if sizes["lat"] > 1 else np.array([45.0]),
        "channel": ["t2m", "u10", "v10", "msl", "tp"][: sizes["channel"]],
    }
    for bare in rng.sample(list(coords), rng.choice([0, 0, 1, 2])):
        del coords[bare]
    made, encoding = {}, {}
    time_is_first = rng.random() < 0.6
    values = np.random.default_rng(rng.randrange(1 << 32))
    for name in ["a", "b", "c"][: rng.randint(1, 3)]:
        dims = rng.sample(list(sizes), rng.randint(0, 3))
        dims.insert(0 if time_is_first else rng.randint(0, len(dims)), "time")
        shape = [n_times if dim == "time" else sizes[dim] for dim in dims]
        dtype = rng.choice(DTYPES)
        made[name] = (dims, (values.random(shape) * 100).astype(dtype))
        encoding[name] = {"chunks": [rng.randint(1, n) for n in shape]}
        if dtype == "float32" and rng.random() < 0.5:
            made[name][1][made[name][1] < 10] = np.nan
            encoding[name]["_FillValue"] = np.float32(-1)
        if dtype == "float64" and rng.random() < 0.5:
            encoding[name] |= {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}
    is_zip, group = rng.random() < 0.2, rng.choice([None, None, "era5", "era5/daily"])
    path = f"{folder}/{at}.zarr" + (".zip" if is_zip else "")
    consolidated = rng.random() < 0.5
    # In another group: a trap, since it has the same names.
    other = {name: (dims, array[::-1] + 1) for name, (dims, array) in made.items()}
    store = zarr.storage.ZipStore(path, mode="w") if is_zip else path
    options = {"zarr_format": zarr_format, "consolidated": consolidated}
    if group:
        xr.Dataset(other, coords).to_zarr(store, mode="w", **options)
    mode = "a" if group else "w"
    xr.Dataset(made, coords).to_zarr(store, group=group, mode=mode, encoding=encoding, **options)
    if is_zip:
        store.close()

    def opened():
        place = zarr.storage.ZipStore(path, mode="r") if is_zip else path
        if not is_zip and rng.random() < 0.3:
            place = zarr.storage.LocalStore(path)
        options = {"chunks": {"time": rng.randint(1, 5)} if CHUNKED else None}
        options["consolidated"] = False
        if rng.random() < 0.3:
            options["mask_and_scale"] = False
        if rng.random() < 0.3:
            options["decode_times"] = False
        if rng.random() < 0.5:
            return xr.open_zarr(place, group=group, **options)
        return xr.open_dataset(place, engine="zarr", group=group, **options)

    dim = rng.choice([None, 0, "time"]) if time_is_first else "time"
    return opened, not is_zip and group is None, dim


def part_of(rng, n):
    """A random part of a dimension, ascending."""
    some = sorted(rng.sample(range(n), rng.randint(1, n)))
    return rng.choice([
        slice(some[0], some[-1] + 1), slice(None, None, rng.randint(1, 3)), some, some[0] - n,
        np.isin(np.arange(n), some),
    ])


def selected(rng, data, is_in_memory):
    """A random selection in one or two steps; in memory only of dimensions with coordinates."""
    for _ in range(rng.randint(0, 2)):
        for dim in data.dims:
            if is_in_memory and dim not in data.coords:
                continue
            match rng.randrange(5):
                case 0:
                    at = part_of(rng, data.sizes[dim])
                    single = isinstance(at, int)
                    data = data.isel({dim: [at] if dim == "time" and single else at})
                case 1 if dim in data.coords:
                    values = data[dim].values[part_of(rng, data.sizes[dim])]
                    if dim == "time" or rng.random() < 0.7:
                        values = np.atleast_1d(values)
                    data = data.sel({dim: values})
                case 2 if dim == "lat" and dim in data.coords:
                    data = data.sel(lat=slice(data.lat.values[0], data.lat.values[-1]))
                case 3 if dim != "time":
                    data = data.isel({dim: slice(None, None, -1)})
    return data


def wanted(rng, given):
    """Random variables of what is given, and the same by xarray."""
    times = np.diff(given.indexes["time"]) if "time" in given.indexes else [1, 2]
    is_even = len(set(times)) <= 1 and given.sizes["time"] > 4
    variables, expected = {}, {}
    for name, array in given.data_vars.items():
        steps = rng.choice([(0,), (-1, 0), (1,), (0, 2)]) if is_even else (0,)
        isel, sel = {}, {}
        for dim in [dim for dim in array.dims if dim != "time"]:
            if rng.random() < 0.4:
                isel[dim] = part_of(rng, array.sizes[dim])
            elif dim in array.coords and rng.random() < 0.4:
                values = array[dim].values
                sel[dim] = values[np.atleast_1d(np.arange(len(values))[part_of(rng, len(values))])]
        variables[name] = Variable(name, steps=steps, isel=isel, sel=sel)
        expected[name] = array.isel(isel).sel(sel).transpose("time", ...)
    return variables, expected


def check(rng, opened, may_load, dim):
    given = opened()
    is_in_memory = may_load and "source" in given.encoding and rng.random() < 0.3
    if is_in_memory:
        given = given.load()
    given = selected(rng, given, is_in_memory)
    if rng.random() < 0.3:
        others = [one for one in given.dims if one != "time"]
        given, dim = given.transpose("time", *rng.sample(others, len(others))), "time"
    variables, expected = wanted(rng, given)
    n_steps, options = given.sizes["time"], {"stride": rng.randint(1, 2), "dim": dim}
    offsets = [step for one in variables.values() for step in one.steps]
    first, last = -min(0, *offsets), n_steps - max(0, *offsets)
    if rng.random() < 0.3 and first + 1 < last:
        options["start"] = first = first + 1
    if rng.random() < 0.3 and first < last - 1:
        options["end"] = last = last - 1
    ds = FieldDataset(given, variables, batch_size=rng.randint(1, 4), shuffle=False, **options)
    if rng.random() < 0.3:
        ds = pickle.loads(pickle.dumps(ds))
    batches = list(ds)
    positions = np.arange(first, last, options["stride"])
    for name, theirs in expected.items():
        shown = (given, variables[name], options)
        steps = np.array(variables[name].steps)
        right = theirs.values[positions[:, None] + steps if len(steps) > 1 else positions + steps]
        ours = np.concatenate([batch[name] for batch in batches])
        assert (ours.shape, ours.dtype.kind) == (right.shape, right.dtype.kind), shown
        assert np.array_equal(ours, right.astype(ours.dtype), ours.dtype.kind == "f"), shown


def weather(name, lat=(10.0, 20.0, 30.0), **more):
    """Writes a store of a few arrays; returns a function that opens it."""
    coords = {"time": pd.date_range("2020-01-01", periods=12), "lat": list(lat)}
    values = np.arange(12 * 3 * 4, dtype="f4").reshape(12, 3, 4)
    made = {"t2m": (("time", "lat", "x"), values), "u10": (("time", "lat", "x"), values + 0.5)}
    made["mask"] = (("time",), np.arange(12) > 5)
    made["packed"] = (("time",), np.arange(12.0))
    # Missing, and not among the elements that are compared.
    made["packed"][1][4] = np.nan
    encoding = {"packed": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}}
    path = f"{folder}/{name}.zarr"
    xr.Dataset(made | more, coords).to_zarr(path, encoding=encoding, consolidated=False)
    chunks = {"time": 4} if CHUNKED else None
    return lambda **how: xr.open_zarr(path, **{"consolidated": False, "chunks": chunks, **how})


def put(ds):
    ds = ds[["t2m"]].load()
    ds.t2m[5, 1, 2] = -1
    return ds


def decoded(raw):
    raw.packed.attrs["_FillValue"] = np.int16(3)
    return xr.decode_cf(raw[["packed"]])


def read_as_it_is(name, given):
    """Fails unless the data set delivers what xarray has."""
    arrays = {given.name: given} if isinstance(given, xr.DataArray) else given.data_vars
    batches = list(FieldDataset(given, batch_size=3, shuffle=False))
    for one, array in arrays.items():
        ours, right = np.concatenate([batch[one] for batch in batches]), array.values
        assert np.array_equal(ours, right.astype(ours.dtype), ours.dtype.kind == "f"), (name, one)


def ways(array):
    """An array, and data sets with it: one without an address, one with, as operations keep it."""
    whole = array.to_dataset(name="t2m")
    located = whole.copy()
    located.encoding["source"] = f"{folder}/weather.zarr"
    return array, whole, located


COMPUTED = "in memory|other values|computed by dask|was converted"
REFUSED = {
    "arithmetic": (lambda ds: ds * 2, COMPUTED),
    "arithmetic with an array": (lambda ds: ds.t2m + 0, COMPUTED),
    "one element": (lambda ds: ds.t2m.where(ds.t2m != 29), COMPUTED),
    "mean": (lambda ds: ds.t2m.mean("lat"), COMPUTED),
    "astype": (lambda ds: ds[["t2m"]].astype("f8"), COMPUTED),
    "clip": (lambda ds: ds[["t2m"]].clip(0, 143), COMPUTED + "|t2m"),
    "fillna": (lambda ds: ds[["packed"]].fillna(0), COMPUTED),
    "shift": (lambda ds: ds[["t2m"]].shift(time=1), COMPUTED),
    "roll": (lambda ds: ds[["t2m"]].roll(time=1), COMPUTED),
    "other data": (lambda ds: ds.t2m.copy(data=ds.t2m.data + 1), COMPUTED),
    "assigned": (lambda ds: ds.assign(t2m=ds.t2m * 2), COMPUTED),
    "a new variable": (lambda ds: ds[["t2m"]].assign(z=ds.t2m * 2), COMPUTED + "|root"),
    "concat": (lambda ds: xr.concat([ds.t2m, ds.t2m], "time"), COMPUTED),
    "samples transposed": (
        lambda ds: ds[["t2m"]].transpose("lat", "time", "x"), "transposed.*dim='time'|computed"
    ),
    "backwards in time": (lambda ds: ds.isel(time=slice(None, None, -1)), "of 'time'.*must ascend"),
    "a dimension renamed": (lambda ds: ds.rename(lat="y"), "has the dimension 'y'"),
    "another dimension": (lambda ds: ds.t2m.expand_dims("z"), "dimension 'z'|in memory"),
    "coordinates assigned": (lambda ds: ds.assign_coords(lat=ds.lat + 10), "of 'lat'.*assigned"),
    "new coordinates": (
        lambda ds: ds.assign_coords(season=("time", np.arange(12))), "'season'.*drop_vars"
    ),
    "coordinates for a dimension without": (
        lambda ds: ds.assign_coords(x=[1, 2, 3, 4]), "coordinates 'x'.*drop_vars"
    ),
    "points": (
        lambda ds: ds.t2m.isel(time=xr.DataArray([0, 1], dims="p"), lat=xr.DataArray([0, 1], dims="p")),
        "dimension 'p'|computed",
    ),
    "no coordinates, other steps": (
        lambda ds: ds.drop_vars("time").isel(time=[0, 1, 3, 2, *range(4, 12)]), "'time'.*ascend"
    ),
    "no coordinates, in memory": (lambda ds: ds[["t2m"]].load().isel(x=1), "no coordinates.*isel="),
    "labels moved": (
        lambda ds: ds.t2m.isel(lat=[0, 1]).assign_coords(lat=[20.0, 30.0]), "'lat'|other values"
    ),
    "one step": (lambda ds: ds.t2m.isel(time=3), "'time'.*isel\\(time=\\[3\\]\\)"),
    "no step": (lambda ds: ds.t2m.isel(time=[]), "nothing of 'time'"),
    "another store": (lambda ds: ds[["t2m"]].assign(v10=other().u10), "different stores"),
    "in memory, without address": (lambda ds: xr.Dataset({"a": ("time", [1.0])}), "in memory"),
    "no name": (lambda ds: ds.t2m.rename(None), "has no name"),
    "a static variable": (lambda ds: fixed(), "orography.*name variables with"),
    "a tree": (lambda ds: xr.DataTree(ds), "DataTree"),
    "changed in memory": (put, "other values|in memory"),
    "decoded otherwise": (lambda ds: decoded(opened(mask_and_scale=False)), "'_FillValue'|_apply_mask"),
}


TAKEN = {
    "transposed": lambda ds: ds[["t2m", "u10"]].transpose("time", "x", "lat"),
    "transposed, a part": lambda ds: ds.t2m.transpose("time", "x", "lat")[1:, :, 1:],
    "transposed, one index": lambda ds: ds.t2m.isel(lat=1).transpose("time", "x"),
    "backwards": lambda ds: ds[["t2m"]].isel(lat=slice(None, None, -1)),
    "no coordinates, backwards": lambda ds: ds.t2m.isel(x=slice(None, None, -1)),
    "in another order": lambda ds: ds.t2m.isel(lat=[1, 2, 0], x=[0, 2, 1, 3]),
    "indices twice": lambda ds: ds.t2m.isel(lat=[1, 1]),
    "backwards and transposed": lambda ds: ds.t2m[:, ::-1].transpose("time", "x", "lat"),
    "sorted": lambda ds: ds[["t2m"]].sortby("lat", ascending=False),
    "a variable renamed": lambda ds: ds[["t2m", "u10"]].rename(t2m="u10", u10="t2m"),
    "an array": lambda ds: ds.t2m,
    "Booleans": lambda ds: ds.mask,
    "times as stored": lambda ds: opened(decode_times=False)[["t2m"]].isel(time=[1, 4, 7]),
    "nothing decoded": lambda ds: opened(decode_cf=False)[["packed"]].isel(time=slice(1, 9)),
    "times of another unit": lambda ds: opened(decode_times=CFDatetimeCoder(time_unit="s"))[["t2m"]],
    "attributes": lambda ds: ds[["t2m"]].assign_attrs(title="x"),
    "encodings dropped": lambda ds: ds[["t2m", "packed"]].drop_encoding(),
    "irregular steps": lambda ds: ds[["t2m", "packed"]].isel(time=[1, 2, 5]),
    "a single step": lambda ds: ds[["t2m"]].isel(time=[7]),
    "a tree's group": lambda ds: xr.DataTree(ds[["t2m"]]).to_dataset(),
    "values looked at": lambda ds: ds[["t2m", "packed"]].load(),
    "as stored": lambda ds: opened(mask_and_scale=False)[["packed"]],
    "copies": lambda ds: ds[["t2m"]].copy(deep=True) if CHUNKED else ds[["t2m"]].copy(),
    "some days": lambda ds: ds[["t2m"]].sel(time=slice("2020-01-03", "2020-01-06")),
    "no coordinates, a part": lambda ds: ds.t2m.isel(x=[0, 2], time=slice(2, None, 3)),
    "no coordinates, one": lambda ds: ds.t2m.isel(x=1).isel(lat=0, time=[1, 3]),
    "coordinates dropped": lambda ds: ds.t2m.isel(lat=1, drop=True).drop_vars("time")[2:5],
    "equal coordinates": lambda ds: doubled().t2m.isel(lat=[0, 2]),
    "chunked later": lambda ds: opened(chunks=None).t2m.isel(x=[0, 2], lat=1, time=slice(1, None))
    .pipe(lambda array: array.chunk(time=3) if CHUNKED else array).isel(time=slice(2, None, 2)),
    "merged in another order": lambda ds: ds[["u10", "t2m"]],
}


# What else xarray does: each is refused, or read as xarray has it.
OTHERS = {
    "abs": lambda a: abs(a),
    "broadcast": lambda a: a.broadcast_like(xr.DataArray(np.zeros(2), dims="z")),
    "coarsen": lambda a: a.coarsen(time=2).construct(time=("t", "in")),
    "combine_first": lambda a: a.combine_first(a * 0),
    "concat": lambda a: xr.concat([a[:6], a[6:]], "time"),
    "concat in another order": lambda a: xr.concat([a[6:], a[:6]], "time"),
    "copy": lambda a: a.copy(deep=True),
    "cumsum": lambda a: a.cumsum("time"),
    "diff": lambda a: a.diff("time"),
    "drop_duplicates": lambda a: a.drop_duplicates("lat"),
    "drop_isel": lambda a: a.drop_isel(time=[3]),
    "drop_sel": lambda a: a.drop_sel(lat=20.0),
    "expand_dims again": lambda a: a.isel(time=3).expand_dims("time"),
    "groupby": lambda a: a.groupby("time.month").mean(),
    "groupby.map": lambda a: a.groupby("lat").map(lambda part: part * 2),
    "head": lambda a: a.head(time=5),
    "identity": lambda a: a.pipe(lambda array: array),
    "imag": lambda a: a.imag,
    "interp": lambda a: a.interp(lat=[15.0]),
    "interp_like": lambda a: a.interp_like(a.isel(lat=[0, 1])),
    "isin": lambda a: a.isin([3.0]),
    "loc": lambda a: a.loc[{"lat": [10.0, 30.0]}],
    "negative step": lambda a: a[::-2],
    "nearest": lambda a: a.sel(lat=[11, 29], method="nearest"),
    "notnull": lambda a: a.notnull(),
    "pad": lambda a: a.pad(time=1, mode="edge"),
    "quantile": lambda a: a.quantile([0.1, 0.2], "time"),
    "real": lambda a: a.real,
    "reindex": lambda a: a.reindex(lat=[30.0, 10.0]),
    "reindex ascending": lambda a: a.reindex(lat=[10.0, 30.0]),
    "reindex beyond": lambda a: a.reindex(lat=[10.0, 40.0]),
    "reset_coords": lambda a: a.reset_coords(drop=True),
    "reset_index": lambda a: a.reset_index("lat"),
    "resample": lambda a: a.resample(time="2D").mean(),
    "rolling": lambda a: a.rolling(time=2).mean(),
    "round": lambda a: a.round(1),
    "sortby": lambda a: a.sortby("lat", ascending=False),
    "squeeze": lambda a: a.isel(lat=[1]).squeeze(),
    "stack and unstack": lambda a: a.stack(z=("lat", "x")).unstack("z"),
    "swap_dims": lambda a: a.assign_coords(y=("lat", [1, 2, 3])).swap_dims(lat="y"),
    "tail": lambda a: a.tail(time=5, x=2),
    "thin": lambda a: a.thin(time=3),
    "transposed back": lambda a: a.transpose().transpose(*a.dims),
    "ufunc": lambda a: xr.apply_ufunc(np.sqrt, a, dask="allowed"),
    "where, dropping": lambda a: a.where(a.lat > 15, drop=True),
    "where, where it is so": lambda a: a.where(a.lat > 0),
}


for at in range(n_stores):
    rng = random.Random(seed + at)
    way = written(rng, at)
    for _ in range(4):
        check(rng, *way)
opened, other = weather("weather"), weather("other")
doubled = weather("doubled", lat=(10.0, 20.0, 20.0))
fixed = weather("fixed", orography=(("lat", "x"), np.ones((3, 4))))
for name, (change, message) in REFUSED.items():
    try:
        FieldDataset(change(opened()))
    except (ValueError, TypeError) as error:
        assert re.search(message, str(error)), (name, str(error))
        continue
    raise AssertionError(f"{name} is not refused")
for name, change in TAKEN.items():
    read_as_it_is(name, change(opened()))
for name, change in OTHERS.items():
    given = change(opened()[["t2m"]].t2m)
    for way in ways(given):
        try:
            read_as_it_is(name, way)
        except ValueError as error:
            assert "store" in str(error) or "start=" in str(error), (name, str(error))
print(f"{n_stores} stores are read as xarray reads them")
