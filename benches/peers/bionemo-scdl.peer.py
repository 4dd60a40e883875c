"""BioNeMo-SCDL's memory map, read row by row through torch's `DataLoader(shuffle=True)`.

Its documentation shows this use: every row of an epoch is drawn independently. Its own
`collate_sparse_matrix_batch` loses the number of genes, so the batch's tensors are assembled here
in the same way, with all columns. It has neither chunks nor blocks, so there is only one way to
measure it.
"""

import argparse
from pathlib import Path
from typing import Any

import anndata
import measuring
import numpy as np
import scipy.sparse as sp
import torch
from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset
from soma_reading import write_h5ad
from torch.utils.data import DataLoader, Dataset

PEER = measuring.Peer(
    packages=["bionemo-scdl", "torch", "anndata", "numpy"],
    variants=[measuring.Variant("documented", "single rows in random order, no workers", takes_blocks=False)],
    gene_subsets=False,
    conversion="memory map by SingleCellMemMapDataset, f32",
)


class Rows(Dataset):
    """Rows with their index, which identifies the cell."""

    def __init__(self, rows: SingleCellMemMapDataset) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
        return index, self.rows.get_row(index)[0]


def convert(job: argparse.Namespace) -> None:
    h5ad = Path(job.copy) / "experiment.h5ad"
    write_h5ad(job, h5ad)
    rows = SingleCellMemMapDataset(str(Path(job.copy) / "scdl"), str(h5ad), use_X_not_raw=True)
    rows.save()
    np.save(Path(job.copy) / "joinids.npy", anndata.read_h5ad(h5ad, backed="r").obs["soma_joinid"].to_numpy())
    h5ad.unlink()


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    rows = SingleCellMemMapDataset(str(Path(job.copy) / "scdl"))
    joinids = np.load(Path(job.copy) / "joinids.npy")
    n_genes = max(rows.number_of_variables())

    def collate(batch: list[tuple[int, tuple[np.ndarray, np.ndarray]]]) -> tuple[torch.Tensor, np.ndarray]:
        values = torch.from_numpy(np.concatenate([row[0] for _, row in batch]).astype(np.float32, copy=False))
        columns = torch.from_numpy(np.concatenate([row[1] for _, row in batch]).astype(np.int32))
        starts = torch.from_numpy(np.cumsum([0, *(len(row[0]) for _, row in batch)], dtype=np.int32))
        x = torch.sparse_csr_tensor(starts, columns, values, size=(len(batch), n_genes))
        return x.to_dense() if job.form == "dense" else x, joinids[[index for index, _ in batch]]

    def x(batch: tuple[torch.Tensor, np.ndarray]) -> Any:
        if job.form == "dense":
            return batch[0].numpy()
        parts = (batch[0].values(), batch[0].col_indices(), batch[0].crow_indices())
        return sp.csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(batch[0].shape))

    torch.manual_seed(job.seed)
    batches = DataLoader(Rows(rows), batch_size=job.batch_rows, shuffle=True, collate_fn=collate)
    return measuring.Loader(
        epoch=lambda number: batches,
        x=x,
        joinids=lambda batch: batch[1],
        n_cells=len(joinids),
        rows=lambda batch: batch[0].shape[0],
        chunk_rows=1,
        chunks_per_block=len(joinids),
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader, convert)
