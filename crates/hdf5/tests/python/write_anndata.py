"""Writes AnnData of which parts are not read into a folder: `write_anndata.py FOLDER`."""

import sys
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd

folder = Path(sys.argv[1])


def data():
    names = [f"cell {n}" for n in range(30)]
    obs = pd.DataFrame({"kind": pd.Categorical(["a", "b", "b"] * 10), "count": np.arange(30)}, index=names)
    values = np.arange(120, dtype=np.float32).reshape(30, 4)
    uns = {"title": "text", "colors": np.array(["red", "blue"], object), "number": 3}
    return anndata.AnnData(values, obs=obs, uns=uns)


def replace(file, path, make):
    old = file[path]
    values, attributes = old[()], dict(old.attrs)
    del file[path]
    new = make(path, values)
    for name, value in attributes.items():
        new.attrs[name] = value


data().write_h5ad(folder / "lzf.h5ad", compression="lzf")

data().write_h5ad(folder / "external.h5ad")
with h5py.File(folder / "external.h5ad", "a") as file:

    def external(path, values):
        raw = folder / "x.bin"
        raw.write_bytes(values.tobytes())
        return file.create_dataset(path, values.shape, values.dtype, external=[(str(raw), 0, values.nbytes)])

    replace(file, "X", external)

data().write_h5ad(folder / "uns.h5ad")
with h5py.File(folder / "uns.h5ad", "a") as file:
    uns = file["uns"]
    uns["outside"] = h5py.ExternalLink("other.h5", "/x")
    uns["nowhere"] = h5py.SoftLink("/absent")
    uns["circle"] = file["/"]
    uns["type"] = np.dtype("i4")
    uns["compound"] = np.zeros(2, [("a", "i4"), ("b", "S3")])
    uns["latin"] = np.bytes_(b"w\xf6rd")
    layout = h5py.VirtualLayout((30, 4), "f4")
    layout[:] = h5py.VirtualSource(file["X"])
    file.create_virtual_dataset("uns/virtual", layout)

data().write_h5ad(folder / "column.h5ad")
with h5py.File(folder / "column.h5ad", "a") as file:
    del file["obs/count"]
    file["obs/count"] = np.zeros(30, [("a", "i4"), ("b", "S3")])
    file["obs/count"].attrs["encoding-type"] = "array"

data().write_h5ad(folder / "uns_link.h5ad")
with h5py.File(folder / "uns_link.h5ad", "a") as file:
    del file["uns"]
    file["uns"] = h5py.ExternalLink("other.h5", "/x")

data().write_h5ad(folder / "committed.h5ad")
with h5py.File(folder / "committed.h5ad", "a") as file:
    file["text"] = h5py.string_dtype()

    def commit(name, found):
        for attribute, value in found.attrs.items():
            if isinstance(value, str):
                found.attrs.create(attribute, value, dtype=file["text"])

    commit("/", file)
    file.visititems(commit)

many = data()
for n in range(3000):
    many.uns[f"{n:05} {'n' * 200}"] = n
many.write_h5ad(folder / "many.h5ad")
# Zeros, of which deflate makes a thousandth.
with h5py.File(folder / "zeros.h5", "w") as file:
    file.create_dataset("X", data=np.zeros((4000, 2000), "f4"), chunks=(50, 2000), compression="gzip", compression_opts=9)
    file.create_dataset("lzf", data=np.zeros((4000, 2000), "f4"), chunks=(50, 2000), compression="lzf")
# Groups that have two links each to the next one: 2^30 paths.
with h5py.File(folder / "paths.h5", "w") as file:
    group = file["/"]
    for _ in range(30):
        below = group.create_group("a")
        group["b"] = below
        group = below
print("{}")
