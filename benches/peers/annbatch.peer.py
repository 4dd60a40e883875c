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
from obstore.store import S3Store
from soma_reading import write_h5ad
from zarr.storage import ObjectStore

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
    over_link=True,
)


def convert(job: argparse.Namespace) -> None:
    h5ad = Path(job.copy) / "experiment.h5ad"
    write_h5ad(job, h5ad)
    collection = DatasetCollection(Path(job.copy) / "collection.zarr", mode="a")
    collection.add_adatas([h5ad], shuffle=True, rng=np.random.default_rng(0))
    h5ad.unlink()


def open_collection(job: argparse.Namespace) -> DatasetCollection:
    """The collection in the folder of the copy, or over the link through zarr's `ObjectStore`."""
    if job.link is None:
        return DatasetCollection(Path(job.copy) / "collection.zarr", mode="r")
    store = S3Store(
        job.link["bucket"],
        prefix=f"{job.link['prefix']}/collection.zarr",
        endpoint=job.link["endpoint"],
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
    )
    return DatasetCollection(zarr.open_group(ObjectStore(store, read_only=True), mode="r"))


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
    ).use_collection(open_collection(job), load_adata=load)

    def dense(number: int):
        return ({**batch, "X": batch["X"].toarray()} for batch in loader)

    return measuring.Loader(
        epoch=dense if job.form == "dense" else lambda number: loader,
        x=lambda batch: batch["X"],
        joinids=lambda batch: batch["obs"]["soma_joinid"].to_numpy(),
        n_cells=loader.n_obs,
        x_folders=list(Path(job.copy).glob("collection.zarr/*/X")),
        **ran,
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader, convert)
