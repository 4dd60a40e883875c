"""tiledbsoma's four ways of reading rows of X in chunks, for `cargo xtask read-chunks`.

It reports in the events of `benches/peers/measuring.py`, with the answer

    {"Answer": {...}}

The address of the experiment and TileDB's settings come on stdin, as for `measuring`. Times are
seconds of reading, without opening and without the counting afterwards; memory is in bytes.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))

import measuring  # noqa: E402
import tiledbsoma  # noqa: E402
from measuring import SLICE_ROWS, Tally, Values  # noqa: E402

# Values that are counted at a time, so that counting takes next to no memory beside the chunk.
SLICE = 1 << 16


def main() -> None:
    job = arguments()
    try:
        measuring.print_event({"Answer": run(job)})
        measuring.print_event("Done")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        measuring.print_event({"Failed": {"message": f"{type(error).__name__}: {first}"}})
        sys.exit(1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=list(WAYS))
    parser.add_argument("--measurement", default="RNA")
    parser.add_argument("--layer", default="raw")
    parser.add_argument("--joinids", required=True, help="file with the cells to read, in order, int64")
    parser.add_argument("--chunk-rows", type=int, required=True, help="cells per read")
    parser.add_argument("--genes", type=int, required=True, help="number of genes, from the first on")
    job = parser.parse_args()
    job.uri, job.config, _ = measuring.data_from_stdin(parser)
    return job


def run(job: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()
    context = tiledbsoma.SOMATileDBContext(tiledb_config=job.config)
    # Kept, since X is closed with the experiment.
    experiment = tiledbsoma.Experiment.open(job.uri, context=context)
    x = experiment.ms[job.measurement].X[job.layer]
    open_secs = time.perf_counter() - started
    start_mem_bytes = measuring.status_bytes("VmRSS:")
    read, values = WAYS[job.way]
    order = np.memmap(job.joinids, dtype="<i8", mode="r")
    tally, read_secs, cpu_secs, n_cells = Tally(), 0.0, 0.0, 0
    for start in range(0, len(order), job.chunk_rows):
        joinids = np.array(order[start : start + job.chunk_rows])
        clock, cpu = time.perf_counter(), time.process_time()
        found = read(x, joinids, job.genes)
        read_secs += time.perf_counter() - clock
        cpu_secs += time.process_time() - cpu
        for piece in values(found, joinids):
            tally.add(*piece)
        # So that its memory is free before the next is read.
        del found
        n_cells += len(joinids)
        measuring.print_event({"Progress": {"n_rows": n_cells, "of_rows": len(order)}})
    packages = {name: version(name) for name in ["tiledbsoma", "pyarrow", "scipy", "numpy"]}
    return {
        "versions": packages | {"Python": platform.python_version()},
        "open_secs": open_secs,
        "read_secs": read_secs,
        "cpu_secs": cpu_secs,
        "start_mem_bytes": start_mem_bytes,
        "max_mem": measuring.status_bytes("VmHWM:"),
        "n_cells": n_cells,
        "tally": tally.as_json(),
    }


def coordinates(x: Any, joinids: np.ndarray, genes: int) -> Any:
    return x.read((joinids, slice(0, genes - 1)))


def blockwise(x: Any, joinids: np.ndarray, genes: int) -> Any:
    """The chunk as one block, with rows numbered in the order of `joinids`; genes keep theirs.
    With a single block tiledbsoma's read-ahead does nothing."""
    return coordinates(x, joinids, genes).blockwise(axis=0, size=len(joinids), reindex_disable_on_axis=[1])


def read_table(x: Any, joinids: np.ndarray, genes: int) -> list[Any]:
    return [coordinates(x, joinids, genes).tables().concat()]


def read_blockwise_table(x: Any, joinids: np.ndarray, genes: int) -> list[Any]:
    return [table for table, _ in blockwise(x, joinids, genes).tables()]


def read_coo(x: Any, joinids: np.ndarray, genes: int) -> list[Any]:
    return [coo for coo, _ in blockwise(x, joinids, genes).scipy(compress=False)]


def read_csr(x: Any, joinids: np.ndarray, genes: int) -> list[Any]:
    return [csr for csr, _ in blockwise(x, joinids, genes).scipy(compress=True)]


def of_tables(tables: list[Any], joinids: np.ndarray | None) -> Iterator[Values]:
    """With `joinids`, the first column of the tables is an index into them."""
    for table in tables:
        for batch in table.to_batches(max_chunksize=SLICE):
            rows, genes, values = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            yield (rows if joinids is None else joinids[rows]), genes, values


def of_coo(matrices: list[Any], joinids: np.ndarray) -> Iterator[Values]:
    for coo in matrices:
        for start in range(0, coo.nnz, SLICE):
            part = slice(start, start + SLICE)
            yield joinids[coo.row[part]], coo.col[part], coo.data[part]


def of_csr(matrices: list[Any], joinids: np.ndarray) -> Iterator[Values]:
    for csr in matrices:
        for start in range(0, csr.shape[0], SLICE_ROWS):
            offsets = csr.indptr[start : start + SLICE_ROWS + 1]
            part = slice(offsets[0], offsets[-1])
            cells = np.repeat(joinids[start : start + SLICE_ROWS], np.diff(offsets))
            yield cells, csr.indices[part], csr.data[part]


WAYS: dict[str, tuple[Callable[..., list[Any]], Callable[..., Iterator[Values]]]] = {
    "table": (read_table, lambda tables, _: of_tables(tables, None)),
    "blockwise-table": (read_blockwise_table, of_tables),
    "coo": (read_coo, of_coo),
    "csr": (read_csr, of_csr),
}


if __name__ == "__main__":
    main()
