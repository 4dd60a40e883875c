"""Writes the stores `xarray-*` and `labels-*` beside this script with xarray: `python write_xarray.py`.

Element i of `t`, counted in C order, is i / 8, and missing where i is a multiple of 11. `u` has the
same numbers packed as int16, `mask` whether they are there. The group `weather` of `labels-*` has
coordinates of every kind: strings of both kinds, packed numbers, times in several chunks.
"""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

here = Path(__file__).parent
shape = (6, 4, 5)
numbers = np.arange(np.prod(shape)).reshape(shape)
values = np.where(numbers % 11 == 0, np.nan, numbers / 8)
dims = ("time", "lat", "lon")
dataset = xr.Dataset(
    {
        "t": (dims, values.astype("float32")),
        "u": (dims, values),
        "mask": (dims, ~np.isnan(values)),
    },
    coords={
        "time": pd.date_range("2026-01-01", periods=6, freq="6h"),
        "lat": np.linspace(-60, 60, 4),
        "lon": np.arange(5) * 72.0,
    },
)
packed = {"dtype": "int16", "scale_factor": 0.125, "add_offset": 0.5, "_FillValue": -32768}
for version in (2, 3):
    path = here / f"xarray-v{version}"
    shutil.rmtree(path, ignore_errors=True)
    encoding = {"u": packed | {"chunks": (1, 2, 5)}, "t": {"chunks": (2, 4, 3)}}
    dataset.to_zarr(path, zarr_format=version, encoding=encoding)

labels = xr.Dataset(
    {"t": (("time", "channel", "level", "member"), np.arange(5 * 4 * 3 * 2.0).reshape(5, 4, 3, 2))},
    coords={
        "time": pd.date_range("2026-01-01", periods=5, freq="6h"),
        "channel": ("channel", ["t2m", "u10", "v10", "précipitation"], {"long_name": "name of the channel"}),
        "level": ("level", [1000.0, 850.0, 500.5], {"units": "hPa"}),
        "member": ("member", np.array(["control", "first"], dtype=object)),
    },
)
encoding = {
    "time": {"chunks": (2,), "units": "hours since 2026-01-01", "dtype": "int32"},
    "level": {"dtype": "int16", "scale_factor": 0.5, "add_offset": 100.0},
}
for version in (2, 3):
    path = here / f"labels-v{version}"
    shutil.rmtree(path, ignore_errors=True)
    labels.to_zarr(path, group="weather", zarr_format=version, encoding=encoding)
