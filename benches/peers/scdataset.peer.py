"""scDataset's `scDataset` with `BlockShuffling` on an h5ad file and on Zarr that anndata wrote, read
through torch's `DataLoader`.

anndata opens the file in backed mode, as scDataset's documentation shows. A fetch returns a scipy
CSR matrix with the obs columns, and dense batches are scipy's `toarray` of a batch. With
scDataset's `adata_to_mindex` a whole fetch would be dense in memory.
"""

import argparse
from pathlib import Path
from typing import Any

import anndata
import measuring
import numpy as np
import zarr
from scdataset import BlockShuffling, scDataset
from soma_reading import open_zarr, write_h5ad, write_zarr
from torch.utils.data import DataLoader

FETCH_ROWS = 16_384
H5AD, ZARR = "experiment.h5ad", "plain.zarr"
PEER = measuring.Peer(
    packages=["scdataset", "anndata", "h5py", "zarr", "torch", "scipy", "numpy"],
    variants=[
        measuring.Variant("ours", "blocks of as many rows as the work's chunks, a fetch of as many as its blocks", anndata=H5AD),
        measuring.Variant("documented", f"blocks of 16 rows, fetches of {FETCH_ROWS}, no workers", takes_blocks=False, anndata=H5AD),
        measuring.Variant("zarr", "as the first, on Zarr as anndata writes it", anndata=ZARR),
    ],
    gene_subsets=False,
    conversion="h5ad, CSR, not compressed; and by AnnData.write_zarr",
)


def convert(job: argparse.Namespace) -> None:
    write_h5ad(job, Path(job.copy) / H5AD)
    write_zarr(Path(job.copy) / H5AD, Path(job.copy) / ZARR)


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    columns = list(dict.fromkeys(["soma_joinid", *job.obs_column]))
    if job.variant == "zarr":
        data = open_zarr(zarr.open_group(Path(job.copy) / ZARR, mode="r"), columns)
    else:
        data = anndata.read_h5ad(Path(job.copy) / H5AD, backed="r")
    chunk_rows, fetch_rows = job.chunk_rows, job.chunk_rows * job.chunks_per_block
    if job.variant == "documented":
        chunk_rows, fetch_rows = 16, FETCH_ROWS
    fetch_factor = max(1, fetch_rows // job.batch_rows)

    def fetch(source: anndata.AnnData, indices: np.ndarray) -> dict[str, Any]:
        obs = source.obs.iloc[indices]
        return {"X": source.X[indices], **{name: obs[name].to_numpy() for name in columns}}

    def cut(fetched: dict[str, Any], indices: np.ndarray) -> dict[str, Any]:
        batch = {name: values[indices] for name, values in fetched.items()}
        return {**batch, "X": batch["X"].toarray()} if job.form == "dense" else batch

    dataset = scDataset(
        data,
        BlockShuffling(block_size=chunk_rows),
        batch_size=job.batch_rows,
        fetch_factor=fetch_factor,
        fetch_callback=fetch,
        batch_callback=cut,
        seed=job.seed,
    )
    # No conversion: torch's own does not support scipy's sparse matrices.
    batches = DataLoader(dataset, batch_size=None, num_workers=0, collate_fn=lambda batch: batch)
    return measuring.Loader(
        epoch=lambda number: batches,
        x=lambda batch: batch["X"],
        joinids=lambda batch: batch["soma_joinid"],
        n_cells=data.n_obs,
        chunk_rows=chunk_rows,
        chunks_per_block=fetch_factor * job.batch_rows // chunk_rows,
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader, convert)
