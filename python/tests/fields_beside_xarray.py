"""Random stores that xarray writes, and random parts of them: `FieldDataset` delivers what xarray's
`isel` and `sel` give, value by value, with the same dimensions, coordinates and types.

Usage: fields_beside_xarray.py FOLDER N_STORES SEED
"""

import pickle
import random
import sys
import warnings

import numpy as np
import pandas as pd
import xarray as xr
from somafeed import FieldDataset, Variable

warnings.simplefilter("ignore")
folder, n_stores, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
DTYPES = ["float32", "float64", "int16", "uint8", "int64", "float16"]
CHANNELS = ["t2m", "u10", "v10", "msl", "tp"]


def written(rng, at):
    """A store of some arrays over time, which may be any of their dimensions, the arrays as xarray opens
    them, and what `dim` must be."""
    n_times = rng.randint(6, 20)
    sizes = {"level": rng.randint(1, 5), "lat": rng.randint(1, 7), "channel": rng.randint(1, 5)}
    coords = {
        "time": pd.date_range("2020-01-01", periods=n_times, freq="6h"),
        "level": np.sort(np.array(rng.sample(range(100, 1000, 50), sizes["level"]))),
        "lat": np.linspace(90, -90, sizes["lat"]) if sizes["lat"] > 1 else np.array([45.0]),
        "channel": CHANNELS[: sizes["channel"]],
    }
    made, encoding = {}, {}
    time_is_first = rng.random() < 0.5
    values = np.random.default_rng(rng.randrange(1 << 32))
    for name in ["a", "b", "c"][: rng.randint(1, 3)]:
        dims = rng.sample(list(sizes), rng.randint(0, 3))
        dims.insert(0 if time_is_first else rng.randint(0, len(dims)), "time")
        shape = [n_times if dim == "time" else sizes[dim] for dim in dims]
        dtype = rng.choice(DTYPES)
        array = (values.random(shape) * 100).astype(dtype)
        made[name] = (dims, array)
        encoding[name] = {"chunks": [rng.randint(1, n) for n in shape]}
        if dtype == "float64" and rng.random() < 0.5:
            encoding[name] |= {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}
    path = f"{folder}/{at}.zarr"
    zarr_format = rng.choice([2, 3])
    store = xr.Dataset(made, coords)
    store.to_zarr(path, encoding=encoding, zarr_format=zarr_format, consolidated=False)
    dim = rng.choice([None, "time", 0]) if time_is_first else "time"
    return path, xr.open_zarr(path, consolidated=False), dim


def chosen(rng, array):
    """A random selection of dimensions but time: isel and sel."""
    isel, sel = {}, {}
    for dim in [dim for dim in array.dims if dim != "time"]:
        n, values = array.sizes[dim], array[dim].values
        some = rng.sample(range(n), rng.randint(1, n))
        first, last = min(some), max(some)
        match rng.randrange(8):
            case 0:
                isel[dim] = slice(first, last + 1)
            case 1:
                isel[dim] = slice(None, None, rng.choice([1, 2, 3, -1, -2]))
            case 2:
                isel[dim] = some + rng.choice([[], some[:1]])
            case 3:
                isel[dim] = first - n
            case 4:
                sel[dim] = values[some].tolist()
            case 5:
                sel[dim] = values[first].item() if dim != "channel" else str(values[first])
            case 6 if dim != "channel":
                sel[dim] = slice(values[first].item(), values[last].item())
    return isel, sel


def is_monotone(values):
    steps = np.diff(values)
    return (steps > 0).all() or (steps < 0).all()


def check(rng, path, whole, dim):
    variables, expected, dtypes = {}, {}, {}
    there = sorted({one for name in whole.data_vars for one in whole[name].dims} - {"time"})
    of_all = rng.sample(there, rng.randint(0, len(there)))
    turned = [one for one in ("level", "lat") if one in there]
    orient = {
        one: rng.choice(["ascending", "descending"])
        for one in rng.sample(turned, rng.randint(0, len(turned)))
    }
    for name in whole.data_vars:
        for copy in range(rng.randint(1, 2)):
            isel, sel = chosen(rng, whole[name])
            steps = rng.choice([(0,), (-1, 0), (1,), (0, 2), (-2,)])
            dtype = rng.choice([None, None, "float32"])
            key = f"{name}{copy}"
            others = [one for one in whole[name].dims if one != "time"]
            dims = rng.sample(others, rng.randint(0, len(others)))
            variables[key] = Variable(name, steps=steps, isel=isel, sel=sel, dims=dims, dtype=dtype)
            part = whole[name].isel(isel).sel(sel)
            for one in orient:
                # What is selected in another order has no direction.
                if one in part.dims and not is_monotone(part[one].values):
                    isel.pop(one, None), sel.pop(one, None)
            part = whole[name].isel(isel).sel(sel)
            for one, direction in orient.items():
                if one in part.dims:
                    part = part.sortby(one, ascending=direction == "ascending")
            order = [one for one in dims or of_all if one in part.dims]
            unnamed = [one for one in part.dims if one not in ("time", *order)]
            expected[key] = part.transpose("time", *unnamed, *order).load()
            dtypes[key] = dtype
    batch_size = rng.randint(1, 4)
    options = {
        "batch_size": batch_size, "io_batch_size": batch_size * rng.choice([1, 2]),
        "dim": dim, "seed": rng.randrange(9), "stride": rng.randint(1, 3), "threads": rng.randint(1, 3),
        "shuffle": rng.random() < 0.7, "dims": of_all, "orient": orient,
    }
    plain = FieldDataset(path, variables, number_samples=True, **options)
    labelled = FieldDataset(path, variables, form="xarray", **options)
    if rng.random() < 0.3:
        plain = pickle.loads(pickle.dumps(plain))
    n = 0
    for batch, arrays in zip(plain, labelled, strict=True):
        steps_of = plain.steps[batch["sample"]]
        n += len(steps_of)
        for key, values in expected.items():
            offsets = variables[key].steps
            shown = f"{path} {key} {variables[key]} {options}"
            all_steps = [[step + offset for offset in offsets] for step in steps_of]
            of_array = np.array(all_steps) if len(offsets) > 1 else np.array(all_steps)[:, 0]
            right = values.values[of_array]
            assert batch[key].shape == right.shape == (len(steps_of), *plain.shapes[key]), shown
            if dtypes[key] == "float32":
                right = right.astype("float32")
            # We take the smallest type that holds each number; xarray may take a wider one.
            assert np.array_equal(batch[key], right.astype(batch[key].dtype), equal_nan=True), shown
            assert batch[key].dtype == right.dtype or values.encoding.get("scale_factor"), shown
            array = arrays[key]
            assert np.array_equal(array.values, batch[key], equal_nan=True), shown
            assert np.array_equal(array["time"].values, whole["time"].values[of_array]), shown
            assert array.dims[0] == "sample" and array.dims[-len(values.dims) + 1:] == values.dims[1:] or len(values.dims) == 1, shown
            for other in [other for other in whole[key[0]].dims if other != "time"]:
                assert np.array_equal(array[other].values, values[other].values), (shown, other)
    assert n == len(plain.steps) == plain.n_samples, options


for at in range(n_stores):
    rng = random.Random(seed + at)
    path, whole, dim = written(rng, at)
    for _ in range(3):
        check(rng, path, whole, dim)
print(f"{n_stores} stores are read as xarray reads them")
