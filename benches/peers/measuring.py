"""The shared part of the peers' scripts: command line, clock, memory and processor time, events.

A script passes `main` a description of its loader, a function that opens it and, if the loader
reads its own format, a function that converts the data. One process runs one task and reports in
events on stdout, one line of JSON each:

    {"Progress": {"n_rows": 2048, "of_rows": 200000}}      while it runs
    {"Answer": {"Facts": {...}}}                           the loader's abilities (`describe`)
    {"Answer": {"Conversion": {...}}}                      the cost of the conversion (`convert`)
    {"Answer": {"Epoch": {...}}}                           the cost of an epoch (`measure`), a line for each
    {"Answer": {"Delivered": {...}}}                       cells and values of an epoch (`tally`)
    {"Failed": {"message": "..."}}                         in place of those
    "Done"

Other lines are ignored. Times are in seconds, memory is in bytes.

The address of the data and TileDB's settings come on stdin, as JSON, since every user of the
machine can see the arguments of a process:

    echo '{"uri": "experiment", "config": {"soma.init_buffer_bytes": "1000000"}}' \\
        | python annbatch.peer.py tally --copy copy

Over a link, `uri` and `config` name its server, and `link` says where the server gives its counts and,
for a loader with its own format, the `endpoint`, `bucket` and `prefix` of the copy:

    {"counts": "http://127.0.0.1:PORT/...", "endpoint": "http://127.0.0.1:PORT", "bucket": "...", "prefix": "..."}
"""

import argparse
import gc
import json
import os
import platform
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PROGRESS_SECS = 0.2

# Rows of a batch that are counted at a time, so that counting takes next to no memory beside it.
SLICE_ROWS = 64
FACTORS = [np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)]
# The gene in the hash of a cell without a value.
NO_GENE = 2**32 - 1

Values = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Some values: the joinids of their cells, their genes, and the values themselves."""


@dataclass
class Variant:
    """Settings at which the loader is measured."""

    name: str
    summary: str
    """The settings, in a line."""
    takes_blocks: bool = True
    """Whether it takes the work's chunks and blocks; if not, one run serves all works of a form."""
    forms: tuple[str, ...] = ("dense", "csr")
    """Forms of batches that it supports."""
    anndata: str | None = None
    """Path in its copy of the AnnData that it reads, if somafeed reads the same files: then it is
    measured on them, too. The index of obs must be the joinids."""


@dataclass
class Peer:
    """Describes a loader."""

    packages: list[str]
    """Packages whose versions are recorded, the loader's own first."""
    variants: list[Variant] = field(default_factory=lambda: [Variant("ours", "chunks and blocks of the work")])
    gene_subsets: bool = True
    """Whether it can deliver only the first genes."""
    conversion: str | None = None
    """Its own format, described in a line, if it reads one; another description makes new copies.
    Versions need not be in it."""
    over_link: bool = False
    """Whether it reads from an object store, and so over a link: the experiment through `uri` and
    `config`, its copy through `link`. Otherwise `--link` leaves it out."""


@dataclass
class Loader:
    """A peer's loader, opened."""

    epoch: Callable[[int], Iterable[Any]]
    """Returns the batches of an epoch, counted from 0, in the form that training gets."""
    x: Callable[[Any], Any]
    """Returns a batch's values, cells x genes: a numpy array or a scipy CSR matrix. If there is
    `rows`, measurements call that instead."""
    joinids: Callable[[Any], np.ndarray]
    """Returns the `soma_joinid` of each row of a batch, int64."""
    n_cells: int
    """Cells per epoch."""
    rows: Callable[[Any], int] | None = None
    """Returns the number of rows of a batch, if `x` needs work of its own."""
    chunk_rows: int | None = None
    """Rows that are read together, if not the requested number."""
    chunks_per_block: int | None = None
    """Chunks per block, if not the requested number."""
    x_folders: list[Path] | None = None
    """Folders of its copy with the stored values of X that an epoch over all genes reads, and nothing
    else. Without them, the row has no floor for the bytes over a link."""


def main(
    peer: Peer,
    open_loader: Callable[[argparse.Namespace], Loader],
    convert: Callable[[argparse.Namespace], None] | None = None,
) -> None:
    job = arguments(peer)
    try:
        run(job, peer, open_loader, convert)
        print_event("Done")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        print_event({"Failed": {"message": f"{type(error).__name__}: {first}"}})
        sys.exit(1)


