"""Batches on a device, without one: on the processor, on torch's `meta`, and with a stand-in for
CUDA's streams that records what is asked of them."""

import gc
import weakref
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
import torch
from somafeed import (
    Dataset,
    ExperimentDataset,
    FieldDataset,
    Kmers,
    SequenceDataset,
    SourceDataset,
    Variable,
    experiment_dataloader,
)
from somafeed.batches import PackedRows
from somafeed.device import DeviceCopies, _parts
from test_images import Stored
from test_on_error import write_fields
from test_sequences import written

N_CELLS, N_GENES = 70, 9


@pytest.fixture(scope="module")
def cells():
    random = np.random.default_rng(5)
    dense = random.poisson(0.6, (N_CELLS, N_GENES)).astype(np.float32)
    rows, columns = np.nonzero(dense)
    made = Dataset.in_memory(
        np.r_[0, np.cumsum((dense > 0).sum(axis=1))], columns, dense[rows, columns],
        n_columns=N_GENES, obs=pa.table({"cell_type": ["B cell"] * N_CELLS}),
    )
    return made, dense


def dataset(cells, **options):
    options = {"batch_size": 16, "form": "torch", "shuffle": False, **options}
    return ExperimentDataset(
        dataset=cells[0], obs_column_names=["soma_joinid"], obs_form="codes", **options
    )


def source(**options):
    class Numbers:
        n_rows = 30

        def read(self, rows):
            return {"x": rows.astype(np.float32)[:, None] * [1, 2], "row": rows}

    return SourceDataset(Numbers(), batch_size=8, shuffle=False, **options)


@pytest.mark.parametrize("form", ["torch", "torch_f16", "torch_csr", "torch_coo"])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_values_on_the_processor(cells, form, batch_size):
    options = {"form": form, "batch_size": batch_size}
    for plain, copied in zip(
        dataset(cells, **options), dataset(cells, device="cpu", **options), strict=True
    ):
        assert plain[0].layout == copied[0].layout
        assert torch.equal(plain[0].to_dense(), copied[0].to_dense())
        assert torch.equal(plain[1]["soma_joinid"], copied[1]["soma_joinid"])


@pytest.mark.parametrize("most", [255, 65_535, 65_536, 0.5])
@pytest.mark.parametrize("form", ["torch_csr", "torch"])
def test_rows_in_csr_travel_packed(most, form, monkeypatch, travelling):
    values = np.float32([1, most, 200, 3])
    made = Dataset.in_memory(
        [0, 2, 4], [0, 65_535, 1, 40_000], values, n_columns=65_536,
        obs=pa.table({"kind": ["a", "b"]}),
    )
    plain = dataset((made,), form="torch_csr", batch_size=2)
    ds = dataset((made,), form=form, batch_size=2, device="cpu")
    seen, copied = [], DeviceCopies._copied

    def recorded(self, tensor, copy):
        seen.append(tensor)
        return copied(self, tensor, copy)

    monkeypatch.setattr(DeviceCopies, "_copied", recorded)
    (x, _), (expected, _) = next(iter(ds)), next(iter(plain))
    types = {255: torch.uint8, 65_535: torch.int16}
    of_parts = [torch.int32, torch.int16, types.get(most, torch.float32)]
    assert isinstance(seen[0], PackedRows) and [part.dtype for part in seen[0].parts] == of_parts
    assert torch.equal(x.to_dense(), expected.to_dense()) and x.dtype == torch.float32
    if form == "torch_csr":
        for of_copy, of_plain in zip(_parts(x), _parts(expected), strict=True):
            assert of_copy.dtype == of_plain.dtype and torch.equal(of_copy, of_plain)


def test_dense_x_travels_as_csr(cells, travelling):
    ds = dataset(cells, device="cpu")
    assert ds._own_options()["form"] == "packed"
    x = torch.cat([x for x, _ in ds])
    assert x.layout == torch.strided
    np.testing.assert_array_equal(x.numpy(), cells[1])


