"""somafeed's own Python package: `ExperimentDataset`, iterated without a DataLoader.

Its documentation advises no worker processes, since threads of the process read and decode. Batches
are what a user of TileDB-SOMA-ML gets: numpy arrays or scipy CSR matrices, with obs as a pandas
frame.
"""

import argparse
from collections.abc import Iterable
from typing import Any

import measuring
import numpy as np
from somafeed import ExperimentDataset

PEER = measuring.Peer(packages=["somafeed", "scipy", "pandas", "numpy"], over_link=True)


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    dataset = ExperimentDataset(
        uri=job.uri,
        config=job.config,
        measurement_name=job.measurement,
        layer_name=job.layer,
        var_joinids=np.arange(job.genes) if job.genes else None,
        obs_column_names=["soma_joinid", *job.obs_column],
        batch_size=job.batch_rows,
        io_batch_size=job.chunk_rows * job.chunks_per_block,
        shuffle=True,
        shuffle_chunk_size=job.chunk_rows,
        seed=job.seed,
        return_sparse_X=job.form == "csr",
    )

    def epoch(number: int) -> Iterable[Any]:
        dataset.set_epoch(number)
        return dataset

    return measuring.Loader(
        epoch=epoch,
        x=lambda batch: batch[0],
        joinids=lambda batch: batch[1]["soma_joinid"].to_numpy(),
        n_cells=dataset.shape[0],
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader)