def run(job: argparse.Namespace, peer: Peer, open_loader: Any, convert: Any) -> None:
    versions = {name: version(name) for name in peer.packages} | {"Python": platform.python_version()}
    if job.task == "describe":
        facts = {
            "versions": versions,
            "gene_subsets": peer.gene_subsets,
            "conversion": peer.conversion,
            "over_link": peer.over_link,
        }
        answer("Facts", {**facts, "variants": [vars(variant) for variant in peer.variants]})
        return
    if job.task == "convert":
        started = time.perf_counter()
        convert(job)
        answer("Conversion", {"secs": time.perf_counter() - started, "max_mem": status_bytes("VmHWM:")})
        return
    link_start = link_counts(job)
    started = time.perf_counter()
    loader = open_loader(job)
    open_secs = time.perf_counter() - started
    if job.task == "tally":
        answer("Delivered", deliver(loader))
        return
    ran = {"chunk_rows": loader.chunk_rows or job.chunk_rows}
    ran["chunks_per_block"] = loader.chunks_per_block or job.chunks_per_block
    stored_bytes = None if loader.x_folders is None else folder_bytes(loader.x_folders)
    for epoch in range(job.epochs):
        measured = measure(loader, epoch, job)
        if link_start is not None:
            measured["link"]["start"] = link_start
        facts = {"epoch": epoch, "open_secs": open_secs, "versions": versions, "stored_bytes": stored_bytes}
        answer("Epoch", {**facts, **ran, **measured})


