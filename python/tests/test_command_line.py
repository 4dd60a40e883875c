"""The command `somafeed`: the commands of `cargo xtask`, without a compiler."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import somafeed as somafeed_package
from conftest import tiledbsoma_python
from programs import started
from somafeed import Doc2Vec, FieldDataset, ImageDataset, Kmers, SequenceDataset
from somafeed import _somafeed as native

COMMAND = [sys.executable, "-m", "somafeed"]
COMMANDS = ["demo", "sweep", "generate", "import", "slice", "relayout", "growth", "ranks", "report", "tune",
            "cubes", "fields", "sequences"]


def test_a_first_look(tmp_path):
    table, _ = somafeed(tmp_path, "demo")
    assert all(f"{4096 // n} × {n} " in table for n in (16, 32, 64, 128, 256)), table
    assert "somafeed tune --uri somafeed-demo/cells" in table
    assert (tmp_path / "somafeed-demo/results/epochs.parquet").exists()
    _, why = somafeed(tmp_path, "demo", code=2)
    assert "somafeed-demo exists: name another folder" in why


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
    shown = [f"\n  {name} " in out or f"somafeed {name}" in out for name in COMMANDS]
    assert all(shown), out
    for name in COMMANDS:
        out, _ = somafeed(tmp_path, name, "--help")
        assert f"Usage: somafeed {name}" in out and "cargo" not in out
    out, _ = somafeed(tmp_path, "--version")
    assert out.startswith("somafeed ")


@pytest.mark.parametrize("package", ["tiledb", "tiledbsoma"])
def test_every_command_runs_beside_a_package_with_libtiledb(cells, tmp_path, package):
    """The command names the package's libtiledb to its child processes."""
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise ImportError")
    (tmp_path / package / "libtiledb.so").write_text("loaded only if it is needed")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("SOMAFEED_LIBTILEDB", None)
    for arguments in (
        ["--help"], *([name, "--help"] for name in COMMANDS),
        ["sweep", "--uri", "x", "-b", "64x4", "-m", "native", "-q", "--results", f"beside-{package}"],
    ):
        ran = subprocess.run(
            [*COMMAND, *arguments], cwd=cells, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, (arguments, ran.stderr)


def test_the_command_runs_beside_tiledbsoma(cells):
    # The folder of the package under test.
    environment = {**os.environ, "PYTHONPATH": str(Path(somafeed_package.__file__).parents[1])}
    environment.pop("SOMAFEED_LIBTILEDB", None)
    ran = subprocess.run(
        [tiledbsoma_python(), "-m", "somafeed", "slice", "x", "beside", "-v", "20", "-q"],
        cwd=cells, env=environment, capture_output=True, text=True,
    )
    assert ran.returncode == 0, ran.stderr


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


def test_fields_are_written_and_measured(tmp_path):
    somafeed(tmp_path, "fields", "generate", "weather", "--samples", 8, "--lat", 8, "--lon", 16,
             "--inputs", 2, "--targets", 2, "-q")
    somafeed(tmp_path, "fields", "sweep", "weather", "-B", 2, "-t", 1, "--results", "swept", "-q")
    rows = epochs(tmp_path / "swept")
    assert rows and all(row["elapsed"] > 0 for row in rows)
    assert rows[0]["command"].startswith("somafeed fields sweep weather ")
    batch = next(iter(FieldDataset(tmp_path / "weather", ["inputs"], batch_size=2)))
    assert len(batch["inputs"]) == 2 and batch["inputs"].size == 2 * 2 * 8 * 16
    # The same in chunks of one channel.
    _, messages = somafeed(tmp_path, "fields", "relayout", "weather", "laid", "--chunks", "input_channels=1",
                           "--shards", "sample=4")
    assert "next: somafeed fields sweep laid --arrays inputs,targets" in messages, messages
    again = next(iter(FieldDataset(tmp_path / "laid", ["inputs"], batch_size=2, shuffle=False)))
    first = next(iter(FieldDataset(tmp_path / "weather", ["inputs"], batch_size=2, shuffle=False)))
    assert (again["inputs"] == first["inputs"]).all()


def test_sequences_are_written_imported_trained_on_and_measured(tmp_path):
    somafeed(tmp_path, "sequences", "generate", "dna.txt", "--families", 20, "--members", 4)
    somafeed(tmp_path, "sequences", "import", "dna.txt", "dna", "-q")
    out, _ = somafeed(tmp_path, "sequences", "words", "dna", "--write", "words.tsv")
    assert "words of 4 letters" in out
    somafeed(tmp_path, "sequences", "train", "dna", "-E", 2, "-t", 2, "--results", "vectors")
    somafeed(tmp_path, "sequences", "sweep", "dna", "--form", "tokens", "-w", 1, "-B", 16,
             "--repetitions", 1, "--results", "swept", "-q")
    rows = epochs(tmp_path / "swept")
    assert rows and rows[0]["command"].startswith("somafeed sequences sweep dna ")
    ds = SequenceDataset(tmp_path / "dna", Kmers(), batch_size=80)
    lines = [line.split("\t") for line in (tmp_path / "words.tsv").read_text().splitlines()]
    assert ds.vocabulary.words == [word for word, _ in lines]
    assert ds.vocabulary.counts.tolist() == [int(count) for _, count in lines]
    model = Doc2Vec.load(tmp_path / "vectors" / "embeddings.safetensors")
    assert model.dv.index_to_key == ds.names and model.wv.index_to_key == ds.vocabulary.words


def test_cubes_are_written_converted_and_measured(tmp_path):
    somafeed(tmp_path, "cubes", "generate", "pigs", "--images", 6, "--size", "12x16x10",
             "--formats", "dat", "--level", 1)
    somafeed(tmp_path, "cubes", "preprocess", "pigs", "--to", "raw16,zarr", "--level", 1)
    somafeed(tmp_path, "cubes", "sweep", "pigs", "--strategies", "event-ring", "--consumer", "none",
             "-w", 1, "-B", 2, "-E", 2, "--warmup", 1, "--repetitions", 1, "--warm", "--no-floors",
             "--results", "swept")
    rows = epochs(tmp_path / "swept")
    assert rows and all(row["n_rows"] == 6 for row in rows)
    assert rows[0]["command"].startswith("somafeed cubes sweep pigs ")
    batch = next(iter(ImageDataset(tmp_path / "pigs", stored="zarr", batch_size=6)))
    assert batch["features"].shape == (6, 12, 16, 10)


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
    (["fields", "swep"], 2, "swep"),
    (["fields", "sweep", "absent"], 1, "absent"),
    (["sequences", "import", "absent"], 2, "<STORE>"),
    (["sequences", "words", "absent"], 1, "absent"),
    (["cubes", "swep"], 2, "swep"),
    (["cubes", "generate"], 2, "<FOLDER>"),
    (["cubes", "sweep", "absent"], 1, "absent"),
    (["cubes", "sweep", "absent", "--consumer", "cpu"], 2, "torch"),
])
def test_what_cannot_be_is_one_line(cells, arguments, code, words):
    out, err = somafeed(cells, *arguments, code=code)
    assert words in err and len(err.strip().splitlines()) == 1 and "Traceback" not in err
    assert not (cells / "to").exists()


