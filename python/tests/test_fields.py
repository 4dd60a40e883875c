"""Fields of Zarr stores: batches, parts, ranks, states, workers, errors."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import tiledbsoma_python
from programs import bucket, hidden
from somafeed import (
    ClassBalanced,
    FieldDataset,
    Variable,
    WithReplacement,
    experiment_dataloader,
)
from torchdata.stateful_dataloader import StatefulDataLoader

N_STEPS, N_LAT, N_LON = 40, 3, 4
WRITE = """
import sys
import numpy as np, zarr
root = zarr.open_group(sys.argv[1], mode="w", zarr_format=3)
steps, lat, lon = np.ogrid[0:40, 0:3, 0:4]
a = root.create_array("a", shape=(40, 3, 4), chunks=(2, 3, 4), dtype="f4", dimension_names=["time", "lat", "lon"])
a[:] = steps * 100 + lat * 10 + lon
b = root.create_array("b", shape=(40,), chunks=(7,), dtype="i2", dimension_names=["time"])
b[:] = np.arange(40)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("fields") / "weather.zarr")
    subprocess.run([tiledbsoma_python(), "-c", WRITE, path], check=True)
    return path


WEATHER = """
import numpy as np, zarr
root = zarr.open_group("weather.zarr", mode="w", zarr_format=3)
names = ["time", "lat", "channel"]
fields = root.create_array("fields", shape=(50, 192, 3), chunks=(1, 192, 3), dtype="f4", dimension_names=names)
fields[:] = np.arange(50)[:, None, None]
channel = root.create_array("channel", shape=(3,), dtype="<U4", dimension_names=["channel"])
channel[:] = np.array(["t2m", "u10", "v10"])
"""


def test_the_program_of_the_page(tmp_path):
    subprocess.run([tiledbsoma_python(), "-W", "ignore", "-c", WEATHER], check=True, cwd=tmp_path)
    page = (Path(__file__).parents[2] / "docs/fields.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("5 batches, 1.00\n", "")


def right(steps):
    lat, lon = np.ogrid[0:N_LAT, 0:N_LON]
    return (np.asarray(steps)[..., None, None] * 100 + lat * 10 + lon).astype(np.float32)


def fields(store, **options):
    variables = {"inputs": Variable("a", steps=[-1, 0]), "target": Variable("b", steps=1)}
    return FieldDataset(store, variables, **{"batch_size": 4, "seed": 3, **options})


def steps_of(batches):
    """The steps of the samples, whose values are right."""
    found = []
    for batch in batches:
        steps = np.asarray(batch["target"]).astype(int) - 1
        assert np.array_equal(batch["inputs"], right(np.stack([steps - 1, steps], axis=1)))
        found += steps.tolist()
    return found


def test_batches_are_equal_to_what_xarray_selects(tmp_path):
    n = os.environ.get("SOMAFEED_RANDOM_FIELDS", "12")
    seed = os.environ.get("SOMAFEED_RANDOM_SEED", "0")
    script = Path(__file__).with_name("fields_beside_xarray.py")
    command = [tiledbsoma_python(), script, str(tmp_path), n, seed]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"{n} stores are read as xarray reads them\n"), (
        ended.stderr
    )


def test_what_xarray_opened_and_selected_is_read_as_it_is(tmp_path):
    n = os.environ.get("SOMAFEED_RANDOM_FIELDS", "12")
    seed = os.environ.get("SOMAFEED_RANDOM_SEED", "0")
    script = Path(__file__).with_name("fields_from_xarray.py")
    command = [tiledbsoma_python(), script, str(tmp_path), n, seed]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"{n} stores are read as xarray reads them\n"), (
        ended.stderr
    )


def test_each_sample_comes_once_an_epoch_in_another_order(store):
    ds = fields(store)
    assert (len(ds), ds.n_samples, ds.shapes) == (
        10, 38, {"inputs": (2, N_LAT, N_LON), "target": ()}
    )
    first, second = steps_of(ds), steps_of(ds)
    assert sorted(first) == sorted(second) == ds.steps.tolist() == list(range(1, 39))
    assert first != second and first != sorted(first)
    assert steps_of(fields(store)) == first
    assert steps_of(fields(store, shuffle=False)) == sorted(first)
    assert repr(ds) == "FieldDataset(38 samples of inputs, target in batches of 4)"


def test_batches_belong_to_the_user(store):
    for io_batch_size in (4, 8):
        ds = fields(store, io_batch_size=io_batch_size)
        kept = []
        for batch in ds:
            steps_of([batch])
            batch["inputs"] += 1
            kept.append(batch["inputs"])
        assert all(np.isin(one % 10, np.arange(1, 5)).all() for one in kept)


def test_tensors_share_the_memory_of_arrays(store):
    batch = next(iter(fields(store, form="torch", number_samples=True)))
    assert isinstance(batch["inputs"], torch.Tensor) and batch["sample"].dtype == torch.int64
    steps_of([{name: values.numpy() for name, values in batch.items()}])


