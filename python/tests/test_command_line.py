"""The command `somafeed`: the commands of `cargo xtask`, without a compiler."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

COMMAND = [sys.executable, "-m", "somafeed"]
COMMANDS = ["sweep", "generate", "import", "slice", "relayout", "growth", "ranks", "report", "tune"]


def somafeed(folder, *arguments, code=0, timeout=120):
    """Runs a command in a folder; stdout and stderr."""
    command = [*COMMAND, *map(str, arguments)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout)
    assert ran.returncode == code, ran.stderr + ran.stdout
    return ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """A folder with an experiment of 2,000 cells and 50 genes, written by the command itself."""
    folder = tmp_path_factory.mktemp("cells")
    somafeed(folder, "generate", "x", "--cells", 2_000, "--genes", 50, "-q")
    return folder


def epochs(results: Path):
    return pq.read_table(results / "epochs.parquet").to_pylist()


def test_help_names_the_program_and_its_commands(tmp_path):
    out, _ = somafeed(tmp_path, "--help")
    assert "Usage: somafeed <COMMAND>" in out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    for name in COMMANDS:
        out, _ = somafeed(tmp_path, name, "--help")
        assert f"Usage: somafeed {name}" in out and "cargo" not in out
    out, _ = somafeed(tmp_path, "--version")
    assert out.startswith("somafeed ")


def test_a_sweep_measures_points_and_goes_on(cells):
    arguments = ["sweep", "--uri", "x", "-b", "64x4", "-b", "64x8", "-m", "native", "-q"]
    somafeed(cells, *arguments, "--results", "swept")
    rows = epochs(cells / "swept")
    assert sorted({row["chunk_size"] for row in rows}) == [4, 8]
    for row in rows:
        assert row["n_rows"] == 2_000 and row["elapsed"] > 0 and row["reader"] == "native"
        # The command as users type it; no tensors were made.
        assert row["command"].startswith("somafeed sweep --uri x -b ")
        assert row["libtorch"] is None
    for name in ["README.md", "speed-vs-memory.svg"]:
        assert (cells / "swept" / name).exists(), name
    # Nothing is measured again, since the program is the same.
    somafeed(cells, *arguments, "--results", "swept", "--resume")
    assert len(epochs(cells / "swept")) == len(rows)
    somafeed(cells, "report", "swept", "--out", "redrawn")
    assert (cells / "redrawn" / "speed-vs-memory.svg").exists()


def test_measured_processes_have_not_imported_numpy(cells):
    """The peak memory of a point is the loader's, with some megabytes of an interpreter."""
    arguments = ["sweep", "--uri", "x", "-b", "64x4", "-m", "native", "-B", "32", "-q"]
    somafeed(cells, *arguments, "--results", "small")
    program = "import somafeed, resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    package = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    rows = epochs(cells / "small")
    assert max(row["max_mem"] for row in rows) < 1024 * int(package.stdout)


def test_an_experiment_is_sliced_laid_out_anew_and_tuned(cells):
    somafeed(cells, "slice", "x", "part", "--obs-filter", "nnz > 2", "-v", 20, "-q")
    somafeed(cells, "relayout", "part", "relaid", "--shuffle", 1, "-q")
    out, _ = somafeed(cells, "tune", "--uri", "x", "--memory", "1GiB", "--json", "-q")
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines[0]["kind"] == "model" and lines[-1]["kind"] == "verification"
    out, _ = somafeed(cells, "tune", "--uri", "x", "--memory", "1GiB", "--no-verify", "-q")
    assert "somafeed sweep --uri x -b " in out


@pytest.mark.parametrize("arguments, code, words", [
    (["swep"], 2, "swep"),
    (["sweep", "--uri", "absent"], 1, "absent"),
    (["sweep", "--consumer", "linear"], 2, "torch"),
    (["peers", "--uri", "x"], 2, "peers"),
    (["relayout", "absent", "to"], 1, "absent"),
])
def test_what_cannot_be_is_one_line(cells, arguments, code, words):
    out, err = somafeed(cells, *arguments, code=code)
    assert words in err and len(err.strip().splitlines()) == 1 and "Traceback" not in err
    assert not (cells / "to").exists()


def test_an_interrupted_sweep_keeps_its_rows(cells):
    arguments = ["sweep", "--uri", "x", "-b", "64x4", "-m", "native", "-B", "32", "--repeat", "500"]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--results", "stopped"], cwd=cells, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    try:
        kept, deadline = cells / "stopped", time.monotonic() + 60
        while time.monotonic() < deadline:
            if (kept / "epochs.parquet").exists() and epochs(kept):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err and epochs(cells / "stopped")
