"""Samples that Python code reads: batches, parts, ranks, states, workers, errors, ends."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import torch
from somafeed import SourceDataset, WithReplacement, experiment_dataloader
from torchdata.stateful_dataloader import StatefulDataLoader


class Numbers:
    """Numbers of several types and shapes, by the row alone."""

    def __init__(self, n_rows=101):
        self.n_rows = n_rows
        self.calls = []

    def read(self, rows):
        self.calls.append(rows.tolist())
        return self.at(rows)

    def at(self, rows):
        grid = rows[:, None, None] * 12 + np.arange(12).reshape(3, 4)
        return {
            "x": grid.astype(np.float32),
            "half": rows.astype(np.float16),
            "big": np.asfortranarray(grid[:, 0, ::2].astype(">i8")),
            "even": rows % 2 == 0,
            "row": rows,
        }


def rows_of(batches):
    return np.concatenate([batch["row"] for batch in batches]).tolist()


def check(source, batch):
    expected = source.at(batch["row"])
    assert list(batch) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(batch[name], array)
        assert batch[name].dtype == array.dtype.newbyteorder("=")
        assert batch[name].flags.writeable and batch[name].flags.aligned


@pytest.mark.parametrize("seed", range(8))
def test_batches_have_the_rows_that_the_source_reads(seed):
    random = np.random.default_rng(seed)
    source = Numbers(int(random.integers(1, 200)))
    chunk, n_chunks = int(random.integers(1, 9)), int(random.integers(1, 9))
    ds = SourceDataset(
        source,
        batch_size=int(random.integers(1, 40)),
        io_batch_size=chunk * n_chunks,
        shuffle_chunk_size=chunk,
        shuffle=bool(seed % 2),
        seed=seed,
        use_eager_fetch=seed % 3 > 0,
        memory="1GiB",
    )
    batches = list(ds)
    assert len(batches) == len(ds)
    for batch in batches:
        check(source, batch)
    rows = rows_of(batches)
    assert sorted(rows) == list(range(source.n_rows))
    if not ds.shuffle:
        assert rows == sorted(rows)
    # Each row was read once, beside the first one.
    assert source.calls[0] == [0]
    assert sorted(sum(source.calls[1:], [])) == list(range(source.n_rows))
    assert all(call == sorted(call) for call in source.calls)


def test_tensors_numbers_parts_and_samplings():
    source = Numbers()
    ds = SourceDataset(source, batch_size=16, seed=1, form="torch", number_samples=True)
    batch = next(iter(ds))
    assert batch["x"].dtype == torch.float32 and batch["x"].shape == (16, 3, 4)
    assert batch["sample"].tolist() == batch["row"].tolist()
    train, test = ds.random_split(0.8, 0.2, seed=3)
    both = [rows_of([{"row": b["row"].numpy()} for b in part]) for part in (train, test)]
    assert sorted(both[0] + both[1]) == list(range(101)) and len(both[1]) in (20, 21)
    drawn = ds.with_sampling(WithReplacement(1_000))
    assert sum(len(batch["row"]) for batch in drawn) == 1_000
    shares = [ds.in_order(world=(rank, 3)) for rank in range(3)]
    rows = [row for share in shares for batch in share for row in batch["row"].tolist()]
    assert rows == list(range(101))


def test_ranks_have_each_row_once():
    def batches(rank):
        ds = SourceDataset(
            Numbers(), batch_size=5, io_batch_size=20, seed=7, world=(rank, 3), remainder="pad"
        )
        return rows_of(ds)

    rows = sum((batches(rank) for rank in range(3)), [])
    assert len(rows) == 105 and set(rows) == set(range(101))


def test_a_state_continues():
    def made():
        return SourceDataset(Numbers(), batch_size=4, io_batch_size=16, seed=5)

    ds, whole = made(), rows_of(made())
    iterator = iter(ds)
    before = rows_of([next(iterator) for _ in range(7)])
    resumed = made()
    resumed.load_state_dict(pickle.loads(pickle.dumps(ds.state_dict())))
    assert before + rows_of(resumed) == whole
    other = SourceDataset(Numbers(102), batch_size=4, io_batch_size=16, seed=5)
    other.load_state_dict(ds.state_dict())
    with pytest.raises(ValueError, match="number of samples 101"):
        next(iter(other))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers(context):
    ds = SourceDataset(Numbers(), batch_size=8, seed=2)
    whole = rows_of(ds)
    loader = StatefulDataLoader(
        SourceDataset(Numbers(), batch_size=8, seed=2),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=context,
    )
    assert rows_of([{"row": np.asarray(batch["row"])} for batch in loader]) == whole


class Shrinking(Numbers):
    def __init__(self):
        super().__init__(101)
        self.pid = os.getpid()

    def __getattribute__(self, name):
        if name == "n_rows" and os.getpid() != self.pid:
            return 50
        return super().__getattribute__(name)


def test_samples_that_are_gone_in_a_worker_are_an_error():
    loader = StatefulDataLoader(
        SourceDataset(Shrinking(), batch_size=8, seed=2),
        batch_size=None,
        num_workers=1,
        multiprocessing_context="fork",
    )
    with pytest.raises(ValueError, match="50 of 101 are there now"):
        list(loader)


def test_a_dataloader():
    whole = rows_of(SourceDataset(Numbers(), batch_size=8, seed=2))
    loader = experiment_dataloader(SourceDataset(Numbers(), batch_size=8, seed=2))
    assert rows_of([{"row": np.asarray(batch["row"])} for batch in loader]) == whole


class Failing(Numbers):
    def read(self, rows):
        if 50 in rows:
            raise KeyError("row 50 is damaged")
        return super().read(rows)


def test_what_the_source_raises_is_raised():
    ds = SourceDataset(Failing(), batch_size=10, shuffle=False)
    delivered = []
    with pytest.raises(KeyError, match="row 50 is damaged") as raised:
        for batch in ds:
            delivered += batch["row"].tolist()
    assert delivered == list(range(50))
    assert raised.traceback[-1].name == "read"


class Changing(Numbers):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def read(self, rows):
        arrays = super().read(rows)
        return self.how(arrays) if 0 not in rows else arrays


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda arrays: {**arrays, "x": arrays["x"][:, :2]}, r'"x": float32 of shape \[2, 4\]'),
        (lambda arrays: {**arrays, "x": arrays["x"].astype("f8")}, '"x": float64'),
        (lambda arrays: {"x": arrays["x"]}, 'no array "half"'),
        (lambda arrays: {**arrays, "x": arrays["x"][1:]}, "first dimension"),
    ],
)
def test_a_sample_unlike_the_first_is_an_error(how, message):
    ds = SourceDataset(Changing(how), batch_size=10, shuffle=False)
    with pytest.raises(ValueError, match=message):
        list(ds)


def source_of(read, n_rows=3):
    return type("OfTest", (), {"n_rows": n_rows, "read": lambda self, rows: read(rows)})()


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (object(), TypeError, "n_rows and read"),
        (source_of(lambda rows: [rows]), TypeError, "not a dictionary"),
        (source_of(lambda rows: {}), ValueError, "without arrays"),
        (source_of(lambda rows: {"x": np.array(["a"] * len(rows))}), TypeError, "of type str"),
        (source_of(lambda rows: {"x": np.arange(5)}), ValueError, "first dimension"),
        (source_of(lambda rows: {"x": 5}), ValueError, "first dimension"),
        (source_of(lambda rows: {3: rows}), TypeError, "str"),
        (source_of(lambda rows: {"sample": rows}), ValueError, "take another"),
        (source_of(lambda rows: {"x": rows}, n_rows=-1), OverflowError, "negative"),
        (source_of(lambda rows: {"x": rows}, n_rows="many"), TypeError, "str"),
    ],
)
def test_a_wrong_source_is_an_error(source, error, message):
    with pytest.raises(error, match=message):
        SourceDataset(source)


def test_no_sample_is_an_empty_epoch():
    assert list(SourceDataset(Numbers(0), batch_size=3)) == []


class Sleeping(Numbers):
    def read(self, rows):
        if 0 not in rows:
            time.sleep(30)
        return super().read(rows)


def test_other_threads_run_and_ctrl_c_ends_a_wait():
    ds = SourceDataset(Sleeping(), batch_size=1, shuffle=False)
    iterator = iter(ds)
    next(iterator)
    started = time.monotonic()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert time.monotonic() - started < 10


ENDING = """
    import sys, threading, time
    import numpy as np
    from somafeed import SourceDataset

    class Slow:
        n_rows = 1_000
        def read(self, rows):
            if 0 not in rows:
                {wait}
            return {{"x": rows}}

    ds = SourceDataset(Slow(), batch_size=1, shuffle=False)
    iterator = iter(ds)
    next(iterator)
    {then}
"""


@pytest.mark.parametrize("wait", ["time.sleep(60)", "time.sleep(0.0001)", "sum(range(100_000))"])
@pytest.mark.parametrize(
    "then",
    [
        "pass",
        "sys.exit(0)",
        "threading.Thread(target=list, args=(iterator,), daemon=True).start(); time.sleep(0.05)",
    ],
)
def test_a_program_ends_while_its_source_reads(wait, then):
    program = textwrap.dedent(ENDING).format(wait=wait, then=then)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
