"""Encoders, splits and samplings, against what they should be by definition."""

import numpy as np
import pyarrow as pa
import pytest
from native_examples import in_memory, matrix
from somafeed import _somafeed as native

LABELS = ["b", "a", "c", "a", "b"]


@pytest.fixture
def data():
    return in_memory(matrix(5, 2), label=LABELS, donor=[1, 1, 2, 2, 1])


def test_labels_are_numbered_in_their_order(data):
    encoder = native.LabelEncoder.fit("label", data)
    assert (encoder.name, encoder.columns, encoder.n_classes) == ("label", ["label"], 3)
    for table in (data, data.obs(), pa.table(data.obs()), pa.table({"label": LABELS})):
        assert encoder.encode(table).tolist() == [1, 0, 2, 0, 1]
    assert pa.table(encoder.classes()).to_pydict() == {"label": ["a", "b", "c"]}
    assert pa.table(encoder.inverse([2, 0])).to_pydict() == {"label": ["c", "a"]}
    again = native.LabelEncoder.from_json(encoder.to_json())
    assert again.encode(data).tolist() == encoder.encode(data).tolist()


def test_unknown_labels_are_errors_or_minus_one(data):
    encoder = native.LabelEncoder.fit("label", data)
    other = pa.table({"label": ["a", "z"]})
    with pytest.raises(ValueError, match='"z"'):
        encoder.encode(other)
    assert encoder.with_unseen("code").encode(other).tolist() == [0, -1]
    assert encoder.extend(other).encode(other).tolist() == [0, 3]
    fitted = native.LabelEncoder.fit("label", data, unseen="code")
    assert native.LabelEncoder.from_json(fitted.to_json()).encode(other).tolist() == [0, -1]


def test_nulls_are_unknown_or_a_class():
    table = pa.table({"label": ["a", None]})
    assert native.LabelEncoder.fit("label", table, nulls="class").encode(table).tolist() == [0, 1]
    encoder = native.LabelEncoder.fit("label", table, unseen="code")
    assert encoder.encode(table).tolist() == [0, -1]


def test_an_enumeration_gives_its_own_codes():
    table = pa.table({"label": pa.array(["z", "a", "z"]).dictionary_encode()})
    encoder = native.LabelEncoder.fit("label", table, enumeration=True)
    assert encoder.encode(table).tolist() == [0, 1, 0]


def test_keys_of_several_columns(data):
    encoder = native.BatchKeyEncoder.fit("batch", ["label", "donor"], data)
    assert encoder.encode(data).tolist() == [2, 0, 3, 1, 2]
    assert (encoder.name, encoder.n_classes, encoder.columns) == ("batch", 4, ["label", "donor"])
    assert len(encoder.joined_keys()) == 4 and encoder.classes().num_rows == 4
    again = native.BatchKeyEncoder.from_json(encoder.to_json())
    assert again.encode(data).tolist() == encoder.encode(data).tolist()
    other = pa.table({"label": ["a"], "donor": [9]})
    assert encoder.with_unseen("code").encode(other).tolist() == [-1]
    assert encoder.extend(other).encode(other).tolist() == [4]


def test_encoders_of_a_data_set(data):
    label = native.LabelEncoder.fit("label", data)
    key = native.BatchKeyEncoder.fit("batch", ["donor"], data)
    coded = data.with_encoders([label, key])
    assert coded.codes().column_names == ["label", "batch"]
    assert coded.codes().column("batch").tolist() == [0, 0, 1, 1, 0]
    assert coded.select([2]).codes().column("label").tolist() == [2]


def test_splits_are_exact_and_keep_groups_together():
    splits = native.split_by_fraction(10, [0.7, 0.3], seed=1, method="deterministic")
    assert [len(split) for split in splits] == [7, 3]
    assert sorted(np.concatenate(splits)) == list(range(10))
    assert all(split.dtype == np.uint64 and (np.diff(split.astype(int)) > 0).all() for split in splits)
    groups = np.arange(100) // 7
    splits = native.split_by_group(groups, [0.5, 0.5], seed=2)
    assert not set(groups[splits[0]]) & set(groups[splits[1]])
    labels = np.arange(100) % 4
    for split in native.split_by_label(labels, [0.2, 0.8], seed=3):
        assert len(set(np.bincount(labels[split]))) == 1
    both = native.split_by_group(groups, [0.5, 0.5], seed=2, labels=labels)
    assert not set(groups[both[0]]) & set(groups[both[1]])


