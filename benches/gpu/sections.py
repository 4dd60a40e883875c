"""The sections of `run.py`. Each takes the run, and keeps its checks and rows there."""

import json
import os
import platform
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from run import HERE, Run, json_lines

PROGRAMS = ("somafeed", "fields", "cubes", "sequences", "feed_device", "train_cell_types")

ON_DEVICE = (
    "every_form_has_the_values_of_the_cpu",
    "no_slot_is_reused_before_its_copy_is_done",
    "batches_kept_from_a_dropped_epoch_stay_right",
    "two_loaders_feed_one_device",
    "fields_have_the_values_of_the_cpu",
    "what_came_before_an_error_stays_right",
    "cubes_from_a_ring_have_the_values_of_the_cpu",
)
"""Tests of crate `torch-feed` that need the device."""


def smoke(run: Run) -> None:
    """Everything starts; machine and versions are known."""
    import torch

    machine = {
        "torch": torch.__version__, "python": platform.python_version(), "cores": len(run.cores),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(), "cpu": cpu_model(),
    }
    if run.on_gpu:
        run.check("torch sees the GPU", torch.cuda.is_available())
        machine["gpu"] = torch.cuda.get_device_name()
        query = "name,driver_version,memory.total,pcie.link.gen.current,pcie.link.width.current"
        machine["nvidia_smi"] = run.call(["nvidia-smi", f"--query-gpu={query}", "--format=csv"])[1]
    made = HERE / "bundle.json"
    if made.exists():
        machine["bundle"] = json.loads(made.read_text())
    run.row(what="machine", **machine)
    for name in PROGRAMS:
        code, text = run.program(name, "--help", timeout=20)
        run.check(f"{name} starts", code == 0, text)
    code, text = run.function("import_package", timeout=30)
    run.check("the Python package starts", code == 0, text)


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def data(run: Run) -> None:
    """Data from our own generators, written at the same time, and copies of it."""
    n_cells, n_genes = (3_000, 500) if run.small else (200_000, 60_000)
    n_fields, size = (16, ["--lat", 12, "--lon", 16]) if run.small else (32, [])
    cube, letters = ("24x32x10", "0.125MB") if run.small else ("480x640x100", "0.125GB")
    program, fields = run.program, ["fields", "generate", "-q", "--samples", n_fields, *size]

    def cells() -> None:
        wrote("cells", program("somafeed", "generate", "-q", "cells", "--cells", n_cells, "--genes", n_genes))
        wrote("a relaid copy", program("somafeed", "relayout", "-q", "cells", "relaid"))
        wrote("plain Zarr", run.function("write_plain_zarr", "cells", "plain.zarr", n_cells // 2))

    def sequences() -> None:
        wrote("letters", program("sequences", "generate", "-q", "letters.txt", "--size", letters))
        wrote("a store of sequences", program("sequences", "import", "-q", "letters.txt", "sequences"))

    def others() -> None:
        wrote("fields in Blosc", program(*fields, "fields-blosc", "--codec", "blosc"))
        wrote("fields in zstd", program(*fields, "fields-zstd", "--codec", "zstd"))
        wrote("cubes", program("cubes", "generate", "-q", "cubes", "--images", 6, "--size", cube,
                               "--formats", "dat,raw32,raw16"))

    def wrote(what: str, outcome: tuple[int, str]) -> None:
        run.check(f"{what}: written", outcome[0] == 0, outcome[1])

    with ThreadPoolExecutor() as pool:
        for written in [pool.submit(write) for write in (cells, sequences, others)]:
            written.result()


def right(run: Run) -> None:
    """Every path to the device delivers the values of the CPU."""
    for name in ON_DEVICE:
        code, text = run.program(
            "torch-feed-unit-tests", f"tests::on_device::{name}", "--exact", timeout=60
        )
        run.check(name, code == 0 and "1 passed" in text, text)
    code, text = run.program("torch-feed-unit-tests", "--skip", "on_device", timeout=60)
    run.check("the other tests of torch-feed", code == 0, text)
    code, text = run.program(
        "feed_device", "cells", "--device", "cuda:0", timeout=30, CUDA_VISIBLE_DEVICES=""
    )
    run.check("no visible GPU is an error", code == 1 and "there is no cuda:0" in text, text)
    code, text = run.function("tensors_of_the_package", "cells", run.device, timeout=60)
    run.check("tensors of the Python package", code == 0, text)
    sanitizer = shutil.which("compute-sanitizer")
    if not run.on_gpu or sanitizer is None:
        run.check("compute-sanitizer finds nothing", None, "there is no GPU, or no compute-sanitizer")
        return
    fields = ["tests::on_device::fields_have_the_values_of_the_cpu", "--exact"]
    code, text = run.call(
        [sanitizer, "--error-exitcode", 9, run.programs / "torch-feed-unit-tests", *fields],
        timeout=60, cuda=True,
    )
    starts = "not supported" not in text and code != -9
    run.check("compute-sanitizer finds nothing", code == 0 if starts else None, text)


def feed(run: Run) -> None:
    """Cells per second on the device, by each way of sending them."""
    n_threads = min(8, len(run.cores))
    for genes in [100] if run.small else [60_000, 8_000]:
        sums = set()
        for ways, threads in [("scatter,csr", 1), ("dense,f16", n_threads)]:
            code, text = run.program(
                "feed_device", "relaid", "--device", run.device, "--genes", genes, "--ways", ways,
                "--steps-ms", "0,5", "--seconds", 0.1 if run.small else 2.5,
                "--prefetch-batches", 8, "--batch-threads", threads,
            )
            rows = list(json_lines(text))
            for row in rows:
                run.row(**row)
            of_way = {"f16": 2.0, "copies": None}
            sums |= {(row["nnz"], row["sum"]) for row in rows if row["way"] not in of_way}
            run.check(f"{ways} with {genes} genes", code == 0 and len(rows) == 5, text)
        run.check(f"all ways send the same of {genes} genes", len(sums) == 1, str(sums))
        code, text = run.function(
            "feed_by_data_loader", "plain.zarr", run.device, genes, n_threads,
            0.2 if run.small else 4, timeout=40,
        )
        for row in json_lines(text):
            run.row(**row)
        run.check(f"a DataLoader with {genes} genes", code == 0, text)


def threads(run: Run) -> None:
    """Samples per second by the number of cores that a work may use."""
    def cells(folder, *arguments):
        return ["somafeed", "sweep", "--uri", folder, "-b", "1024x64", "-m", "csr", *arguments]

    few, many = ([], []) if run.small else (["-n", 60], ["-n", 100])
    works = {
        "csr": cells("cells", "--batch-form", "csr", *many),
        "relaid csr": cells("relaid", "--batch-form", "csr", *many),
        "dense": cells("cells", *few),
        "relaid dense": cells("relaid", *few),
        "plain Zarr": cells("plain.zarr", "--batch-form", "csr"),
        "fields, Blosc": ["fields", "sweep", "fields-blosc", "--strategies", "stacked", "-B", 16,
                          "-t", "{n}"],
        "fields, zstd": ["fields", "sweep", "fields-zstd", "--strategies", "stacked", "-B", 16,
                         "-t", "{n}"],
        "cubes": ["cubes", "sweep", "cubes", "--strategies", "ring-buffer", "--consumer", "none",
                  "--warm", "-w", "{n}", "--repetitions", 1, "--warmup", 0, "--no-floors"],
        "sequences": ["sequences", "sweep", "sequences", "--form", "tokens", "-w", "{n}",
                      "-B", 256, "--warmup", 0, "--repetitions", 1],
    }
    functions = {
        "zstd alone": lambda n, epochs: ["decode_zstd", n, 0.1 if run.small else 1.0],
        "tokens": lambda n, epochs: ["tokens", "relaid", epochs],
    }
    counts = [n for n in (1, 2, 4, 8, 16) if n <= len(run.cores)]
    for name in [*functions, *works]:
        for n in counts:
            # An epoch takes seconds on one core, and a part of a second on many.
            epochs = 1 if run.small else min(n, 3)
            begin, limits = time.monotonic(), {"cores": run.cores[:n], "timeout": 30}
            if name in functions:
                code, text = run.function(*functions[name](n, epochs), **limits)
                found = list(json_lines(text))
            else:
                folder = run.results / name.replace(" ", "-").replace(",", "") / str(n)
                words = [str(word).replace("{n}", str(n)) for word in works[name]]
                code, text = run.program(*words, "-E", epochs, "-q", "--results", folder, **limits)
                found = epochs_of(folder)
            run.row(what=name, cores=n, seconds=time.monotonic() - begin, epochs=found)
            run.check(f"{name} on {n} cores", code == 0 and bool(found), text)


EPOCH_COLUMNS = (
    "epoch", "samples_per_sec", "samples_per_sec_after_first", "cpu_secs", "max_mem", "elapsed",
    "time_to_first_batch_secs", "read_wall_secs", "read_cpu_secs", "decode_wall_secs",
    "decode_cpu_secs", "densify_wall_secs", "densify_cpu_secs", "wait_wall_secs",
)


def epochs_of(folder: Path) -> list[dict]:
    """The rows of a results folder, without what is the same for all."""
    file = folder / "epochs.parquet"
    if not file.exists():
        return []
    import pyarrow.parquet

    return pyarrow.parquet.read_table(file, columns=list(EPOCH_COLUMNS)).to_pylist()


def training(run: Run) -> None:
    """What the loader costs a model on the device."""
    train = partial(
        run.program, "train_cell_types", "cells", "--device", run.device, "--orders", "chunks",
        "--seeds", 0, "--chunks-per-block", 512, "--batch-rows", 1024, timeout=30,
    )
    for densify in [[], ["--densify-on-device"]]:
        begin = time.monotonic()
        code, text = train("--out", run.results / f"cell-types{'-'.join(densify)}", *densify)
        run.row(what="cell types", densify_on_device=bool(densify),
                seconds=time.monotonic() - begin, output=text[-1500:])
        run.check(" ".join(["cell types", *densify]), code == 0, text)
    losses = {}
    # `memory` trains on fewer cells, so that only its times compare.
    for way in ["memory", "dense", "sparse"]:
        code, text = run.function("train_vae", "relaid", run.device, way, int(run.small), timeout=30)
        for row in json_lines(text):
            run.row(**row)
            losses[way] = row["loss"]
        run.check(f"a VAE, {way}", code == 0, text)
    dense, sparse = losses.get("dense", 0), losses.get("sparse", 1)
    run.check("a VAE learns the same from both", abs(dense - sparse) < 0.01 * abs(dense), str(losses))
    small = ["-n", 1, "--model-width", 2] if run.small else []
    code, text = run.program(
        "cubes", "sweep", "cubes", "--strategies", "original,blosc,fp16,gpu-aug,ring-buffer", "--warm",
        "--consumer", "cuda" if run.on_gpu else "cpu", "--repetitions", 1, "-E", 2, "--warmup", 1, "-q",
        *small, "--results", run.results / "cubes-training", cuda=True,
    )
    run.check("a U-Net", code == 0, text)
    run.row(what="U-Net", output=text[-3000:])
