"""Trains scVI from a TileDB-SOMA experiment in one way of feeding it, and reports time and memory.

One process runs one way, so that the peak of its memory is that of the way. The last line that it
prints is a JSON object: for each epoch its time, the time spent waiting for batches, the time spent
preparing them for the model and the training loss; and the memory. Times are in seconds, memory is
in bytes. With `--check` it trains nothing and reports the cells of an epoch instead, in numbers
that do not depend on their order. `figure.py` runs all ways and compares them.

    python training.py experiment somafeed-sparse --epochs 2

The ways:

- `memory`: batches that are in memory before the training begins, cycled if they are fewer than
  those of an epoch (`--memory-batches`). It is the time of the model alone.
- `somafeed-dense`, `somafeed-sparse`: `somafeed.scvi.DataModule`. Sparse batches go to the device
  as CSR and become dense there.
- `tiledbsoma-dense`: scvi-tools' `TileDBDataModule`, as its documentation has it.
- `tiledbsoma-sparse`: the same with `return_sparse_X=True`. The module of scvi-tools 1.5.1 fails
  at a sparse batch ("expected np.ndarray (got csr_matrix)"), so a subclass makes it a CSR tensor,
  which becomes dense on the device.
- `tiledbsoma-workers`: dense, with DataLoader workers (`--workers`). tiledbsoma_ml does not support
  them for sparse batches.
"""

import argparse
import json
import math
import os
import platform
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Packages are imported by the functions that need them: `figure.py` imports this file and must stay
# small, see `Memory`.

WAYS = {
    "memory": "batches in memory",
    "somafeed-dense": "somafeed, dense",
    "somafeed-sparse": "somafeed, sparse",
    "tiledbsoma-dense": "TileDBDataModule, dense",
    "tiledbsoma-sparse": "TileDBDataModule, sparse",
    "tiledbsoma-workers": "TileDBDataModule, dense, workers",
}
"""The ways and their names in tables and figures."""

WORKER_SAMPLE_SECS = 0.1
# Arguments that are not recorded as settings; the address may be private.
UNLISTED = ("uri", "way", "check")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("uri", help="the experiment")
    parser.add_argument("way", choices=list(WAYS))
    parser.add_argument("--check", action="store_true", help="report the cells; train nothing")
    add_options(parser)
    job = parser.parse_args()
    warnings.simplefilter("ignore")
    print(json.dumps(check(job) if job.check else train(job)), flush=True)


def add_options(parser: argparse.ArgumentParser) -> list[str]:
    """Adds the options that all ways share; returns their names."""
    group = parser.add_argument_group("training")
    actions = [
        group.add_argument("--epochs", type=positive, default=3, help="default: 3"),
        group.add_argument(
            "--batch-size", type=positive, default=1024, help="cells per batch; default: 1024"
        ),
        group.add_argument(
            "--io-batch-size", type=positive, default=65536,
            help="cells that are read and shuffled together; default: 65536",
        ),
        group.add_argument(
            "--shuffle-chunk-size", type=positive, default=64,
            help="neighbouring cells that stay together until then; default: 64",
        ),
        group.add_argument(
            "--n-hidden", type=positive, default=128, help="nodes per hidden layer; default: 128"
        ),
        group.add_argument(
            "--n-layers", type=positive, default=1, help="hidden layers; default: 1"
        ),
        group.add_argument("--n-latent", type=positive, default=10, help="default: 10"),
        group.add_argument(
            "--gene-likelihood", choices=["zinb", "nb", "poisson"], default="zinb",
            help="default: zinb",
        ),
        group.add_argument(
            "--accelerator", default="auto", help="where Lightning trains: auto, cpu or gpu"
        ),
        group.add_argument(
            "--torch-threads", type=positive, help="threads of torch on the CPU; default: torch's"
        ),
        group.add_argument("--seed", type=int, default=0, help="of model and order; default: 0"),
        group.add_argument("--measurement", default="RNA", help="default: RNA"),
        group.add_argument("--layer", default="raw", help="the layer of X; default: raw"),
        group.add_argument("--obs-filter", help="value filter of the cells; default: all"),
        group.add_argument(
            "--genes", type=positive, help="number of genes, from the first on; default: all"
        ),
        group.add_argument(
            "--batch-columns", default="dataset_id,donor_id",
            help="columns of obs that are scVI's batch; default: dataset_id,donor_id",
        ),
        group.add_argument(
            "--label-columns", default="cell_type",
            help="columns of obs that are a cell's label; default: cell_type",
        ),
        group.add_argument(
            "--workers", type=positive, default=2,
            help="DataLoader workers of tiledbsoma-workers; default: 2",
        ),
        group.add_argument(
            "--memory-batches", type=positive, default=64,
            help="most batches that the way `memory` keeps; default: 64",
        ),
    ]
    return [action.option_strings[0] for action in actions]


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


