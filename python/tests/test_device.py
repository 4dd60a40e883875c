"""Batches on a device, without one: on the processor, on torch's `meta`, and with a stand-in for
CUDA's streams that records what is asked of them."""

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
import torch
from somafeed import Dataset, ExperimentDataset, SourceDataset, experiment_dataloader
from somafeed.device import DeviceCopies

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


def test_dense_x_travels_as_csr(cells, monkeypatch):
    monkeypatch.setattr(ExperimentDataset, "_densifies", True)
    ds = dataset(cells, device="cpu")
    assert ds._own_options()["form"] == "csr"
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
        self.name, self.waited = name, []

    def wait_stream(self, other):
        self.waited.append(other.name)


@pytest.mark.parametrize("form", ["torch", "torch_csr", "torch_coo"])
def test_streams(cells, form, monkeypatch):
    copying, model, current, pinned, recorded = Stream("copies"), Stream("model"), [], [], []
    current.append(model)

    @contextmanager
    def stream(one):
        current.append(one)
        yield
        current.pop()

    def pin_memory(tensor):
        pinned.append(tensor.data_ptr())
        return tensor

    def record_stream(tensor, one):
        recorded.append((tensor.data_ptr(), one.name))

    copy, to = DeviceCopies(torch.device("cpu"), densifies=form == "torch"), torch.Tensor.to
    copy._stream = copying

    def copied(tensor, device, non_blocking=False):
        assert current[-1] is copying and non_blocking
        return to(tensor, device, copy=True)

    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current[-1])
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(torch.Tensor, "record_stream", record_stream)
    monkeypatch.setattr(torch.Tensor, "to", copied)
    plain = next(iter(dataset(cells, form="torch_csr" if form == "torch" else form)))
    x, obs = copy(plain)
    # All parts were pinned, and the model's stream waits before it uses any of them.
    assert len(pinned) == {"torch": 3, "torch_csr": 3, "torch_coo": 2}[form] + 1
    assert model.waited == ["copies"] and not copying.waited
    parts = {"torch": 1, "torch_csr": 3, "torch_coo": 2}[form] + 1
    assert len(recorded) == parts and {name for _, name in recorded} == {"model"}
    assert obs["soma_joinid"].data_ptr() in {address for address, _ in recorded}
    np.testing.assert_array_equal(x.to_dense().numpy(), cells[1][:16])


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
