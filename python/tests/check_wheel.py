"""Checks an installed wheel in the environment of this Python; `cargo xtask test-wheel` runs it.

Needs numpy alone, so that it runs beside any other packages: the help of every command, an
experiment, a sweep of it, the README's program, and programs that end while daemon threads wait.
"""

import importlib.util
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from endings import WORKS, ending

COMMANDS = ["demo", "sweep", "generate", "import", "slice", "relayout", "growth", "ranks", "report", "tune"]
PACKAGES = ["anndata", "pandas", "tiledb", "tiledbsoma", "torch"]
N_ENDINGS = 15
README = Path(__file__).parents[2] / "README.md"


def has(package):
    return importlib.util.find_spec(package) is not None


def command(*arguments):
    """Runs a command of the wheel: its problem, or None."""
    words = list(map(str, arguments))
    ran = subprocess.run(
        [sys.executable, "-m", "somafeed", *words], capture_output=True, text=True, timeout=600
    )
    if ran.returncode == 0:
        return None
    return f"somafeed {' '.join(words)}: exit code {ran.returncode}\n{ran.stderr[-2000:]}"


def of_commands(uri):
    yield command("--help")
    for name in COMMANDS:
        yield command(name, "--help")
    yield command("generate", uri, "--cells", 20_000, "--genes", 200, "-q")
    results = f"{uri}-swept"
    yield command("sweep", "--uri", uri, "-b", "1024 / [64,256]", "-q", "--results", results)


def of_readme(folder):
    """Runs the README's first program in Python; without torch it must say what to install."""
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    if has("torch"):
        program += "print(X.shape)"
    else:
        # What our own message says, and not Python's.
        program = program.replace("import torch\n", "")
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if has("torch"):
        passed = ran.returncode == 0 and re.search(r"torch\.Size\(\[\d+, 500\]\)", ran.stdout)
    else:
        passed = ran.stderr.rstrip().endswith("pip install torch")
    yield None if passed else f"the README's program: {ran.stdout[-500:]}{ran.stderr[-2000:]}"


def of_endings(uri):
    for work in WORKS:
        # Frames, where there is pandas.
        options = ["{}"] if work == "ExperimentDataset" and has("pandas") else []
        ends = [ending(uri, work, *options) for _ in range(N_ENDINGS)]
        failed = [end for end in ends if end != (0, "trained\n")]
        yield f"{work}: {len(failed)} of {N_ENDINGS} ends failed, like {failed[0]}" if failed else None


def main():
    packages = ", ".join(filter(has, PACKAGES)) or "no other package"
    print(f"Python {platform.python_version()} with {packages}:", end=" ", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "cells")
        found = [*of_commands(uri), *of_readme(folder), *of_endings(uri)]
    problems = [problem for problem in found if problem is not None]
    print(f"{len(found) - len(problems)} of {len(found)} checks passed", *problems, sep="\n")
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main())