def arguments(peer: Peer) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["describe", "convert", "measure", "tally"])
    parser.add_argument("--copy", metavar="FOLDER", help="folder of the converted copy; empty for convert")
    parser.add_argument("--variant", choices=[variant.name for variant in peer.variants], default=peer.variants[0].name)
    parser.add_argument("--measurement", default="RNA")
    parser.add_argument("--layer", default="raw")
    parser.add_argument("--genes", type=int, help="number of genes, from the first on; all by default")
    parser.add_argument("--obs-column", action="append", default=[], help="column of each batch, besides soma_joinid")
    parser.add_argument("--form", choices=["dense", "csr"], default="dense")
    parser.add_argument("--batch-rows", type=int, default=1024)
    parser.add_argument("--chunk-rows", type=int, default=64)
    parser.add_argument("--chunks-per-block", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--consumer-millis", type=float, default=0.0, help="time that the consumer sleeps per batch")
    job = parser.parse_args()
    if job.task != "describe" and peer.conversion and job.copy is None:
        parser.error("--copy: this loader reads its own format")
    if job.task == "convert" and not peer.conversion:
        parser.error("convert: this loader reads the experiment itself")
    if job.task != "describe":
        job.uri, job.config, job.link = data_from_stdin(parser)
    return job


def data_from_stdin(parser: argparse.ArgumentParser) -> tuple[str, dict[str, str], dict[str, str] | None]:
    """Reads the experiment's address, TileDB's settings and the link, if there is one."""
    try:
        data = json.load(sys.stdin)
        return data["uri"], data.get("config", {}), data.get("link")
    except (AttributeError, KeyError, TypeError, ValueError):
        # Without the input, which may contain keys.
        parser.error('stdin must hold {"uri": "...", "config": {...}}')


def folder_bytes(folders: list[Path]) -> int:
    """Bytes in the files of folders and their subfolders."""
    n_bytes = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
    if n_bytes == 0:
        raise ValueError(f"the copy has no files of X in {[str(folder) for folder in folders]}")
    return n_bytes


def link_counts(job: argparse.Namespace) -> dict[str, Any] | None:
    """The counts of the link's server so far; None without a link. The next ones begin anew with the
    most requests under way."""
    if job.link is None:
        return None
    # A proxy of the environment does not reach this machine's loopback interface.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(job.link["counts"], timeout=10) as counts:
        return json.load(counts)


def print_event(event: Any) -> None:
    print(json.dumps(event), flush=True)


def answer(kind: str, value: Any) -> None:
    print_event({"Answer": {kind: value}})


def measure(loader: Loader, epoch: int, job: argparse.Namespace) -> dict[str, Any]:
    """Takes the batches of an epoch, like training. Its clock starts when it is requested."""
    gc.collect()
    link_before = link_counts(job)
    start_mem_bytes = status_bytes("VmRSS:")
    start_time, start_cpu = time.time(), os.times()
    samples: list[tuple[float, float, int]] = []
    n_rows, reported = 0, time.perf_counter()
    rows_of = loader.rows or (lambda batch: loader.x(batch).shape[0])
    asked = time.perf_counter()
    batches = iter(loader.epoch(epoch))
    while True:
        batch = next(batches, None)
        got = time.perf_counter()
        if batch is None:
            break
        rows = rows_of(batch)
        if job.consumer_millis:
            time.sleep(job.consumer_millis / 1000)
        # The loader may reuse or free its memory before the next batch.
        del batch
        n_rows += rows
        if PROGRESS_SECS <= got - reported:
            print_event({"Progress": {"n_rows": n_rows, "of_rows": loader.n_cells}})
            reported = got
        now = time.perf_counter()
        samples.append((got - asked, now - got, rows))
        asked = now
    cpu, end_time, link_after = os.times(), time.time(), link_counts(job)
    user = cpu.user + cpu.children_user - start_cpu.user - start_cpu.children_user
    system = cpu.system + cpu.children_system - start_cpu.system - start_cpu.children_system
    over_link = {} if link_before is None else {"link": {"before": link_before, "after": link_after}}
    return {
        **over_link,
        "batches": samples,
        "end_wait_secs": got - asked,
        "start_time": start_time,
        "end_time": end_time,
        "cpu_user_secs": user,
        "cpu_system_secs": system,
        "start_mem_bytes": start_mem_bytes,
        "max_mem": status_bytes("VmHWM:"),
    }


def status_bytes(entry: str) -> int:
    """An entry of `/proc/self/status`; `VmHWM` is the peak over the process's whole life."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(entry))
    return int(line.split()[1]) * 1024


def deliver(loader: Loader) -> dict[str, Any]:
    """Cells and values of an epoch, as numbers that do not depend on the order: `compare` has the same for our loader."""
    joinids, n_genes, tally = [], 0, Tally()
    for batch in loader.epoch(0):
        x, cells = loader.x(batch), np.asarray(loader.joinids(batch), dtype=np.int64)
        n_genes = x.shape[1]
        joinids.append(cells)
        tally.add_cells(cells)
        for start in range(0, len(cells), SLICE_ROWS):
            part = slice(start, start + SLICE_ROWS)
            tally.add(*nonzeros(x[part], cells[part]))
    cells = np.concatenate(joinids) if joinids else np.empty(0, dtype=np.int64)
    return {
        "n_cells": len(cells),
        "n_distinct": len(np.unique(cells)),
        "n_genes": n_genes,
        "tally": tally.as_json(),
    }


def nonzeros(x: Any, cells: np.ndarray) -> Values:
    """The values of some rows other than zero, of a numpy array or a scipy CSR matrix."""
    if isinstance(x, np.ndarray):
        rows, genes = np.nonzero(x)
        return cells[rows], genes, x[rows, genes]
    rows, stored = np.repeat(cells, np.diff(x.indptr)), x.data != 0
    return rows[stored], x.indices[stored], x.data[stored]


class Tally:
    """Values as numbers that do not depend on the order: `compare` has the same and compares them."""

    def __init__(self) -> None:
        self.n_values, self.sums, self.checksum = 0, [0] * 256, 0

    def add_cells(self, cells: np.ndarray) -> None:
        """Adds cells themselves, which may have no values."""
        bits = np.zeros(len(cells), dtype=np.uint32)
        self._add_hashes(value_hash(cells, np.full(len(cells), NO_GENE, dtype=np.uint32), bits))

    def add(self, cells: np.ndarray, genes: np.ndarray, values: np.ndarray) -> None:
        """Adds values with the joinids of their cells and their genes."""
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        self.n_values += len(bits)
        self._add_hashes(value_hash(cells, genes, bits))
        exponents = (bits >> 23) & 0xFF
        significands = ((bits & 0x7FFFFF) | ((exponents != 0).astype(np.uint32) << 23)).astype(np.float64)
        significands[bits >> 31 != 0] *= -1
        # f64 holds sums of at most 2^29 whole numbers below 2^24 exactly.
        for exponent, total in enumerate(np.bincount(exponents, significands, minlength=256)):
            self.sums[exponent] += int(total)

    def _add_hashes(self, hashes: np.ndarray) -> None:
        self.checksum = (self.checksum + int(hashes.sum(dtype=np.uint64))) % 2**64

    def as_json(self) -> dict[str, Any]:
        signed = [(total + 2**63) % 2**64 - 2**63 for total in self.sums]
        return {"n_values": self.n_values, "sums": signed, "checksum": self.checksum}


def value_hash(cells: np.ndarray, genes: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """64 bits of each value and its place."""
    terms = (term.astype(np.uint64) * factor for term, factor in zip([cells, genes, bits], FACTORS, strict=True))
    x = sum(terms, start=np.zeros(len(bits), dtype=np.uint64))
    x = (x ^ (x >> np.uint64(32))) * FACTORS[1]
    return x ^ (x >> np.uint64(29))
