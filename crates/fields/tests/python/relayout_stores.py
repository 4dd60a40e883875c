"""Stores of fields as xarray writes them, and whether their copies are the same to xarray.

`relayout_stores.py write FOLDER SEED` writes random stores to FOLDER/from, `relayout_stores.py compare FOLDER`
opens each with its copy in FOLDER/to.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

action, folder = sys.argv[1], Path(sys.argv[2])
# zarr-python warns about consolidated metadata and strings in version 3.
warnings.simplefilter("ignore")


def dataset(rng):
    n_time, n_level, n_lat, n_lon = (int(n) for n in rng.integers(2, 7, 4))
    dimensions = ["time", "level", "lat", "lon"]
    values = rng.normal(280, 10, (n_time, n_level, n_lat, n_lon))
    gaps = np.where(rng.random(values.shape) < 0.2, np.nan, values)
    names = np.array([f"stätion {i}" for i in range(n_lat)])
    return xr.Dataset(
        {
            "temperature": (dimensions, gaps.astype("float32"), {"units": "K", "valid_range": [100, 400]}),
            "geopotential": (dimensions, values * 1e4, {"long_name": "Höhe"}),
            "packed": (dimensions, gaps),
            "unsigned": (["time", "lat"], rng.integers(0, 200, (n_time, n_lat)).astype("uint8")),
            "missing": (["time", "lon"], gaps[:, 0, 0].astype("float32")),
            "flags": (["time", "lat"], values[:, 0, :, 0] > 280),
            "land": (["lat", "lon"], rng.random((n_lat, n_lon)).astype("float32")),
            "crs": ((), 0, {"grid_mapping_name": "latitude_longitude"}),
        },
        coords={
            "time": pd.date_range("2026-01-01", periods=n_time, freq="6h"),
            "level": ("level", [1000 - 50 * i for i in range(n_level)], {"units": "hPa"}),
            "lat": np.linspace(-80, 80, n_lat),
            "lon": ("lon", np.linspace(0, 300, n_lon).astype("float32"), {"units": "degrees_east"}),
            # Strings of fixed length in one store, of any length in another.
            "station": ("lat", names if rng.random() < 0.5 else names.astype(object)),
            "area": (["lat", "lon"], rng.random((n_lat, n_lon))),
        },
        attrs={"Conventions": "CF-1.11", "title": "tëst", "levels": [1, 2.5]},
    )


def write(path, version, rng):
    encoding = {"packed": {"dtype": "int16", "scale_factor": 0.037, "add_offset": 250.0, "_FillValue": -32768}}
    encoding["missing"] = {"_FillValue": np.float32(9.96921e36)}
    encoding["time"] = {"units": "hours since 1900-01-01", "calendar": "proleptic_gregorian", "dtype": "int64"}
    ds = dataset(rng)
    for name in ("temperature", "geopotential", "packed"):
        chunks = tuple(int(rng.integers(1, n + 1)) for n in ds[name].shape)
        encoding.setdefault(name, {})["chunks"] = chunks
        if version == 3 and rng.random() < 0.5:
            encoding[name]["shards"] = tuple(2 * n for n in chunks)
    ds.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=bool(rng.random() < 0.5))


def without_encoding(ds):
    for variable in ds.variables.values():
        variable.encoding = {}
    ds.encoding = {}
    return ds


def compare(source, copy):
    for options in ({}, {"decode_times": False}, {"mask_and_scale": False}):
        with xr.open_zarr(source, chunks=None, **options) as before, xr.open_zarr(copy, chunks=None, **options) as after:
            before, after = before.load(), after.load()
            assert set(before.coords) == set(after.coords), (source, options)
            for name, variable in before.variables.items():
                of = after.variables[name]
                assert of.dtype.kind == variable.dtype.kind or variable.dtype.kind in "UOT", (source, name, of.dtype)
                if variable.dtype.kind in "iufb":
                    assert of.dtype == variable.dtype, (source, name, of.dtype)
            xr.testing.assert_identical(without_encoding(before), without_encoding(after))


def compare_halves(source, copy):
    """Floating point numbers in 16 bits, but for coordinates, packed ones, and one that is named."""
    with xr.open_zarr(source, chunks=None) as before, xr.open_zarr(copy, chunks=None) as after:
        for name, variable in before.data_vars.items():
            is_half = name in ("temperature", "missing", "land")
            expected = variable.astype("float16") if is_half else variable
            assert after[name].dtype == expected.dtype, (source, name, after[name].dtype)
            xr.testing.assert_equal(after[name].variable, expected.variable)
        for name, variable in before.coords.items():
            assert after[name].dtype == variable.dtype or variable.dtype.kind in "UOT", (source, name)


if action == "write":
    rng = np.random.default_rng(int(sys.argv[3]))
    (folder / "from").mkdir()
    for i in range(8):
        write(folder / "from" / str(i), 2 + i % 2, rng)
else:
    for source in sorted((folder / "from").iterdir()):
        compare(source, folder / "to" / source.name)
        compare_halves(source, folder / "halves" / source.name)
        with xr.open_zarr(source, chunks=None) as before:
            part = before[["temperature"]].isel(time=slice(1, None)).sel(level=[950, 1000])
            with xr.open_zarr(folder / "part" / source.name, chunks=None) as after:
                kept = [name for name in part.coords if name in after.coords]
                assert {"time", "level", "lat", "lon"} <= set(kept)
                part = part.drop_vars([name for name in part.coords if name not in kept])
                xr.testing.assert_identical(without_encoding(part.load()), without_encoding(after.load()))
