"""The shared part of scripts that feed samples over whole epochs: events, times, memory and processor time.

A script reads an order from stdin, as JSON, and prints events to stdout, one line of JSON each:

    {"Progress": {"n_rows": 2, "of_rows": 6}}                     after batches, over all epochs
    {"Answer": {"Read": {"epoch": 0, ...}}}                       after each epoch: times, memory, bytes
    {"Answer": {"Checksum": {"sample": 3, "crc32": [1, 2, 3]}}}   if asked for, of each sample's parts
    {"Failed": {"message": "..."}}                                in place of those
    "Done"

Other lines are ignored. Times are in seconds, memory is in bytes. The first epoch has the start of
the workers in its first batch. Processor time is that of the process and all its children.
`max_mem` is that of the process alone: watch the processes from outside for their sum.
"""

import gc
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measuring import print_event, status_bytes

PROGRESS_SECS = 0.2


def perform(run: Callable[[dict[str, Any], str], None]) -> None:
    """Passes the task and the state of the page cache to `run`, and prints how it ended."""
    try:
        order = json.load(sys.stdin)
        run(order["task"], order["cache"])
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


def versions(packages: list[str]) -> dict[str, str]:
    """The versions of packages and of Python."""
    return {name: version(name) for name in packages} | {"Python": platform.python_version()}


def require_order(delivered: list[int], asked: list[int]) -> None:
    """Fails if a loader that draws the order itself delivers other samples than the task has."""
    if delivered != asked:
        raise ValueError(f"it draws another order: samples {delivered[:4]} come where the task has {asked[:4]}")


class SomafeedEpochs:
    """Epochs of a data set of somafeed's own package, whose order it draws itself."""

    def __init__(self, dataset: Any, key: str) -> None:
        """`key` is the entry of a batch that gets the numbers of its samples."""
        self.dataset, self.key, self.n_begun = dataset, key, 0

    def epoch(self, samples: list[int]) -> Iterator[Any]:
        """The batches of the next epoch, as far as it has these samples."""
        self.dataset.set_epoch(self.n_begun)
        self.n_begun += 1
        size = self.dataset.batch_size
        asked = (samples[at : at + size] for at in range(0, len(samples), size))
        # Unlike a generator, map keeps no batch while the next one is made.
        return map(self.numbered, asked, self.dataset)

    def numbered(self, asked: list[int], batch: dict[str, Any]) -> dict[str, Any]:
        # The last batch may be cut off.
        batch[self.key] = batch.pop("sample")[: len(asked)]
        require_order(batch[self.key].tolist(), asked)
        return batch


def measure(
    epoch: Callable[[], Iterator[Any]],
    size: Callable[[Any], tuple[int, int]],
    consumer_millis: float,
    done: tuple[int, int],
) -> dict[str, Any]:
    """Takes the batches of an epoch, like training: a batch is let go before the next one is asked for.

    `epoch` begins it, `size` says the samples and the bytes of a batch, `done` the samples before
    this epoch and those of all epochs.
    """
    gc.collect()
    n_rows, of_rows = done
    start_mem_bytes = status_bytes("VmRSS:")
    taken: list[tuple[float, float, int]] = []
    n_bytes, reported = 0, 0.0
    start_time, start_cpu = time.time(), processor_secs(os.getpid())
    asked = time.perf_counter()
    batches = epoch()
    while True:
        batch = next(batches, None)
        got = time.perf_counter()
        if batch is None:
            break
        n_samples, batch_bytes = size(batch)
        n_bytes += batch_bytes
        n_rows += n_samples
        time.sleep(consumer_millis / 1000)
        del batch
        if reported + PROGRESS_SECS < got:
            print_event({"Progress": {"n_rows": n_rows, "of_rows": of_rows}})
            reported = got
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
