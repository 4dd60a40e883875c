"""Opens Zarr stores with xarray and zarr-python, and writes what they hold: `xarray_stores.py FOLDER SEED`.

FOLDER/ours has the stores to open. This script writes random ones to FOLDER/theirs first. Values go to
FOLDER/expected as 32-bit floats in C order; names and coordinates are printed as one JSON object.
"""

import json
import sys
import warnings
from pathlib import Path

import numcodecs
import numpy as np
import pandas as pd
import xarray as xr
import zarr

folder = Path(sys.argv[1])
rng = np.random.default_rng(int(sys.argv[2]))
# zarr-python warns about consolidated metadata and strings in version 3.
warnings.simplefilter("ignore")

COMPRESSORS = {
    2: [None, numcodecs.Zstd(1), numcodecs.GZip(1), numcodecs.Blosc("lz4", 5), numcodecs.Zlib(1)],
    3: [(), zarr.codecs.ZstdCodec(level=1), zarr.codecs.GzipCodec(level=1), zarr.codecs.BloscCodec()],
}
DIMENSIONS = ["lat", "level", "channel"]


def coordinates(dimension, n):
    match dimension:
        case "lat":
            return np.linspace(-89.5, 89.5, n).astype(rng.choice(["float32", "float64"]))
        case "level":
            return (np.arange(n, dtype="int64") + 1) * 50
        case "channel":
            # Strings of fixed length in one store, of any length in another.
            names = np.array([f"chännel {i}" for i in range(n)])
            return names if rng.random() < 0.5 else names.astype(object)


def write(path, version):
    names = ["time", *rng.choice(DIMENSIONS, rng.integers(0, 4), replace=False)]
    shape = [int(n) for n in rng.integers(1, 9, len(names))]
    chunks = [int(rng.integers(1, n + 1)) for n in shape]
    values = rng.normal(10, 100, shape)
    gaps = np.where(rng.random(shape) < 0.1, np.nan, values)
    dataset = xr.Dataset(
        {
            "floats": (names, gaps.astype("float32")),
            "doubles": (names, values),
            "halves": (names, values.astype("float16")),
            "integers": (names, values.astype("int32")),
            "flags": (names, values > 0),
            "packed": (names, gaps),
            "scaled": (names, gaps),
        },
        coords={name: (name, coordinates(name, n)) for name, n in zip(names[1:], shape[1:])}
        | {"time": pd.date_range("2026-01-01", periods=shape[0], freq="6h")},
    )
    storage = {"chunks": tuple(chunks)}
    if version == 3 and rng.random() < 0.5:
        storage["shards"] = tuple(n * int(rng.integers(1, 4)) for n in chunks)
    encoding = {}
    for name in dataset.data_vars:
        compressors = COMPRESSORS[version][rng.integers(len(COMPRESSORS[version]))]
        encoding[name] = storage | {"compressors": compressors}
    packing = {"dtype": "int16", "_FillValue": -32768}
    encoding["packed"] |= packing | {"scale_factor": 0.0371, "add_offset": 12.5}
    encoding["scaled"] |= packing | {"scale_factor": 0.0371}
    consolidated = bool(rng.random() < 0.5)
    dataset.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=consolidated)


def describe(path):
    """Writes the values of all variables of a store, and returns names and coordinates."""
    raw = zarr.open_group(path, mode="r")
    found = {}
    with (
        xr.open_zarr(path, chunks=None, decode_times=False) as dataset,
        xr.open_zarr(path, chunks=None, decode_cf=False) as stored,
    ):
        for name, variable in dataset.data_vars.items():
            # xarray without decoding and zarr-python alone read the same.
            np.testing.assert_array_equal(stored[name].values, raw[name][...])
            file = folder / "expected" / f"{path.parent.name}-{path.name}-{name}"
            file.parent.mkdir(exist_ok=True)
            variable.values.astype("<f4").tofile(file)
            found[name] = {
                "file": str(file),
                "dimensions": list(variable.dims),
                "shape": list(variable.shape),
                "coordinates": {of: dataset[of].values.tolist() for of in variable.dims},
                "units": {of: dataset[of].attrs.get("units") for of in variable.dims},
            }
    return found


for i in range(16):
    write(folder / "theirs" / str(i), 2 + i % 2)
stores = sorted(folder.glob("ours/*")) + sorted(folder.glob("theirs/*"))
print(json.dumps({str(path): describe(path) for path in stores}))