def test_what_makes_x_dense_on_a_device(cells):
    assert dataset(cells, device="meta")._densifies
    for options in (
        {"device": None}, {"device": "cpu"}, {"form": "torch_csr"}, {"form": "torch_f16"},
        {"batch_size": 1},
    ):
        assert not dataset(cells, **{"device": "meta", **options})._densifies


@pytest.mark.parametrize("form", ["torch_f16", "torch_coo"])
def test_all_tensors_are_on_the_device(cells, form):
    x, obs = next(iter(dataset(cells, form=form, device="meta")))
    assert x.device.type == "meta" and x.shape == (16, N_GENES)
    assert obs["soma_joinid"].device.type == "meta"
    batch = next(iter(source(form="torch", device="meta")))
    assert {name: one.device.type for name, one in batch.items()} == {"x": "meta", "row": "meta"}


class Stream:
    """Stands in for a stream of CUDA."""

    def __init__(self, name):
        self.name, self.waited, self.n_recorded, self.n_awaited = name, [], 0, 0

    def wait_stream(self, other):
        self.waited.append(other.name)

    def record_event(self):
        self.n_recorded += 1
        return Event(self)


class Event:
    def __init__(self, stream):
        self.stream, self.number = stream, stream.n_recorded

    def synchronize(self):
        self.stream.n_awaited = self.number


class StandIn:
    """Stands in for a device with CUDA: tensors stay on the processor, and what is asked of streams and
    of pinned memory is recorded."""

    def __init__(self, monkeypatch, densifies):
        self.copying, self.model = Stream("copies"), Stream("model")
        self.current, self.pinned, self.recorded = [self.model], [], []
        self.copy = DeviceCopies(torch.device("cpu"), densifies)
        self.copy._stream, to = self.copying, torch.Tensor.to

        def copied(tensor, device, non_blocking=False):
            assert self.current[-1] is self.copying and non_blocking
            assert tensor.data_ptr() in self.pinned
            return to(tensor, device, copy=True)

        monkeypatch.setattr(torch.cuda, "stream", self._stream)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self.current[-1])
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: self._pin(tensor))
        monkeypatch.setattr(
            torch.Tensor, "record_stream", lambda tensor, one: self._record(tensor, one)
        )
        monkeypatch.setattr(torch.Tensor, "to", copied)

    @contextmanager
    def _stream(self, one):
        self.current.append(one)
        yield
        self.current.pop()

    def _pin(self, tensor):
        self.pinned.append(tensor.data_ptr())
        return tensor

    def _record(self, tensor, one):
        self.recorded.append((tensor.data_ptr(), one.name))


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("form", ["torch", "torch_csr", "torch_coo"])
def test_streams(cells, form, is_packed, monkeypatch, travelling):
    # Batches as they are before they are copied.
    monkeypatch.setattr(ExperimentDataset, "_placed_batch_maker", lambda ds: ds._batch_maker())
    options = {"device": "cpu"} if is_packed else {}
    ds = dataset(cells, form="torch_coo" if form == "torch_coo" else "torch_csr", **options)
    plain = next(iter(ds))
    assert isinstance(plain[0], PackedRows) == (is_packed and form != "torch_coo")

    device = StandIn(monkeypatch, densifies=form == "torch")
    x, obs = device.copy(plain)
    # All parts were pinned, and the model's stream waits before it uses any of them.
    assert len(device.pinned) == {"torch": 3, "torch_csr": 3, "torch_coo": 2}[form] + 1
    assert device.model.waited == ["copies"] and not device.copying.waited
    parts = {"torch": 1, "torch_csr": 3, "torch_coo": 2}[form] + 1
    assert len(device.recorded) == parts and {name for _, name in device.recorded} == {"model"}
    assert obs["soma_joinid"].data_ptr() in {address for address, _ in device.recorded}
    np.testing.assert_array_equal(x.to_dense().numpy(), cells[1][:16])


