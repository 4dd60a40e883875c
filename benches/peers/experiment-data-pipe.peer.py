"""The Census's `ExperimentDataPipe`, read through its `experiment_dataloader`.

As in its tutorial, read-ahead is on, and there are no worker processes. Its documented settings are
2,000 chunks of 64 rows. Batches are torch tensors; sparse ones are COO.
"""

import argparse
from typing import Any

import measuring
import numpy as np
import scipy.sparse as sp
import tiledbsoma
from cellxgene_census.experimental.ml import ExperimentDataPipe, experiment_dataloader

DOCUMENTED = {"chunk_rows": 64, "chunks_per_block": 2000}
PEER = measuring.Peer(
    packages=["cellxgene-census", "torchdata", "tiledbsoma", "torch", "numpy"],
    variants=[
        measuring.Variant("ours", "chunks and blocks of the work; sparse batches are COO"),
        measuring.Variant("documented", "2,000 chunks of 64 rows a block; sparse batches are COO", takes_blocks=False),
    ],
    over_link=True,
)


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    context = tiledbsoma.SOMATileDBContext(tiledb_config=job.config)
    experiment = tiledbsoma.Experiment.open(job.uri, context=context)
    genes = (slice(0, job.genes - 1),) if job.genes else ()
    ran = {"chunk_rows": job.chunk_rows, "chunks_per_block": job.chunks_per_block}
    ran = DOCUMENTED if job.variant == "documented" else ran
    pipe = ExperimentDataPipe(
        experiment,
        job.measurement,
        job.layer,
        var_query=tiledbsoma.AxisQuery(coords=genes),
        obs_column_names=["soma_joinid", *job.obs_column],
        batch_size=job.batch_rows,
        shuffle=True,
        seed=job.seed,
        return_sparse_X=job.form == "csr",
        soma_chunk_size=ran["chunk_rows"],
        shuffle_chunk_count=ran["chunks_per_block"],
    )
    batches = experiment_dataloader(pipe)

    def x(batch: Any) -> Any:
        if job.form == "dense":
            return batch[0].numpy()
        rows, columns = batch[0]._indices().numpy()
        return sp.csr_matrix((batch[0]._values().numpy(), (rows, columns)), shape=tuple(batch[0].shape))

    return measuring.Loader(
        epoch=lambda number: batches,
        x=x,
        joinids=lambda batch: np.asarray(batch[1][:, 0]),
        n_cells=pipe.shape[0],
        rows=lambda batch: batch[0].shape[0],
        **ran,
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader)
