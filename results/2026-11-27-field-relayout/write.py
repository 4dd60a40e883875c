"""Writes a reanalysis of 37 levels, one chunk of all levels for each hour: write.py STORE. 2.5 GB, about 1.2 GB stored."""
import sys

import numpy as np
import zarr
from numcodecs import Blosc

N, LEVELS, LAT, LON = 16, 37, 721, 1440
rng = np.random.default_rng(1)
group = zarr.open_group(sys.argv[1], mode="w", zarr_format=2)
names = ["time", "level", "latitude", "longitude"]
t = group.create_array("t", shape=(N, LEVELS, LAT, LON), chunks=(1, LEVELS, LAT, LON), dtype="f4",
                       compressors=Blosc("lz4", 5, Blosc.SHUFFLE), attributes={"_ARRAY_DIMENSIONS": names, "units": "K"})
coordinates = {"time": np.arange(N), "level": np.linspace(1, 1000, LEVELS).round().astype("i8"),
               "latitude": np.linspace(90, -90, LAT), "longitude": np.linspace(0, 360, LON, endpoint=False)}
for name, values in coordinates.items():
    attributes = {"_ARRAY_DIMENSIONS": [name]}
    if name == "time":
        attributes |= {"units": "hours since 1900-01-01", "calendar": "proleptic_gregorian"}
    group.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype, attributes=attributes)[:] = values
y, x = np.linspace(-np.pi / 2, np.pi / 2, LAT)[:, None], np.linspace(0, 2 * np.pi, LON, endpoint=False)[None]
for step in range(N):
    field = 280 + 30 * np.cos(y) + sum(5 / k * np.sin(k * x + 0.1 * step * k) * np.cos(y) ** k for k in range(1, 6))
    levels = np.empty((LEVELS, LAT, LON), "f4")
    for level in range(LEVELS):
        levels[level] = np.round(field - level + 0.3 * rng.standard_normal((LAT, LON)), 2)
    t[step] = levels
