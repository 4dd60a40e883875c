"""Messages say what is wrong in the user's own language, and what to do."""

import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from native_examples import dataset, experiment_uri, in_memory, matrix
from somafeed import Experiment, ExperimentDataset, FieldDataset, SourceDataset
from somafeed import _somafeed as native
from somafeed.scvi_registry import class_names


def gene_ids():
    return pa.table(dataset(var_columns=["feature_id"]).var())["feature_id"].to_pylist()


def named(names, column="feature_id"):
    return ExperimentDataset(uri=experiment_uri(), genes=(column, names), batch_size=500)


def test_a_list_of_genes_of_which_none_is_there_is_an_error():
    ids = gene_ids()
    with pytest.raises(ValueError, match=r"none of the 2 named genes is in var column .feature_id."):
        named(["nope", "neither"])
    with pytest.raises(ValueError, match="Ensembl ids with a version.* fit but for the version"):
        named([f"{one}.7" for one in ids])
    with pytest.raises(ValueError, match="60 of 60 fit but for the upper and lower case"):
        named([one.lower() for one in ids])
    symbols = pa.table(dataset(var_columns=["feature_name"]).var())["feature_name"].to_pylist()
    with pytest.raises(ValueError, match=r"symbols like .*60 of 60 are in var column .feature_name."):
        named(symbols)
    assert named([]).shape[1] == 0


def test_few_genes_of_a_list_are_a_warning_and_counted():
    ids = gene_ids()
    with pytest.warns(UserWarning, match="only 1 of the 3 named genes are in var column"):
        few = named([ids[3], "x", "y"])
    assert few.dataset.n_unknown == 2
    X, _ = next(iter(few))
    assert X[:, 1:].sum() == 0 < X[:, 0].sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert named([ids[3], "x"]).dataset.n_unknown == 1
        assert named(ids).dataset.n_unknown == 0
        assert in_memory(matrix(4, 3)).n_unknown == 0
        with pytest.raises(UserWarning, match="only 1 of"):
            named([ids[3], "x", "y"])


def test_a_null_under_codes(tmp_path):
    rows = in_memory(matrix(3, 2), label=pa.array(["a", None, "b"]))
    with pytest.raises(ValueError, match=r'null of label at row 1.*in Python nulls="class"'):
        ExperimentDataset(
            dataset=rows, obs_column_names=["label"], obs_form="codes", batch_size=3
        )
    encoder = native.LabelEncoder.fit("label", rows, nulls="class")
    coded = ExperimentDataset(
        dataset=rows, obs_column_names=["label"], obs_form="codes", encoders=[encoder],
        batch_size=3, shuffle=False,
    )
    assert next(iter(coded))[1]["label"].tolist() == [0, 2, 1]


def test_an_anndata_in_place_of_an_address():
    adata = SimpleNamespace(obs_names=[], var_names=[], is_view=False, filename=None)
    for make in (
        lambda: ExperimentDataset(adata),
        lambda: ExperimentDataset(adata, "X"),
        lambda: ExperimentDataset(uri=adata),
        lambda: ExperimentDataset(dataset=adata),
    ):
        with pytest.raises(TypeError, match=r"dataset=somafeed.Dataset.from_anndata\(adata"):
            make()
    with pytest.raises(TypeError, match="an address is a path or a text"):
        ExperimentDataset(uri=5)
    for wrong in (SimpleNamespace(uri="x"), Experiment(experiment_uri())):
        with pytest.raises(TypeError, match=r"axis_query\('RNA'\), not an object of type"):
            ExperimentDataset(wrong, "raw")


@pytest.mark.parametrize(("name", "advice"), [
    ("cells.h5ad.gz", "gunzip"),
    ("cells.loom", "read_loom"),
    ("cells.tar", "unpack it"),
    ("cells.rds", "writeH5AD"),
    ("cells", "an experiment is a folder"),
])
def test_a_file_that_is_no_experiment(tmp_path, name, advice):
    (tmp_path / name).write_bytes(b"content")
    for make in (lambda path: Experiment(str(path)), lambda path: ExperimentDataset(uri=path)):
        with pytest.raises(OSError, match=advice):
            make(tmp_path / name)


def test_a_setting_that_does_not_exist():
    class Mine(SourceDataset):
        pass

    source = SimpleNamespace(n_rows=3, read=lambda rows: {"row": rows})
    for make, name in (
        (lambda: ExperimentDataset(uri="x", obs_column_names=["a"], batchsize=3), "ExperimentDataset"),
        (lambda: FieldDataset("x", batchsize=3), "FieldDataset"),
        (lambda: Mine(source, batchsize=3), "Mine"),
    ):
        with pytest.raises(TypeError, match=rf"^{name}\(\) .* 'batchsize'$"):
            make()


def test_no_two_batches_of_scvi_have_one_name():
    def names(**columns):
        table = pa.table(columns)
        return class_names(native.BatchKeyEncoder.fit("batch", list(columns), table, nulls="class"))

    assert names(a=["x", "None", "y"]) == ["None", "x", "y"]
    assert names(a=["x", None]) == ["x", "None"]
    for columns in (
        {"a": ["None", None, "x"]},
        {"a": ["None", None, r"\N", "None"]},
        {"a": ["b//c", "b"], "b": ["d", "c//d"]},
        {"a": ["b//c", "b", None], "b": ["d", "c//d", "None"]},
    ):
        found = names(**columns)
        assert len(set(found)) == len(found) == len({*zip(*columns.values())}), found
    assert "x" in names(a=["None", None, "x"])
    assert np.array(names(n=[2, 1])).tolist() == ["1", "2"]
