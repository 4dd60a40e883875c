"""Random stores that xarray writes, cut into random patches: `FieldDataset` delivers what `numpy.pad`
and slices give of what xarray reads, value by value, with the coordinates of each patch.

Usage: fields_in_patches.py FOLDER N_STORES SEED
"""

import itertools
import pickle
import random
import sys
import warnings

import numpy as np
import pandas as pd
import xarray as xr
from somafeed import FieldDataset, Patches, Variable

warnings.simplefilter("ignore")
folder, n_stores, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
MODES = {"reflect": "reflect", "periodic": "wrap"}


def written(rng, at):
    """A store of a field, another with levels, a series and a mask, and xarray's view of it."""
    sizes = {
        "time": rng.randint(2, 6), "level": rng.randint(1, 3), "lat": rng.randint(3, 12),
        "lon": rng.randint(3, 12),
    }
    coords = {
        "time": pd.date_range("2020-01-01", periods=sizes["time"], freq="6h"),
        "lat": np.linspace(90, -90, sizes["lat"]),
        "lon": np.arange(sizes["lon"]) * 2.5,
    }
    values = np.random.default_rng(rng.randrange(1 << 32))
    made, encoding = {}, {}
    for name, dims in {
        "field": ["time", "lat", "lon"],
        "levels": rng.choice([["level", "time", "lon", "lat"], ["time", "level", "lat", "lon"]]),
        "series": ["time"],
        "mask": rng.choice([["lat", "lon"], ["lon", "lat"]]),
    }.items():
        shape = [sizes[one] for one in dims]
        array = (values.random(shape) * 100).astype(rng.choice(["float32", "int16", "float64"]))
        made[name] = (dims, array)
        encoding[name] = {"chunks": [rng.randint(1, n) for n in shape]}
    path = f"{folder}/{at}.zarr"
    store = xr.Dataset(made, coords)
    zarr_format = rng.choice([2, 3])
    store.to_zarr(path, encoding=encoding, zarr_format=zarr_format, consolidated=False)
    return path, xr.open_zarr(path, consolidated=False).load()


def cut_by_hand(length, size, stride, padding):
    """The starts of patches, and the indices of each, by numpy.pad."""
    mode, before, after = padding
    if mode is None:
        places = np.arange(length)
    elif mode == "periodic":
        # As many patches as begin on the circle.
        after = -(-length // stride) * stride + size
        places = np.pad(np.arange(length), (before, after), MODES[mode])
        n = -(-length // stride)
        return [(i * stride - before, places[i * stride : i * stride + size]) for i in range(n)]
    else:
        places = np.pad(np.arange(length), (before, after), MODES[mode])
    last = len(places) - size
    return [(at - before, places[at : at + size]) for at in range(0, last + 1, stride)]


def check(rng, path, whole):
    cut = rng.sample(["lat", "lon"], rng.randint(1, 2))
    select = {"lat": slice(rng.randint(0, 1), None)} if rng.random() < 0.5 else {}
    whole = whole.isel(select)
    sizes, strides, padding, by_hand = {}, {}, {}, {}
    for one in cut:
        length = whole.sizes[one]
        sizes[one] = rng.randint(1, length)
        strides[one] = rng.randint(1, sizes[one])
        before, after = rng.randint(0, length - 1), rng.randint(0, length - 1)
        kind = rng.choice([None, ("reflect", before, after), ("periodic", before)])
        if kind is not None:
            padding[one] = kind if rng.random() < 0.9 or kind[0] != "periodic" else "periodic"
        before = 0 if padding.get(one) == "periodic" else before
        kind = (None, 0, 0) if kind is None else (kind[0], before, after)
        by_hand[one] = cut_by_hand(length, sizes[one], strides[one], kind)
    patches = Patches(sizes, stride=strides, padding=padding)
    steps = rng.choice([(0,), (0, 1)])
    variables = {
        name: Variable(
            name,
            steps=(0,) if name == "mask" else steps,
            isel={} if name == "series" else select,
        )
        for name in whole.data_vars
    }
    options = {
        "dim": "time", "patches": patches, "batch_size": rng.randint(1, 9), "seed": 1,
        "threads": rng.randint(1, 3), "shuffle": rng.random() < 0.7,
    }
    plain = FieldDataset(path, variables, number_samples=True, **options)
    labelled = FieldDataset(path, variables, form="xarray", **options)
    if rng.random() < 0.3:
        plain = pickle.loads(pickle.dumps(plain))
    opened = xr.open_zarr(path, consolidated=False)[["field"]].isel(select)
    of_xarray = FieldDataset(
        opened, {"field": Variable("field", steps=steps)}, patches=patches, batch_size=5, seed=1
    )
    for batch, same in zip(plain.in_order(batch_size=5), of_xarray.in_order(), strict=True):
        assert np.array_equal(batch["field"], same["field"]), options
    every = list(itertools.product(*by_hand.values()))
    assert plain.n_samples == len(every) * (whole.sizes["time"] - len(steps) + 1), options
    starts_of_all = plain.patch_starts()
    n = 0
    for batch, arrays in zip(plain, labelled, strict=True):
        for at, sample in enumerate(batch["sample"]):
            n += 1
            step, patch = divmod(int(sample), len(every))
            starts = [start for start, _ in every[patch]]
            assert batch["patch"][at].tolist() == starts_of_all[sample].tolist() == starts, options
            indices = dict(zip(by_hand, (places for _, places in every[patch])))
            for name, array in whole.data_vars.items():
                shown = f"{path} {name} {options}"
                of_patch = array.isel({one: at for one, at in indices.items() if one in array.dims})
                if "time" in array.dims:
                    of_patch = of_patch.isel(time=[step + by for by in steps]).transpose("time", ...)
                    if len(steps) == 1:
                        of_patch = of_patch.isel(time=0)
                found = batch[name][at]
                assert found.shape == of_patch.shape == plain.shapes[name], shown
                assert found.dtype == array.dtype and np.array_equal(found, of_patch.values), shown
                labels = arrays[name]
                assert np.array_equal(labels.values[at], found), shown
                for one in indices:
                    if one in array.dims:
                        assert labels[one].dims == ("sample", f"patch_{one}"), shown
                        assert np.array_equal(labels[one].values[at], of_patch[one].values), shown
                for one in {"lat", "lon"} & set(array.dims) - set(indices):
                    assert np.array_equal(labels[one].values, of_patch[one].values), shown
    assert n == plain.n_samples, options


for at in range(n_stores):
    rng = random.Random(seed + at)
    path, whole = written(rng, at)
    for _ in range(4):
        check(rng, path, whole)
print(f"{n_stores} stores are cut as numpy cuts them")
