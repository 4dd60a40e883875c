"""TileDB-SOMA-ML's `ExperimentDataset`, read through its `experiment_dataloader`.

As its documentation advises, the data set cuts the batches, read-ahead is on, tiledbsoma has its
default buffers of 1 GiB a column, and there are no worker processes (on two cores they make it
slower). The threads of torch and numba keep their defaults. Batches are taken as numpy arrays or
scipy matrices; converting them to tensors is not measured.
"""

import argparse
from collections.abc import Iterable
from typing import Any

import measuring
import tiledbsoma
from tiledbsoma_ml import ExperimentDataset, experiment_dataloader


PEER = measuring.Peer(packages=["tiledbsoma-ml", "tiledbsoma", "torch", "numba", "numpy"], over_link=True)


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    context = tiledbsoma.SOMATileDBContext(tiledb_config=job.config)
    experiment = tiledbsoma.Experiment.open(job.uri, context=context)
    genes = (slice(0, job.genes - 1),) if job.genes else ()
    query = experiment.axis_query(job.measurement, var_query=tiledbsoma.AxisQuery(coords=genes))
    dataset = ExperimentDataset(
        query,
        layer_name=job.layer,
        obs_column_names=["soma_joinid", *job.obs_column],
        batch_size=job.batch_rows,
        io_batch_size=job.chunk_rows * job.chunks_per_block,
        shuffle=True,
        shuffle_chunk_size=job.chunk_rows,
        seed=job.seed,
        return_sparse_X=job.form == "csr",
    )
    batches = experiment_dataloader(dataset)

    def epoch(number: int) -> Iterable[Any]:
        # It accepts the number, but draws the same order in each epoch.
        dataset.set_epoch(number)
        return batches

    return measuring.Loader(
        epoch=epoch,
        x=lambda batch: batch[0],
        joinids=lambda batch: batch[1]["soma_joinid"].to_numpy(),
        n_cells=len(dataset.query_ids.obs_joinids),
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader)
