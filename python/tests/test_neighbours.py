"""Neighbours by a graph of obsp: those of a naive rule over what anndata reads, each row once."""

import pickle
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import somafeed
import torch
from batches import dense
from conftest import TESTS, tiledbsoma_python
from scipy import sparse
from somafeed import (
    ExperimentDataset,
    Neighbours,
    SomafeedError,
    WithReplacement,
    experiment_dataloader,
)
from somafeed.device import DeviceCopies, _parts

SOURCES = ["cells.h5ad", "v2.zarr", "v3.zarr", "experiment"]
PARTS = ["neighbours", *(f"neighbours_{of}" for of in ("positions", "values", "present", "joinids"))]


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> SimpleNamespace:
    """The files of `write_neighbours.py`, and what anndata reads of them."""
    folder = tmp_path_factory.mktemp("neighbours")
    script = [tiledbsoma_python(), TESTS / "write_neighbours.py", folder]
    ran = subprocess.run(script, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    names = ("distances", "connectivities", "knn")
    graphs = {name: sparse.load_npz(folder / f"{name}.npz") for name in names}
    cells = np.load(folder / "cells.npz")
    return SimpleNamespace(folder=folder, graphs=graphs, X=cells["X"], order=cells["order"])


def opened(written, name="cells.h5ad", neighbours=None, **options):
    neighbours = neighbours or Neighbours("distances", k=4)
    options = {"batch_size": 7, "io_batch_size": 16, "shuffle_chunk_size": 4, "seed": 1,
               "dtype": "float32", **options}
    if options.get("form", "numpy") != "numpy":
        del options["dtype"]
    return ExperimentDataset(uri=written.folder / name, neighbours=neighbours, **options)


def nearest(graph, cell, neighbours, selected=None):
    """The rule, in the plainest way: joinids and values of a cell's neighbours."""
    row = graph[[cell]].toarray()[0]
    stored = np.zeros(graph.shape[1], bool)
    stored[graph.indices[graph.indptr[cell] : graph.indptr[cell + 1]]] = True
    stored[cell] = False
    if selected is not None:
        stored &= np.isin(np.arange(len(stored)), selected)
    values = row.astype(np.float32)
    largest = neighbours.nearest == "largest" or neighbours.obsp == "connectivities"
    found = sorted(np.flatnonzero(stored), key=lambda other: (-values[other] if largest else values[other], other))
    found = found[: neighbours.k]
    return found, values[found]


def assert_neighbours(batches, graph, X_of, neighbours, selected=None):
    """Row i of everything is the same cell, and its neighbours are those of the rule. Returns the
    cells of the epoch."""
    seen = []
    for X, obs, beside in batches:
        cells = np.asarray(obs["soma_joinid"])
        seen += cells.tolist()
        table, positions, values, present, joinids = (
            dense(beside[part]) if part == PARTS[0] else np.asarray(beside[part]) for part in PARTS
        )
        n, k = len(cells), neighbours.k
        assert positions.shape == values.shape == present.shape == (n, k)
        assert positions.dtype == np.int64 and values.dtype == np.float32
        # Centres first, each cell once, and no row that nobody needs.
        assert joinids[:n].tolist() == cells.tolist()
        assert len(set(joinids.tolist())) == len(joinids) == len(table)
        assert set(positions.ravel()) | set(range(n)) == set(range(len(joinids)))
        np.testing.assert_array_equal(table, X_of[joinids])
        np.testing.assert_array_equal(dense(X), table[:n])
        for row, cell in enumerate(cells):
            expected, of_graph = nearest(graph, cell, neighbours, selected)
            n_found = len(expected)
            assert present[row].tolist() == [True] * n_found + [False] * (k - n_found)
            assert joinids[positions[row, :n_found]].tolist() == list(expected)
            np.testing.assert_array_equal(values[row, :n_found], of_graph)
            assert (positions[row, n_found:] == row).all() and not values[row, n_found:].any()
        # The gather is the plain one, bit for bit.
        np.testing.assert_array_equal(table[positions], X_of[joinids[positions]])
    assert len(seen) == len(set(seen))
    return seen


def check(written, batches, neighbours=None, selected=None):
    neighbours = neighbours or Neighbours("distances", k=4)
    graph = written.graphs[neighbours.obsp]
    return assert_neighbours(batches, graph, written.X, neighbours, selected)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("k", [1, 3, 30])
def test_neighbours_of_every_format(written, name, k):
    for neighbours in (
        Neighbours("distances", k), Neighbours("connectivities", k),
        Neighbours("knn", k, nearest="largest"),
    ):
        seen = check(written, opened(written, name, neighbours), neighbours)
        assert sorted(seen) == list(range(90)) and seen != list(range(90))


@pytest.mark.parametrize("form", ["numpy", "f16", "torch", "torch_csr", "torch_coo"])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_the_table_has_the_form_of_x(written, form, batch_size, travelling):
    ds = opened(written, form=form, batch_size=batch_size)
    assert len(check(written, ds)) == 90
    if form.startswith("torch"):
        copied = opened(written, form=form, batch_size=batch_size, device="cpu")
        assert len(check(written, copied)) == 90
    X, _, beside = next(iter(ds))
    assert list(beside) == PARTS
    assert type(beside["neighbours"]) is type(X) and beside["neighbours"].dtype == X.dtype
    kind = torch.Tensor if form.startswith("torch") else np.ndarray
    assert all(isinstance(beside[part], kind) for part in PARTS[1:])
    if form in ("numpy", "torch"):
        # One row of memory, not two.
        assert np.shares_memory(np.asarray(X), np.asarray(beside["neighbours"]))
        gathered = beside["neighbours"][beside["neighbours_positions"]]
        assert gathered.shape == (min(batch_size, 90), 4, 7)


@pytest.mark.parametrize("form", ["torch", "torch_f16", "torch_csr", "torch_coo"])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("densifies", [False, True])
def test_a_device_gets_each_row_once(written, form, batch_size, densifies):
    copies = DeviceCopies(torch.device("cpu"), densifies)
    for batch in opened(written, form=form, batch_size=batch_size):
        n_copied = []

        def copied(tensor, n_copied=n_copied):
            n_copied.append(tensor.numel())
            return tensor.clone()

        X, obs, beside = copies._copied_batch(batch, copied)
        assert X.shape == batch[0].shape and obs is batch[1]
        assert torch.equal(X.to_dense(), batch[0].to_dense())
        assert torch.equal(beside["neighbours"].to_dense(), batch[2]["neighbours"].to_dense())
        if X.layout == torch.strided:
            assert X.data_ptr() == beside["neighbours"].data_ptr()
        once = [part.numel() for part in _parts(batch[2]["neighbours"])]
        assert n_copied == once + [batch[2][part].numel() for part in PARTS[1:]]


def test_sparse_and_stored_values(written):
    ds = opened(written, return_sparse_X=True)
    assert len(check(written, ds)) == 90
    X, _, beside = next(iter(ds))
    assert X.nnz == beside["neighbours"][: X.shape[0]].nnz
    assert len(check(written, opened(written, dtype="stored"))) == 90


def test_splits_workers_pickles_filters_and_ranks(written):
    ds = opened(written)
    train, test = ds.random_split(0.7, 0.3, seed=1)
    assert sorted(check(written, train) + check(written, test)) == list(range(90))
    assert sorted(check(written, pickle.loads(pickle.dumps(ds)))) == list(range(90))
    assert sorted(check(written, experiment_dataloader(ds, num_workers=2))) == list(range(90))
    some = opened(written, obs_filter="slide == 's0'", genes=("var_id", ["gene5", "other", "gene0"]))
    X_of = np.stack([written.X[:, 5], np.zeros(90, np.float32), written.X[:, 0]], axis=1)
    seen = assert_neighbours(some, written.graphs["distances"], X_of, Neighbours("distances", 4))
    assert sorted(seen) == list(range(0, 90, 2))
    ranks = [opened(written, world=(rank, 3), remainder="drop") for rank in range(3)]
    seen = [cell for of_rank in ranks for cell in check(written, of_rank)]
    assert len(set(seen)) == len(seen) == 84


def test_only_cells_of_the_part(written):
    neighbours = Neighbours("distances", 4, selected_only=True)
    parts = opened(written, neighbours=neighbours).random_split(0.5, 0.5, seed=2)
    for part in parts:
        cells = part.query_ids.obs_joinids
        seen = check(written, part, neighbours, selected=cells)
        assert sorted(seen) == cells.tolist()
        for _, _, beside in part:
            assert set(beside["neighbours_joinids"]) <= set(cells.tolist())


def test_a_resumed_epoch_has_the_same(written):
    def joinids(batches):
        return [beside["neighbours_joinids"].tolist() for _, _, beside in batches]

    whole = joinids(opened(written))
    before = opened(written)
    running = iter(before)
    taken = [next(running) for _ in range(3)]
    again = opened(written)
    again.load_state_dict(before.state_dict())
    rest = list(again)
    assert joinids([*taken, *rest]) == whole and len(whole) == 13
    check(written, [*taken, *rest])


def test_modality_of_a_mudata(written):
    ds = opened(written, "cells.h5mu", modalities=["prot"])
    order, n_cells = written.order, 135
    # What the modality has, by the joinids of the whole.
    to_whole = sparse.csr_matrix((np.ones(90), (order, np.arange(90))), shape=(n_cells, 90))
    graph = sparse.csr_matrix(to_whole @ written.graphs["distances"] @ to_whole.T)
    X_of = np.zeros((n_cells, 7), np.float32)
    X_of[order] = written.X
    neighbours = Neighbours("distances", 4)
    batches = [(X, obs, {part: beside[part] for part in PARTS}) for X, obs, beside in ds]
    seen = assert_neighbours(batches, graph, X_of, neighbours)
    assert sorted(seen) == list(range(n_cells))
    for _, obs, beside in ds:
        lacks = ~beside["present"]
        assert (lacks == (obs["soma_joinid"].to_numpy() % 3 == 2)).all()
        assert not beside["neighbours_present"][lacks].any()


def test_each_row_is_read_once(written):
    ds = opened(written, io_batch_size=90, shuffle_chunk_size=90, batch_size=10)
    running = iter(ds)
    n_rows = sum(len(beside["neighbours"]) for _, _, beside in running)
    stats = running.stats()
    # One block has all cells: none is read for neighbours alone, however often it is delivered.
    assert (stats["neighbour_rows"], stats["read_amplification"]) == (0, 1.0)
    assert n_rows > 90
    small = iter(opened(written, io_batch_size=8, batch_size=8))
    further = sum(len(beside["neighbours"]) - len(X) for X, _, beside in small)
    stats = small.stats()
    assert stats["neighbour_rows"] == further > 0
    assert stats["read_amplification"] == (90 + further) / 90


def test_cells_drawn_twice(written):
    ds = opened(written, sampling=WithReplacement(200))
    n_cells = 0
    for _, obs, beside in ds:
        cells = obs["soma_joinid"].to_numpy()
        n_cells += len(cells)
        assert beside["neighbours_joinids"][: len(cells)].tolist() == cells.tolist()
        np.testing.assert_array_equal(beside["neighbours"], written.X[beside["neighbours_joinids"]])
        others = beside["neighbours_joinids"][len(cells) :].tolist()
        assert len(set(others)) == len(others) and not set(others) & set(cells.tolist())
        for row, cell in enumerate(cells):
            expected, _ = nearest(written.graphs["distances"], cell, Neighbours("distances", 4))
            positions = beside["neighbours_positions"][row, : len(expected)]
            assert beside["neighbours_joinids"][positions].tolist() == list(expected)
    assert n_cells == 200


@pytest.mark.parametrize(
    ("neighbours", "reason"),
    [
        (Neighbours("places", 2), "places"),
        (Neighbours("knn", 2), "smallest"),
        (Neighbours("distances", 100_000), "65536"),
        (Neighbours("short_distances", 2), "89 columns"),
    ],
)
def test_what_cannot_be_opened(written, neighbours, reason):
    with pytest.raises((ValueError, SomafeedError), match=reason):
        opened(written, neighbours=neighbours)


@pytest.mark.parametrize(
    ("neighbours", "reason"),
    [
        (Neighbours("distances", 80, allow_fewer=False), "instead of 80"),
        (Neighbours("nan_distances", 2), "not a number"),
    ],
)
def test_what_cannot_be_delivered(written, neighbours, reason):
    with pytest.raises(SomafeedError, match=reason):
        list(opened(written, neighbours=neighbours))


def test_wrong_arguments(written):
    for wrong, error in [
        (lambda: Neighbours("distances", 0), ValueError),
        (lambda: Neighbours("distances", "many"), TypeError),
        (lambda: Neighbours(3), TypeError),
        (lambda: Neighbours("distances", nearest="near"), ValueError),
        (lambda: opened(written, neighbours="distances"), TypeError),
    ]:
        with pytest.raises(error):
            wrong()
    with pytest.raises(ValueError, match="neighbours"):
        ExperimentDataset(dataset=opened(written).dataset, neighbours=Neighbours("distances"))
    assert opened(written).dataset.neighbours == ("distances", 4)
    assert len(next(iter(opened(written, neighbours=Neighbours("distances"))))) == 3
    names = somafeed.Experiment(str(written.folder / "experiment")).obsp_names("RNA")
    assert sorted(names) == ["connectivities", "distances", "knn"]


def test_memory_is_limited(written):
    # The blocks of a small limit give the same as those of none.
    assert sorted(check(written, opened(written, memory="300 MiB"))) == list(range(90))
    with pytest.raises(MemoryError, match="allow at least"):
        list(opened(written, memory="66 MiB"))


def test_joined_data_sets(written):
    genes = ("var_id", [f"gene{gene}" for gene in range(7)])
    parts = [opened(written, name, genes=genes) for name in ("cells.h5ad", "v3.zarr")]
    joined = ExperimentDataset.concat(parts, experiment_column="part")
    n_cells = 0
    for _, obs, beside in joined:
        n_cells += len(obs)
        np.testing.assert_array_equal(beside["neighbours"], written.X[beside["neighbours_joinids"]])
        for row, cell in enumerate(obs["soma_joinid"]):
            expected, _ = nearest(written.graphs["distances"], cell, Neighbours("distances", 4))
            positions = beside["neighbours_positions"][row, : len(expected)]
            assert beside["neighbours_joinids"][positions].tolist() == list(expected)
    assert n_cells == 180
    others = opened(written, neighbours=Neighbours("distances", 5), genes=genes)
    with pytest.raises(ValueError, match="NeighbourSpec"):
        ExperimentDataset.concat([parts[0], others])
