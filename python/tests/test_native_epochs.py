"""Epochs: order, ranks, resuming, settings, closing, threads, and errors."""

import json
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from native_examples import dense, in_memory, matrix
from somafeed import _somafeed as native

VALUES = matrix(500, 7)
SIZES = {"chunk_rows": 4, "chunks_per_block": 8, "batch_size": 16}


def order(epoch) -> list[list[int]]:
    return [batch.joinids.tolist() for batch in epoch]


def test_an_epoch_is_the_same_again_and_each_has_its_own_order():
    loader = native.Loader(in_memory(VALUES), seed=5, **SIZES)
    again = native.Loader(in_memory(VALUES), seed=5, **SIZES)
    first, second = order(loader.epoch(0)), order(loader.epoch(1))
    assert first == order(again.epoch(0)) and second == order(again.epoch(1))
    assert first != second
    assert first != order(native.Loader(in_memory(VALUES), seed=6, **SIZES).epoch(0))


def test_the_order_is_that_of_the_rust_loader():
    # Crate `loader` tests the same: `python_gets_the_same_order` in pipeline/edge_cases.rs.
    loader = native.Loader(
        in_memory(matrix(12, 2)), seed=7, chunk_rows=2, chunks_per_block=2, batch_size=5
    )
    assert order(loader.epoch(3)) == [[6, 7, 9, 8, 1], [3, 2, 0, 11, 4], [10, 5]]


@pytest.mark.parametrize("prefetch", [
    {"prefetch_blocks": 0, "prefetch_batches": 0},
    {"prefetch_blocks": 3, "read_threads": 3},
    {"prefetch_batches": 9, "batch_threads": 1},
    {"memory": 80 << 20},
    {"memory": native.Budget(80 << 20), "keep_decoded": 0},
    {"block_form": "csr"},
    {"block_form": "native"},
    {"block_form": "scipy.csr"},
    {"block_form": "np.array"},
])
def test_how_it_is_read_ahead_does_not_change_the_order(prefetch):
    expected = order(native.Loader(in_memory(VALUES), **SIZES).epoch(2))
    found = list(native.Loader(in_memory(VALUES), **SIZES, **prefetch).epoch(2))
    assert [batch.joinids.tolist() for batch in found] == expected
    for batch in found:
        np.testing.assert_array_equal(dense(batch), VALUES[batch.joinids])


@pytest.mark.parametrize("n_taken", [0, 1, 13, 31, 32])
def test_it_resumes_after_any_batch(n_taken):
    loader = native.Loader(in_memory(VALUES), **SIZES)
    whole = order(loader.epoch(4))
    epoch = loader.epoch(4)
    assert order(next(epoch) for _ in range(n_taken)) == whole[:n_taken]
    state = epoch.state()
    assert json.loads(state)["batches_delivered"] == n_taken and len(state) < 1000
    epoch.close()
    again = native.Loader(in_memory(VALUES), **SIZES)
    for _ in range(2):
        resumed = again.resume(state)
        assert (resumed.number, resumed.n_batches, resumed.state()) == (4, 32, state)
        assert order(resumed) == whole[n_taken:]


def test_a_state_is_resumed_on_another_number_of_ranks():
    def ranks(world_size):
        return [
            native.Loader(in_memory(VALUES), batch_size=24 // world_size, chunk_rows=4,
                          chunks_per_block=4, rank=rank, world_size=world_size, remainder="pad")
            for rank in range(world_size)
        ]

    eight = [loader.epoch(1) for loader in ranks(8)]
    rows = [next(epoch).joinids for _ in range(5) for epoch in eight]
    state = eight[0].state()
    assert all(epoch.state() == state for epoch in eight)
    four = [loader.resume(state) for loader in ranks(4)]
    rows += [next(epoch).joinids for _ in range(6) for epoch in four]
    six = [loader.resume(four[0].state()) for loader in ranks(6)]
    for epoch in six:
        for batch in epoch:
            rows.append(batch.joinids[: batch.n_rows - batch.n_padding])
    assert sorted(np.concatenate(rows)) == list(range(500))


