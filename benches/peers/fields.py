"""Reads batches of random samples of fields on a grid, with a reader that others use.

The order comes on stdin, as JSON:

    {"cache": "warm", "task": {"store": "weather.zarr", "arrays": ["inputs", "targets"],
     "batches": [[3, 1], [0, 2]], "threads": 2, "seed": 0, "check": false}}

Events go to stdout, one line of JSON each:

    {"Progress": {"n_rows": 2, "of_rows": 4}}                  after each batch
    {"Answer": {"Read": {...}}}                                the time of each batch, memory, processor time
    {"Answer": {"Checksum": {"sample": 3, "crc32": [1, 2]}}}   with `check`, for each sample: a number for each array
    {"Failed": {"message": "..."}}                             in place of those
    "Done"

Other lines are ignored. Times are in seconds, memory is in bytes. The readers:

    somafeed-python         somafeed's own package: FieldDataset, which draws the same order by the seed and reads a
                            batch ahead
    xarray-dask             xarray with dask: one isel and one compute for a batch
    xarray-dask-per-sample  the same, one isel and one compute for each sample, then np.stack
    xarray-tensorstore      one isel, xarray_tensorstore.read of all arrays, then compute
    tensorstore             one indexed read for each array, submitted together as a tensorstore.Batch
    zarr-zarrs              zarr-python with zarrs' codec pipeline, one orthogonal selection for each array
    zarr-python             zarr-python with its own codec pipeline, the same selection

Both that select with zarr-python sort a batch's samples first, which is twice as fast: the order
within a random batch is free.
"""

import argparse
import gc
import json
import os
import platform
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from feeding import require_order
from measuring import print_event, status_bytes

Task = dict[str, Any]
Batch = list[np.ndarray]
"""The values of a batch, an array for each of the order's arrays; the first dimension is the sample."""
Read = Callable[[list[int]], Batch]
"""Reads the samples of these numbers, in their order."""


def somafeed_python(task: Task) -> Read:
    dataset = import_module("somafeed").FieldDataset(
        task["store"],
        {name: name for name in task["arrays"]},
        batch_size=len(task["batches"][0]),
        seed=task["seed"],
        number_samples=True,
        threads=task["threads"],
        remainder="drop",
    )
    # Each iteration is the next epoch.
    batches = chain.from_iterable(repeat(dataset))

    def read(samples: list[int]) -> Batch:
        batch = next(batches)
        require_order(batch["sample"].tolist(), samples)
        return [batch[name] for name in task["arrays"]]

    return read


def open_dask(task: Task) -> Any:
    """The arrays with a dask task for each sample, whole along the other dimensions."""
    xarray = import_module("xarray")
    dims = xarray.open_zarr(task["store"], chunks=None, consolidated=False)[task["arrays"]].dims
    chunks = {name: 1 if name == "sample" else -1 for name in dims}
    return xarray.open_zarr(task["store"], chunks=chunks, consolidated=False)[task["arrays"]]


def xarray_dask(task: Task) -> Read:
    data = open_dask(task)

    def read(samples: list[int]) -> Batch:
        loaded = data.isel(sample=samples).compute(scheduler="threads", num_workers=task["threads"])
        return [loaded[name].values for name in task["arrays"]]

    return read


def xarray_dask_per_sample(task: Task) -> Read:
    data = open_dask(task)

    def read_one(sample: int) -> Batch:
        loaded = data.isel(sample=sample).compute(scheduler="threads", num_workers=task["threads"])
        return [loaded[name].values for name in task["arrays"]]

    def read(samples: list[int]) -> Batch:
        items = [read_one(sample) for sample in samples]
        return [np.stack(values) for values in zip(*items, strict=True)]

    return read


def copy_threads(task: Task) -> Any:
    """Settings of tensorstore with the order's threads for decoding and copying."""
    tensorstore = import_module("tensorstore")
    return tensorstore.Context({"data_copy_concurrency": {"limit": task["threads"]}})


def xarray_tensorstore(task: Task) -> Read:
    library = import_module("xarray_tensorstore")
    data = library.open_zarr(task["store"], context=copy_threads(task))[task["arrays"]]

    def read(samples: list[int]) -> Batch:
        loaded = library.read(data.isel(sample=samples)).compute()
        return [loaded[name].values for name in task["arrays"]]

    return read


