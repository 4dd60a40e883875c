"""Feeds batches of image cubes with a loader that Python users have, over whole epochs.

The order comes on stdin, as JSON:

    {"cache": "warm", "task": {"data": "my-cubes", "format": "raw16", "epochs": [[3, 1, 0], [0, 3, 1]],
     "batch": 2, "workers": 2, "codec_threads": null, "augment": false, "shuffled": true, "seed": 0,
     "consumer_millis": 0.0, "check": false}}

`data` is the folder of a data set (see cube_files.py), `format` its folder of cubes: dat, raw32 or
raw16. `epochs` has the samples of each epoch in their order, equally many in each; the last batch
of an epoch may be smaller. `workers` are processes (for somafeed-python and spdl, threads); the
benchmark of imsy-htc has 6 with a DataLoader and 2 with its ring. `codec_threads` are blosc's threads
in each of them; null leaves them at what python-blosc chooses, all cores up to 8, as imsy-htc does
(for spdl, 1). `augment` transforms on the CPU, with Kornia except in somafeed-python; the rings cannot
do that. somafeed-python draws the order of `epochs` itself from `shuffled` and `seed`; it fails if that
is another one. The consumer sleeps for `consumer_millis` per batch. What follows `workers` may be left
out. With "cold" as the cache, the files of an epoch are removed from the page cache before it.

Events are those of feeding.py.

Checksums are those of features, labels and valid_pixels in C order: features as f16 (raw16) or f32,
labels as i64, valid_pixels as bytes 0 and 1. So they are delivered, except that labels of
somafeed-python have the type in which they are stored. The readers:

    somafeed-python     somafeed's own package: ImageDataset, whose threads decode a batch together
    dataloader          torch's DataLoader: a worker reads samples and collates them
    ring                a ring of slots in shared memory: a worker decompresses a whole batch into a slot
    ring-together       the same, all workers decompress parts of the same slot
    htc-dataloader      imsy-htc's DatasetImage in torch's DataLoader
    htc-ring            imsy-htc's StreamDataLoader with DatasetImageBatch, for which see cube_htc.py
    htc-ring-together   the same with DatasetImageStream
    spdl                SPDL's pipeline of threads, which decompress into the batch
"""

import argparse
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch

import cube_readers
from cube_files import CubeFiles
from cube_readers import Batch, Task
from feeding import measure, perform, versions
from measuring import print_event

KEYS = ["features", "labels", "valid_pixels"]
DEFAULTS = {
    "codec_threads": None,
    "augment": False,
    "shuffled": False,
    "seed": 0,
    "consumer_millis": 0.0,
    "check": False,
}


def htc(name: str, *settings: Any) -> Callable[[Task], Any]:
    """Opens a reader of imsy-htc, whose import takes many seconds."""
    return lambda task: getattr(import_module("cube_htc"), name)(task, *settings)


@dataclass
class Reader:
    """A way to feed cubes."""

    open: Callable[[Task], Any]
    packages: list[str]
    """Packages whose versions are recorded, besides those that all have."""
    augments: bool = False


READERS = {
    "somafeed-python": Reader(cube_readers.Somafeed, ["somafeed"], augments=True),
    "dataloader": Reader(cube_readers.Workers, ["kornia"], augments=True),
    "ring": Reader(lambda task: cube_readers.Ring(task, together=False), []),
    "ring-together": Reader(lambda task: cube_readers.Ring(task, together=True), []),
    "htc-dataloader": Reader(htc("HtcWorkers"), ["imsy-htc", "kornia"], augments=True),
    "htc-ring": Reader(htc("HtcRing", False), ["imsy-htc"]),
    "htc-ring-together": Reader(htc("HtcRing", True), ["imsy-htc"]),
    "spdl": Reader(cube_readers.Threads, ["spdl-core"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", required=True, choices=READERS, help="the reader that feeds")
    reader = READERS[parser.parse_args().reader]
    perform(lambda task, cache: run(reader, DEFAULTS | task, cache == "cold"))


def run(reader: Reader, task: Task, cold: bool) -> None:
    require(reader, task)
    files = CubeFiles.open(task["data"], task["format"])
    torch.manual_seed(task["seed"])
    cube_readers.set_codec_threads(task)
    started = time.perf_counter()
    loader = reader.open(task)
    open_secs = time.perf_counter() - started
    facts = {"open_secs": open_secs, "versions": versions([*reader.packages, "torch", "blosc", "numpy"])}
    of_rows, n_rows = sum(map(len, task["epochs"])), 0
    for epoch, samples in enumerate(task["epochs"]):
        if cold:
            files.evict(samples)
        if task["check"]:
            check(loader.epoch(samples))
            continue
        measured = measure(lambda: loader.epoch(samples), size, task["consumer_millis"], (n_rows, of_rows))
        n_rows += len(samples)
        of_epoch = {"epoch": epoch, "file_bytes": files.file_bytes(samples)}
        print_event({"Answer": {"Read": facts | of_epoch | measured}})


def size(batch: Batch) -> tuple[int, int]:
    return len(batch["image_index"]), sum(batch[key].nbytes for key in KEYS)


def require(reader: Reader, task: Task) -> None:
    lengths = {len(samples) for samples in task["epochs"]}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"epochs have {sorted(lengths)} samples, expected the same number in each, at least 1")
    if task["workers"] < 1 or task["batch"] < 1:
        raise ValueError("workers and batch must be at least 1")
    if task["augment"] and not reader.augments:
        raise ValueError("a reader that decompresses into the batch cannot augment on the CPU")


def check(batches: Iterator[Batch]) -> None:
    """Prints the checksums of each sample as delivered."""
    for batch in batches:
        values = [batch[key].cpu().numpy() for key in KEYS]
        values[1] = values[1].astype(np.int64, copy=False)
        for place, sample in enumerate(batch["image_index"].tolist()):
            crc32 = [zlib.crc32(np.ascontiguousarray(array[place])) for array in values]
            print_event({"Answer": {"Checksum": {"sample": sample, "crc32": crc32}}})


if __name__ == "__main__":
    main()
