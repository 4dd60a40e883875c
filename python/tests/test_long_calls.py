"""Calls over many rows: other threads of Python run meanwhile, and Ctrl-C ends them.

Each is stopped in its middle, and then handles a stated number of rows at most.
SOMAFEED_LONG_ROWS=30000000 runs them at the size of a large collection, where a signal comes in
the middle of each.
"""

import ast
import os
import signal
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from somafeed import _somafeed as native
from test_native_module import STUBS

N_ROWS = int(os.environ.get("SOMAFEED_LONG_ROWS", 500_000))
IS_LARGE = N_ROWS >= 10_000_000
# Converting an argument of 3 x 10^7 numbers copies 240 MB while no other thread runs.
LONGEST_SECS = 1.0
# Rows that a loop handles between two looks at whether it should end: `STOP_ROWS` in Rust.
STOP_ROWS = 65_536


@cache
def groups():
    return np.random.default_rng(0).integers(0, max(N_ROWS // 300, 2), N_ROWS).astype(np.uint32)


@cache
def labels():
    texts = pa.array([f"label {i}" for i in range(50_000)])
    codes = np.random.default_rng(1).integers(0, len(texts), N_ROWS // 3)
    # In chunks, which are joined.
    return pa.table({"label": pa.chunked_array([texts.take(part) for part in np.array_split(codes, 5)])})


@cache
def categories():
    return native.ArrowTable.from_arrow(labels().combine_chunks().set_column(
        0, "label", labels()["label"].combine_chunks().dictionary_encode()))


@cache
def cells():
    zeros = np.zeros(0, np.int64)
    return native.Dataset.in_memory(
        np.zeros(N_ROWS + 1, np.int64), zeros, zeros.astype("f4"), n_columns=2,
        obs=pa.table({"n": groups(), "text": pa.array(["x"]).take(np.zeros(N_ROWS, np.int64))}),
    )


@cache
def encoder():
    return native.LabelEncoder.fit("label", labels().slice(0, 50_000), unseen="code")


@cache
def keys():
    return native.BatchKeyEncoder.fit("k", ["label"], labels().slice(0, 50_000), unseen="code")


def weights():
    return groups().astype(np.float64)


HALVES = [0.5, 0.5]
CALLS = {
    "ArrowTable.from_arrow": lambda: native.ArrowTable.from_arrow(labels()),
    "ArrowTable.dictionary_codes": lambda: categories().dictionary_codes("label"),
    "Dataset.in_memory": cells.__wrapped__,
    "Dataset.concat": lambda: native.Dataset.concat([cells(), cells()]),
    "Dataset.codes": lambda: cells().with_encoders(
        [native.LabelEncoder.fit("text", pa.table({"text": ["x"]}))]).codes(),
    "Dataset.joinids": lambda: cells().joinids(),
    "Dataset.experiments": lambda: cells().experiments(),
    "Dataset.select": lambda: cells().select(np.arange(0, N_ROWS, 2)),
    "Dataset.with_encoders": lambda: cells().with_encoders(
        [native.LabelEncoder.fit("text", pa.table({"text": ["x"]}))]),
    "Dataset.groups": lambda: cells().groups(["n"]),
    "Dataset.weights": lambda: cells().weights("n"),
    "Dataset.find": lambda: cells().find("text", "not there"),
    "LabelEncoder.fit": lambda: native.LabelEncoder.fit("label", labels()),
    "LabelEncoder.encode": lambda: encoder().encode(labels()),
    "LabelEncoder.inverse": lambda: encoder().inverse(np.zeros(N_ROWS, np.int64)),
    "LabelEncoder.extend": lambda: encoder().extend(labels()),
    "BatchKeyEncoder.fit": lambda: native.BatchKeyEncoder.fit("k", ["label"], labels()),
    "BatchKeyEncoder.encode": lambda: keys().encode(labels()),
    "BatchKeyEncoder.inverse": lambda: keys().inverse(np.zeros(N_ROWS, np.int64)),
    "BatchKeyEncoder.extend": lambda: keys().extend(labels()),
    "Sampling.with_replacement": lambda: native.Sampling.with_replacement(N_ROWS, N_ROWS),
    "Sampling.listed": lambda: native.Sampling.listed(2**31, groups()),
    "Sampling.weighted": lambda: native.Sampling.weighted(weights(), 1000),
    "Sampling.class_balanced": lambda: native.Sampling.class_balanced(groups(), 1000),
    "Sampling.by_group": lambda: native.Sampling.by_group(groups() % 2, HALVES, 1000),
    "Sampling.stratified": lambda: native.Sampling.stratified(groups(), 1000),
    "Sampling.at_most_per_class": lambda: native.Sampling.at_most_per_class(groups(), 2),
    "Sampling.group_batches": lambda: native.Sampling.group_batches(groups(), 64),
    "Sampling.hierarchical": lambda: native.Sampling.hierarchical(
        groups() % 2, groups(), 64, 10, labels=groups() % 3),
    "split_by_fraction": lambda: native.split_by_fraction(N_ROWS * 3, HALVES, seed=1),
    "split_by_group": lambda: native.split_by_group(groups(), HALVES, seed=1),
    "split_by_label": lambda: native.split_by_label(groups(), HALVES, seed=1),
}
# They take rows of one batch, or an experiment, which is read in threads like all I/O.
OTHERS = {
    "ArrowTable.column", "Dataset.from_experiment", "Dataset.from_anndata", "Dataset.stored_dtype",
    "Dataset.obs", "Dataset.modality_var", "Dataset.var", "LabelEncoder.from_json", "LabelEncoder.to_json",
    "LabelEncoder.classes", "LabelEncoder.with_unseen", "BatchKeyEncoder.from_json",
    "BatchKeyEncoder.to_json", "BatchKeyEncoder.classes", "BatchKeyEncoder.joined_keys",
    "BatchKeyEncoder.with_unseen",
}
# These only copy columns, or keep a number.
COPIES = {
    "ArrowTable.from_arrow", "ArrowTable.dictionary_codes", "Dataset.in_memory", "Dataset.concat",
    "Dataset.codes", "Dataset.weights", "Sampling.with_replacement",
}
OF_ROWS = {"ArrowTable", "Dataset", "LabelEncoder", "BatchKeyEncoder", "Sampling"}


def test_every_method_of_the_stubs_over_rows_is_here():
    known = {one.name for one in STUBS.body if isinstance(one, ast.FunctionDef)}
    declared = {name for name in known if name.startswith("split_")}
    for node in STUBS.body:
        if isinstance(node, ast.ClassDef) and node.name in OF_ROWS:
            functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            declared |= {
                f"{node.name}.{one.name}" for one in functions
                if not one.name.startswith("_")
                and not any(getattr(mark, "id", "") == "property" for mark in one.decorator_list)
            }
    assert declared == {*CALLS, *OTHERS}


class Ticks:
    """A thread that runs all the time, and the longest time in which it did not."""

    def __enter__(self):
        self._stop, self.longest = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._tick)
        self._thread.start()
        return self

    def _tick(self):
        last = time.perf_counter()
        while not self._stop.is_set():
            time.sleep(0.005)
            now = time.perf_counter()
            self.longest, last = max(self.longest, now - last), now

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def prepared():
    groups(), labels(), categories(), cells(), encoder(), keys()


@pytest.mark.parametrize("name", CALLS)
def test_other_threads_run_meanwhile(name):
    prepared()
    with Ticks() as ticks:
        CALLS[name]()
    assert ticks.longest < LONGEST_SECS


@pytest.mark.parametrize("name", [name for name in CALLS if name not in COPIES])
def test_a_stop_leaves_few_rows(name):
    prepared()
    at_row = min(N_ROWS // 10, 10 * STOP_ROWS)
    native._stop_at_row(at_row)
    try:
        with pytest.raises(KeyboardInterrupt, match="stopped on request"):
            CALLS[name]()
    finally:
        n_rows = native._stop_at_row(0)
    # The piece in whose middle it stopped, and the one that was not begun any more.
    assert at_row <= n_rows < at_row + 2 * STOP_ROWS
    CALLS[name]()


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it(name):
    prepared()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.perf_counter()
    CALLS[name]()
    secs = time.perf_counter() - started
    if not IS_LARGE and secs < 0.5:
        # Too short to be in its middle, so Ctrl-C comes after it.
        return
    timer = threading.Timer(secs / 3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    sent = time.perf_counter() + secs / 3
    with pytest.raises(KeyboardInterrupt):
        CALLS[name]()
        time.sleep(5)
    assert time.perf_counter() - sent < LONGEST_SECS + 0.1
    timer.join()
    # No work goes on in the background.
    assert "somafeed-call" not in thread_names()


def thread_names():
    return [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
