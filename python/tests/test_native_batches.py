"""Batches: exact values in every form, and memory that is never overwritten or freed too early."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest
from native_examples import dataset, dense, in_memory, matrix
from somafeed import _somafeed as native

FORMS = ["dense", "f16", "csr", "coo"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_rows, n_columns, batch_size", [(97, 11, 8), (5, 1, 5), (40, 300, 64)])
def test_every_row_comes_once_with_its_values(form, n_rows, n_columns, batch_size):
    values = matrix(n_rows, n_columns)
    loader = native.Loader(
        in_memory(values), batch_size=batch_size, chunk_rows=4, chunks_per_block=3, form=form
    )
    seen = []
    for idx, batch in enumerate(loader.epoch(0)):
        assert (batch.batch_idx, batch.n_columns, batch.form) == (idx, n_columns, form)
        assert len(batch) == batch.n_rows == len(batch.joinids) == len(batch.obs)
        rows = batch.obs.column("row")
        np.testing.assert_array_equal(rows, batch.joinids)
        np.testing.assert_array_equal(dense(batch), values[rows])
        assert batch.nnz == (None if form in ("dense", "f16") else np.count_nonzero(values[rows]))
        assert not batch.experiments.any()
        seen.extend(rows)
    assert sorted(seen) == list(range(n_rows))
    assert idx + 1 == loader.n_batches


def test_types_are_those_that_scipy_and_torch_take_without_a_copy():
    values = matrix(10, 4)
    of = lambda form: next(native.Loader(in_memory(values), form=form).epoch(0))
    assert of("dense").dense().dtype == np.float32
    assert of("f16").dense().dtype == np.float16
    for arrays in (of("csr").csr(), of("coo").coo()):
        assert [array.dtype for array in arrays] == [np.int32, np.int32, np.float32]
    batch = of("dense")
    assert (batch.joinids.dtype, batch.experiments.dtype) == (np.int64, np.uint32)
    x = batch.dense()
    assert x.flags.c_contiguous and x.flags.writeable and not x.flags.owndata


def test_scipy_keeps_the_memory_of_csr():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    batch = next(native.Loader(in_memory(matrix(10, 4)), form="csr").epoch(0))
    indptr, indices, data = batch.csr()
    csr = scipy_sparse.csr_matrix((data, indices, indptr), shape=(10, 4), copy=False)
    assert np.shares_memory(csr.data, data) and np.shares_memory(csr.indices, indices)
    np.testing.assert_array_equal(csr.toarray(), dense(batch))


@pytest.mark.parametrize("form", FORMS)
def test_another_form_is_a_value_error_that_names_it(form):
    batch = next(native.Loader(in_memory(matrix(4, 3)), form=form).epoch(0))
    own = {"f16": "dense"}.get(form, form)
    for other in {"dense", "csr", "coo"} - {own}:
        with pytest.raises(ValueError, match=f'has form "{form}".*form="{other}"'):
            getattr(batch, other)()


@pytest.mark.parametrize("form", FORMS)
def test_kept_batches_are_never_overwritten(form):
    values = matrix(400, 30)
    loader = native.Loader(
        in_memory(values), batch_size=16, chunk_rows=4, chunks_per_block=8, form=form
    )
    batches = list(loader.epoch(0)) + list(loader.epoch(1))
    for batch in batches:
        np.testing.assert_array_equal(dense(batch), values[batch.joinids])


def test_writing_into_a_batch_changes_no_other():
    values = matrix(64, 5)
    loader = native.Loader(in_memory(values), batch_size=8, shuffle=False)
    for batch in loader.epoch(0):
        x = batch.dense()
        np.testing.assert_array_equal(x, values[batch.joinids])
        x[:] = -1
    assert len(list(loader.epoch(1))) == 8


def test_an_array_outlives_batch_epoch_and_loader():
    values = matrix(32, 6)
    loader = native.Loader(in_memory(values), batch_size=32, shuffle=False)
    epoch = loader.epoch(0)
    x, joinids = (batch := next(epoch)).dense(), batch.joinids
    del loader, epoch, batch
    gc.collect()
    np.testing.assert_array_equal(x, values[joinids])


def test_memory_of_dropped_batches_is_used_again():
    loader = native.Loader(in_memory(matrix(4096, 50)), batch_size=64)
    places = {batch.dense().ctypes.data for batch in loader.epoch(0)}
    # The consumer's batch, the one before it, one that waits, one in the making.
    assert len(places) < 12
    kept = list(loader.epoch(1))
    assert len({batch.dense().ctypes.data for batch in kept}) == len(kept)


def test_kept_batches_are_counted_and_leased():
    values = matrix(2000, 100)
    budget = native.Budget(200 << 20)
    loader = native.Loader(in_memory(values), batch_size=100, chunks_per_block=4, memory=budget)
    epoch = loader.epoch(0)
    n_bytes = 100 * 100 * 4
    first = next(epoch)
    assert epoch.stats()["kept_bytes"] == n_bytes
    before = budget.leased
    batches = [first, *(next(epoch) for _ in range(11))]
    assert epoch.stats()["kept_bytes"] == 12 * n_bytes
    assert budget.leased >= before + 9 * n_bytes
    view = batches[0].dense()
    del batches, first
    assert epoch.stats()["kept_bytes"] == n_bytes
    next(epoch)
    assert budget.leased <= before + 2 * n_bytes
    del view


def test_keeping_more_than_the_budget_never_stops_the_loader():
    values = matrix(3000, 2000)
    loader = native.Loader(
        in_memory(values), batch_size=100, chunk_rows=1, chunks_per_block=100, memory=80 << 20
    )
    kept = [batch for epoch in range(5) for batch in loader.epoch(epoch)]
    assert sum(batch.dense().nbytes for batch in kept) > 100 << 20
    np.testing.assert_array_equal(dense(kept[-1]), values[kept[-1].joinids])


def test_views_of_one_batch_share_memory():
    batch = next(native.Loader(in_memory(matrix(4, 3))).epoch(0))
    assert np.shares_memory(batch.dense(), batch.dense())
    batch.dense()[0, 0] = 77
    assert batch.dense()[0, 0] == 77


def test_a_memoryview_of_the_memory_has_shape_and_strides():
    base = next(native.Loader(in_memory(matrix(4, 3))).epoch(0)).dense().base
    view = memoryview(base)
    assert (view.shape, view.strides, view.format, view.readonly) == ((4, 3), (12, 4), "f", False)
    assert len(view.tobytes()) == 48


def test_obs_is_arrow_without_a_copy_and_keeps_its_categories():
    labels = pa.array(["a", "b", "a", "c"]).dictionary_encode()
    data = in_memory(matrix(4, 3), label=labels)
    batch = next(native.Loader(data, batch_size=2, shuffle=False).epoch(0))
    table = pa.table(batch.obs)
    assert table.column_names == batch.obs.column_names == ["row", "label"]
    assert table["label"].to_pylist() == ["a", "b"]
    assert table["label"].chunk(0).dictionary.to_pylist() == ["a", "b", "c"]
    row = batch.obs.column("row")
    assert row.ctypes.data == pa.table(batch.obs)["row"].chunk(0).buffers()[1].address
    assert not row.flags.writeable


def test_batches_of_several_data_sets_say_where_rows_come_from():
    first, second = matrix(10, 4, seed=1), matrix(7, 4, seed=2)
    both = native.Dataset.concat([in_memory(first), in_memory(second)])
    assert both.shape == (17, 4) and both.n_experiments == 2
    for batch in native.Loader(both, batch_size=5, chunk_rows=2).epoch(0):
        for row, experiment, joinid in zip(dense(batch), batch.experiments, batch.joinids):
            np.testing.assert_array_equal(row, (first, second)[experiment][joinid])


def test_codes_come_with_each_batch():
    values, labels = matrix(20, 3), ["x", "y"] * 10
    data = in_memory(values, label=labels)
    data = data.with_encoders([native.LabelEncoder.fit("label", data, name="y")])
    for batch in native.Loader(data, batch_size=6, chunk_rows=2).epoch(0):
        np.testing.assert_array_equal(batch.codes.column("y"), batch.joinids % 2)


def test_transforms_are_those_of_scanpy():
    values = matrix(30, 9)
    values[:, 0] += 1
    loader = native.Loader(in_memory(values), target_sum=100, log1p=True, clip=(0, 2.5))
    batch = next(loader.epoch(0))
    rows = values[batch.joinids].astype(np.float64)
    expected = np.clip(np.log1p(rows / rows.sum(1, keepdims=True) * 100), 0, 2.5)
    np.testing.assert_allclose(batch.dense(), expected, rtol=1e-6)


def test_empty_data_sets_have_no_batches():
    empty = in_memory(matrix(5, 3)).select((0, 0))
    assert empty.shape == (0, 3)
    assert list(native.Loader(empty).epoch(0)) == []


def test_nothing_is_left_when_all_is_dropped():
    loader = native.Loader(in_memory(matrix(50, 3)), batch_size=10)
    epoch = loader.epoch(0)
    array = next(epoch).dense()
    gone = weakref.ref(array)
    del array
    assert gone() is None
    assert epoch.stats()["kept_bytes"] == 0


def test_cells_of_an_experiment_equal_those_read_in_order():
    data = dataset(obs_columns=["soma_joinid"])
    assert data.reader == "native" and data.why_not_native is None
    in_order = native.Loader(data, batch_size=100, shuffle=False)
    x = np.concatenate([batch.dense().copy() for batch in in_order.epoch(0)])
    assert x.any()
    for form in FORMS:
        shuffled = native.Loader(data, batch_size=64, chunk_rows=8, form=form)
        for batch in shuffled.epoch(2):
            np.testing.assert_array_equal(dense(batch), x[batch.joinids])
            np.testing.assert_array_equal(batch.obs.column("soma_joinid"), batch.joinids)


def buffer_of(thing, flags):
    """What the buffer protocol answers to these flags: dimensions, and whether it has a shape."""
    import ctypes

    # Py_buffer: buf, obj, len, itemsize, readonly and ndim, format, shape, strides, ...
    view = (ctypes.c_void_p * 10)()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    release.argtypes = [ctypes.c_void_p]
    get(thing, ctypes.addressof(view), flags)
    n_dimensions = ctypes.c_int.from_address(ctypes.addressof(view) + 4 * 8 + 4).value
    has_shape = view[6] is not None
    release(ctypes.addressof(view))
    return n_dimensions, has_shape


def test_the_buffer_protocol():
    simple, nd, strides, c_order, f_order = 0, 0x8, 0x18, 0x38, 0x58
    batch = next(native.Loader(in_memory(matrix(10, 4)), batch_size=8).epoch(0))
    rows, joinids = batch.dense().base.obj, batch.joinids.base.obj
    for flags in (nd, strides, c_order, c_order | 0x1 | 0x4):
        assert buffer_of(rows, flags) == (2, True)
        assert buffer_of(joinids, flags) == (1, True)
    assert buffer_of(rows, simple) == buffer_of(joinids, simple) == (1, False)
    # The rows of a matrix are not in Fortran's order; a vector is in either.
    with pytest.raises(BufferError, match="Fortran"):
        buffer_of(rows, f_order)
    assert buffer_of(joinids, f_order) == (1, True)
    single = next(native.Loader(in_memory(matrix(10, 4)), batch_size=1).epoch(0))
    assert buffer_of(single.dense().base.obj, f_order) == (2, True)
