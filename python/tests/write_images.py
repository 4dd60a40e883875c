"""Writes images in all stored forms, and the same arrays for the tests.

Usage: write_images.py FOLDER N_IMAGES HEIGHT WIDTH CHANNELS SEED
"""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import zarr
from numcodecs import Blosc

folder = Path(sys.argv[1])
n, height, width, channels, seed = map(int, sys.argv[2:])
values = np.random.default_rng(seed)
CODECS = ["zstd", "lz4", "blosclz", "zlib"]


def compress(array):
    codec = Blosc(CODECS[values.integers(4)], int(values.integers(10)), int(values.integers(3)))
    return codec.encode(np.ascontiguousarray(array))


def write(path, array):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(pickle.dumps((array.shape, array.dtype)) + compress(array))


def write_several(path, arrays):
    path.parent.mkdir(exist_ok=True, parents=True)
    buffers = {name: compress(array) for name, array in arrays.items()}
    meta = {name: (array.shape, array.dtype, len(buffers[name])) for name, array in arrays.items()}
    path.write_bytes(pickle.dumps(meta) + b"".join(buffers.values()))


names = [f"P{i:03}" for i in range(n)]
truth = {
    "features": values.normal(size=(n, height, width, channels)).astype(np.float16).astype(np.float32),
    "labels": values.integers(0, 5, (n, height, width)).astype(np.uint8),
    "valid_pixels": values.random((n, height, width)) < 0.5,
    "spectrum": values.normal(size=(n, 7)),
}
(folder / "dat").mkdir(parents=True)
for i, name in enumerate(names):
    cube = truth["features"][i]
    stored = np.flip(np.swapaxes(cube, 0, 1), axis=1).astype(">f4")
    header = np.array([width, height, channels], ">i4")
    (folder / f"dat/{name}_SpecCube.dat").write_bytes(header.tobytes() + stored.tobytes())
    write(folder / f"raw32/{name}.blosc", cube)
    write(folder / f"raw16/{name}.blosc", cube.astype(np.float16))
    masks = {key: truth[key][i] for key in ("labels", "valid_pixels")}
    write_several(folder / f"segmentations/{name}.blosc", masks)
    write(folder / f"spectra/{name}.blosc", truth["spectrum"][i])
root = zarr.open_group(str(folder / "cubes.zarr"), mode="w", zarr_format=3)
for key, array in truth.items():
    array = array.astype(np.float16) if key == "features" else array
    root.create_array(key, shape=array.shape, chunks=(1, *array.shape[1:]), dtype=array.dtype)[:] = array
images = [
    {"name": name, "domain": f"camera{i % 2}", "subject": f"pig{i // 4}"}
    for i, name in enumerate(names)
]
shape = [height, width, channels]
listed = {"version": 1, "shape": shape, "n_classes": 2, "classes": ["skin", "liver"], "images": images}
(folder / "images.json").write_text(json.dumps(listed))
np.savez(folder / "truth.npz", **truth)
