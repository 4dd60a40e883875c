"""Writes an array in the layout of ARCO-ERA5's pressure levels: (time, level, latitude, longitude), a chunk of 37 levels."""
import sys, numpy as np, zarr, numcodecs
path, n = sys.argv[1], int(sys.argv[2])
z = zarr.open_group(path, mode="w", zarr_format=2)
a = z.create_array("temperature", shape=(n, 37, 721, 1440), chunks=(1, 37, 721, 1440), dtype="f4",
    compressors=numcodecs.Blosc(cname="lz4", clevel=5, shuffle=1), fill_value=float("nan"))
a.attrs["_ARRAY_DIMENSIONS"] = ["time", "level", "latitude", "longitude"]
rng = np.random.default_rng(1)
lat = np.linspace(90, -90, 721)[:, None]; lon = np.arange(1440)[None] / 4
for t in range(n):
    f = np.empty((37, 721, 1440), np.float32)
    for l in range(37):
        base = 300 - 2 * l - 40 * (np.abs(lat) / 90) ** 1.5 + 5 * np.sin(np.radians(lon * 3 + t * 7 + l))
        f[l] = base + rng.normal(0, 0.3, (721, 1440))
    a[t] = f
    print(t, flush=True)
