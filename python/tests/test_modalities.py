"""Modalities beside X: row i of everything is the same cell, and cells that lack one are masked."""

import pickle
import subprocess
from pathlib import Path

import multimodal
import numpy as np
import pyarrow as pa
import pytest
import somafeed
import torch
from batches import dense
from conftest import TESTS, tiledbsoma_python
from multimodal import FEATURE_TYPES, N_CELLS, N_PROT_ROWS, has, masked, values
from somafeed import ExperimentDataset, Modality, experiment_dataloader

ATAC = Modality(presence="has_atac")
MUDATA = ["cells.h5mu", "without_block.h5mu", "v2.zarr", "v3.zarr"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """The files of `write_multimodal.py`."""
    made = tmp_path_factory.mktemp("multimodal")
    script = [tiledbsoma_python(), TESTS / "write_multimodal.py", made]
    ran = subprocess.run(script, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return made


def of_soma(folder, **options):
    options = {
        "measurement_name": "rna", "modalities": {"prot": Modality(), "atac": ATAC},
        "batch_size": 7, "seed": 1, "io_batch_size": 16, "shuffle_chunk_size": 4, **options,
    }
    return ExperimentDataset(uri=folder / "experiment", **options)


def of_mudata(folder, name, **options):
    options = {"modalities": ["prot", "atac"], "batch_size": 7, "seed": 1, "io_batch_size": 16,
               "shuffle_chunk_size": 4, **options}
    return ExperimentDataset(uri=folder / name, **options)


def numbers(mask):
    return np.asarray(mask)


def assert_soma(batches, n_cells=N_CELLS):
    """Every row is that of its cell in X and in the modalities."""
    seen = []
    for X, obs, beside in batches:
        cells = obs["soma_joinid"].to_numpy()
        seen += cells.tolist()
        assert list(beside) == ["prot", "prot_present", "atac", "atac_present", "present"]
        np.testing.assert_array_equal(dense(X), values("rna", cells))
        is_row = (cells < N_PROT_ROWS)[:, None]
        np.testing.assert_array_equal(dense(beside["prot"]), masked("prot", cells) * is_row)
        np.testing.assert_array_equal(numbers(beside["prot_present"]), cells < N_PROT_ROWS)
        np.testing.assert_array_equal(dense(beside["atac"]), masked("atac", cells))
        np.testing.assert_array_equal(numbers(beside["atac_present"]), has("atac", cells))
        assert numbers(beside["present"]).all()
    assert len(seen) == n_cells == len(set(seen))
    return seen


def assert_mudata(batches, expected):
    """The same for a MuData, of which these cells come."""
    seen = []
    for X, obs, beside in batches:
        cells = obs["soma_joinid"].to_numpy()
        seen += cells.tolist()
        np.testing.assert_array_equal(dense(X), masked("rna", cells))
        np.testing.assert_array_equal(numbers(beside["present"]), has("rna", cells))
        for name in ("prot", "atac"):
            np.testing.assert_array_equal(dense(beside[name]), masked(name, cells))
            np.testing.assert_array_equal(numbers(beside[f"{name}_present"]), has(name, cells))
    assert sorted(seen) == np.flatnonzero(expected).tolist()


def all_have(*names):
    return np.all([has(name, np.arange(N_CELLS)) for name in names], axis=0)


def any_has(*names):
    return np.any([has(name, np.arange(N_CELLS)) for name in names], axis=0)


@pytest.mark.parametrize("form", ["numpy", "torch", "torch_csr", "torch_coo"])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_rows_are_those_of_x(folder, form, batch_size):
    ds = of_soma(folder, form=form, batch_size=batch_size)
    assert_soma(ds)
    _, _, beside = next(iter(ds))
    expected = torch.Tensor if form != "numpy" else np.ndarray
    assert isinstance(beside["prot_present"], expected)
    assert beside["prot_present"].shape == (min(batch_size, N_CELLS),)
    assert ds.dataset.modalities == [("prot", 4), ("atac", 9)]


def test_each_has_a_form_of_its_own(folder, travelling):
    modalities = {"prot": Modality(form="torch_f16"), "atac": Modality(form="torch_csr",
                                                                    presence="has_atac")}
    ds = of_soma(folder, form="torch", modalities=modalities)
    assert_soma(ds)
    X, _, beside = next(iter(ds))
    assert X.dtype == torch.float32 and beside["prot"].dtype == torch.float16
    assert beside["atac"].layout == torch.sparse_csr
    # On their way to a device they are packed.
    assert_soma(of_soma(folder, form="torch", modalities=modalities, device="cpu"))
    modalities = {"prot": Modality(form="numpy"), "atac": ATAC}
    ds = of_soma(folder, return_sparse_X=True, modalities=modalities)
    assert_soma(ds)
    X, _, beside = next(iter(ds))
    assert isinstance(beside["prot"], np.ndarray) and type(beside["atac"]) is type(X)
    modalities = {"prot": Modality(return_sparse=True), "atac": ATAC}
    _, _, beside = next(iter(of_soma(folder, modalities=modalities)))
    assert type(beside["prot"]) is type(X) and isinstance(beside["atac"], np.ndarray)


def test_parts_workers_pickles_samplings_and_ranks(folder):
    ds = of_soma(folder)
    train, test = ds.random_split(0.5, 0.5, seed=1)
    assert_soma([*train, *test])
    assert_soma(pickle.loads(pickle.dumps(ds)))
    for num_workers in (1, 3):
        assert_soma(experiment_dataloader(ds, num_workers=num_workers))
    shares = [of_soma(folder, world=(rank, 3), batch_size=4) for rank in range(3)]
    assert_soma([batch for share in shares for batch in share])
    assert_soma(ds.in_order())


def test_an_epoch_resumes(folder):
    ds = of_soma(folder)
    batches = iter(ds)
    first = [next(batches) for _ in range(3)]
    state = batches.state_dict()
    other = of_soma(folder)
    other.load_state_dict(state)
    whole = [obs["soma_joinid"].tolist() for _, obs, _ in of_soma(folder)]
    assert_soma([*first, *other])
    assert [obs["soma_joinid"].tolist() for _, obs, _ in first] == whole[:3]


def test_an_obs_column_says_which_cells_are_there(folder):
    ds = of_soma(folder, modalities={"prot": Modality(presence="has_prot")})
    for _, obs, beside in ds:
        cells = obs["soma_joinid"].to_numpy()
        expected = has("prot", cells) & (cells < N_PROT_ROWS)
        np.testing.assert_array_equal(beside["prot_present"], expected)
    # Without a column, a cell without values counts as measured, as far as the matrix goes.
    cells = np.arange(N_CELLS)
    of_all = of_soma(folder, cell_join="intersection")
    assert of_all.dataset.joinids().tolist() == cells[(cells < N_PROT_ROWS) & has("atac", cells)].tolist()
    # X has a column, too.
    ds = of_soma(folder, presence="has_prot", modalities={"atac": ATAC})
    assert ds.dataset.joinids().tolist() == cells[has("prot", cells) | has("atac", cells)].tolist()
    for _, obs, beside in ds:
        cells = obs["soma_joinid"].to_numpy()
        np.testing.assert_array_equal(beside["present"], has("prot", cells))


def test_genes_of_a_modality_are_selected(folder):
    names = ["prot2", "none", "prot0"]
    modalities = {
        "prot": Modality(genes=("feature_id", names), var_columns=["feature_id"]),
        "peaks": Modality(measurement="atac", layer="raw", var_joinids=[8, 2, 5]),
        "few": Modality(measurement="atac", var_filter="feature_id == 'atac3'"),
    }
    ds = of_soma(folder, modalities=modalities)
    assert ds.dataset.modalities == [("prot", 3), ("peaks", 3), ("few", 1)]
    var = pa.table(ds.dataset.modality_var("prot"))
    assert var["feature_id"].to_pylist() == ["prot2", None, "prot0"]
    for _, obs, beside in ds:
        cells = obs["soma_joinid"].to_numpy()
        prot = masked("prot", cells) * (cells < N_PROT_ROWS)[:, None]
        np.testing.assert_array_equal(beside["prot"][:, [0, 2]], prot[:, [2, 0]])
        assert not beside["prot"][:, 1].any()
        np.testing.assert_array_equal(beside["peaks"], masked("atac", cells)[:, [8, 2, 5]])
        np.testing.assert_array_equal(beside["few"], masked("atac", cells)[:, [3]])


def test_data_sets_with_modalities_are_concatenated(folder):
    genes = {"genes": ("feature_id", multimodal.names("rna"))}
    of_names = {"prot": Modality(genes=("feature_id", multimodal.names("prot")))}
    one = of_soma(folder, modalities=of_names, **genes)
    both = ExperimentDataset.concat([one, one], experiment_column="experiment")
    n_cells = 0
    for X, obs, beside in both:
        cells = obs["soma_joinid"].to_numpy()
        n_cells += len(cells)
        np.testing.assert_array_equal(dense(X), values("rna", cells))
        is_row = (cells < N_PROT_ROWS)[:, None]
        np.testing.assert_array_equal(beside["prot"], masked("prot", cells) * is_row)
    assert n_cells == 2 * N_CELLS
    few = {"prot": Modality(genes=("feature_id", ["prot0"]))}
    with pytest.raises(ValueError, match="other genes of modality 'prot'"):
        ExperimentDataset.concat([one, of_soma(folder, modalities=few, **genes)])
    with pytest.raises(ValueError, match='data set 1 has none; the first has modality "prot"'):
        ExperimentDataset.concat([one, of_soma(folder, modalities=(), **genes)])


@pytest.mark.parametrize("name", MUDATA)
def test_mudata_is_read_in_place(folder, name):
    order = ["atac", "rna", "prot"]
    if name == "without_block.h5mu":
        # Its mod-order names a modality that is not there.
        order = ["atac", "prot", "rna"]
    experiment = somafeed.Experiment(str(folder / name))
    assert experiment.measurements() == order
    assert_mudata(of_mudata(folder, name), any_has("rna", "prot", "atac"))
    both = of_mudata(folder, name, cell_join="intersection")
    assert_mudata(both, all_have("rna", "prot", "atac"))
    assert_mudata(experiment_dataloader(of_mudata(folder, name), num_workers=2),
                  any_has("rna", "prot", "atac"))
    # X alone has its own cells.
    alone = of_mudata(folder, name, modalities=())
    assert alone.dataset.joinids().tolist() == np.flatnonzero(all_have("rna")).tolist()
    for X, obs in alone:
        np.testing.assert_array_equal(X, values("rna", obs["soma_joinid"]))
        assert X.dtype == np.int32


def test_obs_of_mudata_has_the_columns_of_modalities(folder):
    columns = ["soma_joinid", "obs_id", "kind", "rna:total", "prot:total", "atac:own"]
    for name in MUDATA:
        ds = of_mudata(folder, name, obs_column_names=columns)
        for _, obs, _ in ds:
            cells = obs["soma_joinid"].to_numpy()
            assert obs["obs_id"].tolist() == [f"cell{cell}" for cell in cells]
            assert obs["kind"].tolist() == [f"kind {cell % 3}" for cell in cells]
            # What the whole has hides what the modality has.
            expected = np.where(has("rna", cells), -1, np.nan)
            np.testing.assert_array_equal(obs["rna:total"], expected)
            expected = np.where(has("prot", cells), values("prot", cells).sum(1), np.nan)
            np.testing.assert_array_equal(obs["prot:total"], expected)
            own = [f"atac {cell}" if has("atac", cell) else None for cell in cells]
            assert [None if value != value else value for value in obs["atac:own"]] == own
    coded = of_mudata(folder, MUDATA[0], obs_column_names=["kind"], obs_form="codes")
    _, codes, _ = next(iter(coded))
    assert set(codes) == {"kind"}


def test_layers_of_a_mudata(folder):
    ds = of_mudata(folder, MUDATA[0], layers=["twice"])
    for X, _, beside in ds:
        np.testing.assert_array_equal(beside["twice"], 2 * X)
    modalities = {"prot": Modality(layer="twice")}
    for _, obs, beside in of_mudata(folder, MUDATA[0], modalities=modalities):
        np.testing.assert_array_equal(beside["prot"], 2 * masked("prot", obs["soma_joinid"]))


def test_feature_types_of_10x_are_modalities(folder):
    types = {name: Modality(feature_type=FEATURE_TYPES[name]) for name in ("prot", "atac")}
    for options in ({}, {"dtype": "float32"}, {"return_sparse_X": True}, {"form": "torch_csr"}):
        ds = ExperimentDataset(
            uri=folder / "cells.h5", feature_type=FEATURE_TYPES["rna"], modalities=types,
            batch_size=7, seed=1, io_batch_size=16, shuffle_chunk_size=4, **options,
        )
        assert ds.dataset.shape == (N_CELLS, 6)
        for batches in (ds, experiment_dataloader(ds, num_workers=2)):
            n_cells = 0
            for X, obs, beside in batches:
                cells = obs["soma_joinid"].to_numpy()
                n_cells += len(cells)
                np.testing.assert_array_equal(dense(X), values("rna", cells))
                for name in types:
                    np.testing.assert_array_equal(dense(beside[name]), values(name, cells))
                    assert np.asarray(beside[f"{name}_present"]).all()
            assert n_cells == N_CELLS


def test_files_of_the_same_cells_are_joined_by_name(folder):
    """The cells of X, in its order; those that another file lacks are masked."""
    names = pa.table(somafeed.Experiment(str(folder / "rna.h5ad")).obs(columns=["obs_id"]))
    cells_of_x = np.array([int(name[4:]) for name in names["obs_id"].to_pylist()])
    assert cells_of_x.tolist() == multimodal.order("rna").tolist()
    modalities = {
        "prot": Modality(uri=folder / "prot.h5ad"),
        "twice": Modality(uri=folder / "atac.zarr", layer="twice", names="obs_id",
                          var_joinids=[7, 1]),
    }

    def check(batches, expected):
        seen = []
        for X, obs, beside in batches:
            cells = cells_of_x[obs["soma_joinid"].to_numpy()]
            seen += cells.tolist()
            np.testing.assert_array_equal(X, values("rna", cells))
            np.testing.assert_array_equal(beside["prot"], masked("prot", cells))
            np.testing.assert_array_equal(beside["prot_present"], has("prot", cells))
            np.testing.assert_array_equal(beside["twice"], 2 * masked("atac", cells)[:, [7, 1]])
            np.testing.assert_array_equal(beside["twice_present"], has("atac", cells))
        assert sorted(seen) == np.flatnonzero(expected).tolist()

    def opened(**options):
        return ExperimentDataset(
            uri=folder / "rna.h5ad", modalities=modalities, batch_size=7, seed=1,
            io_batch_size=16, shuffle_chunk_size=4, **options,
        )

    check(opened(), all_have("rna"))
    check(opened(cell_join="intersection"), all_have("rna", "prot", "atac"))
    check(pickle.loads(pickle.dumps(opened())), all_have("rna"))
    check(experiment_dataloader(opened(), num_workers=2), all_have("rna"))
    train, test = opened().random_split(0.5, 0.5, seed=1)
    check([*train, *test], all_have("rna"))
    few = opened(obs_joinids=[3, 8, 20])
    check(few, np.isin(np.arange(N_CELLS), cells_of_x[[3, 8, 20]]))
    other = {"prot": Modality(uri=folder / "prot.h5ad", names="own")}
    with pytest.raises(ValueError, match="no selected cell of column \"own\" is in column \"own\""):
        ExperimentDataset(uri=folder / "rna.h5ad", modalities=other)


@pytest.mark.parametrize("options, text", [
    ({"modalities": ["none"]}, "none"),
    ({"modalities": "prot"}, "several names"),
    ({"modalities": {"prot": "prot"}}, "somafeed.Modality by name"),
    ({"modalities": {"prot": Modality(layer="none")}}, "none"),
    ({"modalities": {"prot": Modality(presence="kind")}}, "presence is a column of booleans"),
    ({"modalities": {"prot": Modality(presence="none")}}, "none"),
    ({"modalities": {"prot": Modality(genes=("feature_id", ["none"]))}}, "none of the 1 named"),
    ({"modalities": {"prot": Modality(var_joinids=[4])}}, "4"),
    ({"modalities": {"prot": Modality(feature_type="Peaks")}}, "no var column feature_types"),
    ({"modalities": {"present": Modality(measurement="prot")}}, "'present' is the name of two"),
    ({"cell_join": "some"}, "cell_join is \"some\": take one of union, intersection"),
])
def test_what_cannot_be(folder, options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        of_soma(folder, **options)


def test_what_cannot_be_of_files(folder):
    with pytest.raises(ValueError, match='no gene.*"Custom".*Antibody Capture, Gene Expression'):
        ExperimentDataset(uri=folder / "cells.h5", feature_type="Custom")
    with pytest.raises(ValueError, match="cannot be combined"):
        ExperimentDataset(uri=folder / "cells.h5", feature_type="Peaks", var_joinids=[1])
    with pytest.raises((ValueError, somafeed.SomafeedError), match="axis 1"):
        ExperimentDataset(uri=folder / "features_shared.h5mu")
    for fields in ({"form": "none"}, {"form": "torch", "return_sparse": True}):
        with pytest.raises(ValueError, match="form"):
            Modality(**fields)
