"""AnnData in Zarr, read in place: the stores that Python's anndata wrote for crate `anndata`."""

import json
import pickle
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import somafeed
from conftest import tiledbsoma_python
from somafeed import Dataset, ExperimentDataset

STORES = Path(__file__).parents[2] / "crates/anndata/tests/data"
EXPECTED = json.loads((STORES / "expected.json").read_text())
BOTH = pytest.mark.parametrize("store", [STORES / "v2", STORES / "v3"], ids=["v2", "v3"])


def taken(dataset):
    """All rows of X, by joinid."""
    rows = {}
    for X, obs in dataset:
        rows.update(zip(obs["soma_joinid"], np.asarray(X), strict=True))
    return np.stack([rows[joinid] for joinid in sorted(rows)])


@BOTH
def test_cells_come_as_anndata_has_them(store):
    options = {"obs_column_names": ["soma_joinid", "cell_type", "note"], "batch_size": 2}
    ds = ExperimentDataset(uri=store, io_batch_size=4, shuffle_chunk_size=1, seed=3, **options)
    assert (len(ds), ds.shape) == (4, (4, 4))
    assert ds.x_locator.layer_name == "X"
    batches = list(ds)
    joinids = [joinid for _, obs in batches for joinid in obs["soma_joinid"]]
    assert sorted(joinids) == list(range(7)) and joinids != list(range(7))
    for X, obs in batches:
        for at, joinid in enumerate(obs["soma_joinid"]):
            assert X[at].tolist() == EXPECTED["X"][joinid]
            for name in ("cell_type", "note"):
                found = obs[name].astype(object).tolist()[at]
                expected = EXPECTED["obs"][name][joinid]
                assert found == expected or (expected is None and found != found or found is None)


@BOTH
def test_layers_raw_and_obsm(store):
    for layer in ("counts", "dense"):
        ds = ExperimentDataset(uri=store, layer_name=layer, batch_size=3, dtype="float32")
        assert taken(ds).tolist() == EXPECTED["layers"][layer]
    raw = ExperimentDataset(dataset=Dataset.from_anndata(store, raw=True, obs_columns=["soma_joinid"]),
                            batch_size=3, dtype="float32")
    assert taken(raw).tolist() == EXPECTED["raw"]
    beside = ExperimentDataset(
        uri=store, layers=["counts"], obsm=["X_pca"], batch_size=7, shuffle=False
    )
    X, _, matrices = next(iter(beside))
    assert X.tolist() == EXPECTED["X"]
    assert matrices["counts"].tolist() == EXPECTED["layers"]["counts"]
    assert matrices["X_pca"].tolist() == EXPECTED["obsm"]["X_pca"]


@BOTH
def test_filters_genes_ranks_and_states(store):
    lung = ExperimentDataset(
        uri=store, obs_filter="donor == 'donor 1' or n_counts > 8500",
        genes=("gene_id", ["gene3", "absent", "gene0"]), batch_size=7, shuffle=False,
    )
    obs = EXPECTED["obs"]
    wanted = [
        i for i in range(7) if obs["donor"][i] == "donor 1" or obs["n_counts"][i] > 8500
    ]
    X, frame = next(iter(lung))
    assert frame["soma_joinid"].tolist() == wanted
    assert X.tolist() == [[EXPECTED["X"][i][3], 0.0, EXPECTED["X"][i][0]] for i in wanted]
    seen = []
    for rank in range(2):
        part = ExperimentDataset(
            uri=store, batch_size=1, seed=1, world=(rank, 2), remainder="pad"
        )
        seen += [int(obs["soma_joinid"].iloc[0]) for _, obs in part]
    assert len(seen) == 8 and set(seen) == set(range(7))
    options = {"batch_size": 1, "seed": 5, "io_batch_size": 2, "shuffle_chunk_size": 1}
    whole = [int(obs["soma_joinid"].iloc[0]) for _, obs in ExperimentDataset(uri=store, **options)]
    first = ExperimentDataset(uri=store, **options)
    iterator = iter(first)
    [next(iterator) for _ in range(3)]
    resumed = pickle.loads(pickle.dumps(ExperimentDataset(uri=store, **options)))
    resumed.load_state_dict(first.state_dict())
    assert [int(obs["soma_joinid"].iloc[0]) for _, obs in resumed] == whole[3:]


