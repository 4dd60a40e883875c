"""Experiments: what is in them, obs and var by column, joinid and filter, and every error."""

import os
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from conftest import tiledbsoma_python
from native_examples import N_CELLS, N_GENES, dataset, experiment_uri
from somafeed import ExperimentDataset
from somafeed import _somafeed as native


@pytest.fixture(scope="module")
def experiment():
    return native.Experiment(experiment_uri())


def test_it_lists_what_is_there(experiment):
    assert experiment.uri == experiment_uri()
    assert (experiment.config, experiment.timestamp) == ({}, None)
    assert experiment.measurements() == ["RNA"]
    assert experiment.layers("RNA") == ["raw"]
    assert experiment.shape("RNA", "raw") == (N_CELLS, N_GENES)
    assert experiment.obs_columns()[0] == "soma_joinid"
    assert "feature_id" in experiment.var_columns("RNA")


RENAME = """
import sys
import tiledbsoma

uri, measurement, *layers = sys.argv[1:]
if measurement != "RNA":
    with tiledbsoma.open(f"{uri}/ms", "w") as ms:
        ms.set(measurement, tiledbsoma.open(f"{uri}/ms/RNA"), use_relative_uri=True)
        del ms["RNA"]
with tiledbsoma.open(f"{uri}/ms/RNA/X", "w") as x:
    for layer in layers:
        x.set(layer, tiledbsoma.open(f"{uri}/ms/RNA/X/raw"), use_relative_uri=True)
    for layer in ["raw", "squared"]:
        del x[layer]
"""


@pytest.mark.parametrize("layers", [["counts"], ["data", "counts"], ["counts", "log"]])
def test_what_is_there_alone_needs_no_name(make_board, tmp_path, layers):
    board = make_board(0, 20, 1, 4)
    uri = str(tmp_path / "experiment")
    shutil.copytree(board.uri, uri)
    subprocess.run([tiledbsoma_python(), "-c", RENAME, uri, "ATAC", *layers], check=True)
    opened = native.Experiment(uri)
    if layers == ["counts", "log"]:
        with pytest.raises(ValueError, match=r"name one of counts, log \(.*layer_name="):
            opened.names()
        with pytest.raises(ValueError, match="name one of counts, log"):
            ExperimentDataset(uri=uri).dataset  # noqa: B018
        assert opened.names(layer="log") == ("ATAC", "log")
        return
    assert opened.names() == ("ATAC", layers[0])
    of_names = ExperimentDataset(uri=uri, batch_size=20, shuffle=False)
    assert (of_names.measurement_name, of_names.layer_name) == ("ATAC", layers[0])
    X, _ = next(iter(of_names))
    assert X.tolist() == board.values(board.joinids).tolist()


def test_unnamed_layers_of_several_experiments_have_one_name(make_board, tmp_path):
    raw = make_board(0, 20, 1, 4).uri
    log = str(tmp_path / "log")
    shutil.copytree(raw, log)
    subprocess.run([tiledbsoma_python(), "-c", RENAME, log, "RNA", "log"], check=True)
    opened = {uri: native.Dataset.from_experiment(native.Experiment(uri)) for uri in (raw, log)}
    named = native.Dataset.from_experiment(native.Experiment(log), layer="log")
    assert native.Dataset.concat([opened[raw], opened[raw]]).shape[0] == 40
    assert native.Dataset.concat([opened[raw], named]).shape[0] == 40
    with pytest.raises(ValueError, match=r"log.*raw.*layer_name="):
        native.Dataset.concat([opened[raw], opened[log]])


