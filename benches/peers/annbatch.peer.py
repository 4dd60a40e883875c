"""annbatch's `Loader` on a collection that its own `DatasetCollection` wrote and shuffled, and on
plain Zarr that anndata wrote.

It uses the Rust codecs (zarrs) that annbatch recommends for a local disk; over a link zarr's own,
which have more requests under way. Only the requested obs columns are loaded, as its documentation
advises. Sparse batches are annbatch's own scipy CSR matrices; dense ones are scipy's `toarray` of
those, since annbatch has no dense batches on a CPU.
"""

import argparse
from pathlib import Path

import measuring
import numpy as np
import zarr
from annbatch import DatasetCollection, Loader
from obstore.store import S3Store
from soma_reading import open_zarr, write_h5ad, write_zarr
from zarr.storage import ObjectStore

DOCUMENTED = {"chunk_rows": 512, "chunks_per_block": 32}
COLLECTION, PLAIN = "collection.zarr", "plain.zarr"
PEER = measuring.Peer(
    packages=["annbatch", "zarrs", "zarr", "anndata", "scipy", "numpy"],
    variants=[
        measuring.Variant("ours", "chunks and blocks of the work, on its pre-shuffled copy", anndata=COLLECTION),
        measuring.Variant(
            "documented", "its defaults, 32 chunks of 512 rows, on its pre-shuffled copy", takes_blocks=False, anndata=COLLECTION
        ),
        measuring.Variant("plain", "chunks and blocks of the work, on Zarr as anndata writes it", anndata=PLAIN),
    ],
    gene_subsets=False,
    conversion="sharded Zarr by DatasetCollection.add_adatas, shuffled, its defaults; and by AnnData.write_zarr",
    over_link=True,
)


def convert(job: argparse.Namespace) -> None:
    h5ad = Path(job.copy) / "experiment.h5ad"
    write_h5ad(job, h5ad)
    collection = DatasetCollection(Path(job.copy) / COLLECTION, mode="a")
    collection.add_adatas([h5ad], shuffle=True, rng=np.random.default_rng(0))
    write_zarr(h5ad, Path(job.copy) / PLAIN)
    h5ad.unlink()


def open_group(job: argparse.Namespace, name: str) -> zarr.Group:
    """A group in the folder of the copy, or over the link through zarr's `ObjectStore`."""
    if job.link is None:
        return zarr.open_group(Path(job.copy) / name, mode="r")
    store = S3Store(
        job.link["bucket"],
        prefix=f"{job.link['prefix']}/{name}",
        endpoint=job.link["endpoint"],
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
    )
    return zarr.open_group(ObjectStore(store, read_only=True), mode="r")


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    if job.link is None:
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    columns = list(dict.fromkeys(["soma_joinid", *job.obs_column]))
    ran = {"chunk_rows": job.chunk_rows, "chunks_per_block": job.chunks_per_block}
    ran = DOCUMENTED if job.variant == "documented" else ran
    loader = Loader(
        chunk_size=ran["chunk_rows"],
        preload_nchunks=ran["chunks_per_block"],
        batch_size=job.batch_rows,
        shuffle=True,
        rng=np.random.default_rng(job.seed),
    )
    if job.variant == "plain":
        loader = loader.add_adatas([open_zarr(open_group(job, PLAIN), columns)])
        x_folders = [Path(job.copy) / PLAIN / "X"]
    else:
        collection = DatasetCollection(open_group(job, COLLECTION))
        loader = loader.use_collection(collection, load_adata=lambda group: open_zarr(group, columns))
        x_folders = list(Path(job.copy).glob(f"{COLLECTION}/*/X"))

    def dense(number: int):
        return ({**batch, "X": batch["X"].toarray()} for batch in loader)

    return measuring.Loader(
        epoch=dense if job.form == "dense" else lambda number: loader,
        x=lambda batch: batch["X"],
        joinids=lambda batch: batch["obs"]["soma_joinid"].to_numpy(),
        n_cells=loader.n_obs,
        x_folders=x_folders,
        **ran,
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader, convert)
