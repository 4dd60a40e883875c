"""Processes: forks, Ctrl-C at any moment, and interpreters that end in the middle."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from native_examples import dataset, dense, in_memory, matrix
from somafeed import _somafeed as native

# Far above what anything here takes; below it a hang is seen as one.
PATIENCE = 60


def in_child(work) -> str:
    """Runs `work` in a forked process and returns its text. Fails if it hangs or dies."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = work()
        except BaseException as error:  # noqa: BLE001
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the forked process hangs")
        time.sleep(0.01)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert ended[1] == 0, f"the forked process died with {ended[1]}: {text}"
    return text


@pytest.mark.parametrize("make", [
    lambda: dataset(obs_columns=["cell_type"]),
    lambda: in_memory(matrix(300, 5)),
    lambda: native.Dataset.concat([dataset(), dataset(obs_joinids=(0, 50))]),
    lambda: dataset().select((10, 400)),
], ids=["experiment", "memory", "concat", "select"])
def test_a_forked_process_reads_for_itself(make):
    data = make()
    loader = native.Loader(data, batch_size=32, chunk_rows=8, chunks_per_block=4, memory=400 << 20)
    epoch = loader.epoch(1)
    batches = [next(epoch)]
    expected = [(batch.joinids.tolist(), dense(batch).tolist()) for batch in loader.epoch(2)]

    def work():
        found = [(batch.joinids.tolist(), dense(batch).tolist()) for batch in loader.epoch(2)]
        anew = native.Loader(data.select((0, 8)), batch_size=8)
        assert sum(batch.n_rows for batch in anew.epoch(0)) == 8
        assert batches[0].dense().any() and data.obs().num_rows == data.shape[0]
        return str(found == expected)

    assert in_child(work) == "True"
    # The parent goes on as if nothing had happened.
    n_rows = batches[0].n_rows + sum(batch.n_rows for batch in epoch)
    assert n_rows == data.shape[0]


def test_an_epoch_of_the_parent_is_a_runtime_error():
    epoch = native.Loader(in_memory(matrix(300, 5)), batch_size=10).epoch(7)
    next(epoch)
    for use in (next, lambda epoch: epoch.state(), lambda epoch: epoch.stats(),
                lambda epoch: epoch.close(), list):
        text = in_child(lambda: repr(use(epoch)))
        assert text.startswith("SomafeedError: epoch 7 was started by the process that forked"), text
    assert issubclass(native.SomafeedError, RuntimeError)


def test_dropping_everything_in_a_forked_process_hangs_nothing():
    # Threads hold locks at the time of a fork now and then, so it is tried while they work.
    data = dataset()
    for turn in range(15):
        held = {"loader": native.Loader(data, batch_size=4, chunk_rows=2, chunks_per_block=4)}
        held["epoch"] = held["loader"].epoch(turn)
        held["kept"] = [next(held["epoch"]) for _ in range(3)]
        held["views"] = [batch.dense() for batch in held["kept"]]

        def work():
            held.clear()
            return "dropped"

        assert in_child(work) == "dropped"


def test_experiments_are_opened_anew():
    from native_examples import experiment_uri

    experiment = native.Experiment(experiment_uri())
    assert in_child(lambda: str(len(experiment.obs(joinids=(0, 5))))) == "5"
    assert in_child(lambda: str(dataset().shape)) == str(dataset().shape)


def test_a_shared_budget_starts_empty_in_a_forked_process():
    budget = native.Budget(100 << 20)
    loader = native.Loader(in_memory(matrix(300, 5)), memory=budget, batch_size=8)
    epoch = loader.epoch(0)
    assert budget.leased > 0
    assert in_child(lambda: str(budget.leased)) == "0"
    assert in_child(lambda: str(sum(batch.n_rows for batch in loader.epoch(0)))) == "300"
    epoch.close()


@pytest.fixture
def silent_store():
    """A store that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def accept():
            while True:
                try:
                    connections.append(server.accept())
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for connection, _ in connections:
            connection.close()


def secs_until_interrupted(work, after: float = 0.3) -> float:
    """How long `work` goes on after Ctrl-C."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    timer.join()
    return time.monotonic() - sent[0]


def test_ctrl_c_ends_opening(silent_store):
    config = {
        "vfs.s3.endpoint_override": silent_store, "vfs.s3.scheme": "http",
        "vfs.s3.use_virtual_addressing": "false", "vfs.s3.region": "us-east-1",
        "vfs.s3.aws_access_key_id": "a", "vfs.s3.aws_secret_access_key": "b",
    }
    assert secs_until_interrupted(lambda: native.Experiment("s3://bucket/x", config=config)) < 5


def test_ctrl_c_ends_waiting_for_a_batch(tmp_path):
    uri = tmp_path / "experiment"
    native.generate_example(str(uri), n_cells=300, n_genes=10)
    [values] = uri.glob("ms/RNA/X/raw/__fragments/*/a0.tdb")
    data = native.Dataset.from_experiment(native.Experiment(str(uri)))
    # Reading a pipe waits until somebody writes to it.
    values.rename(tmp_path / "values")
    os.mkfifo(values)
    for settings in ({}, {"prefetch_batches": 0}):
        epoch = native.Loader(data, batch_size=10, **settings).epoch(0)
        assert secs_until_interrupted(lambda: next(epoch)) < 5
        assert secs_until_interrupted(lambda: epoch.close()) < 5
    # Ends the threads that still read.
    os.close(os.open(values, os.O_WRONLY | os.O_NONBLOCK))


def test_ctrl_c_ends_writing_an_example(tmp_path):
    uri = tmp_path / "experiment"
    work = lambda: native.generate_example(str(uri), n_cells=10_000_000, n_genes=20_000)
    assert secs_until_interrupted(work) < 5
    assert not uri.exists()


def run(script: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script],
        capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )


def test_ctrl_c_that_is_ignored_stays_ignored():
    ran = run("""
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from native_examples import *
opened = [native.Experiment(experiment_uri(), reader=reader) for reader in ("native", "libtiledb")]
os.kill(os.getpid(), signal.SIGINT)
print(*(len(experiment.obs(joinids=(0, 5))) for experiment in opened))
""")
    assert (ran.returncode, ran.stdout.split()) == (0, ["5", "5"]), ran.stderr


START = """
import sys
from native_examples import *
loader = native.Loader(in_memory(matrix(20_000, 50)), batch_size=10, chunk_rows=4, chunks_per_block=4)
epoch = loader.epoch(0)
batch = next(epoch)
"""


@pytest.mark.parametrize("end", [
    "", "sys.exit(3)", "raise ValueError", "epoch.me = 1" , "view = batch.dense(); del batch",
    "import threading; threading.Thread(target=list, args=(epoch,)).start()",
    "import threading; threading.Thread(target=list, args=(epoch,), daemon=True).start()",
    "sys.epoch = epoch; sys.batch = batch.dense()",
    "import atexit; atexit.register(lambda: next(epoch))",
])
def test_an_interpreter_that_ends_in_an_epoch_ends_cleanly(end):
    ended = run(START + end)
    expected = 3 if "exit(3)" in end else 1 if "raise" in end or "epoch.me" in end else 0
    assert ended.returncode == expected, ended.stderr
    assert "Fatal" not in ended.stderr and "panicked" not in ended.stderr, ended.stderr
