"""Reads an experiment in pieces with tiledbsoma, and writes it as h5ad for conversion to peers'
formats.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import measuring
import numpy as np
import pandas as pd
import scipy.sparse as sp
import tiledbsoma

PIECE_ROWS = 16_384


class Matrix:
    """X of an experiment, with cells and genes in the order of their joinids."""

    def __init__(self, job: argparse.Namespace) -> None:
        context = tiledbsoma.SOMATileDBContext(tiledb_config=job.config)
        self.experiment = tiledbsoma.Experiment.open(job.uri, context=context)
        columns = list(dict.fromkeys(["soma_joinid", *job.obs_column]))
        self.obs = self.experiment.obs.read(column_names=columns).concat().to_pandas().sort_values("soma_joinid", ignore_index=True)
        measurement = self.experiment.ms[job.measurement]
        self.genes = np.sort(measurement.var.read(column_names=["soma_joinid"]).concat()["soma_joinid"].to_numpy())
        self.genes = self.genes[: job.genes] if job.genes else self.genes
        self.joinids = self.obs["soma_joinid"].to_numpy()
        self.x = measurement.X[job.layer]

    def rows(self, joinids: np.ndarray, is_range: bool = False) -> sp.csr_matrix:
        """The rows of these joinids, which must ascend, as f32 CSR. With `is_range` they must be
        all cells between the first and the last."""
        cells = slice(int(joinids[0]), int(joinids[-1])) if is_range else joinids
        table = self.x.read((cells, slice(int(self.genes[0]), int(self.genes[-1])))).tables().concat()
        rows = positions(joinids, table["soma_dim_0"].to_numpy())
        columns = positions(self.genes, table["soma_dim_1"].to_numpy())
        values = table["soma_data"].to_numpy().astype(np.float32, copy=False)
        csr = sp.coo_matrix((values, (rows, columns)), shape=(len(joinids), len(self.genes))).tocsr()
        csr.sort_indices()
        return csr

    def pieces(self) -> Iterator[sp.csr_matrix]:
        """All rows in order, `PIECE_ROWS` at a time; prints progress."""
        n_cells, reported = len(self.joinids), 0.0
        for start in range(0, n_cells, PIECE_ROWS):
            yield self.rows(self.joinids[start : start + PIECE_ROWS], is_range=True)
            if measuring.PROGRESS_SECS <= time.perf_counter() - reported:
                measuring.print_event({"Progress": {"n_rows": min(start + PIECE_ROWS, n_cells), "of_rows": n_cells}})
                reported = time.perf_counter()


def positions(ascending: np.ndarray, joinids: np.ndarray) -> np.ndarray:
    """The index of each of `joinids` in `ascending`."""
    if len(ascending) and ascending[-1] - ascending[0] + 1 == len(ascending):
        return (joinids - ascending[0]).astype(np.int32)
    return np.searchsorted(ascending, joinids).astype(np.int32)


def write_h5ad(job: argparse.Namespace, path: Path) -> None:
    """Writes X as uncompressed CSR (f32 values, i32 indices, i64 row pointers), with the job's obs
    columns."""
    from anndata.io import write_elem

    matrix = Matrix(job)
    shape = (len(matrix.joinids), len(matrix.genes))
    with h5py.File(path, "w") as file:
        write_elem(file, "obs", matrix.obs.set_index(matrix.joinids.astype(str)))
        write_elem(file, "var", pd.DataFrame(index=matrix.genes.astype(str)))
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": np.array(shape)})
        growing = {"data": np.float32, "indices": np.int32}
        for name, kind in growing.items():
            group.create_dataset(name, shape=(0,), maxshape=(None,), dtype=kind, chunks=(1 << 18,))
        pointers, nnz = [np.zeros(1, dtype=np.int64)], 0
        for piece in matrix.pieces():
            for name in growing:
                group[name].resize((nnz + piece.nnz,))
                group[name][nnz:] = getattr(piece, name)
            pointers.append(piece.indptr[1:].astype(np.int64) + nnz)
            nnz += piece.nnz
        group.create_dataset("indptr", data=np.concatenate(pointers))
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})


def write_zarr(h5ad: Path, path: Path) -> None:
    """Writes the AnnData of an h5ad as Zarr, as its users do: whole, by `AnnData.write_zarr`."""
    import anndata

    anndata.read_h5ad(h5ad).write_zarr(path)


def open_zarr(group: Any, columns: list[str]) -> Any:
    """The AnnData in a group of Zarr: X where it lies, and some columns of obs."""
    import anndata

    obs = anndata.io.read_elem(group["obs"])[columns]
    return anndata.AnnData(X=anndata.io.sparse_dataset(group["X"]), obs=obs)