def test_what_can_be_named(tmp_path, experiment):
    assert Dataset.from_anndata(str(STORES / "v2"), layer="counts").shape == (7, 4)
    in_memory = SimpleNamespace(obs_names=[], var_names=[], is_view=False, filename=None)
    with pytest.raises(ValueError, match="in memory: give the path"):
        Dataset.from_anndata(in_memory)
    with pytest.raises(TypeError, match='a MuData has several.*write the one'):
        Dataset.from_anndata(SimpleNamespace(**vars(in_memory), mod={}))
    for absent in ["x.h5ad", "x.zarr"]:
        with pytest.raises(FileNotFoundError, match="nothing is at"):
            Dataset.from_anndata(tmp_path / absent)
    (tmp_path / "no.h5ad").write_text("no HDF5")
    with pytest.raises(Exception, match=r"no\.h5ad is no HDF5 file"):
        Dataset.from_anndata(tmp_path / "no.h5ad")
    with pytest.raises(ValueError, match="experiment of SOMA"):
        Dataset.from_anndata(experiment.uri)
    with pytest.raises(TypeError):
        Dataset.from_anndata(5)
    with pytest.raises(TypeError, match="raw says which"):
        Dataset.from_anndata(STORES / "v3", measurement="raw")
    with pytest.raises(ValueError, match="no layer.*it has X, by_columns, counts, dense"):
        Dataset.from_anndata(STORES / "v3", layer="raw")
    with pytest.raises(ValueError, match="tocsr"):
        Dataset.from_anndata(STORES / "v3", layer="by_columns")
    opened = somafeed.Experiment(str(STORES / "v3"))
    assert opened.measurements() == ["RNA", "raw"]
    assert opened.names() == ("RNA", "X")


def test_values_have_their_stored_type():
    exact = ExperimentDataset(uri=STORES / "v3", layer_name="dense", batch_size=7, shuffle=False)
    X, _ = next(iter(exact))
    assert X.dtype == np.float64 and X.tolist() == EXPECTED["layers"]["dense"]


def test_a_matrix_of_10x_genomics_is_read_like_an_anndata():
    path = STORES.parents[2] / "hdf5/tests/data/ten_x.h5"
    x = [[0, 1, 0, 0, 3], [0, 1, 0, 70000, 1], [0, 1, 3, 3, 0], [1, 3, 0, 3, 3], [70000, 0, 70000, 0, 1]]
    ds = ExperimentDataset(
        uri=path, obs_column_names=["obs_id"], batch_size=5, shuffle=False,
        var_filter="feature_types == 'Gene Expression'",
    )
    X, obs = next(iter(ds))
    assert obs["obs_id"].tolist() == [f"ACGT{cell}-1" for cell in range(5)]
    assert sorted(map(sum, X.tolist())) == sorted(row[0] + row[1] + row[3] for row in x)
    assert Dataset.from_anndata(path).shape == (5, 5)
    with pytest.raises(ValueError, match="one matrix for all genomes"):
        ExperimentDataset(uri=path, config={"soma.genome": "GRCh38"})


@BOTH
def test_an_archive_is_read_in_place(store, tmp_path):
    path = shutil.make_archive(tmp_path / "x.zarr", "zip", store)
    ds = ExperimentDataset(uri=path, layer_name="counts", batch_size=3, dtype="float32")
    assert taken(ds).tolist() == EXPECTED["layers"]["counts"]
    (tmp_path / "no.zarr.zip").write_text("no archive")
    with pytest.raises(Exception, match="not a whole Zip archive"):
        Dataset.from_anndata(tmp_path / "no.zarr.zip")
    with pytest.raises(FileNotFoundError, match="nothing is at"):
        Dataset.from_anndata(tmp_path / "absent.zarr.zip")


def test_parts_and_changes_of_an_anndata_in_memory(tmp_path):
    script = [tiledbsoma_python(), Path(__file__).parent / "backed_anndata.py", tmp_path]
    ran = subprocess.run(script, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "as anndata has them"
