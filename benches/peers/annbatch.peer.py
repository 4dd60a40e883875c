"""annbatch's `Loader` on a collection that its own `DatasetCollection` wrote and shuffled.

It uses the Rust codecs (zarrs) that annbatch recommends for a local disk. Only the requested obs
columns are loaded, as its documentation advises. Sparse batches are annbatch's own scipy CSR
matrices; dense ones are scipy's `toarray` of those, since annbatch has no dense batches on a CPU.
"""

import argparse
from pathlib import Path

import anndata
import measuring
import numpy as np
import zarr
from annbatch import DatasetCollection, Loader
from soma_reading import write_h5ad

zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

DOCUMENTED = {"chunk_rows": 512, "chunks_per_block": 32}
PEER = measuring.Peer(
    packages=["annbatch", "zarrs", "zarr", "anndata", "scipy", "numpy"],
    variants=[
        measuring.Variant("ours", "chunks and blocks of the work, on its pre-shuffled copy"),
        measuring.Variant("documented", "its defaults, 32 chunks of 512 rows, on its pre-shuffled copy", takes_blocks=False),
    ],
    gene_subsets=False,
    conversion="sharded Zarr by DatasetCollection.add_adatas, shuffled, its defaults",
)


def convert(job: argparse.Namespace) -> None:
    h5ad = Path(job.copy) / "experiment.h5ad"
    write_h5ad(job, h5ad)
    collection = DatasetCollection(Path(job.copy) / "collection.zarr", mode="a")
    collection.add_adatas([h5ad], shuffle=True, rng=np.random.default_rng(0))
    h5ad.unlink()


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    columns = list(dict.fromkeys(["soma_joinid", *job.obs_column]))

    def load(group: zarr.Group) -> anndata.AnnData:
        return anndata.AnnData(X=anndata.io.sparse_dataset(group["X"]), obs=anndata.io.read_elem(group["obs"])[columns])

    ran = {"chunk_rows": job.chunk_rows, "chunks_per_block": job.chunks_per_block}
    ran = DOCUMENTED if job.variant == "documented" else ran
    loader = Loader(
        chunk_size=ran["chunk_rows"],
        preload_nchunks=ran["chunks_per_block"],
        batch_size=job.batch_rows,
        shuffle=True,
        rng=np.random.default_rng(job.seed),
    ).use_collection(DatasetCollection(Path(job.copy) / "collection.zarr", mode="r"), load_adata=load)

    def dense(number: int):
        return ({**batch, "X": batch["X"].toarray()} for batch in loader)

    return measuring.Loader(
        epoch=dense if job.form == "dense" else lambda number: loader,
        x=lambda batch: batch["X"],
        joinids=lambda batch: batch["obs"]["soma_joinid"].to_numpy(),
        n_cells=loader.n_obs,
        **ran,
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader, convert)
