"""tiledbsoma's own reads, without a loader above them.

The chunks come in a shuffled order; one read of X by joinids gets a block of them, whose rows are
permuted and cut into batches of scipy CSR. Nothing is read ahead; tiledbsoma has its default
buffers of 1 GiB a column.
"""

import argparse
from collections.abc import Iterator

import measuring
import numpy as np
import scipy.sparse as sp
from soma_reading import Matrix

PEER = measuring.Peer(
    packages=["tiledbsoma", "scipy", "pyarrow", "numpy"],
    variants=[measuring.Variant("ours", "chunks and blocks of the work", forms=("csr",))],
    over_link=True,
)


def open_loader(job: argparse.Namespace) -> measuring.Loader:
    matrix = Matrix(job)

    def epoch(number: int) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
        rng = np.random.default_rng([job.seed, number])
        chunks = np.split(matrix.joinids, np.arange(job.chunk_rows, len(matrix.joinids), job.chunk_rows))
        order = rng.permutation(len(chunks))
        rest: tuple[sp.csr_matrix, np.ndarray] | None = None
        for start in range(0, len(order), job.chunks_per_block):
            joinids = np.sort(np.concatenate([chunks[idx] for idx in order[start : start + job.chunks_per_block]]))
            shuffled = rng.permutation(len(joinids))
            x, cells = matrix.rows(joinids)[shuffled], joinids[shuffled]
            if rest is not None:
                x, cells = sp.vstack([rest[0], x], format="csr"), np.concatenate([rest[1], cells])
            whole = len(cells) - len(cells) % job.batch_rows
            for at in range(0, whole, job.batch_rows):
                yield x[at : at + job.batch_rows], cells[at : at + job.batch_rows]
            rest = (x[whole:], cells[whole:]) if whole < len(cells) else None
        if rest is not None:
            yield rest

    return measuring.Loader(
        epoch=epoch, x=lambda batch: batch[0], joinids=lambda batch: batch[1], n_cells=len(matrix.joinids)
    )


if __name__ == "__main__":
    measuring.main(PEER, open_loader)