def test_an_interrupted_sweep_keeps_its_rows(cells):
    arguments = ["sweep", "--uri", "x", "-b", "64x4", "-m", "native", "-B", "32", "--repeat", "500"]
    options = {"cwd": cells, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    command = [*COMMAND, *arguments, "--results", "stopped"]
    with started(command, start_new_session=True, **options) as process:
        kept, deadline = cells / "stopped", time.monotonic() + 60
        while time.monotonic() < deadline:
            if (kept / "epochs.parquet").exists() and epochs(kept):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err and epochs(cells / "stopped")


def test_a_command_goes_on_if_nobody_reads_its_output(cells):
    for arguments in (["--help"], ["slice", "x", "unread", "-v", "20"]):
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run([*COMMAND, *arguments], cwd=cells, stdout=writer, stderr=writer)
        os.close(writer)
        assert ran.returncode == 0


def test_joinids_may_be_far_apart(make_board, tmp_path):
    """Two cells with the joinids 0 and 2^60: no command goes through those between."""
    far = make_board(0, 2**60 + 2**59, 2**60)
    assert far.joinids.tolist() == [0, 2**60]
    for arguments in (
        ["slice", far.uri, "part", "-q"],
        ["slice", far.uri, "filtered", "--obs-filter", "donor >= 0", "-q"],
        ["relayout", "part", "laid", "-q"],
    ):
        somafeed(tmp_path, *arguments)
    for name in ("part", "filtered", "laid"):
        copied = native.Dataset.from_experiment(native.Experiment(str(tmp_path / name)))
        assert copied.shape == (2, far.n_genes)
        [batch] = native.Loader(copied, shuffle=False).epoch(0)
        assert np.array_equal(batch.dense(), far.values(far.joinids))
    whole = native.Dataset.from_experiment(native.Experiment(far.uri))
    [batch] = native.Loader(whole, shuffle=False).epoch(0)
    assert batch.joinids.tolist() == [0, 2**60]