def test_ranks_share_an_epoch():
    loaders = [
        native.Loader(in_memory(VALUES), rank=rank, world_size=3, remainder="pad", **SIZES)
        for rank in range(3)
    ]
    assert len({loader.n_batches for loader in loaders}) == 1
    rows = []
    for batches in zip(*(loader.epoch(0) for loader in loaders), strict=True):
        assert {batch.n_rows for batch in batches} == {16}
        rows += [batch.joinids[: 16 - batch.n_padding] for batch in batches]
    assert sorted(np.concatenate(rows)) == list(range(500))


def test_a_remainder_is_kept_dropped_or_padded():
    for remainder, sizes in [("keep", 4), ("drop", None), ("pad", 16)]:
        loader = native.Loader(in_memory(VALUES), remainder=remainder, **SIZES)
        batches = list(loader.epoch(0))
        assert len(batches) == loader.n_batches == (31 if remainder == "drop" else 32)
        if sizes:
            assert batches[-1].n_rows == sizes
            assert batches[-1].n_padding == (12 if remainder == "pad" else 0)


def test_sampling_decides_what_comes():
    labels = np.arange(500) % 10 == 0
    balanced = native.Sampling.class_balanced(labels.astype(np.int64), 1000)
    assert (balanced.n_rows, balanced.n_samples) == (500, 1000)
    rows = np.concatenate(
        [b.joinids for b in native.Loader(in_memory(VALUES), sampling=balanced, **SIZES).epoch(0)]
    )
    assert len(rows) == 1000 and 400 < labels[rows].sum() < 600
    listed = native.Sampling.listed(500, [3, 1, 3, 499])
    loader = native.Loader(
        in_memory(VALUES), sampling=listed, order="listed", chunk_rows=1, batch_size=3
    )
    assert order(loader.epoch(0)) == [[3, 1, 3], [499]]


def test_stats_count_what_was_delivered():
    epoch = native.Loader(in_memory(VALUES), form="csr", **SIZES).epoch(0)
    nnz = sum(batch.nnz for batch in epoch)
    stats = epoch.stats()
    assert (stats["n_rows"], stats["n_batches"], stats["n_columns"]) == (500, 32, 7)
    assert stats["nnz"] == nnz == np.count_nonzero(VALUES)
    assert stats["wait_secs"] >= 0 and stats["elapsed_secs"] > 0


def test_the_entropy_of_labels_is_that_of_each_full_batch():
    def bits(labels):
        _, counts = np.unique(labels, return_counts=True)
        shares = counts / counts.sum()
        return -(shares * np.log2(shares)).sum()

    generator = np.random.default_rng(3)
    labels = generator.choice(["a", "b", "c", None], 500, p=[0.5, 0.2, 0.2, 0.1])
    donors = generator.integers(0, 4, 500)
    dataset = in_memory(VALUES, type=pa.array(labels).dictionary_encode(), donor=donors)
    encoders = [native.LabelEncoder.fit("donor", dataset)]
    loader = native.Loader(dataset.with_encoders(encoders), **SIZES)
    epoch = loader.epoch(0)
    assert epoch.stats()["entropy"]["type"] == {"batch": None, "spread": None, "cells": 0.0}
    assert epoch.stats()["accelerator_utilization"] is None
    rows = [batch.joinids for batch in epoch]
    stats = epoch.stats()
    assert set(stats["entropy"]) == {"type", "donor"}
    for name, values in [("type", np.array(labels, dtype="U4")), ("donor", donors)]:
        full = [bits(values[of]) for of in rows if len(of) == SIZES["batch_size"]]
        found = stats["entropy"][name]
        assert found["batch"] == pytest.approx(np.mean(full))
        assert found["spread"] == pytest.approx(np.std(full, ddof=1))
        assert found["cells"] == pytest.approx(bits(values))
    # Another epoch begins anew.
    assert loader.epoch(1).stats()["entropy"]["donor"]["cells"] == 0.0


def test_what_is_waited_for_is_a_share_of_the_time_after_the_first_batch():
    epoch = native.Loader(in_memory(VALUES), **SIZES).epoch(0)
    for _ in epoch:
        time.sleep(0.005)
    stats = epoch.stats()
    assert len(stats["waits"]) == 32 and sum(stats["waits"]) == pytest.approx(stats["wait_secs"])
    computed = stats["elapsed_secs"] - stats["first_batch_secs"] - sum(stats["waits"][1:])
    share = computed / (stats["elapsed_secs"] - stats["first_batch_secs"])
    assert stats["accelerator_utilization"] == pytest.approx(share) and 0 < share <= 1
    assert epoch.utilization() == (32, stats["accelerator_utilization"])


