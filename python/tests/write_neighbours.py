"""Writes cells with graphs of obsp as AnnData in HDF5 and Zarr, as MuData and as a SOMA experiment,
and what anndata reads of the graphs. Run by Python with tiledbsoma, anndata, h5py and zarr.

Usage: write_neighbours.py FOLDER
"""

import sys
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import tiledbsoma.io
import zarr
from anndata.io import write_elem
from scipy import sparse

N_CELLS, N_GENES = 90, 7
WITHOUT = (11, 57)
"""Cells without any neighbour."""


def graphs(n_cells, rng):
    """Distances and connectivities within two slides, on few places, so that some cells are at one
    place and many distances are equal. Distances lack the zeros, as scanpy's do."""
    places = rng.integers(0, 6, (n_cells, 2))
    slide = np.arange(n_cells) % 2
    squares = ((places[:, None] - places[None]) ** 2).sum(-1)
    is_linked = (slide[:, None] == slide[None]) & (rng.random((n_cells, n_cells)) < 0.15)
    is_linked |= is_linked.T
    is_linked[list(WITHOUT)] = False
    rows, columns = np.nonzero(is_linked & (squares > 0))
    distances = unsorted(rows, columns, np.sqrt(squares[rows, columns]), n_cells, rng)
    # The cell itself is in it.
    rows, columns = np.nonzero(is_linked | np.eye(n_cells, dtype=bool))
    weights = np.exp(-squares[rows, columns]).astype(np.float32)
    return distances, unsorted(rows, columns, weights, n_cells, rng)


def unsorted(rows, columns, values, n_cells, rng):
    """A matrix in CSR whose rows have no order."""
    order = np.lexsort((rng.random(len(rows)), rows))
    indptr = np.searchsorted(rows, np.arange(n_cells + 1))
    return sparse.csr_matrix((values[order], columns[order], indptr), shape=(n_cells, n_cells))


def cells(n_cells, seed):
    """Cells with values that are all different."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n_cells, N_GENES, 0.4, format="csr", random_state=seed)
    X.data = (1 + np.arange(X.nnz)).astype(np.float32)
    made = anndata.AnnData(
        sparse.csr_matrix(X, dtype=np.float32),
        obs=pd.DataFrame({"slide": [f"s{cell % 2}" for cell in range(n_cells)]},
                         index=[f"cell{cell}" for cell in range(n_cells)]),
        var=pd.DataFrame(index=[f"gene{gene}" for gene in range(N_GENES)]),
    )
    made.obsp["distances"], made.obsp["connectivities"] = graphs(n_cells, rng)
    made.obsp["knn"] = made.obsp["distances"]
    return made


def write_mudata(path, rna):
    """A MuData whose modality `rna` lacks every third cell of `obs` and has the others in another
    order; `prot` has all cells."""
    n_cells = N_CELLS + N_CELLS // 2
    has_rna = np.arange(n_cells) % 3 != 2
    order = np.random.default_rng(5).permutation(np.flatnonzero(has_rna))
    names = np.array([f"cell{cell}" for cell in range(n_cells)])
    rna.obs_names = names[order]
    prot = anndata.AnnData(np.ones((n_cells, 2), np.float32), obs=pd.DataFrame(index=names))
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "MuData", "encoding-version": "0.1.0", "axis": 0})
        write_elem(file, "obs", pd.DataFrame(index=names))
        write_elem(file, "var", pd.DataFrame(index=[*rna.var_names, *prot.var_names]))
        group = file.create_group("mod")
        write_elem(group, "rna", rna)
        write_elem(group, "prot", prot)
        rows = np.zeros(n_cells, np.uint32)
        rows[order] = 1 + np.arange(len(order))
        write_elem(file.create_group("obsmap"), "rna", rows)
        write_elem(file["obsmap"], "prot", 1 + np.arange(n_cells, dtype=np.uint32))
    return order


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    made = cells(N_CELLS, 3)
    assert not made.obsp["distances"].has_sorted_indices
    made.write_h5ad(folder / "cells.h5ad")
    for version in (2, 3):
        write_elem(zarr.open_group(folder / f"v{version}.zarr", mode="w", zarr_format=version), "/", made)
    tiledbsoma.io.from_anndata(str(folder / "experiment"), made, measurement_name="RNA")
    order = write_mudata(folder / "cells.h5mu", cells(N_CELLS, 3))
    # What anndata reads.
    read = anndata.read_h5ad(folder / "cells.h5ad")
    for name, graph in read.obsp.items():
        sparse.save_npz(folder / f"{name}.npz", sparse.csr_matrix(graph))
    np.savez(folder / "cells.npz", X=read.X.toarray(), order=order)
    # A graph of other cells.
    with h5py.File(folder / "cells.h5ad", "r+") as file:
        write_elem(file["obsp"], "short_distances", sparse.csr_matrix((N_CELLS, N_CELLS - 1)))
        other = made.obsp["distances"].copy()
        other.data[:3] = np.nan
        write_elem(file["obsp"], "nan_distances", other)
