"""Checks and measures somafeed on a machine with a GPU and many cores, in one call.

    python3 run.py --out FOLDER              # all sections, about nine minutes
    python3 run.py --device cpu --small      # the same sections on any machine, as a test

`cargo xtask gpu-bundle` puts this folder, the programs and the wheels into one archive; nothing
else is needed but a Python with PyTorch 2.11 (for CUDA where there is a GPU), scipy and
pyarrow. The programs use the libtorch of that PyTorch. Wheels of other loaders that shall be
measured, too, may lie in `wheels-peers` beside this file. The sections run in order of worth, each
until a fixed time after the start, so what one leaves is for the later ones. Each check and each
row is written as soon as it exists, so a cut loses only what follows:

- `checks.jsonl`: the name of each check, and whether it passed, failed or did not run;
- `rows.jsonl`: measurements, each with its section and settings, units in the names;
- `results.tar.gz`: Parquet rows and pictures of the programs;
- `log.txt`: the output of every program.

On a GPU, a check that did not run is a failure. The exit code is 0 if no check failed.
"""

import argparse
import copy
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent

SECONDS = {"smoke": 25, "data": 115, "right": 115, "feed": 125, "threads": 155, "training": 100}
"""The most seconds of each section, in the order in which they run."""
GROUPS = (("smoke",), ("data", "right"), ("feed",), ("threads",), ("training",))
"""Sections that run at the same time. Those that measure time run alone."""
KEPT = {".json", ".md", ".parquet", ".svg"}
"""Suffixes of the files that results folders bring along. Pages with scripts are too large."""

WITH_CUDA = {"feed_device", "torch-feed-unit-tests", "train_cell_types"}
"""Programs that use the GPU. Loading CUDA takes seconds, so others go without it."""

OF_PACKAGE = {"fields", "sequences"}
"""Programs that are commands of the Python package."""


