"""The forms of X and obs, and encoders."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import somafeed
import torch
from batches import assert_board
from programs import hidden
from somafeed import ExperimentDataset


def dataset(board, **options):
    return ExperimentDataset(uri=board.uri, **{"shuffle": False, "batch_size": 8, **options})


def test_tensors_share_the_memory_of_the_loader(experiment):
    ds = dataset(experiment, form="torch")
    for X, _ in ds:
        assert type(X) is torch.Tensor and X.dtype == torch.float32 and X.is_contiguous()
    assert_board(experiment, ds)
    kept = [X for X, _ in ds]
    assert torch.equal(torch.cat(kept), torch.from_numpy(experiment.values(range(100))))


@pytest.mark.parametrize("form, dtype", [("f16", np.float16), ("torch_f16", torch.float16)])
def test_half_precision(experiment, form, dtype):
    for X, obs in dataset(experiment, form=form):
        assert X.dtype == dtype
        expected = experiment.values(obs["soma_joinid"]).astype(np.float16)
        np.testing.assert_array_equal(np.asarray(X), expected)


def test_csr_tensors(experiment):
    for X, obs in dataset(experiment, form="torch_csr"):
        assert X.layout == torch.sparse_csr and X.dtype == torch.float32
        assert X.crow_indices().dtype == X.col_indices().dtype == torch.int32
        assert X.shape == (len(obs), 6)
        torch.sparse_csr_tensor(
            X.crow_indices(), X.col_indices(), X.values(), X.shape, check_invariants=True
        )
    assert_board(experiment, dataset(experiment, form="torch_csr"))
    assert_board(experiment, dataset(experiment, form="torch_csr", batch_size=1))


def test_coo_tensors(experiment):
    for X, obs in dataset(experiment, form="torch_coo"):
        assert X.layout == torch.sparse_coo and X.shape == (len(obs), 6)
    assert_board(experiment, dataset(experiment, form="torch_coo"))


def test_a_model_takes_batches_as_they_are(experiment):
    layer = torch.nn.Linear(6, 2)
    for form in ("torch", "torch_csr"):
        for X, _ in dataset(experiment, form=form):
            layer(X if form == "torch" else X.to_dense()).sum().backward()
    dense_X = next(iter(dataset(experiment, form="torch")))[0]
    csr_X = next(iter(dataset(experiment, form="torch_csr")))[0]
    weight = layer.weight.detach().T
    torch.testing.assert_close(csr_X @ weight, dense_X @ weight)


def test_arrow(experiment):
    columns = ["kind", "soma_joinid", "label"]
    for _, obs in dataset(experiment, obs_form="arrow", obs_column_names=columns):
        assert isinstance(obs, pa.Table) and obs.column_names == columns
        assert pa.types.is_dictionary(obs.schema.field("kind").type)
        assert obs["label"].to_pylist() == [str(joinid) for joinid in obs["soma_joinid"].to_pylist()]
    _, obs = next(iter(dataset(experiment, obs_form="arrow")))
    assert obs.to_pydict() == {"soma_joinid": list(range(8))}


def test_codes_of_columns(experiment):
    columns = ["soma_joinid", "kind", "donor"]
    ds = dataset(experiment, obs_form="codes", obs_column_names=columns)
    for _, obs in ds:
        joinids = obs["soma_joinid"]
        assert sorted(obs) == sorted(columns)
        # Sorted labels: B cell, Müller glia, T cell.
        assert obs["kind"].tolist() == (joinids % 3).tolist()
        assert obs["donor"].tolist() == (joinids // 7 % 5).tolist()
        assert obs["kind"].dtype == np.int64
    assert [encoder.n_classes for encoder in ds.encoders] == [3, 5]


def test_codes_are_tensors_beside_tensors(experiment):
    ds = dataset(experiment, obs_form="codes", form="torch", obs_column_names=["kind"])
    _, obs = next(iter(ds))
    assert type(obs["kind"]) is torch.Tensor and obs["kind"].dtype == torch.int64
    assert list(obs) == ["kind"]


def test_saved_encoders_give_the_same_codes(experiment):
    fitted = dataset(experiment, obs_form="codes", obs_column_names=["kind"]).encoders[0]
    saved = somafeed.LabelEncoder.from_json(fitted.to_json()).with_unseen("code")
    few = dataset(
        experiment, obs_filter="kind == 'T cell'", obs_form="codes", encoders=[saved], batch_size=9
    )
    for _, obs in few:
        assert set(obs["kind"].tolist()) == {2}


def test_unknown_labels(experiment):
    of_few = dataset(experiment, obs_filter="kind == 'T cell'", obs_form="codes", encoders=["kind"])
    encoder, = of_few.encoders
    with pytest.raises(ValueError, match="B cell|glia"):
        dataset(experiment, obs_form="codes", encoders=[encoder])
    ds = dataset(experiment, obs_form="codes", encoders=[encoder.with_unseen("code")])
    for _, obs in ds:
        assert obs["kind"].tolist() == [0 if j % 3 == 2 else -1 for j in obs["soma_joinid"]]


def test_keys_of_several_columns(experiment):
    labels = dataset(experiment, obs_column_names=["kind", "donor"]).dataset
    key = somafeed.BatchKeyEncoder.fit("batch", ["kind", "donor"], labels)
    ds = dataset(experiment, obs_form="codes", encoders=[key, "kind"])
    pairs = {}
    for _, obs in ds:
        assert list(obs) == ["batch", "kind", "soma_joinid"]
        for code, joinid in zip(obs["batch"].tolist(), obs["soma_joinid"].tolist()):
            assert pairs.setdefault(code, (joinid % 3, joinid // 7 % 5)) == (joinid % 3, joinid // 7 % 5)
    assert len(pairs) == key.n_classes == 15


def test_parts_share_encoders(experiment):
    ds = dataset(experiment, obs_form="codes", obs_column_names=["soma_joinid", "kind"])
    for part in ds.random_split(0.1, 0.9, seed=1):
        for _, obs in part:
            assert obs["kind"].tolist() == (obs["soma_joinid"] % 3).tolist()


def test_duplicate_encoders(experiment):
    with pytest.raises(ValueError, match="kind"):
        dataset(experiment, obs_form="codes", encoders=["kind", "kind"])


def every_type():
    """One column of each type that frames have, with nulls and without, for ten cells."""
    def of(values, arrow_type):
        return pa.array([None if row % 4 == 3 else values[row % 3] for row in range(10)], arrow_type)

    plain = {f"int{n}": pa.array(range(10), f"int{n}") for n in (8, 16, 32, 64)}
    plain |= {f"uint{n}": pa.array(range(10), f"uint{n}") for n in (8, 64)}
    plain |= {f"float{n}": pa.array(np.arange(10), f"float{n}") for n in (32, 64)}
    kinds = pa.array([row % 3 for row in range(10)], pa.int8())
    labels = pa.array(["c", "a", "b", "never seen"])
    return pa.table({
        **plain,
        "truth": pa.array([row % 2 == 0 for row in range(10)]),
        "text": pa.array([str(row) for row in range(10)], pa.large_string()),
        "time": pa.array(range(10), pa.timestamp("ms")),
        "kind": pa.DictionaryArray.from_arrays(kinds, labels),
        "stage": pa.DictionaryArray.from_arrays(kinds, labels, ordered=True),
        "number": pa.DictionaryArray.from_arrays(kinds, pa.array([5.5, 1.5, 2.5])),
        "kind_or_none": pa.DictionaryArray.from_arrays(of([2, 1, 0], pa.int16()), labels),
        "text_or_none": of(["x", "y", "z"], pa.string()),
        "float_or_none": of([0.5, 1.5, 2.5], pa.float64()),
        "time_or_none": of([1, 2, 3], pa.timestamp("us")),
        "int_or_none": of([1, 2, 3], pa.int32()),
        "truth_or_none": of([True, False, True], pa.bool_()),
    })


def of_table(table, **options):
    zeros = np.zeros(len(table) + 1, np.int64)
    cells = somafeed.Dataset.in_memory(
        zeros, zeros[:0], np.zeros(0, np.float32), n_columns=1, obs=table
    )
    options = {"shuffle": False, "batch_size": 3, "obs_column_names": table.column_names, **options}
    return ExperimentDataset(dataset=cells, **options)


def test_frames_are_those_of_pyarrow():
    table = every_type()
    whole = table.to_pandas()
    batches = [obs for _, obs in of_table(table)]
    for start, obs in zip(range(0, 10, 3), batches, strict=True):
        # A slice of the whole frame has the whole's types; pyarrow's of a batch may have others.
        expected = whole.iloc[start : start + 3].reset_index(drop=True)
        pd.testing.assert_frame_equal(obs, expected, check_index_type="exact")
    columns = table.column_names[::-1]
    _, obs = next(iter(of_table(table, obs_column_names=["soma_joinid", *columns], batch_size=10)))
    expected = whole[columns]
    expected.insert(0, "soma_joinid", range(10))
    pd.testing.assert_frame_equal(obs, expected, check_index_type="exact")


def test_frames_of_no_cells_and_of_categories_that_no_cell_has():
    table = every_type()
    assert list(of_table(table.slice(0, 0))) == []
    none = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    _, obs = next(iter(of_table(pa.table({"kind": none}))))
    pd.testing.assert_frame_equal(obs, pa.table({"kind": none}).to_pandas())


def test_frames_may_be_changed_and_share_their_categories():
    table = every_type()
    batches = [obs for _, obs in of_table(table)]
    before = [obs.copy() for obs in batches]
    for obs in batches:
        assert obs["kind"].dtype.categories is batches[0]["kind"].dtype.categories
        obs.loc[0, "kind"] = "never seen"
        for name in ("int8", "float64", "truth", "text"):
            obs.loc[0, name] = obs.loc[1, name] if len(obs) > 1 else obs.loc[0, name]
        obs["int64"] += 1
    for (_, obs), expected in zip(of_table(table), before, strict=True):
        pd.testing.assert_frame_equal(obs, expected)


def test_columns_of_booleans():
    rows = somafeed.ArrowTable.from_arrow(every_type().slice(1))
    truth = rows.column("truth")
    assert truth.dtype == np.bool_ and truth.flags.writeable
    assert truth.tolist() == [row % 2 == 0 for row in range(1, 10)]
    with pytest.raises(ValueError, match="has nulls"):
        rows.column("truth_or_none")


def test_codes_of_dictionaries():
    rows = somafeed.ArrowTable.from_arrow(every_type())
    codes = rows.dictionary_codes("kind_or_none")
    assert codes.dtype == np.int32 and codes.flags.writeable
    assert codes.tolist() == [2, 1, 0, -1, 1, 0, 2, -1, 0, 2]
    with pytest.raises(ValueError, match="no dictionary"):
        rows.dictionary_codes("text")
    with pytest.raises(ValueError, match="there is no column"):
        rows.dictionary_codes("nothing")


WITHOUT = """
ds = somafeed.ExperimentDataset(uri={uri!r}, shuffle=False, batch_size=50, **{options!r})
assert len(ds) == 2
for X, obs in ds:
    assert X.shape == (50, 6), X.shape
    joinids = obs["soma_joinid"]
    assert (X[:, 1] == [j + 1e-4 if j % 2 == 0 else 0 for j in joinids.astype("float32")]).sum() > 20
