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
    """A store of some arrays with one first dimension, and the arrays as xarray opens them."""
    n_times = rng.randint(6, 20)
    sizes = {"level": rng.randint(1, 5), "lat": rng.randint(1, 7), "channel": rng.randint(1, 5)}
    coords = {
        "time": pd.date_range("2020-01-01", periods=n_times, freq="6h"),
        "level": np.sort(np.array(rng.sample(range(100, 1000, 50), sizes["level"]))),
        "lat": np.linspace(90, -90, sizes["lat"]) if sizes["lat"] > 1 else np.array([45.0]),
        "channel": CHANNELS[: sizes["channel"]],
    }
    made, encoding = {}, {}
    values = np.random.default_rng(rng.randrange(1 << 32))
    for name in ["a", "b", "c"][: rng.randint(1, 3)]:
        dims = ["time", *rng.sample(list(sizes), rng.randint(0, 3))]
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
    return path, xr.open_zarr(path, consolidated=False)


def chosen(rng, array):
    """A random selection of dimensions but the first: isel, sel, and the array with both."""
    isel, sel = {}, {}
    for dim in array.dims[1:]:
        n, values = array.sizes[dim], array[dim].values
        some = sorted(rng.sample(range(n), rng.randint(1, n)))
        first, last = some[0], some[-1]
        match rng.randrange(8):
            case 0:
                isel[dim] = slice(first, last + 1)
            case 1:
                isel[dim] = slice(None, None, rng.randint(1, 3))
            case 2:
                isel[dim] = some
            case 3:
                isel[dim] = first - n
            case 4:
                sel[dim] = values[some].tolist()
            case 5:
                sel[dim] = values[first].item() if dim != "channel" else str(values[first])
            case 6 if dim != "channel":
                sel[dim] = slice(values[first].item(), values[last].item())
    return isel, sel


def check(rng, path, whole):
    variables, expected, dtypes = {}, {}, {}
    for name in whole.data_vars:
        for copy in range(rng.randint(1, 2)):
            isel, sel = chosen(rng, whole[name])
            steps = rng.choice([(0,), (-1, 0), (1,), (0, 2), (-2,)])
            dtype = rng.choice([None, None, "float32"])
            key = f"{name}{copy}"
            variables[key] = Variable(name, steps=steps, isel=isel, sel=sel, dtype=dtype)
            expected[key] = whole[name].isel(isel).sel(sel).load()
            dtypes[key] = dtype
    batch_size = rng.randint(1, 4)
    options = {
        "batch_size": batch_size, "io_batch_size": batch_size * rng.choice([1, 2]),
        "seed": rng.randrange(9), "stride": rng.randint(1, 3), "threads": rng.randint(1, 3),
        "shuffle": rng.random() < 0.7,
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
            for dim in whole[key[0]].dims[1:]:
                assert np.array_equal(array[dim].values, values[dim].values), (shown, dim)
    assert n == len(plain.steps) == plain.n_samples, options


for at in range(n_stores):
    rng = random.Random(seed + at)
    path, whole = written(rng, at)
    for _ in range(3):
        check(rng, path, whole)
print(f"{n_stores} stores are read as xarray reads them")