class Run:
    """One call: its programs, its data and what was found so far."""

    def __init__(self, device, small, programs, package, out, work):
        self.device, self.small = device, small
        self.out = out.resolve()
        # Rows of two runs in one file would be taken for those of one.
        self.out.mkdir(parents=True)
        self.work = Path(tempfile.mkdtemp(prefix="somafeed-gpu-", dir=work))
        if programs is None or package is None:
            self.unpack()
        self.programs = programs.resolve() if programs else self.work / "programs"
        self.package = package.resolve() if package else self.work / "package"
        self.results = self.work / "results"
        self.cores = sorted(os.sched_getaffinity(0))
        self.section, self.deadline = "", math.inf
        self.failed, self.processes, self.is_stopped = [], set(), threading.Event()
        # As a test it runs unoptimised programs, beside other work.
        self.patience = 10 if small else 1

    def unpack(self) -> None:
        """Puts programs and package of the bundle into the folder of the data."""
        with tarfile.open(HERE / "bundle.tar.xz") as archive:
            archive.extractall(self.work, filter="data")
        for wheel in (self.work / "wheels").glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(self.work / "package")

    def of_section(self, name: str, deadline: float):
        """The same run, as a section has it that ends by a time."""
        run = copy.copy(self)
        run.section, run.deadline = name, deadline
        return run

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def row(self, **values) -> None:
        """Keeps a measurement."""
        self.write("rows.jsonl", {"section": self.section, **values})

    def check(self, name: str, passed: bool | None, output: str = "") -> None:
        """Keeps the outcome of a check; None is one that did not run."""
        outcome = {True: "passed", False: "FAILED", None: "did not run"}[passed]
        if not passed and (passed is not None or self.on_gpu):
            self.failed.append(name)
        detail = "" if passed else output[-1500:]
        self.write("checks.jsonl", {
            "section": self.section, "check": name, "outcome": outcome, "detail": detail,
        })

    def write(self, file: str, record: dict) -> None:
        line = json.dumps(record)
        with open(self.out / file, "a", encoding="utf-8") as lines:
            lines.write(line + "\n")
        print(line[:500], flush=True)

    def environment(self, cuda: bool) -> dict[str, str]:
        """The environment in which programs find this Python's libtorch, with CUDA if asked."""
        import torch

        libraries = Path(torch.__file__).parent / "lib"
        environment = dict(os.environ, PYTHONPATH=str(self.package))
        environment.update(PYTHONDONTWRITEBYTECODE="1", LD_LIBRARY_PATH=str(libraries))
        if cuda and self.on_gpu:
            environment["SOMAFEED_REQUIRE_GPU"] = "1"
            # The programs were linked to a libtorch for the CPU, so they name no library of CUDA.
            environment["LD_PRELOAD"] = str(libraries / "libtorch_cuda.so")
        return environment

    def call(
        self, command, timeout=math.inf, cores=None, cuda=False, **variables
    ) -> tuple[int, str]:
        """Runs a command; returns its exit code, -9 at the end of the time, and its output."""
        command = [str(word) for word in command]
        begin = time.monotonic()
        seconds = min(timeout * self.patience, self.deadline - begin)
        if seconds <= 0 or self.is_stopped.is_set():
            return -9, "no time was left for it"
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            try:
                process = subprocess.Popen(
                    command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    cwd=self.work, env={**self.environment(cuda), **variables},
                    start_new_session=True,
                    preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
                )
            except OSError as error:
                return 127, f"{command[0]}: {error}"
            self.processes.add(process)
            try:
                process.wait(seconds if seconds < math.inf else None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            self.processes.discard(process)
            output.seek(0)
            text = output.read()
        took = time.monotonic() - begin
        with open(self.out / "log.txt", "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n{text[-100_000:]}\n[{code}, {took:.1f} s]\n")
        return code, text

    def program(self, name: str, *arguments, **options) -> tuple[int, str]:
        """Runs a program; `somafeed`, and its commands for some kinds, are of the Python package."""
        options.setdefault("cuda", name in WITH_CUDA)
        of_kind = [name] if name in OF_PACKAGE else []
        if of_kind or name == "somafeed":
            command = [sys.executable, "-m", "somafeed", *of_kind]
        else:
            command = [self.programs / name]
        return self.call([*command, *arguments], **options)

    def function(self, name: str, *arguments, **options) -> tuple[int, str]:
        """Runs `file.function` of the scripts beside this one in a process of its own."""
        file, function = name.split(".")
        return self.call([sys.executable, HERE / f"{file}.py", function, *arguments], **options)

    def stop(self) -> None:
        """Ends all programs: in sessions of their own, they do not get an interrupt."""
        self.is_stopped.set()
        for process in list(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def keep_results(self) -> None:
        """Puts the results folders of the programs into one file of the output."""
        if self.results.is_dir():
            with tarfile.open(self.out / "results.tar.gz", "w:gz") as archive:
                for file in sorted(self.results.rglob("*")):
                    if file.suffix in KEPT:
                        archive.add(file, Path("results") / file.relative_to(self.results))


def json_lines(text: str):
    """The lines of a program's output that are JSON objects; the last may be cut."""
    for line in text.splitlines():
        if line.startswith("{") and line.endswith("}"):
            yield json.loads(line)


def run_section(run: Run, name: str, deadline: float) -> None:
    """Runs a section, which must end by a time of the monotonic clock."""
    import sections

    run, begin = run.of_section(name, deadline), time.monotonic()
    try:
        getattr(sections, name)(run)
    except Exception as error:
        run.check(f"section {name}", False, repr(error))
    run.row(what="section", seconds=time.monotonic() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--device", default="cuda:0", help="cuda:0 and so on, or cpu; default: cuda:0")
    add("--small", action="store_true", help="little data: a test of all sections")
    add("--only", default=",".join(SECONDS), help="sections, separated by commas")
    add("--out", type=Path, default=Path("somafeed-gpu"), help="folder of the output")
    add("--work", type=Path, help="folder for data; default: that of temporary files")
    add("--programs", type=Path, help="folder of the programs; default: the bundle's")
    add("--package", type=Path, help="folder of the Python package; default: the bundle's")
    arguments = vars(parser.parse_args())
    only = arguments.pop("only").split(",")
    if unknown := set(only) - set(SECONDS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECONDS)}")
    run, deadline = Run(**arguments), time.monotonic()

    def end(*_) -> None:
        # Programs that go on would compute beside whatever is measured next.
        run.stop()
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    try:
        for group in GROUPS:
            names = [name for name in group if name in only]
            deadline += max([SECONDS[name] for name in names], default=0) * run.patience
            with ThreadPoolExecutor() as pool:
                try:
                    list(pool.map(partial(run_section, run, deadline=deadline), names))
                except BaseException:
                    run.stop()
                    raise
            run.keep_results()
    finally:
        shutil.rmtree(run.work, ignore_errors=True)
    print(f"{len(run.failed)} checks failed", *run.failed, sep="\n", flush=True)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