def test_parts(store):
    ds = fields(store)
    train, test = ds.random_split(0.75, 0.25, seed=1)
    assert sorted(steps_of(train) + steps_of(test)) == list(range(1, 39))
    early, late = ds.isel(slice(0, -10)), ds.isel(slice(-8, None))
    assert sorted(steps_of(early)) == list(range(1, 29))
    assert sorted(steps_of(late.random_split(0.5, 0.5, seed=2)[0]) + steps_of(
        late.random_split(0.5, 0.5, seed=2)[1])) == list(range(31, 39))
    copied = pickle.loads(pickle.dumps(early.random_split(0.5, 0.5, seed=4)[1]))
    assert steps_of(copied) == steps_of(early.random_split(0.5, 0.5, seed=4)[1])
    shares = [ds.in_order(world=(rank, 3)) for rank in range(3)]
    batches = [batch for share in shares for batch in share]
    assert np.concatenate([batch["sample"] for batch in batches]).size == 38
    assert steps_of(batches) == list(range(1, 39))
    sampled = ds.with_sampling(WithReplacement(100))
    drawn = steps_of(sampled)
    assert len(drawn) == 100 and len(set(drawn)) < 38
    # Drawn once, so that the next epoch has the same loader.
    loader = sampled._loaders._loader
    assert steps_of(sampled) != drawn and sampled._loaders._loader is loader


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_and_states(store, size):
    whole = steps_of(fields(store, world=(0, 1), shuffle=False))
    found, state = [], None
    for rank in range(size):
        options = {"io_batch_size": 12, "remainder": "pad"}
        iterator = iter(fields(store, batch_size=12 // size, world=(rank, size), **options))
        found += steps_of([next(iterator)])
        state = iterator.state_dict()
    # Two ranks go on.
    for rank in range(2):
        ds = fields(store, batch_size=6, world=(rank, 2), **options)
        ds.load_state_dict(state)
        found += steps_of(ds)
    assert set(found) == set(whole) and len(found) == 48


@pytest.mark.parametrize("n_workers", [0, 2])
def test_workers(store, n_workers):
    ds = fields(store)
    loader = experiment_dataloader(ds, num_workers=n_workers)
    batches = [{name: np.asarray(values) for name, values in batch.items()} for batch in loader]
    assert sorted(steps_of(batches)) == list(range(1, 39))
    stateful = StatefulDataLoader(fields(store), batch_size=None, num_workers=n_workers)
    found = []
    for at, batch in enumerate(stateful):
        found += steps_of([{name: np.asarray(values) for name, values in batch.items()}])
        if at == 2:
            state = stateful.state_dict()
            break
    again = StatefulDataLoader(fields(store), batch_size=None, num_workers=n_workers)
    again.load_state_dict(state)
    found += steps_of({name: np.asarray(v) for name, v in batch.items()} for batch in again)
    assert sorted(found) == list(range(1, 39))


def test_a_forked_process_goes_on(store):
    ds = fields(store)
    next(iter(ds))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(sorted(steps_of(ds)) != list(range(1, 39)))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_stats_and_memory(store):
    iterator = iter(fields(store, memory="128MiB"))
    next(iterator)
    stats = iterator.stats()
    assert stats["n_batches"] == 1 and stats["bytes_read"] > 0 and "nnz" not in stats
    assert "waiting" in iterator.waited_for() or "first batch" in iterator.waited_for()
    with pytest.raises(MemoryError, match="memory"):
        next(iter(fields(store, memory="1KiB")))


def test_a_bucket_delivers_what_a_folder_does(store):
    # Of what is far, three blocks are read ahead.
    with bucket(store) as (uri, config):
        ds = fields(uri, config=config)
        assert steps_of(ds) == steps_of(fields(store))
        for options, ahead in [({}, 3), ({"use_eager_fetch": False}, 0)]:
            iterator = iter(fields(uri, config=config, **options))
            next(iterator)
            assert iterator.stats()["prefetch_blocks"] == ahead
    assert next(running := iter(fields(store))) and running.stats()["prefetch_blocks"] == 1


BAD = {
    "a path that is not there": (FileNotFoundError, {"uri": "no.zarr"}),
    "an array that is not there": (FileNotFoundError, {"variables": ["c"]}),
    "no variables": (ValueError, {"variables": {}}),
    "a text": (TypeError, {"variables": "a"}),
    "a number as variable": (TypeError, {"variables": {"a": 1}}),
    "a reserved name": (ValueError, {"variables": {"sample": "a"}}),
    "an unknown form": (ValueError, {"form": "jax"}),
    "no dimension": (ValueError, {"variables": {"a": Variable("a", isel={"level": 0})}}),
    "an index beyond": (ValueError, {"variables": {"a": Variable("a", isel={"lat": 3})}}),
    "no coordinates": (ValueError, {"variables": {"a": Variable("a", sel={"lat": [1]})}}),
    "no indices": (ValueError, {"variables": {"a": Variable("a", isel={"lat": slice(2, 2, -1)})}}),
    "no such steps": (ValueError, {"variables": {"a": Variable("a", steps=[0, 40])}}),
    "samples along nothing": (ValueError, {"dim": "level"}),
    "samples beyond": (ValueError, {"dim": 3}),
    "samples before": (ValueError, {"dim": -1}),
    "samples between": (TypeError, {"dim": 0.5}),
    "no chunks": (ValueError, {"io_batch_size": 5, "shuffle_chunk_size": 2}),
    "no address": (ValueError, {"uri": {}}),
    "a number as address": (TypeError, {"uri": {"a": 1}}),
    "a label": (ValueError, {"sampling": ClassBalanced("x")}),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(store, name):
    kind, options = BAD[name]
    with pytest.raises(kind) as raised:
        len(FieldDataset(**{"uri": store, "variables": ["a"], **options}))
    assert str(raised.value)


def test_numpy_is_enough(store):
    program = hidden("torch", "pandas", "scipy", "pyarrow", "xarray") + (
        f"ds = somafeed.FieldDataset({store!r}, ['a'], batch_size=2, shuffle=False)\n"
        "print(next(iter(ds))['a'][1, 2, 3])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "123.0\n"
