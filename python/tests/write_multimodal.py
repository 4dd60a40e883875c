"""Writes the cells of `multimodal.py` as a SOMA experiment, as MuData in HDF5 and Zarr, and as a
matrix of 10x Genomics. Run by Python with tiledbsoma, anndata, h5py and zarr.

Usage: write_multimodal.py FOLDER
"""

import sys
from pathlib import Path

import anndata
import h5py
import multimodal
import numpy as np
import pandas as pd
import pyarrow as pa
import tiledbsoma
import zarr
from anndata.io import write_elem
from multimodal import FEATURE_TYPES, N_CELLS, N_GENES, N_PROT_ROWS
from scipy import sparse

CELLS = np.arange(N_CELLS)


def obs_columns():
    """Columns of obs: joinids are the cells."""
    has_atac = multimodal.has("atac", CELLS)
    return {
        "soma_joinid": pa.array(CELLS),
        "kind": pa.array([f"kind {cell % 3}" for cell in CELLS], pa.large_string()),
        "batch": pa.array([f"lane {cell % 2}" for cell in CELLS], pa.large_string()),
        "age": pa.array(CELLS / 4),
        "mito": pa.array((CELLS % 7).astype(np.float32)),
        "size": pa.array(1 + CELLS % 5 / 2),
        "has_prot": pa.array(multimodal.has("prot", CELLS)),
        # Null as well as false means that a cell is not there.
        "has_atac": pa.array([True if there else [None, False][cell % 2]
                              for cell, there in zip(CELLS, has_atac)]),
    }


def write_frame(uri, rows):
    domain = [(0, rows.num_rows - 1)]
    tiledbsoma.DataFrame.create(uri, schema=rows.schema, domain=domain).close()
    with tiledbsoma.open(uri, "w") as frame:
        frame.write(rows)


def write_soma(uri):
    """`rna` has all cells, `prot` those that obs says of its rows, `atac` those that obs says."""
    with tiledbsoma.Experiment.create(uri) as experiment:
        measurements = experiment.add_new_collection("ms")
        for name in N_GENES:
            of_name = measurements.add_new_collection(name, tiledbsoma.Measurement)
            of_name.add_new_collection("X", tiledbsoma.Collection)
    write_frame(f"{uri}/obs", pa.table(obs_columns()))
    with tiledbsoma.open(uri, "w") as experiment:
        experiment.set("obs", tiledbsoma.open(f"{uri}/obs"), use_relative_uri=True)
    for name, n_genes in N_GENES.items():
        place = f"{uri}/ms/{name}"
        var = {"soma_joinid": np.arange(n_genes), "feature_id": multimodal.names(name)}
        write_frame(f"{place}/var", pa.table(var))
        with tiledbsoma.open(place, "w") as measurement:
            measurement.set("var", tiledbsoma.open(f"{place}/var"), use_relative_uri=True)
        values = multimodal.values(name, CELLS)
        if name != "rna":
            values = multimodal.masked(name, CELLS)
        if name == "prot":
            values = values[:N_PROT_ROWS]
        rows, columns = values.nonzero()
        array_uri = f"{place}/X/raw"
        with tiledbsoma.SparseNDArray.create(
            array_uri, type=pa.float32(), shape=values.shape
        ) as array:
            array.write(
                pa.table({
                    "soma_dim_0": pa.array(rows, pa.int64()),
                    "soma_dim_1": pa.array(columns, pa.int64()),
                    "soma_data": pa.array(values[rows, columns]),
                })
            )
        with tiledbsoma.open(f"{place}/X", "w") as members:
            members.set("raw", tiledbsoma.open(array_uri), use_relative_uri=True)


def modality(name):
    """A modality of the MuData, in its own order."""
    cells = multimodal.order(name)
    obs = pd.DataFrame(
        {"total": multimodal.values(name, cells).sum(1), "own": [f"{name} {c}" for c in cells]},
        index=[f"cell{cell}" for cell in cells],
    )
    obs["own"] = pd.Categorical(obs["own"])
    X = sparse.csr_matrix(multimodal.values(name, cells).astype(np.int32))
    var = pd.DataFrame(index=multimodal.names(name))
    twice = sparse.csr_matrix(2 * X.toarray())
    return anndata.AnnData(X, obs=obs, var=var, layers={"twice": twice})


