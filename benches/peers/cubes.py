"""Feeds batches of image cubes with a loader that Python users have, over whole epochs.

The order comes on stdin, as JSON:

    {"cache": "warm", "task": {"data": "my-cubes", "format": "raw16", "epochs": [[3, 1, 0], [0, 3, 1]],
     "batch": 2, "workers": 2, "codec_threads": null, "augment": false, "seed": 0,
     "consumer_millis": 0.0, "check": false}}

`data` is the folder of a data set (see cube_files.py), `format` its folder of cubes: dat, raw32 or
raw16. `epochs` has the samples of each epoch in their order, equally many in each; the last batch
of an epoch may be smaller. `workers` are processes (for spdl, threads); the benchmark of imsy-htc
has 6 with a DataLoader and 2 with its ring. `codec_threads` are blosc's threads in each of them;
null leaves them at what python-blosc chooses, all cores up to 8, as imsy-htc does (for spdl, 1).
`augment` transforms on the CPU with Kornia, which the rings cannot do. The consumer sleeps for
`consumer_millis` per batch. What follows `workers` may be left out. With "cold" as the cache, the
files of an epoch are removed from the page cache before it.

Events go to stdout, one line of JSON each:

    {"Progress": {"n_rows": 2, "of_rows": 6}}                     after each batch, over all epochs
    {"Answer": {"Read": {"epoch": 0, ...}}}                       after each epoch: times, memory, bytes
    {"Answer": {"Checksum": {"sample": 3, "crc32": [1, 2, 3]}}}   with `check`, of each sample's arrays
    {"Failed": {"message": "..."}}                                in place of those
    "Done"

Other lines are ignored. Times are in seconds, memory is in bytes. The first epoch has the start of
the workers in its first batch. Processor time is that of the process and all its children. `max_mem`
is that of the process alone: watch the processes from outside for their sum.

Checksums are those of features, labels and valid_pixels in C order as delivered: features as f16
(raw16) or f32, labels as i64, valid_pixels as bytes 0 and 1. The readers:

    dataloader          torch's DataLoader: a worker reads samples and collates them
    ring                a ring of slots in shared memory: a worker decompresses a whole batch into a slot
    ring-together       the same, all workers decompress parts of the same slot
    htc-dataloader      imsy-htc's DatasetImage in torch's DataLoader
    htc-ring            imsy-htc's StreamDataLoader with DatasetImageBatch, for which see cube_htc.py
    htc-ring-together   the same with DatasetImageStream
    spdl                SPDL's pipeline of threads, which decompress into the batch
"""

import argparse
import gc
import json
import os
import platform
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cube_readers
from cube_files import CubeFiles
from cube_readers import Batch, Task
from measuring import print_event, status_bytes

KEYS = ["features", "labels", "valid_pixels"]
DEFAULTS = {"codec_threads": None, "augment": False, "seed": 0, "consumer_millis": 0.0, "check": False}


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
    try:
        order = json.load(sys.stdin)
        run(reader, DEFAULTS | order["task"], order["cache"] == "cold")
        print_event("Done")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        print_event({"Failed": {"message": reason(error)}})
        sys.exit(1)


def reason(error: BaseException) -> str:
    """An error in a line. An error of a worker is the last line of its traceback."""
    lines = str(error).strip().splitlines() or [""]
    return lines[-1] if lines[0].startswith("Caught ") else f"{type(error).__name__}: {lines[0]}"


def run(reader: Reader, task: Task, cold: bool) -> None:
    require(reader, task)
    files = CubeFiles.open(task["data"], task["format"])
    torch.manual_seed(task["seed"])
    cube_readers.set_codec_threads(task)
    started = time.perf_counter()
    loader = reader.open(task)
    open_secs = time.perf_counter() - started
    packages = [*reader.packages, "torch", "blosc", "numpy"]
    versions = {name: version(name) for name in packages} | {"Python": platform.python_version()}
    of_rows, n_rows = sum(map(len, task["epochs"])), 0
    for epoch, samples in enumerate(task["epochs"]):
        if cold:
            files.evict(samples)
        if task["check"]:
            check(loader.epoch(samples))
            continue
        measured = measure(loader, samples, task, (n_rows, of_rows))
        n_rows += len(samples)
        facts = {"epoch": epoch, "open_secs": open_secs, "versions": versions, "file_bytes": files.file_bytes(samples)}
        print_event({"Answer": {"Read": facts | measured}})


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
        for place, sample in enumerate(batch["image_index"].tolist()):
            crc32 = [zlib.crc32(np.ascontiguousarray(array[place])) for array in values]
            print_event({"Answer": {"Checksum": {"sample": sample, "crc32": crc32}}})


def measure(loader: Any, samples: list[int], task: Task, done: tuple[int, int]) -> dict[str, Any]:
    """Takes the batches of an epoch, like training: a batch is let go before the next one is asked for."""
    gc.collect()
    n_rows, of_rows = done
    start_mem_bytes = status_bytes("VmRSS:")
    taken: list[tuple[float, float, int]] = []
    n_bytes = 0
    start_time, start_cpu = time.time(), processor_secs(os.getpid())
    asked = time.perf_counter()
    batches = iter(loader.epoch(samples))
    while True:
        batch = next(batches, None)
        got = time.perf_counter()
        if batch is None:
            break
        n_samples = len(batch["image_index"])
        n_bytes += sum(batch[key].nbytes for key in KEYS)
        n_rows += n_samples
        time.sleep(task["consumer_millis"] / 1000)
        del batch
        print_event({"Progress": {"n_rows": n_rows, "of_rows": of_rows}})
        now = time.perf_counter()
        taken.append((got - asked, now - got, n_samples))
        asked = now
    user, system = (end - start for end, start in zip(processor_secs(os.getpid()), start_cpu, strict=True))
    return {
        "batches": taken,
        "end_wait_secs": got - asked,
        "n_bytes": n_bytes,
        "start_time": start_time,
        "end_time": time.time(),
        "cpu_user_secs": user,
        "cpu_system_secs": system,
        "start_mem_bytes": start_mem_bytes,
        "max_mem": status_bytes("VmHWM:"),
    }


def processor_secs(process: int) -> tuple[float, float]:
    """User and system seconds of a process, of its children that run and of those that it has waited for."""
    tick = os.sysconf("SC_CLK_TCK")
    # The name in brackets may contain spaces.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / tick for field in fields[11:15])
    total = [user + children_user, system + children_system]
    for thread in Path(f"/proc/{process}/task").iterdir():
        for child in (thread / "children").read_text().split():
            total = [one + other for one, other in zip(total, processor_secs(int(child)), strict=True)]
    return total[0], total[1]


if __name__ == "__main__":
    main()
