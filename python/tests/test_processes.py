"""Pickling, forks, Ctrl-C, and the end of the interpreter."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import somafeed
from batches import assert_board, joinids_of
from programs import hidden, started
from somafeed import ExperimentDataset
from test_query import Query

OPTIONS = {"batch_size": 6, "shuffle_chunk_size": 2, "io_batch_size": 12, "seed": 11}


def dataset(board, **options):
    return ExperimentDataset(uri=board.uri, **{**OPTIONS, **options})


def test_pickled_data_sets_are_small_and_the_same(experiment):
    columns = ["soma_joinid", "kind"]
    everything = {
        "all": dataset(experiment),
        "filters": dataset(experiment, obs_filter="donor < 3", var_filter="soma_joinid > 2"),
        "joinids": dataset(experiment, obs_joinids=[5, 1, 9], var_joinids=[3, 1]),
        "genes": dataset(experiment, genes=("feature_id", ["ENSG00001", "none"])),
        "codes": dataset(experiment, obs_form="codes", obs_column_names=columns),
        "part": dataset(experiment).random_split(0.5, 0.5, seed=1)[1],
        "group": dataset(experiment).split_by_group("donor", 0.5, 0.5, seed=1, label="kind")[0],
        "label": dataset(experiment).split_by_label("kind", 0.5, 0.5, seed=1)[0],
        "query": ExperimentDataset(Query(experiment.uri, list(range(50)), [1, 2]), "raw", **OPTIONS),
    }
    everything["several"] = ExperimentDataset.concat([everything["joinids"], everything["joinids"]])
    for name, ds in everything.items():
        pickled = pickle.dumps(ds)
        assert len(pickled) < 10_000, name
        again = pickle.loads(pickled)
        assert again.shape == ds.shape, name
        for (X, obs), (other_X, other_obs) in zip(ds, again, strict=True):
            np.testing.assert_array_equal(X, other_X)
            assert str(obs) == str(other_obs), name


def test_the_configuration_of_a_context_pickles_within_the_limit(experiment):
    """A context of tiledbsoma lists every parameter of TileDB, about 190."""
    query = Query(experiment.uri, list(range(50)), [1, 2])
    query.context.tiledb_config.update({f"sm.parameter_{i}.of.some.kind": "10737418240" for i in range(190)})
    ds = ExperimentDataset(query, "raw")
    assert len(pickle.dumps(ds)) < 10_000
    assert pickle.loads(pickle.dumps(ds)).x_locator == ds.x_locator


def test_pickling_is_for_what_can_be_opened_again(experiment):
    of_opened = ExperimentDataset(dataset=dataset(experiment).dataset)
    for value in (of_opened, of_opened.dataset, somafeed.Experiment(experiment.uri)):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(value)


def send_joinids(ds, sender):
    sender.send(joinids_of(ds))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("is_running", [False, True])
def test_data_sets_in_other_processes(experiment, method, is_running):
    ds = dataset(experiment)
    expected = joinids_of(ds)
    ds.set_epoch(0)
    iterator = iter(ds)
    if is_running:
        next(iterator)
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_joinids, args=(ds, sender))
    process.start()
    assert receiver.poll(60)
    assert receiver.recv() == expected
    process.join(20)
    assert process.exitcode == 0
    assert sorted(joinids_of(iterator)) == sorted(expected[6 * is_running :])


def send_error(iterator, sender):
    try:
        next(iterator)
    except RuntimeError as error:
        sender.send(str(error))


def test_an_iterator_does_not_survive_a_fork(experiment):
    iterator = iter(dataset(experiment))
    next(iterator)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_error, args=(iterator, sender))
    process.start()
    assert receiver.poll(60)
    assert "process" in receiver.recv()
    process.join(20)
    assert process.exitcode == 0
    assert len(list(iterator)) == 16


PROGRAM = """
import time
def dataset():
    return somafeed.ExperimentDataset(
        uri={uri!r}, batch_size=2, seed=1, shuffle_chunk_size=2, io_batch_size=4
    )
{body}
"""

BODIES = {
    "opening": """
print("ready", flush=True)
while True:
    dataset()
""",
    "first batch": """
ds = dataset()
print("ready", flush=True)
while True:
    next(iter(ds))
""",
    "middle": """
ds = dataset()
print("ready", flush=True)
while True:
    for batch in ds:
        pass
""",
    "between": """
iterator = iter(dataset())
next(iterator)
print("ready", flush=True)
while True:
    time.sleep(0.01)
""",
}


def program(board, body):
    """A program without torch, which takes seconds to import."""
    return hidden("torch") + PROGRAM.format(uri=board.uri, body=body)


@pytest.mark.parametrize("when", BODIES)
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3])
def test_ctrl_c(experiment, when, delay):
    script, pipe = program(experiment, BODIES[when]), subprocess.PIPE
    with started([sys.executable, "-c", script], stdout=pipe, stderr=pipe) as process:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        # The limit is that of a loaded machine; a hang would last for ever.
        _, errors = process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 130), errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors


ENDINGS = {
    "in the middle": "it = iter(dataset()); next(it)",
    "with a kept batch": "it = iter(dataset()); kept = next(it); del it",
    "before the first batch": "it = iter(dataset())",
    "in a loop": "for batch in dataset():\n    break",
    "by exit": "it = iter(dataset()); next(it); sys.exit(0)",
    "in a cycle": "it = iter(dataset()); next(it); loop = [it]; loop.append(loop)",
}


@pytest.mark.parametrize("how", ENDINGS)
def test_the_end_of_the_interpreter(experiment, how):
    ran = subprocess.run(
        [sys.executable, "-c", program(experiment, ENDINGS[how])],
        capture_output=True, text=True, timeout=60,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_an_error_ends_the_interpreter_like_any_other(experiment):
    body = "it = iter(dataset()); next(it); raise KeyError('mine')"
    ran = subprocess.run(
        [sys.executable, "-c", program(experiment, body)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1 and ran.stderr.rstrip().endswith("KeyError: 'mine'")


def test_threads_start_at_the_first_batch_and_end_with_the_iterator(experiment):
    def threads():
        return len(os.listdir("/proc/self/task"))

    ds = dataset(experiment)
    list(ds)
    before = threads()
    iterator = iter(ds)
    assert threads() == before
    next(iterator)
    iterator.close()
    for _ in range(50):
        if threads() <= before:
            break
        time.sleep(0.1)
    assert threads() <= before


def test_threads_of_python_share_a_data_set(experiment):
    from concurrent.futures import ThreadPoolExecutor

    ds = dataset(experiment)
    expected = sorted(joinids_of(ds))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: sorted(joinids_of(iter(ds))), range(8)):
            assert found == expected
    assert_board(experiment, ds)


def test_threads_of_python_share_an_iterator(experiment):
    """Each batch goes to one of them, although all ask for the first at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    ds = dataset(experiment)
    expected = sorted(joinids_of(ds))
    for _ in range(3):
        iterator = iter(ds)
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda _: joinids_of(iterator), range(8))
        assert sorted(sum(found, [])) == expected
    assert ds.epoch == 4


def test_an_iterator_is_not_copied(experiment):
    import copy

    iterator = iter(dataset(experiment))
    for _ in range(2):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="state_dict"):
                copied(iterator)
        next(iterator)


def test_a_name_for_each_import_without_torch():
    script = hidden("torch") + (
        "from somafeed import *\n"
        "try: experiment_dataloader(3)\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "experiment_dataloader needs torch" in ran.stdout, ran.stderr