def tensorstore(task: Task) -> Read:
    library = import_module("tensorstore")
    context = copy_threads(task)

    def open_array(name: str) -> Any:
        path = Path(task["store"], name)
        driver = "zarr3" if (path / "zarr.json").is_file() else "zarr"
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}
        return library.open(spec, context=context, open=True, read=True).result()

    arrays = [open_array(name) for name in task["arrays"]]

    def read(samples: list[int]) -> Batch:
        with library.Batch() as batch:
            reads = [array[samples].read(batch=batch) for array in arrays]
        return [read.result() for read in reads]

    return read


def zarr_python(task: Task) -> Read:
    zarr = import_module("zarr")
    zarr.config.set({"threading.max_workers": task["threads"]})
    group = zarr.open_group(task["store"], mode="r")
    arrays = [group[name] for name in task["arrays"]]
    return lambda samples: [array.oindex[samples] for array in arrays]


def zarr_zarrs(task: Task) -> Read:
    import_module("zarrs")
    import_module("zarr").config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    return zarr_python(task)


@dataclass
class Reader:
    """A way to read."""

    open: Callable[[Task], Read]
    packages: list[str]
    """Packages whose versions are recorded."""
    sorts: bool = False
    """Whether it is given the samples of a batch in order."""


READERS = {
    "somafeed-python": Reader(somafeed_python, ["somafeed", "numpy"]),
    "xarray-dask": Reader(xarray_dask, ["xarray", "dask", "zarr", "numpy"]),
    "xarray-dask-per-sample": Reader(xarray_dask_per_sample, ["xarray", "dask", "zarr", "numpy"]),
    "xarray-tensorstore": Reader(xarray_tensorstore, ["xarray-tensorstore", "xarray", "tensorstore", "numpy"]),
    "tensorstore": Reader(tensorstore, ["tensorstore", "numpy"]),
    "zarr-zarrs": Reader(zarr_zarrs, ["zarr", "zarrs", "numpy"], sorts=True),
    "zarr-python": Reader(zarr_python, ["zarr", "numpy"], sorts=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", required=True, choices=READERS, help="the reader that reads")
    reader = READERS[parser.parse_args().reader]
    try:
        task = json.load(sys.stdin)["task"]
        run(reader, task)
        print_event("Done")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        print_event({"Failed": {"message": f"{type(error).__name__}: {first}"}})
        sys.exit(1)


def run(reader: Reader, task: Task) -> None:
    if reader.sorts:
        task["batches"] = [sorted(samples) for samples in task["batches"]]
    started = time.perf_counter()
    read = reader.open(task)
    open_secs = time.perf_counter() - started
    if task["check"]:
        check(read, task)
        return
    versions = {name: version(name) for name in reader.packages} | {"Python": platform.python_version()}
    print_event({"Answer": {"Read": {"open_secs": open_secs, "versions": versions, **measure(read, task)}}})


def check(read: Read, task: Task) -> None:
    """Prints the checksums of each sample's values as float32."""
    for samples in task["batches"]:
        values = read(samples)
        for idx, sample in enumerate(samples):
            parts = (np.ascontiguousarray(array[idx], dtype=np.float32) for array in values)
            print_event({"Answer": {"Checksum": {"sample": sample, "crc32": [zlib.crc32(part) for part in parts]}}})


def measure(read: Read, task: Task) -> dict[str, Any]:
    """Takes all batches, like training: a batch is freed before the next one is read."""
    gc.collect()
    start_mem_bytes = status_bytes("VmRSS:")
    batches: list[tuple[float, float, int]] = []
    n_bytes, n_rows, of_rows = 0, 0, sum(map(len, task["batches"]))
    start_time, start_cpu = time.time(), os.times()
    asked = time.perf_counter()
    for samples in task["batches"]:
        values = read(samples)
        got = time.perf_counter()
        n_bytes += sum(array.nbytes for array in values)
        n_rows += len(samples)
        del values
        print_event({"Progress": {"n_rows": n_rows, "of_rows": of_rows}})
        now = time.perf_counter()
        batches.append((got - asked, now - got, len(samples)))
        asked = now
    cpu = os.times()
    return {
        "batches": batches,
        "n_bytes": n_bytes,
        "start_time": start_time,
        "end_time": time.time(),
        "cpu_user_secs": cpu.user - start_cpu.user,
        "cpu_system_secs": cpu.system - start_cpu.system,
        "start_mem_bytes": start_mem_bytes,
        "max_mem": status_bytes("VmHWM:"),
    }


if __name__ == "__main__":
    main()
