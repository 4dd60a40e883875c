"""Writes the layouts of fields that training reads: write.py FOLDER [NAME ...]. About 3 GB in all. Fill values are NaN, as xarray writes them:
zarr-python's own, 0, would be a missing value to xarray and somafeed."""
import sys
from pathlib import Path

import numpy as np
import zarr
from numcodecs import Blosc
from zarr.codecs import BloscCodec, ShardingCodec, BytesCodec

rng = np.random.default_rng(1)


def smooth(n, lat, lon):
    """Fields of waves that drift, with noise: they compress about 2 to 1."""
    y = np.linspace(-np.pi / 2, np.pi / 2, lat)[:, None]
    x = np.linspace(0, 2 * np.pi, lon, endpoint=False)[None]
    for step in range(n):
        field = 280 + 30 * np.cos(y)
        for k in range(1, 6):
            field = field + 5 / k * np.sin(k * x + 0.1 * step * k) * np.cos(y) ** k
        yield np.round(field + 0.3 * rng.standard_normal((lat, lon)), 2).astype("f4")


def v2(path, shape, chunks):
    group = zarr.open_group(path, mode="w", zarr_format=2)
    names = ["time", "latitude", "longitude"]
    a = group.create_array("t", shape=shape, chunks=chunks, dtype="f4",
                           compressors=Blosc("lz4", 5, Blosc.SHUFFLE), fill_value=float("nan"), attributes={"_ARRAY_DIMENSIONS": names})
    group.create_array("time", shape=shape[:1], chunks=shape[:1], dtype="i8",
                       attributes={"_ARRAY_DIMENSIONS": ["time"], "units": "hours since 1900-01-01", "calendar": "proleptic_gregorian"})[:] = np.arange(shape[0])
    return a


def write(path, shape, chunks):
    array = v2(path, shape, chunks)
    fields = smooth(*shape)
    for start in range(0, shape[0], chunks[0]):
        block = np.stack([next(fields) for _ in range(min(chunks[0], shape[0] - start))])
        array[start:start + len(block)] = block


def shards(path, n_shards):
    group = zarr.open_group(path, mode="w", zarr_format=3)
    shape = (1440, 400, 400 * n_shards)
    a = group.create_array("t", shape=shape, shards=(1440, 400, 400), chunks=(1440, 50, 50), dtype="f4",
                           compressors=BloscCodec(typesize=4, cname="zstd", clevel=3, shuffle="shuffle"),
                           dimension_names=["time", "latitude", "longitude"])
    for shard in range(n_shards):
        block = np.stack(list(smooth(1440, 400, 400)))
        a[:, :, 400 * shard:400 * (shard + 1)] = block


def levels(path):
    """Thirteen levels in one chunk, all of which are read."""
    n, n_levels, lat, lon = 40, 13, 361, 720
    group = zarr.open_group(path, mode="w", zarr_format=2)
    a = group.create_array("t", shape=(n, n_levels, lat, lon), chunks=(1, n_levels, lat, lon), dtype="f4",
                           compressors=Blosc("lz4", 5, Blosc.SHUFFLE), fill_value=float("nan"),
                           attributes={"_ARRAY_DIMENSIONS": ["time", "level", "latitude", "longitude"]})
    for step in range(n):
        a[step] = np.stack(list(smooth(n_levels, lat, lon)))


def packed(path):
    """Numbers of 16 bits that stand for steps of 1/64 above 256: exact in f32, so that all who unpack have equal bits."""
    n, lat, lon = 240, 361, 720
    group = zarr.open_group(path, mode="w", zarr_format=2)
    a = group.create_array("t", shape=(n, lat, lon), chunks=(1, lat, lon), dtype="i2", fill_value=-32767,
                           compressors=Blosc("lz4", 5, Blosc.SHUFFLE),
                           attributes={"_ARRAY_DIMENSIONS": ["time", "latitude", "longitude"], "scale_factor": 1 / 64, "add_offset": 256.0})
    for step, field in enumerate(smooth(n, lat, lon)):
        a[step] = np.round((field - 256) * 64).astype("i2")


def anemoi(path):
    """A data set as anemoi-datasets writes it: 120 dates of 60 variables on the 40,320 points of O96."""
    n, n_variables, n_cells = 120, 60, 40_320
    names = [f"v{i}" for i in range(n_variables)]
    group = zarr.open_group(path, mode="w", zarr_format=2)
    dates = np.datetime64("2020-01-01", "s") + np.arange(n) * np.timedelta64(6, "h")
    group.attrs.update({"version": "0.18", "variables": names, "variables_metadata": {}, "missing_dates": [], "frequency": "6h",
                        "start_date": str(dates[0]), "end_date": str(dates[-1]), "field_shape": [n_cells], "constant_fields": [],
                        "allow_nans": False, "statistics_start_date": str(dates[0]), "statistics_end_date": str(dates[-1])})
    data = group.create_array("data", shape=(n, n_variables, 1, n_cells), chunks=(1, n_variables, 1, n_cells), dtype="f4",
                              compressors=Blosc("lz4", 5, Blosc.SHUFFLE), fill_value=float("nan"),
                              attributes={"_ARRAY_DIMENSIONS": ["time", "variable", "ensemble", "cell"]})
    for step, field in enumerate(smooth(n, n_variables, n_cells)):
        data[step] = field[None, :, None]
    columns = {"dates": dates, "latitudes": np.linspace(90, -90, n_cells), "longitudes": np.linspace(0, 360, n_cells)}
    columns |= {name: np.ones(n_variables) for name in ("mean", "stdev", "minimum", "maximum")}
    for name, values in columns.items():
        dimension = {"dates": "time", "latitudes": "cell", "longitudes": "cell"}.get(name, "variable")
        group.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype,
                           attributes={"_ARRAY_DIMENSIONS": [dimension]})[:] = values
    zarr.consolidate_metadata(path)


LAYOUTS = {
    "surface": lambda path: write(path, (120, 721, 1440), (1, 721, 1440)),
    "published-8": lambda path: write(path, (1024, 361, 720), (8, 361, 720)),
    "wb2-64x32": lambda path: write(path, (40_000, 64, 32), (100, 64, 32)),
    "levels-13": levels,
    "packed": packed,
    "anemoi": anemoi,
    "shards": lambda path: shards(path, 1),
}
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or LAYOUTS:
        LAYOUTS[name](str(folder / f"{name}.zarr"))
        print(name, flush=True)