def test_a_closed_epoch_has_ended_and_knows_its_place():
    loader = native.Loader(in_memory(VALUES), **SIZES)
    with loader.epoch(0) as epoch:
        batch = next(epoch)
        state = epoch.state()
    epoch.close()
    assert list(epoch) == [] and epoch.state() == state and epoch.stats()["n_batches"] == 1
    np.testing.assert_array_equal(dense(batch), VALUES[batch.joinids])


def test_several_epochs_run_side_by_side():
    loader = native.Loader(in_memory(VALUES), **SIZES)
    expected = [order(loader.epoch(number)) for number in range(3)]
    epochs = [loader.epoch(number) for number in range(3)]
    found = [[], [], []]
    for batches in zip(*epochs, strict=True):
        for rows, batch in zip(found, batches):
            rows.append(batch.joinids.tolist())
    assert found == expected


def test_threads_share_an_epoch():
    epoch = native.Loader(in_memory(VALUES), **SIZES).epoch(0)
    rows = []
    threads = [
        threading.Thread(target=lambda: rows.extend(batch.joinids for batch in epoch))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(np.concatenate(rows)) == list(range(500))


def test_other_threads_run_while_one_waits():
    loader = native.Loader(in_memory(matrix(2000, 500)), batch_size=1)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    for _ in loader.epoch(0):
        pass
    stop.set()
    thread.join()
    assert counted[0] > 0


def test_settings_that_do_not_fit_are_errors():
    data = in_memory(VALUES)
    cases = [
        (ValueError, "batch size of at least 1", {"batch_size": 0}),
        (ValueError, None, {"chunk_rows": 0}),
        (ValueError, "no rank 2", {"rank": 2, "world_size": 2}),
        (ValueError, None, {"rank": 0, "world_size": 2}),
        (ValueError, "take dense, f16, csr, coo or packed", {"form": "sparse"}),
        (ValueError, "take np.array", {"block_form": "list"}),
        (ValueError, "remainder is \"no\"", {"remainder": "no"}),
        (ValueError, "totals is \"all\"", {"totals": "all"}),
        (ValueError, "order is \"random\"", {"order": "random"}),
        (ValueError, "read_threads is 0", {"read_threads": 0}),
        (ValueError, "dense, so sparse", {"form": "csr", "block_form": "np.array"}),
        (ValueError, "has no totals", {"target_sum": 1.0, "totals": "obs"}),
        (ValueError, None, {"target_sum": -1.0}),
        (ValueError, None, {"clip": (1.0, 2.0)}),
        (ValueError, "draws from 3 rows", {"sampling": native.Sampling.with_replacement(3, 9)}),
        (MemoryError, "bytes of memory", {"memory": 1 << 20}),
        (MemoryError, "bytes of memory", {"memory": native.Budget(1 << 20)}),
        (OverflowError, None, {"batch_size": -1}),
        (OverflowError, None, {"seed": 1 << 64}),
        (TypeError, None, {"batch_size": "many"}),
        (TypeError, None, {"nonsense": 1}),
    ]
    for kind, text, settings in cases:
        with pytest.raises(kind, match=text) as caught:
            native.Loader(data, **settings)
        assert caught.type is kind, (settings, caught.value)


def test_states_that_do_not_fit_are_errors():
    loader = native.Loader(in_memory(VALUES), **SIZES)
    state = loader.epoch(0).state()
    for text, found in [
        ("JSON", "nonsense"), ("JSON", "{}"), ("JSON", ""),
        ("version", state.replace('"version":1', '"version":99')),
        ("seed", state.replace('"seed":0', '"seed":1')),
        ("samples", state.replace('"n_rows":500', '"n_rows":400')),
        ("batches", state.replace('"batches_delivered":0', '"batches_delivered":999')),
    ]:
        with pytest.raises(ValueError, match=text):
            loader.resume(found)
    with pytest.raises(ValueError, match="selected samples"):
        native.Loader(in_memory(VALUES).select((0, 499)), **SIZES).resume(
            state.replace('"n_rows":500', '"n_rows":499')
        )