# Data modules


@dataclass
class Feed:
    """A data module, and the names of its codes."""

    module: Any
    batch_names: list[str]
    """Name of each code of scVI's batches."""
    label_names: list[str]
    """Name of each code of the labels."""
    n_workers: int = 0


def open_feed(job: argparse.Namespace) -> Feed:
    """Opens the data module of the way. Fails if a batch would have a single cell."""
    if job.way.startswith("tiledbsoma"):
        feed = open_tiledbsoma(job)
    else:
        feed = open_somafeed(job, sparse=job.way == "somafeed-sparse")
    n_obs, n_shares = feed.module.n_obs, max(feed.n_workers, 1)
    shares = {n_obs // n_shares, math.ceil(n_obs / n_shares)}
    if any(share % job.batch_size == 1 for share in shares):
        sys.exit(
            f"the last of {n_obs} cells would be a batch of its own, on which scVI cannot train: "
            "choose another --batch-size"
        )
    if job.way == "memory":
        keep_in_memory(feed.module, job.memory_batches)
    return feed


def open_somafeed(job: argparse.Namespace, sparse: bool) -> Feed:
    import numpy as np
    from somafeed import ExperimentDataset
    from somafeed.scvi import DataModule

    cells = ExperimentDataset(
        uri=job.uri,
        layer_name=job.layer,
        measurement_name=job.measurement,
        obs_filter=job.obs_filter,
        var_joinids=None if job.genes is None else np.arange(job.genes),
        batch_size=job.batch_size,
        io_batch_size=job.io_batch_size,
        shuffle_chunk_size=job.shuffle_chunk_size,
        seed=job.seed,
        # Otherwise the data module leaves out cells that do not fill a batch.
        remainder="keep",
    )
    module = DataModule(
        cells,
        fractions=(1.0,),
        batch_column_names=job.batch_columns.split(","),
        label_keys=job.label_columns.split(","),
        sparse=sparse,
    )
    return Feed(module, list(module.batch_labels), list(module.labels_mapping))


def open_tiledbsoma(job: argparse.Namespace) -> Feed:
    import tiledbsoma
    from scvi.dataloaders import TileDBDataModule

    is_sparse = job.way == "tiledbsoma-sparse"
    n_workers = job.workers if job.way == "tiledbsoma-workers" else 0
    experiment = tiledbsoma.Experiment.open(job.uri)
    query = experiment.axis_query(
        measurement_name=job.measurement,
        obs_query=tiledbsoma.AxisQuery(value_filter=job.obs_filter),
        var_query=None
        if job.genes is None
        else tiledbsoma.AxisQuery(coords=(slice(0, job.genes - 1),)),
    )
    module = (sparse_tiledb_module() if is_sparse else TileDBDataModule)(
        query,
        layer_name=job.layer,
        batch_size=job.batch_size,
        io_batch_size=job.io_batch_size,
        shuffle=True,
        shuffle_chunk_size=job.shuffle_chunk_size,
        seed=job.seed,
        return_sparse_X=is_sparse,
        batch_column_names=job.batch_columns.split(","),
        label_keys=job.label_columns.split(","),
        train_size=1.0,
        dataloader_kwargs={"num_workers": n_workers, "persistent_workers": n_workers > 0},
        accelerator=job.accelerator,
    )
    names = [list(encoder.classes_) for encoder in (module.batch_encoder, module.label_encoder)]
    # It also counts the category of unlabelled cells where there are none, which memory does not.
    return Feed(module, names[0], names[1], n_workers)


def sparse_tiledb_module() -> type:
    """`TileDBDataModule` for sparse batches, which become dense on the device."""
    import numpy as np
    import torch
    from scvi.dataloaders import TileDBDataModule

    nothing = np.empty((0, 0), dtype=np.float32)

    class SparseTileDBDataModule(TileDBDataModule):
        def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            csr, obs = batch
            parts = (torch.from_numpy(part) for part in (csr.indptr, csr.indices, csr.data))
            tensors = super().on_before_batch_transfer((nothing, obs), dataloader_idx)
            return {**tensors, "X": torch.sparse_csr_tensor(*parts, size=csr.shape).float()}

        def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            return {**batch, "X": batch["X"].to_dense()}

    return SparseTileDBDataModule


def keep_in_memory(module: Any, max_batches: int) -> None:
    """Replaces the module's loader by one whose batches are in memory, ready for the model."""
    loader = module.train_dataloader()
    n_batches = len(loader)
    kept = []
    for batch in loader:
        kept.append(module.on_after_batch_transfer(module.on_before_batch_transfer(batch, 0), 0))
        if len(kept) == min(max_batches, n_batches):
            break
    loader.close()
    module.train_dataloader = lambda: InMemory(kept, n_batches)
    module.on_before_batch_transfer = lambda batch, dataloader_idx: batch
    module.on_after_batch_transfer = lambda batch, dataloader_idx: batch


class InMemory:
    """Batches in memory, cycled until there are as many as an epoch has."""

    def __init__(self, batches: list[Any], n_batches: int) -> None:
        self.batches, self.n_batches = batches, n_batches

    def __len__(self) -> int:
        return self.n_batches

    def __iter__(self) -> Iterator[Any]:
        return (self.batches[idx % len(self.batches)] for idx in range(self.n_batches))


# Training


def train(job: argparse.Namespace) -> dict[str, Any]:
    """Trains the model and returns its times, its losses and the memory of the process."""
    import scvi
    import torch

    if job.torch_threads is not None:
        torch.set_num_threads(job.torch_threads)
    started = time.perf_counter()
    feed = open_feed(job)
    open_secs = time.perf_counter() - started
    memory = Memory(feed.n_workers)
    clock = EpochClock()
    clock.watch(feed.module)
    # Now, so that all ways begin with the same weights.
    scvi.settings.seed = job.seed
    model = scvi.model.SCVI(
        registry=feed.module.registry,
        n_hidden=job.n_hidden,
        n_layers=job.n_layers,
        n_latent=job.n_latent,
        gene_likelihood=job.gene_likelihood,
    )
    started, cpu_before = time.perf_counter(), os.times()
    model.train(
        datamodule=feed.module,
        max_epochs=job.epochs,
        accelerator=job.accelerator,
        devices=1,
        callbacks=[epoch_end_callback(clock)],
        enable_progress_bar=False,
    )
    train_secs, cpu_after = time.perf_counter() - started, os.times()
    # user, system and those of the workers that have ended.
    cpu_secs = sum(cpu_after[:4]) - sum(cpu_before[:4])
    losses = model.history["train_loss"].to_numpy().ravel().tolist()
    epochs = [
        {**asdict(epoch), "loss": loss} for epoch, loss in zip(clock.epochs, losses, strict=True)
    ]
    uses_gpu = model.device.type == "cuda"
    return {
        "way": job.way,
        "n_obs": feed.module.n_obs,
        "n_vars": feed.module.n_vars,
        "n_workers": feed.n_workers,
        "open_secs": open_secs,
        "train_secs": train_secs,
        "cpu_secs": cpu_secs,
        "epochs": epochs,
        **memory.peaks(),
        "device": torch.cuda.get_device_name() if uses_gpu else "CPU",
        "gpu_memory_bytes": torch.cuda.max_memory_allocated() if uses_gpu else 0,
        "n_cpus": len(os.sched_getaffinity(0)),
        "torch_threads": torch.get_num_threads(),
        "settings": {name: value for name, value in vars(job).items() if name not in UNLISTED},
        "versions": versions(job.way),
    }


def versions(way: str) -> dict[str, str]:
    names = ["torch", "lightning", "scvi-tools"]
    names += ["tiledbsoma", "tiledbsoma-ml"] if way.startswith("tiledbsoma") else ["somafeed"]
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}