def test_samplings_know_their_rows():
    for sampling in [
        native.Sampling.with_replacement(10, 20),
        native.Sampling.weighted(np.ones(10), 20),
        native.Sampling.weighted([1.0] * 10, 20),
        native.Sampling.by_group([0, 1] * 5, [0.9, 0.1], 20),
    ]:
        assert (sampling.n_rows, sampling.n_samples) == (10, 20)
    assert native.Sampling.stratified([0, 1] * 5, 4).n_samples == 4
    assert native.Sampling.at_most_per_class([0] * 9 + [1], 2).n_samples == 3


def test_wrong_arguments_are_errors(data):
    cases = [
        (ValueError, "no column \"nonsense\"", lambda: native.LabelEncoder.fit("nonsense", data)),
        (ValueError, "unseen is \"x\"", lambda: native.LabelEncoder.fit("label", data, unseen="x")),
        (ValueError, "nulls is \"x\"", lambda: native.LabelEncoder.fit("label", data, nulls="x")),
        (ValueError, "", lambda: native.LabelEncoder.fit("label", data, enumeration=True)),
        (ValueError, "JSON", lambda: native.LabelEncoder.from_json("nonsense")),
        (TypeError, "__arrow_c_stream__", lambda: native.LabelEncoder.fit("label", {"label": []})),
        (ValueError, "at least one", lambda: native.BatchKeyEncoder.fit("b", [], data)),
        (TypeError, "LabelEncoder or a BatchKeyEncoder", lambda: data.with_encoders([3])),
        (ValueError, "fraction", lambda: native.split_by_fraction(3, [2.0], seed=1)),
        (ValueError, "split method|method", lambda: native.split_by_fraction(3, [1.0], seed=1, method="x")),
        (ValueError, "not below 2\\^32", lambda: native.split_by_label([1 << 40], [1.0], seed=1)),
        (ValueError, "", lambda: native.Sampling.stratified([0, 1], 3)),
        (ValueError, "", lambda: native.Sampling.weighted([-1.0], 3)),
        (MemoryError, "sample", lambda: native.Sampling.with_replacement(3, 1 << 40)),
        (ValueError, "has nulls", lambda: native.ArrowTable.from_arrow(
            pa.table({"a": [1, None]})).column("a")),
        (ValueError, "not a number", lambda: data.obs().column("label")),
        (ValueError, "there are row, label, donor", lambda: data.obs().column("x")),
        (ValueError, "parts of a CSR", lambda: native.Dataset.in_memory(
            [0, 9], [0], np.ones(1, np.float32), n_columns=1, obs=pa.table({"a": [1]}))),
        (ValueError, "float32", lambda: native.Dataset.in_memory(
            [0, 1], [0], np.ones(1), n_columns=1, obs=pa.table({"a": [1]}))),
        (ValueError, "obs has 2 rows", lambda: native.Dataset.in_memory(
            [0, 1], [0], np.ones(1, np.float32), n_columns=1, obs=pa.table({"a": [1, 2]}))),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text or None) as caught:
            call()
        assert caught.type is kind, caught.value


def test_tables_of_other_libraries_come_without_a_copy():
    table = pa.table({"a": np.arange(1000), "b": ["x"] * 1000})
    ours = native.ArrowTable.from_arrow(table)
    assert (len(ours), ours.num_rows, ours.column_names) == (1000, 1000, ["a", "b"])
    assert pa.table(ours).equals(table)
    assert ours.column("a").ctypes.data == table["a"].chunk(0).buffers()[1].address
    chunks = pa.concat_tables([table, table.slice(3, 5)])
    assert pa.table(native.ArrowTable.from_arrow(chunks)).equals(chunks.combine_chunks())
    assert pa.schema(ours) == table.schema
    sliced = native.ArrowTable.from_arrow(table.slice(7, 3))
    assert sliced.column("a").tolist() == [7, 8, 9]


def test_a_stream_is_read_once():
    capsule = pa.table({"a": [1]}).__arrow_c_stream__()

    class Twice:
        def __arrow_c_stream__(self):
            return capsule

    native.ArrowTable.from_arrow(Twice())
    with pytest.raises(ValueError, match="released"):
        native.ArrowTable.from_arrow(Twice())
