"""The sections of `run.py`. Each takes the run, and keeps its checks and rows there."""

import json
import os
import platform
import shutil
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import HERE, Run, json_lines

PROGRAMS = ("somafeed", "fields", "cubes", "sequences", "feed_device", "train_cell_types")

ON_DEVICE = (
    "no_slot_is_reused_before_its_copy_is_done",
    "every_form_has_the_values_of_the_cpu",
    "batches_kept_from_a_dropped_epoch_stay_right",
    "two_loaders_feed_one_device",
    "fields_have_the_values_of_the_cpu",
    "what_came_before_an_error_stays_right",
    "cubes_from_a_ring_have_the_values_of_the_cpu",
)
"""Tests of crate `torch-feed` that need the device; the slowest is begun first."""
KINDS = ("cells", "cells_beside", "fields", "cubes", "sequences", "own_samples")
"""Functions of `checks.py`."""


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
    code, text = run.function("measured.import_package", timeout=30)
    run.check("the Python package starts", code == 0, text)

    def start(name: str) -> None:
        code, text = run.program(name, "--help", timeout=20)
        run.check(f"{name} starts", code == 0, text)

    with ThreadPoolExecutor(len(run.cores)) as pool:
        list(pool.map(start, PROGRAMS))


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def data(run: Run) -> None:
    """Data from our own generators, written at the same time, and copies of it."""
    n_cells, n_genes = (3_000, 500) if run.small else (200_000, 60_000)
    n_fields, size = (24, ["--lat", 12, "--lon", 16]) if run.small else (48, [])
    n_cubes, cube = (12, "24x32x10") if run.small else (192, "240x320x100")
    program, fields = run.program, ["fields", "generate", "-q", *size]
    cells = ["--cells", n_cells, "--genes", n_genes]
    cubes = ["--images", n_cubes, "--size", cube, "--formats", "dat,raw32,raw16", "--level", 5]
    letters = ["--size", "0.125MB" if run.small else "0.25GB"]

    def wrote(what: str, outcome: tuple[int, str], begin: float) -> None:
        run.row(what=what, seconds=time.monotonic() - begin)
        run.check(f"{what}: written", outcome[0] == 0, outcome[1])

    def write(what: str, *words) -> None:
        begin = time.monotonic()
        wrote(what, program(*words), begin)

    def plain_zarr() -> None:
        begin = time.monotonic()
        plain = ["plain_zarr.write", "cells", "plain.zarr", n_cells // 2]
        wrote("plain Zarr", run.function(*plain), begin)

    def sequences() -> None:
        write("letters", "sequences", "generate", "-q", "letters.txt", *letters)
        write("a store of sequences", "sequences", "import", "-q", "letters.txt", "sequences")

    def others() -> None:
        blosc = ["--samples", n_fields, "--codec", "blosc"]
        zstd = ["--samples", 2 * n_fields // 3, "--codec", "zstd"]
        write("fields in Blosc", *fields, "fields-blosc", *blosc)
        write("fields in zstd", *fields, "fields-zstd", *zstd)
        write("cubes", "cubes", "generate", "-q", "cubes", *cubes)

    with ThreadPoolExecutor() as pool:
        others_written = [pool.submit(sequences), pool.submit(others)]
        write("cells", "somafeed", "generate", "-q", "cells", *cells)
        relaid = ["somafeed", "relayout", "-q", "cells", "relaid"]
        copies = [pool.submit(write, "a relaid copy", *relaid), pool.submit(plain_zarr)]
        for written in [*others_written, *copies]:
            written.result()


ALONE = {"OMP_NUM_THREADS": "1"}
"""For processes that compare values beside others: threads of torch would wait for each other."""


def right(run: Run) -> None:
    """Every path to the device delivers the values of the CPU, while data are written."""
    small = {
        "checked-fields": ["--samples", 40, "--lat", 24, "--lon", 48, "--inputs", 8,
                           "--targets", 3, "--codec", "zstd"],
        "checked-cubes": ["--images", 14, "--size", "48x64x10", "--formats", "raw32,raw16",
                          "--level", 1],
    }

    def on_device(name: str) -> None:
        code, text = run.program(
            "torch-feed-unit-tests", f"tests::on_device::{name}", "--exact", timeout=110, **ALONE
        )
        run.check(name, code == 0 and "1 passed" in text, text)

    def kind(name: str) -> None:
        folder = f"checked-{name}"
        if folder in small:
            program = name, "generate", "-q", folder
            code, text = run.program(*program, *small[folder], timeout=30)
            run.check(f"{name} for the checks: written", code == 0, text)
        begin = time.monotonic()
        code, text = run.function(f"checks.{name}", run.device, timeout=90, **ALONE)
        compared = sum(row["batches"] for row in json_lines(text))
        run.row(what=name, batches=compared, seconds=time.monotonic() - begin)
        run.check(f"the Python package's {name} on the device", code == 0 and compared > 0, text)

    def others(_: str) -> None:
        code, text = run.program(
            "torch-feed-unit-tests", "--skip", "on_device", timeout=90, **ALONE
        )
        run.check("the other tests of torch-feed", code == 0, text)
        code, text = run.program(
            "feed_device", "cells", "--device", "cuda:0", timeout=60, CUDA_VISIBLE_DEVICES=""
        )
        is_error = code == 1 and "there is no cuda:0" in text
        run.check("no visible GPU is an error", is_error, text)
        sanitize(run)

    # Leaves cores to those who write data meanwhile.
    with ThreadPoolExecutor(max(1, len(run.cores) * 3 // 8)) as pool:
        works = [(on_device, name) for name in ON_DEVICE[:1]]
        works += [(kind, name) for name in KINDS] + [(others, "")]
        works += [(on_device, name) for name in ON_DEVICE[1:]]
        for checked in [pool.submit(work, name) for work, name in works]:
            checked.result()


def sanitize(run: Run) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if not run.on_gpu or sanitizer is None:
        run.check("compute-sanitizer finds nothing", None, "no GPU, or no compute-sanitizer")
        return
    fields = ["tests::on_device::fields_have_the_values_of_the_cpu", "--exact"]
    code, text = run.call(
        [sanitizer, "--error-exitcode", 9, run.programs / "torch-feed-unit-tests", *fields],
        timeout=100, cuda=True,
    )
    starts = "not supported" not in text and code != -9
    run.check("compute-sanitizer finds nothing", code == 0 if starts else None, text)


def feed(run: Run) -> None:
    """Cells per second on the device, by each way of sending them."""
    n_threads = min(8, len(run.cores))
    seconds = 0.1 if run.small else 1.5

    def keep(what: str, n_rows: int, outcome: tuple[int, str]) -> list[dict]:
        code, text = outcome
        rows = list(json_lines(text))
        for row in rows:
            run.row(**row)
        run.check(what, code == 0 and len(rows) == n_rows, text)
        return rows

    genes_of = [100] if run.small else [60_000, 8_000]
    for genes in genes_of:
        rows = keep(f"4 ways with {genes} genes", 9, run.program(
            "feed_device", "relaid", "--device", run.device, "--genes", genes,
            "--steps-ms", "0,5", "--seconds", seconds, "--prefetch-batches", 8,
            "--batch-threads", n_threads, timeout=50,
        ))
        # Values of f16 are rounded.
        sums = {(row["nnz"], row["sum"]) for row in rows if row["way"] not in ("f16", "copies")}
        run.check(f"all ways send the same of {genes} genes", len(sums) == 1, str(sums))
        keep(f"the Python package with {genes} genes", 6, run.function(
            "measured.feed_by_package", "relaid", run.device, genes, seconds, timeout=40
        ))
    wheels = sorted((HERE / "wheels-peers").glob("*.whl"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(run.work / "peers")
    if wheels:
        keep("annbatch", 4, run.function(
            "measured.feed_by_annbatch", "plain.zarr", run.device, seconds, timeout=50,
            PYTHONPATH=f"{run.package}{os.pathsep}{run.work / 'peers'}",
        ))
    else:
        run.row(what="annbatch", output="did not travel: there is no folder wheels-peers")
    for genes in reversed(genes_of):
        keep(f"a DataLoader with {genes} genes", 1, run.function(
            "measured.feed_by_data_loader", "plain.zarr", run.device, genes, n_threads,
            2 * seconds, timeout=20,
        ))


def threads(run: Run) -> None:
    """Samples per second by the number of cores that a work may use."""
    def cells(folder, *arguments):
        return ["somafeed", "sweep", "--uri", folder, "-b", "1024x64", "-m", "csr", *arguments]

    few = [] if run.small else ["-n", 60]
    fields = ["--strategies", "stacked", "-B", 16, "-t", "{n}"]
    once = ["--repetitions", 1, "--warmup", 0]
    functions = {
        "zstd alone": lambda n, epochs: ["decode_zstd", n, 0.1 if run.small else 0.7],
        # Some 60 batches are a block.
        "tokens": lambda n, epochs: ["tokens", "relaid", epochs, 24 if n < 4 else 60],
    }
    works = {
        "relaid dense": cells("relaid", *few),
        "cubes": ["cubes", "sweep", "cubes", "--strategies", "ring-buffer", "--consumer", "none",
                  "--warm", "-w", "{n}", *once, "--no-floors"],
        "sequences": ["sequences", "sweep", "sequences", "--form", "tokens", "-w", "{n}",
                      "-B", 256, *once],
        "relaid csr": cells("relaid", "--batch-form", "csr"),
        "fields, zstd": ["fields", "sweep", "fields-zstd", *fields],
        "dense": cells("cells", *few),
        "plain Zarr": cells("plain.zarr", "--batch-form", "csr"),
        "csr": cells("cells", "--batch-form", "csr", *few),
        "fields, Blosc": ["fields", "sweep", "fields-blosc", *fields],
    }
    counts = [n for n in (1, 2, 4, 8, 16) if n <= len(run.cores)]
    for name in [*functions, *works]:
        # Those of many cores first: without them the others say nothing.
        for n in reversed(counts):
            # An epoch takes seconds on one core, and a part of a second on many.
            epochs = 1 if run.small or n < 4 else 2 if n < 16 else 3
            begin, limits = time.monotonic(), {"cores": run.cores[:n], "timeout": 20}
            if name in functions:
                function, *arguments = functions[name](n, epochs)
                code, text = run.function(f"measured.{function}", *arguments, **limits)
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
DEVICE_COLUMNS = (
    "chunk_method", "epoch", "samples_per_sec", "elapsed", "cpu_secs", "max_mem",
    "device_busy_share", "sample_interval_secs", "device_busy",
)
"""Of the training of the U-Net: `device_busy` has the GPU's use along an epoch."""


def epochs_of(folder: Path, columns=EPOCH_COLUMNS) -> list[dict]:
    """The rows of a results folder, without what is the same for all, and failed points."""
    file = folder / "epochs.parquet"
    if not file.exists():
        return []
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(file, columns=list(columns)).to_pylist()
    return [row for row in rows if row["epoch"] is not None]


def training(run: Run) -> None:
    """What the loader costs a model on the device."""
    small, losses = int(run.small), {}

    def train(what: str, n_ways: int, *words) -> None:
        code, text = run.function(*words, small, timeout=40)
        ways = set()
        for row in json_lines(text):
            run.row(**row)
            ways.add(row["way"])
            losses[what, row["way"]] = row["loss"]
        run.check(f"{what} in all ways", code == 0 and len(ways) == n_ways, text)

    train("cell types", 3, "training.cell_types", "relaid", run.device)
    begin, folder = time.monotonic(), run.results / "cubes-training"
    fewer = ["-n", 1, "--model-width", 2] if run.small else ["--model-width", 64]
    strategies = ["original", "blosc", "fp16", "gpu-aug", "ring-buffer"]
    code, text = run.program(
        "cubes", "sweep", "cubes", "--strategies", ",".join(strategies), "--warm", "--no-floors",
        "--consumer", "cuda" if run.on_gpu else "cpu", "--repetitions", 1, "-E", 3, "--warmup", 1,
        "-w", min(8, len(run.cores)),
        "-q", *fewer, "--results", folder, cuda=True, timeout=75,
    )
    found = epochs_of(folder, DEVICE_COLUMNS)
    run.row(what="U-Net", seconds=time.monotonic() - begin, epochs=found, output=text[-3000:])
    trained = {row["chunk_method"] for row in found}
    run.check("a U-Net", code == 0 and trained == {*strategies}, text)
    train("forecast", 2, "training.forecast", "fields-blosc", run.device)
    train("VAE", 4, "training.vae", "relaid", run.device, "memory,dense,sparse,device")
    # `memory` trains on fewer cells, so that only its times compare.
    of_vae = [losses.get(("VAE", way), float("nan")) for way in ("dense", "sparse", "device")]
    agree = max(of_vae) - min(of_vae) < 0.01 * abs(of_vae[0])
    run.check("a VAE learns the same from all ways", agree, str(losses))
    for densify in [[], ["--densify-on-device"]]:
        begin = time.monotonic()
        code, text = run.program(
            "train_cell_types", "cells", "--device", run.device, "--orders", "chunks",
            "--seeds", 0, "--chunks-per-block", 512, "--batch-rows", 1024, *densify,
            "--out", run.results / f"cell-types{'-'.join(densify)}", timeout=20,
        )
        run.row(what="train_cell_types", densify_on_device=bool(densify),
                seconds=time.monotonic() - begin, output=text[-1500:])
        run.check(" ".join(["train_cell_types", *densify]), code == 0, text)