def test_obs_is_selected_by_column_joinid_and_filter(experiment):
    whole = pa.table(experiment.obs())
    assert whole.column_names == experiment.obs_columns() and whole.num_rows == N_CELLS
    part = pa.table(experiment.obs(columns=["cell_type", "soma_joinid"], joinids=(10, 20)))
    assert part.column_names == ["cell_type", "soma_joinid"]
    assert part["soma_joinid"].to_pylist() == list(range(10, 20))
    label = whole["cell_type"][0].as_py()
    filtered = pa.table(experiment.obs(value_filter=f'cell_type == "{label}"'))
    keep = [row == label for row in whole["cell_type"].to_pylist()]
    assert filtered.equals(whole.filter(pa.array(keep)))


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda ids: np.array(ids, np.int32),
                                  lambda ids: np.array(ids, np.uint64), lambda ids: pa.array(ids),
                                  lambda ids: range(7, 1, -2)])
def test_joinids_are_any_integers(experiment, kind):
    table = experiment.obs(columns=["soma_joinid"], joinids=kind([7, 5, 3]))
    assert table.column("soma_joinid").tolist() == [3, 5, 7]


def test_an_empty_selection_has_no_rows(experiment):
    for joinids in ([], (5, 5), np.array([], np.int64)):
        assert len(experiment.obs(joinids=joinids)) == 0
    assert len(experiment.obs(value_filter='cell_type == "no such cell"')) == 0


def test_var_is_selected_likewise(experiment):
    var = pa.table(experiment.var("RNA", columns=["feature_id"], joinids=(2, 4)))
    whole = pa.table(experiment.var("RNA"))
    assert var["feature_id"].to_pylist() == whole["feature_id"].to_pylist()[2:4]


def test_data_sets_select_cells_and_genes():
    whole = dataset(obs_columns=["cell_type"], var_columns=["feature_id"])
    names = pa.table(whole.var())["feature_id"].to_pylist()
    part = dataset(obs_joinids=[30, 10, 20], var_joinids=[5, 2], var_columns=["feature_id"])
    assert part.shape == (3, 2)
    assert part.joinids().tolist() == [10, 20, 30]
    assert pa.table(part.var())["feature_id"].to_pylist() == [names[5], names[2]]
    named = dataset(gene_column="feature_id", gene_names=[names[5], "absent", names[2]])
    x = next(native.Loader(named, shuffle=False, batch_size=40).epoch(0)).dense()
    both = next(native.Loader(whole, shuffle=False, batch_size=40).epoch(0)).dense()
    np.testing.assert_array_equal(x[:, [0, 2]], both[:, [5, 2]])
    assert not x[:, 1].any()


def test_rows_are_selected_by_position():
    data = dataset(obs_joinids=(100, 200), obs_columns=["cell_type"])
    part = data.select(np.array([0, 5, 99]))
    assert part.joinids().tolist() == [100, 105, 199]
    assert pa.table(part.obs()).equals(pa.table(data.obs()).take([0, 5, 99]))
    assert data.select((90, 100)).shape == (10, N_GENES)


def test_groups_and_weights_come_from_obs():
    data = dataset(obs_columns=["cell_type", "raw_sum"])
    groups, labels = data.groups(["cell_type"]), pa.table(data.obs())["cell_type"].to_pylist()
    assert len(set(zip(groups.tolist(), labels))) == len(set(labels)) == len(set(groups.tolist()))
    np.testing.assert_array_equal(data.weights("raw_sum"), data.obs().column("raw_sum"))