@dataclass
class EpochTimes:
    """The times of one epoch, from the first request for a batch to the end of the last step."""

    secs: float = 0.0
    wait_secs: float = 0.0
    """Time that the training loop waited for batches of the loader's iterator."""
    first_wait_secs: float = 0.0
    """The part of `wait_secs` before the first batch, with the start of workers."""
    prepare_secs: float = 0.0
    """Time in the module's `on_before_batch_transfer` and `on_after_batch_transfer`, which encode
    batches and labels and make X dense. On a GPU, kernels that they start may end later."""
    n_batches: int = 0
    n_cells: int = 0


class EpochClock:
    """Measures the epochs of a data module."""

    def __init__(self) -> None:
        self.epochs: list[EpochTimes] = []
        self._started = 0.0

    def watch(self, module: Any) -> None:
        """Measures the loader of `module` and its hooks around the transfer of a batch."""
        make_loader = module.train_dataloader
        module.train_dataloader = lambda: WatchedLoader(make_loader(), self)
        module.on_before_batch_transfer = self._timed(module.on_before_batch_transfer)
        module.on_after_batch_transfer = self._timed(module.on_after_batch_transfer)

    def _timed(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def timed(batch: Any, dataloader_idx: int) -> Any:
            started = time.perf_counter()
            result = hook(batch, dataloader_idx)
            self.epochs[-1].prepare_secs += time.perf_counter() - started
            return result

        return timed

    def begin(self, now: float) -> None:
        self.epochs.append(EpochTimes())
        self._started = now

    def waited(self, secs: float, n_cells: int) -> None:
        epoch = self.epochs[-1]
        if epoch.n_batches == 0:
            epoch.first_wait_secs = secs
        epoch.wait_secs += secs
        epoch.n_batches += 1
        epoch.n_cells += n_cells

    def end(self) -> None:
        self.epochs[-1].secs = time.perf_counter() - self._started


class WatchedLoader:
    """A loader whose batches are timed. An epoch begins when its first batch is requested."""

    def __init__(self, loader: Any, clock: EpochClock) -> None:
        self._loader, self._clock = loader, clock

    @property
    def sampler(self) -> Any:
        """The loader's sampler, which Lightning informs of the epoch's number."""
        return getattr(self._loader, "sampler", None)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> "WatchedIterator":
        return WatchedIterator(self._loader, self._clock)


class WatchedIterator:
    """The batches of an epoch.

    Lightning makes an iterator only to see that it can. Therefore the loader is not asked for its
    iterator, which may start workers, before the first batch is requested.
    """

    def __init__(self, loader: Any, clock: EpochClock) -> None:
        self._loader, self._clock = loader, clock
        self._batches: Iterator[Any] | None = None

    def __iter__(self) -> "WatchedIterator":
        return self

    def __next__(self) -> Any:
        asked = time.perf_counter()
        if self._batches is None:
            self._clock.begin(asked)
            self._batches = iter(self._loader)
        batch = next(self._batches)
        n_cells = len(batch["batch"]) if isinstance(batch, dict) else batch[0].shape[0]
        self._clock.waited(time.perf_counter() - asked, n_cells)
        return batch


def epoch_end_callback(clock: EpochClock) -> Any:
    import torch
    from lightning.pytorch import Callback

    class EpochEnd(Callback):
        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if pl_module.device.type == "cuda":
                torch.cuda.synchronize()
            clock.end()

    return EpochEnd()


# Memory


class Memory:
    """Peak memory of this process since its start, and of its workers.

    The peak is `VmHWM` of `/proc/self/status`. `ru_maxrss` of `getrusage` would be the same, except
    that it begins with the memory of the process that started this one; so for workers it is
    useless, since it would be at least the memory of this process. Without `/proc` it is
    `ru_maxrss`, and workers are not measured.
    """

    def __init__(self, n_workers: int) -> None:
        self._workers_bytes = 0
        if n_workers > 0:
            threading.Thread(target=self._watch_workers, daemon=True).start()

    def peaks(self) -> dict[str, int]:
        """`workers_memory_bytes` is the largest sum of the peaks of workers that were alive at the
        same time. Memory that processes share counts in each."""
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        maxrss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {
            "memory_bytes": peak_of(Path("/proc/self")) or maxrss,
            "workers_memory_bytes": self._workers_bytes,
            "ru_maxrss_bytes": maxrss,
        }

    def _watch_workers(self) -> None:
        while True:
            total = sum(peak_of(Path(f"/proc/{child}")) for child in children())
            self._workers_bytes = max(self._workers_bytes, total)
            time.sleep(WORKER_SAMPLE_SECS)


def children() -> list[str]:
    """The ids of this process's children."""
    lists = []
    for thread in Path("/proc/self/task").glob("*/children"):
        try:
            lists.append(thread.read_text())
        except OSError:
            # The thread has ended.
            continue
    return " ".join(lists).split()


def peak_of(folder: Path) -> int:
    """`VmHWM` of a process in bytes; 0 if it has ended."""
    try:
        lines = (folder / "status").read_text().splitlines()
    except OSError:
        return 0
    found = [line for line in lines if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else 0


# The cells


def check(job: argparse.Namespace) -> dict[str, Any]:
    """Returns the cells of an epoch as numbers that do not depend on their order.

    A cell is its values, its batch and its label: data modules do not deliver joinids.
    """
    import numpy as np

    feed = open_feed(job)
    module = feed.module
    module.setup("fit")
    fingerprints, x_sum, n_values = [], 0.0, 0
    names = {"batch": text_hashes(feed.batch_names), "labels": text_hashes(feed.label_names)}
    n_batches = 0
    for batch in module.train_dataloader():
        tensors = module.on_after_batch_transfer(module.on_before_batch_transfer(batch, 0), 0)
        x = tensors["X"].numpy()
        x_sum += float(x.sum(dtype=np.float64))
        cells, found = row_fingerprints(x)
        n_values += found
        for factor, (key, hashes) in zip(FACTORS, names.items(), strict=True):
            cells = cells ^ (hashes[tensors[key].numpy()[:, 0]] * np.uint64(factor))
        fingerprints.append(cells)
        n_batches += 1
    cells = np.sort(np.concatenate(fingerprints))
    return {
        "way": job.way,
        "n_cells": len(cells),
        "n_distinct_cells": len(np.unique(cells)),
        "cells": blake2b(cells.tobytes(), digest_size=16).hexdigest(),
        "n_genes": x.shape[1],
        "n_values": n_values,
        "x_sum": x_sum,
        "n_batches": module.n_batch,
        "batches": digest_of(feed.batch_names),
        "n_labels": len(feed.label_names),
        "labels": digest_of(feed.label_names),
        "n_steps": n_batches,
    }


FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


def row_fingerprints(x: Any) -> tuple[Any, int]:
    """64 bits of the values of each row and their genes; the number of values."""
    import numpy as np

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
    from measuring import value_hash

    rows, genes = np.nonzero(x)
    bits = np.ascontiguousarray(x[rows, genes], dtype=np.float32).view(np.uint32)
    # The same place for all rows: how a cell is numbered differs between ways.
    hashes = value_hash(np.zeros(len(rows), dtype=np.int64), genes, bits)
    sums = np.zeros(len(x), dtype=np.uint64)
    np.add.at(sums, rows, hashes)
    return sums, len(rows)


def text_hashes(names: list[str]) -> Any:
    """64 bits of each name."""
    import numpy as np

    digests = [blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def digest_of(names: list[str]) -> str:
    return blake2b("\n".join(sorted(names)).encode(), digest_size=16).hexdigest()


if __name__ == "__main__":
    main()
