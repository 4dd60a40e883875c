"""What every peer's script shares: its command line, the clock, memory and processor time, and the events that it prints.

A script hands `main` a function that opens its loader. One process measures the loader's epochs, or tallies what one delivers; it says
so in events, a line of JSON each, on stdout:

    {"Progress": {"n_rows": 2048, "of_rows": 200000}}      while it runs
    {"PeerEpoch": {...}}                                   what an epoch took (`measure`), a line for each
    {"Delivered": {...}}                                   what an epoch delivered (`tally`)
    {"Failed": {"message": "..."}}                         in place of the last two
    "Done"

Other lines are passed over. Times are seconds, memory is bytes.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

PROGRESS_SECS = 0.2


@dataclass
class Loader:
    """A peer's loader, opened."""

    epoch: Callable[[int], Iterable[Any]]
    """The batches of an epoch, counted from 0: what the peer hands to training, as it hands it over."""
    x: Callable[[Any], Any]
    """The values of a batch, cells x genes: a numpy array or a scipy CSR matrix."""
    joinids: Callable[[Any], np.ndarray]
    """The `soma_joinid` of each row of a batch, int64."""
    n_cells: int
    """Cells of an epoch."""
    versions: dict[str, str]
    """Of the loader and of what it stands on, the loader's first."""


def main(open_loader: Callable[[argparse.Namespace], Loader]) -> None:
    job = arguments()
    try:
        started = time.perf_counter()
        loader = open_loader(job)
        open_secs = time.perf_counter() - started
        if job.task == "tally":
            tell({"Delivered": tally(loader)})
        else:
            for epoch in range(job.epochs):
                measured = measure(loader, epoch, job)
                tell({"PeerEpoch": {"epoch": epoch, "open_secs": open_secs, "versions": loader.versions, **measured}})
        tell("Done")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        tell({"Failed": {"message": f"{type(error).__name__}: {first}"}})
        sys.exit(1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["measure", "tally"])
    parser.add_argument("--uri", required=True, help="the experiment")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of TileDB")
    parser.add_argument("--measurement", default="RNA")
    parser.add_argument("--layer", default="raw")
    parser.add_argument("--genes", type=int, help="take the first so many; all where it is not given")
    parser.add_argument("--obs-column", action="append", default=[], help="comes with each batch, beside soma_joinid")
    parser.add_argument("--form", choices=["dense", "csr"], default="dense")
    parser.add_argument("--batch-rows", type=int, default=1024)
    parser.add_argument("--chunk-rows", type=int, default=64)
    parser.add_argument("--chunks-per-block", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--consumer-millis", type=float, default=0.0, help="how long the consumer sleeps over each batch")
    job = parser.parse_args()
    job.config = dict(setting.split("=", 1) for setting in job.config)
    return job


def tell(event: Any) -> None:
    print(json.dumps(event), flush=True)


def measure(loader: Loader, epoch: int, job: argparse.Namespace) -> dict[str, Any]:
    """Takes the batches of an epoch as training would. It begins when it is asked for."""
    gc.collect()
    start_mem_bytes = status_bytes("VmRSS:")
    start_time, start_cpu = time.time(), os.times()
    samples: list[tuple[float, float, int]] = []
    n_rows, told = 0, time.perf_counter()
    asked = time.perf_counter()
    batches = iter(loader.epoch(epoch))
    while True:
        batch = next(batches, None)
        got = time.perf_counter()
        if batch is None:
            break
        rows = loader.x(batch).shape[0]
        if job.consumer_millis:
            time.sleep(job.consumer_millis / 1000)
        # So that a loader may reuse or free its memory before it is asked for the next.
        del batch
        n_rows += rows
        if PROGRESS_SECS <= got - told:
            tell({"Progress": {"n_rows": n_rows, "of_rows": loader.n_cells}})
            told = got
        now = time.perf_counter()
        samples.append((got - asked, now - got, rows))
        asked = now
    cpu = os.times()
    user = cpu.user + cpu.children_user - start_cpu.user - start_cpu.children_user
    system = cpu.system + cpu.children_system - start_cpu.system - start_cpu.children_system
    return {
        "batches": samples,
        "end_wait_secs": got - asked,
        "start_time": start_time,
        "end_time": time.time(),
        "cpu_user_secs": user,
        "cpu_system_secs": system,
        "start_mem_bytes": start_mem_bytes,
        "max_mem": status_bytes("VmHWM:"),
    }


def status_bytes(entry: str) -> int:
    """An entry of `/proc/self/status`. `VmHWM` is the peak of the process's whole life, as the kernel counts it."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(entry))
    return int(line.split()[1]) * 1024


def tally(loader: Loader) -> dict[str, Any]:
    """What an epoch delivers, as numbers that do not depend on the order: `sweep` has the same and compares them."""
    joinids, total, checksum, factors = [], 0.0, 0, None
    for batch in loader.epoch(0):
        x, cells = loader.x(batch), np.asarray(loader.joinids(batch), dtype=np.int64)
        if factors is None:
            factors = np.stack([np.ones(x.shape[1]), np.arange(1.0, x.shape[1] + 1)], axis=1)
        sums = row_sums(x, factors)
        joinids.append(cells)
        total += float(sums[:, 0].sum())
        checksum = (checksum + int(cell_hash(cells, sums).sum(dtype=np.uint64))) % 2**64
    cells = np.concatenate(joinids) if joinids else np.empty(0, dtype=np.int64)
    return {
        "n_cells": len(cells),
        "n_distinct": len(np.unique(cells)),
        "n_genes": 0 if factors is None else len(factors),
        "sum": total,
        "checksum": checksum,
    }


def row_sums(x: Any, factors: np.ndarray) -> np.ndarray:
    """Of each row the sum of its values, and of each value times its column, counted from 1; f64."""
    if not isinstance(x, np.ndarray):
        return np.asarray(x.astype(np.float64) @ factors)
    slices = (x[start : start + 64].astype(np.float64) @ factors for start in range(0, len(x), 64))
    return np.concatenate(list(slices))


def cell_hash(joinids: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """64 bits of a cell's joinid and sums. Adding zero makes one zero of the two."""
    sums = np.ascontiguousarray(sums + 0.0).view(np.uint64)
    return mix(mix(mix(joinids.view(np.uint64)) + sums[:, 0]) + sums[:, 1])


def mix(x: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64: each bit of the input changes about half of the output's."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