def test_errors_have_the_type_that_fits(experiment, tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    cases = [
        (FileNotFoundError, "nothing is at", lambda: native.Experiment(str(tmp_path / "absent"))),
        (NotADirectoryError, "file", lambda: native.Experiment(str(tmp_path / "file"))),
        (ValueError, "neither a TileDB group", lambda: native.Experiment(str(tmp_path / "folder"))),
        (ValueError, "is .*, not a SOMAExperiment", lambda: native.Experiment(experiment_uri() + "/obs")),
        (FileNotFoundError, "empty path", lambda: native.Experiment("")),
        (ValueError, "Census", lambda: native.Experiment("census://nonsense/mouse")),
        (ValueError, "no column \"nonsense\"", lambda: experiment.obs(columns=["nonsense"])),
        (ValueError, "value filter .*character", lambda: experiment.obs(value_filter="cell_type ==")),
        (ValueError, "nonsense", lambda: experiment.obs(value_filter="nonsense == 3")),
        (ValueError, "ask for joinids below", lambda: experiment.obs(joinids=[N_CELLS + 7])),
        (ValueError, "occurs twice", lambda: experiment.obs(joinids=[3, 3])),
        (ValueError, "-1 is below 0", lambda: experiment.obs(joinids=[-1])),
        (ValueError, "dimensions", lambda: experiment.obs(joinids=np.zeros((2, 2), np.int64))),
        (TypeError, "integers are needed", lambda: experiment.obs(joinids=["a"])),
        (TypeError, "integers are needed", lambda: experiment.obs(joinids=1.5)),
        (ValueError, "no measurement \"ATAC\"", lambda: experiment.layers("ATAC")),
        (ValueError, "no layer of X \"norm\"", lambda: experiment.shape("RNA", "norm")),
        (ValueError, "no reader", lambda: dataset(reader="fast")),
        (ValueError, "no column", lambda: dataset(obs_columns=["nonsense"])),
        (ValueError, "belong together", lambda: dataset(gene_names=["a"])),
        (ValueError, "cannot be combined",
         lambda: dataset(gene_names=["a"], gene_column="feature_id", var_joinids=[1])),
        (ValueError, "comes twice", lambda: dataset(gene_names=["a", "a"], gene_column="feature_id")),
        (ValueError, "no data sets", lambda: native.Dataset.concat([])),
        (ValueError, "outside", lambda: dataset().select([N_CELLS])),
        (ValueError, "outside", lambda: dataset().select((0, 2**62))),
        (ValueError, "stands after", lambda: dataset().select([5, 3])),
        (ValueError, "\"weights\"|weights", lambda: dataset(obs_columns=["cell_type"]).weights("cell_type")),
        (TypeError, "config", lambda: native.Experiment(experiment_uri(), config={"a": 1})),
        (OverflowError, None, lambda: native.Experiment(experiment_uri(), timestamp=-5)),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text) as caught:
            call()
        assert caught.type is kind, (kind, caught.value)


def test_errors_of_the_system_keep_their_type(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    if os.access(closed, os.R_OK):  # As root, nothing is closed.
        return
    with pytest.raises(OSError):
        native.Experiment(str(closed))


def test_an_example_is_never_written_over_something(tmp_path):
    uri = str(tmp_path / "experiment")
    assert native.generate_example(uri, n_cells=20, n_genes=5) > 0
    with pytest.raises(FileExistsError, match="exists already"):
        native.generate_example(uri, n_cells=20, n_genes=5)
    with pytest.raises(ValueError, match="number of cells is 0"):
        native.generate_example(str(tmp_path / "other"), n_cells=0)
    with pytest.raises(OSError):
        native.generate_example("/dev/null/experiment", n_cells=20, n_genes=5)


def test_damaged_files_are_errors_that_name_them(tmp_path):
    def loader(name):
        uri = tmp_path / name
        native.generate_example(str(uri), n_cells=300, n_genes=10)
        data = native.Dataset.from_experiment(native.Experiment(str(uri)))
        return uri, native.Loader(data, batch_size=100)

    uri, loads = loader("truncated")
    [values] = uri.glob("ms/RNA/X/raw/__fragments/*/a0.tdb")
    values.write_bytes(values.read_bytes()[:100])
    with pytest.raises((native.SomafeedError, OSError), match="a0.tdb"):
        list(loads.epoch(0))
    uri, loads = loader("removed")
    [values] = uri.glob("ms/RNA/X/raw/__fragments/*/a0.tdb")
    values.unlink()
    epoch = loads.epoch(0)
    with pytest.raises(FileNotFoundError, match="a0.tdb"):
        list(epoch)
    assert list(epoch) == []