print(*sorted({{"torch", "pandas", "scipy", "pyarrow"}} & {{n for n, m in sys.modules.items() if m}}))
"""


@pytest.mark.parametrize(
    "names, options, imported",
    [
        (["torch", "pandas", "scipy", "pyarrow"], {"obs_form": "codes"}, ""),
        (["torch", "scipy", "pyarrow"], {}, "pandas"),
        (["torch", "scipy", "pyarrow"], {"obs_column_names": ["share", "soma_joinid"]}, "pandas"),
    ],
)
def test_other_packages_are_not_needed(experiment, names, options, imported):
    script = hidden(*names) + WITHOUT.format(uri=experiment.uri, options=options)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == imported


def test_a_missing_package_is_named(experiment):
    script = hidden("torch", "scipy") + (
        f"try: somafeed.ExperimentDataset(uri={experiment.uri!r}, return_sparse_X=True)\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "return_sparse_X=True needs scipy" in ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "options",
    [
        {"obs_form": "arrow", "obs_column_names": ["soma_joinid", "kind", "label"]},
        {"obs_form": "arrow"},
        {"obs_column_names": ["label", "flag_or_none", "kind"]},
        {"obs_form": "codes", "return_sparse_X": True},
        {"obs_form": "codes", "form": "torch_csr"},
    ],
    ids=str,
)
def test_the_first_batch_imports_no_package(experiment, options):
    """Importing takes longer than reading: it is done when the data set is made."""
    script = (
        "import sys, somafeed\n"
        f"ds = somafeed.ExperimentDataset(uri={experiment.uri!r}, **{options!r})\n"
        "before = set(sys.modules)\n"
        "next(iter(ds))\n"
        "after = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(after & {'torch', 'pandas', 'scipy', 'pyarrow'})"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stdout.strip() == "set()", ran.stdout + ran.stderr


@pytest.mark.parametrize("column", ["kind", "label"])
def test_a_frame_without_pyarrow_is_refused_when_the_data_set_is_made(experiment, column):
    script = hidden("torch", "pyarrow") + (
        f"try: somafeed.ExperimentDataset(uri={experiment.uri!r}, obs_column_names=[{column!r}])\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "needs pyarrow, which is not installed" in ran.stdout, ran.stderr


def test_importing_somafeed_imports_numpy_alone():
    script = (
        "import sys, somafeed; "
        "print(sorted({'torch', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stdout.strip() == "[]", ran.stderr