def test_memory_is_kept_until_it_was_copied(monkeypatch):
    device = StandIn(monkeypatch, densifies=False)
    copies, stream = device.copy, device.copying

    def alive(batch):
        return weakref.ref(batch["x"])

    first, second, third = ({"x": torch.ones(3)} for _ in range(3))
    refs = [alive(one) for one in (first, second, third)]
    copies(first)
    del first
    assert refs[0]() is not None and (stream.n_recorded, stream.n_awaited) == (1, 0)
    copies(second)
    assert refs[0]() is None and (stream.n_recorded, stream.n_awaited) == (2, 1)

    # What began before an error is waited for, too.
    def failing(tensor, *args, **options):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "to", failing)
        with pytest.raises(RuntimeError, match="no memory"):
            copies(third)
    del second, third
    gc.collect()
    assert refs[1]() is None and refs[2]() is not None
    assert (stream.n_recorded, stream.n_awaited) == (3, 2)
    device.copy = copies = None
    assert stream.n_awaited == 3 and refs[2]() is None


def fields(folder, **options):
    write_fields(folder / "fields.zarr")
    variables = {"now": "a", "steps": Variable("a", steps=[-1, 0])}
    return FieldDataset(folder / "fields.zarr", variables, batch_size=8, **options)


def images(folder, **options):
    return Stored(folder / "images", 9).dataset(batch_size=8, **options)


def sequences(folder, **options):
    store = written(folder / "store", ["ACGT" * (1 + at % 5) for at in range(20)])
    return SequenceDataset(store, Kmers(2), batch_size=8, names=True, letters=True, **options)


def own(folder, **options):
    return source(**options)


OTHERS = pytest.mark.parametrize("kind", [fields, images, sequences, own])


@OTHERS
def test_batches_of_all_kinds_are_copied_from_pinned_memory(kind, tmp_path, monkeypatch):
    ds = kind(tmp_path, form="torch", number_samples=True)
    plain = next(iter(ds))
    tensors = {name: one for name, one in plain.items() if isinstance(one, torch.Tensor)}
    device = StandIn(monkeypatch, densifies=False)
    copied = device.copy(plain)
    assert list(copied) == list(plain) and len(tensors) >= 2
    assert sorted(device.pinned) == sorted(one.data_ptr() for one in tensors.values())
    assert device.model.waited == ["copies"]
    # The model's stream keeps the memory of the copies.
    addresses = {copied[name].data_ptr() for name in tensors}
    assert {address for address, _ in device.recorded} == addresses
    assert not addresses & set(device.pinned)
    for name, one in plain.items():
        same = torch.equal(one, copied[name]) if name in tensors else one == copied[name]
        assert same, name


@OTHERS
def test_batches_of_all_kinds_are_on_the_device(kind, tmp_path):
    ds = kind(tmp_path, form="torch", device="meta")
    for batch in ds:
        tensors = [one for one in batch.values() if isinstance(one, torch.Tensor)]
        assert tensors and {one.device.type for one in tensors} == {"meta"}
    (tmp_path / "again").mkdir()
    plain = list(kind(tmp_path / "again", form="torch"))[-1]
    (tmp_path / "more").mkdir()
    [*_, last] = kind(tmp_path / "more", form="torch", device="cpu")
    assert list(last) == list(plain)


@pytest.mark.parametrize("make", [dataset, lambda cells, **options: source(**options)])
def test_errors(cells, make):
    with pytest.raises(ValueError, match="device= needs tensors, but form is 'numpy'"):
        make(cells, form="numpy", device="cuda")
    with pytest.raises(RuntimeError, match="nonsense"):
        make(cells, form="torch", device="nonsense")


@pytest.mark.filterwarnings("ignore:num_workers")
def test_not_in_a_worker(cells):
    loader = experiment_dataloader(source(form="torch", device="meta"), num_workers=1)
    with pytest.raises(ValueError, match="num_workers=0"):
        next(iter(loader))