def write_mudata(root, *, has_map=True, axis=0, order=("atac", "rna", "prot")):
    """Writes what mudata 0.3 writes, by its specification."""
    root.attrs.update({
        "encoding-type": "MuData", "encoding-version": "0.1.0", "encoder": "mudata",
        "encoder-version": "0.3.1",
    })
    if axis is not None:
        root.attrs["axis"] = axis
    obs = pd.DataFrame(
        {"kind": pd.Categorical([f"kind {cell % 3}" for cell in CELLS]),
         # A copy of the original, as mudata makes it, hides it.
         "rna:total": np.where(multimodal.has("rna", CELLS), -1.0, np.nan)},
        index=[f"cell{cell}" for cell in CELLS],
    )
    write_elem(root, "obs", obs)
    names = [name for of in N_GENES for name in multimodal.names(of)]
    write_elem(root, "var", pd.DataFrame(index=names))
    group = root.create_group("mod")
    if order is not None:
        group.attrs["mod-order"] = list(order)
    for name in N_GENES:
        write_elem(group, name, modality(name))
    if has_map:
        maps = root.create_group("obsmap")
        for idx, name in enumerate(N_GENES):
            rows = np.zeros(N_CELLS, np.uint32)
            rows[multimodal.order(name)] = 1 + np.arange(len(multimodal.order(name)))
            # A column is one, too.
            write_elem(maps, name, rows[:, None] if idx == 1 else rows)
    for name in ("obsm", "uns"):
        root.create_group(name)


def write_h5mu(path, **options):
    with h5py.File(path, "w", userblock_size=512) as file:
        write_mudata(file, **options)
    with open(path, "br+") as file:
        text = "MuData (format-version=0.1.0;creator=mudata;creator-version=0.3.1)"
        file.write(text.encode("ascii").ljust(512, b"\0"))


def write_10x(path):
    """All cells with all features of all types, in one matrix."""
    values = np.concatenate([multimodal.values(name, CELLS) for name in N_GENES], axis=1)
    matrix = sparse.csr_matrix(values.astype(np.int32))
    # Order within a cell is not promised.
    for row in range(0, N_CELLS, 2):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        matrix.indices[part] = matrix.indices[part][::-1].copy()
        matrix.data[part] = matrix.data[part][::-1].copy()
    names = [name for of in N_GENES for name in multimodal.names(of)]
    types = [FEATURE_TYPES[of] for of in N_GENES for _ in range(N_GENES[of])]
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        group["barcodes"] = np.array([f"cell{cell}" for cell in CELLS], "S")
        group["data"], group["indices"] = matrix.data, matrix.indices.astype(np.int64)
        group["indptr"] = matrix.indptr.astype(np.int64)
        group["shape"] = np.array(matrix.shape[::-1], np.int32)
        features = group.create_group("features")
        features["_all_tag_keys"] = np.array(["genome"], "S")
        features["genome"] = np.array(["GRCh38"] * len(names), "S")
        features["id"] = np.array([f"id {name}" for name in names], "S")
        features["name"] = np.array(names, "S")
        features["feature_type"] = np.array(types, "S")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_soma(str(folder / "experiment"))
    write_h5mu(folder / "cells.h5mu")
    with h5py.File(folder / "without_block.h5mu", "w") as file:
        write_mudata(file, has_map=False, axis=None, order=("rna", "prot", "other"))
    write_h5mu(folder / "features_shared.h5mu", axis=1)
    for version in (2, 3):
        write_mudata(zarr.open_group(folder / f"v{version}.zarr", mode="w", zarr_format=version))
    write_10x(folder / "cells.h5")
    modality("rna").write_h5ad(folder / "rna.h5ad")
    modality("prot").write_h5ad(folder / "prot.h5ad")
    modality("atac").write_zarr(folder / "atac.zarr")
