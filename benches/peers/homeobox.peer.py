"""Homeobox's `UnimodalHoxIterableDataset` on an atlas that its own ingestion wrote.

The atlas has obs in LanceDB and the counts in one sharded Zarr group. The dataset is iterated
without a DataLoader, as Homeobox's documentation shows: its own threads read blocks ahead. A block
is a random part of all cells, so there are no chunks of neighbouring cells. Sparse batches are its
`SparseBatch`, numpy arrays of CSR with counts as u32; dense ones are scipy's `toarray` of those in
f32, since Homeobox has no dense batches of sparse data.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import homeobox as hox
import measuring
import numpy as np
import pandas as pd
import polars as pl
import pydantic
import scipy.sparse as sp
from homeobox.ingestion import ingest_dataset
from obstore.store import S3Store
from soma_reading import Matrix

DOCUMENTED_BLOCK_ROWS = 65_536
PREFETCH = 2
PEER = measuring.Peer(
    packages=["homeobox", "lancedb", "zarr", "obstore", "polars", "scipy", "numpy"],
    variants=[
        measuring.Variant("ours", "blocks of as many random rows as the work's, 2 of them in flight"),
        measuring.Variant("documented", f"its defaults, blocks of {DOCUMENTED_BLOCK_ROWS} random rows, 2 in flight", takes_blocks=False),
    ],
    conversion="atlas of one sharded Zarr group and LanceDB by ingest_dataset, its defaults, optimized",
    over_link=True,
)
FIELD = "gene_expression"
LAYER = "counts"


class Gene(hox.FeatureBaseSchema):
    """A gene of the atlas."""


class Counts:
    """X as Homeobox's ingestion reads it, in pieces."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix

    def iter_layer_batches(self, batch_size: int, layer_mapping: dict[str, str]) -> Iterator[dict[str, sp.csr_matrix]]:
        for piece in self.matrix.pieces():
            if len(piece.data) and not (0 <= piece.data.min() and piece.data.max() < 2**32):
                raise ValueError(f"{FIELD} of Homeobox holds counts as u32, and X has a value outside of them")
            counts = piece.data.astype(np.uint32)
            if not np.array_equal(counts, piece.data):
                raise ValueError(f"{FIELD} of Homeobox holds counts as u32, and X has a value that is not whole")
            yield {LAYER: sp.csr_matrix((counts, piece.indices, piece.indptr), shape=piece.shape)}


def convert(job: argparse.Namespace) -> None:
    matrix = Matrix(job)
    obs = matrix.obs.assign(**{name: column.astype(str) for name, column in matrix.obs.items() if kind(column) is str})
    columns = {name: (kind(column), ...) for name, column in obs.items()}
    pointer = (hox.SparseZarrPointer | None, hox.PointerField.declare(feature_space=FIELD))
    cell = pydantic.create_model("Cell", __base__=hox.HoxBaseSchema, **columns, **{FIELD: pointer})
    # Homeobox orders the columns of batches by this text.
    genes = pd.DataFrame({"uid": [f"{joinid:019}" for joinid in matrix.genes]})
    atlas = hox.create_or_open_atlas(
        atlas_path=str(Path(job.copy) / "atlas"),
        obs_schemas={"cells": cell},
        dataset_table_name="datasets",
        dataset_schema=hox.DatasetSchema,
        registry_schemas={FIELD: Gene},
    )
    atlas.register_features(FIELD, pl.from_pandas(genes))
    ingest_dataset(
        atlas,
        Counts(matrix),
        obs_df=obs,
        field_name=FIELD,
        layer_mapping={"X": LAYER},
        dataset_record=hox.DatasetSchema(zarr_group="experiment", feature_space=FIELD),
        n_vars=len(genes),
        var_df=genes,
    )
    atlas.optimize()
    atlas.snapshot()


def kind(column: pd.Series) -> type:
    """The type of an obs column in the atlas; other types become text."""
    kinds = {"b": bool, "i": int, "u": int, "f": float}
    return kinds.get(getattr(column.dtype, "kind", "O"), str)


def open_atlas(job: argparse.Namespace) -> hox.RaggedAtlas:
    """The atlas in the folder of the copy, or over the link.

    obstore and LanceDB name the setting that permits plain HTTP differently, so the store of the
    arrays is opened here.
    """
    if job.link is None:
        return hox.RaggedAtlas.checkout_latest(str(Path(job.copy) / "atlas"))
    bucket, prefix = job.link["bucket"], f"{job.link['prefix']}/atlas"
    settings = {"endpoint": job.link["endpoint"], "region": "us-east-1", "skip_signature": True}
    arrays = S3Store(bucket, prefix=f"{prefix}/zarr_store", client_options={"allow_http": True}, **settings)
    return hox.RaggedAtlas.checkout_latest(f"s3://{bucket}/{prefix}", store=arrays, store_kwargs={**settings, "allow_http": True})


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    block_rows = DOCUMENTED_BLOCK_ROWS if job.variant == "documented" else job.chunk_rows * job.chunks_per_block
    # Homeobox cuts blocks to whole batches.
    block_rows = max(1, block_rows // job.batch_rows) * job.batch_rows
    atlas = open_atlas(job)
    query = atlas.query()
    if job.genes:
        genes = atlas.feature_registry(FIELD)["uid"].sort()
        query = query.features(genes[: job.genes].to_list(), feature_space=FIELD)
    dataset = query.to_unimodal_dataset(
        field_name=FIELD,
        layer_overrides=[LAYER],
        metadata_columns=list(dict.fromkeys(["soma_joinid", *job.obs_column])),
        mode="iterable",
        batch_size=job.batch_rows,
        io_batch_size=block_rows,
        prefetch=PREFETCH,
        shuffle=True,
        seed=job.seed,
    )

    def dense(number: int) -> Iterator[tuple[np.ndarray, Any]]:
        return ((csr(batch).astype(np.float32).toarray(), batch) for batch in dataset)

    is_dense = job.form == "dense"
    return measuring.Loader(
        epoch=dense if is_dense else lambda number: dataset,
        x=(lambda batch: batch[0]) if is_dense else csr,
        joinids=lambda batch: (batch[1] if is_dense else batch).metadata["soma_joinid"].to_numpy(),
        n_cells=dataset.n_rows,
        rows=None if is_dense else len,
        chunk_rows=1,
        chunks_per_block=block_rows,
        # The rows' places within these arrays are in LanceDB, with obs.
        x_folders=[Path(job.copy) / "atlas" / "zarr_store" / "experiment" / "csr"],
    )


def csr(batch: Any) -> sp.csr_matrix:
    """The arrays of a sparse batch as a scipy matrix."""
    arrays = (batch.layers[LAYER], batch.indices, batch.offsets)
    return sp.csr_matrix(arrays, shape=(len(batch), batch.n_features))


if __name__ == "__main__":
    measuring.main(PEER, open_loader, convert)
