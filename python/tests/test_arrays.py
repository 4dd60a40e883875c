"""Arrays as arguments: each form of an array gives what its native copy gives, or its error."""

import numpy as np
import pyarrow as pa
import pytest
import somafeed
from native_examples import dataset, experiment_uri, in_memory, matrix
from somafeed import ExperimentDataset, QueryIDs, XLocator
from somafeed import _somafeed as native

N = 12
ENCODER = native.LabelEncoder.fit("row", in_memory(matrix(N, 2)))
KEYS = native.BatchKeyEncoder.fit("key", ["row"], in_memory(matrix(N, 2)))


def drawn(sampling, batch_size=4):
    """The cells of an epoch, in the order of delivery."""
    listed = {"order": "listed", "chunk_rows": 1} if sampling.is_listed else {}
    loader = native.Loader(
        in_memory(matrix(N, 2)), batch_size=batch_size, sampling=sampling, seed=1, **listed
    )
    return [batch.joinids.tolist() for batch in loader.epoch(0)]


def values_of(data_set):
    batches = native.Loader(data_set, batch_size=4, shuffle=False).epoch(0)
    return [batch.dense().tolist() for batch in batches]


def made(indptr=(0, 1, 2, 2), indices=(1, 0), data=np.array([5, 7], np.float32)):
    obs = pa.table({"t": ["a", "b", "c"]})
    return values_of(native.Dataset.in_memory(indptr, indices, data, n_columns=2, obs=obs))


def parts(splits):
    return [part.tolist() for part in splits]


def joinids(table):
    return pa.table(table)["soma_joinid"].to_pylist()


def of_ids(cells=(1, 2), genes=(0, 1)):
    locator = XLocator(uri=experiment_uri(), measurement_name="RNA", layer_name="raw")
    ids = QueryIDs(obs_joinids=cells, var_joinids=genes)
    return selected(x_locator=locator, query_ids=ids)


def selected(**arguments):
    ids = ExperimentDataset(**arguments).query_ids
    return ids.obs_joinids.tolist(), ids.var_joinids.tolist()


def opened():
    return native.Experiment(experiment_uri())


# Each argument that is an array: a function of it, and fitting numbers.
GROUPS = [0, 1, 1, 0, 2, 2, 1, 0, 0, 2, 1, 0]
CODES = [2, 0, 1, 1]
ROWS = [1, 4, 7, 11]
ARGUMENTS = {
    "in_memory indptr": (lambda a: made(indptr=a), [0, 1, 2, 2]),
    "in_memory indices": (lambda a: made(indices=a), [1, 0]),
    "in_memory data": (lambda a: made(data=a), [5, 7]),
    "listed": (lambda a: drawn(native.Sampling.listed(N, a)), ROWS),
    "weighted": (lambda a: drawn(native.Sampling.weighted(a, 30)), [1, 5, 3, 2, 9, 1, 1, 2, 1, 1, 70, 3]),
    "class_balanced": (lambda a: drawn(native.Sampling.class_balanced(a, 30)), GROUPS),
    "by_group": (lambda a: drawn(native.Sampling.by_group(a, [0.2, 0.7, 0.1], 30)), GROUPS),
    "by_group shares": (lambda a: drawn(native.Sampling.by_group(GROUPS, a, 30)), [2, 7, 1]),
    "stratified": (lambda a: drawn(native.Sampling.stratified(a, 6)), GROUPS),
    "at_most_per_class": (lambda a: drawn(native.Sampling.at_most_per_class(a, 2)), GROUPS),
    "group_batches": (lambda a: drawn(native.Sampling.group_batches(a, 2), 2), GROUPS),
    "group_batches is_control": (
        lambda a: drawn(native.Sampling.group_batches(GROUPS, 3, is_control=a, n_controls=1), 3),
        [1, 0, 0] * 4,
    ),
    "group_batches contexts": (
        lambda a: drawn(native.Sampling.group_batches(
            GROUPS, 3, is_control=[1, 0, 0] * 4, contexts=a, n_controls=1), 3),
        [0, 0, 0, 1, 1, 1] * 2,
    ),
    "split_by_group": (lambda a: parts(native.split_by_group(a, [0.5, 0.5], seed=1)), GROUPS),
    "split_by_group labels": (
        lambda a: parts(native.split_by_group(GROUPS, [0.5, 0.5], seed=1, labels=a)), [0, 1] * 6
    ),
    "split_by_group fractions": (
        lambda a: parts(native.split_by_group(GROUPS, a, seed=1)), [0, 1]
    ),
    "split_by_label": (lambda a: parts(native.split_by_label(a, [0.5, 0.5], seed=1)), GROUPS),
    "split_by_fraction": (lambda a: parts(native.split_by_fraction(N, a, seed=1)), [0, 1]),
    "select": (lambda a: in_memory(matrix(N, 2)).select(a).joinids().tolist(), ROWS),
    "LabelEncoder.inverse": (lambda a: pa.table(ENCODER.inverse(a)).to_pydict(), CODES),
    "BatchKeyEncoder.inverse": (lambda a: pa.table(KEYS.inverse(a)).to_pydict(), CODES),
    "Experiment.obs": (lambda a: joinids(opened().obs(joinids=a)), ROWS),
    "Experiment.var": (lambda a: joinids(opened().var("RNA", joinids=a)), ROWS),
    "from_experiment cells": (lambda a: dataset(obs_joinids=a).joinids().tolist(), ROWS),
    "from_experiment genes": (
        lambda a: joinids(dataset(var_joinids=a, var_columns=["soma_joinid"]).var()), [7, 1, 4]
    ),
    "ExperimentDataset cells": (
        lambda a: selected(uri=experiment_uri(), obs_joinids=a)[0], [7, 1, 4]
    ),
    "ExperimentDataset genes": (
        lambda a: selected(uri=experiment_uri(), var_joinids=a)[1], [7, 1, 4]
    ),
    "QueryIDs cells": (lambda a: of_ids(cells=a)[0], [7, 1, 4]),
    "QueryIDs genes": (lambda a: of_ids(genes=a)[1], [7, 1, 4]),
}
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "?"]


def unaligned(array):
    memory = b"x" + array.tobytes()
    return np.frombuffer(memory, array.dtype, offset=1)


def field(array):
    rows = np.zeros(len(array), np.dtype([("before", "u1"), ("x", array.dtype)]))
    rows["x"] = array
    return rows["x"]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS = {
    "as it is": lambda a: a,
    "every second": lambda a: np.repeat(a, 2)[::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "column": lambda a: np.stack([a, a], axis=1)[:, 1],
    "read-only": read_only,
    "unaligned": unaligned,
    "field": field,
    "memoryview": lambda a: memoryview(a),
    "memoryview of every second": lambda a: memoryview(np.repeat(a, 2)[::2]),
}
SWAPPED = {True: ">", False: "<"}[np.little_endian]


def outcome(call, argument):
    """What the call returns, or the type of its error."""
    try:
        return call(argument)
    # Python's own error of reading a memoryview of the other byte order.
    except (ValueError, TypeError, NotImplementedError) as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_form_of_an_array_is_its_native_copy(name):
    call, numbers = ARGUMENTS[name]
    for code in DTYPES:
        plain = np.array(numbers, code)
        expected = outcome(call, plain)
        if plain.dtype.kind in "iu" and name != "in_memory data":
            # Not an array at all.
            assert expected == call(numbers), code
        for byte_order in ("=", SWAPPED):
            array = plain.astype(plain.dtype.newbyteorder(byte_order))
            for form, derived in FORMS.items():
                found = outcome(call, derived(array))
                both_fail = isinstance(found, type) and isinstance(expected, type)
                # A memoryview of some types cannot be read by Python either.
                is_view = form.startswith("memoryview")
                # Its Booleans are Python's, which are integers; numpy's are not.
                is_list = is_view and code == "?" and found == outcome(call, plain.tolist())
                is_refused = is_view and isinstance(found, type)
                assert found == expected or both_fail or is_list or is_refused, (
                    code, byte_order, form
                )


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arrays_of_no_or_two_dimensions_are_errors(name):
    call, numbers = ARGUMENTS[name]
    for code in ("i8", "u4", "f4", "f8"):
        for byte_order in ("=", SWAPPED):
            array = np.array(numbers, np.dtype(code).newbyteorder(byte_order))
            for wrong in (array[0], array[:1].reshape(()), np.stack([array, array])):
                assert isinstance(outcome(call, wrong), type), (code, byte_order, wrong)


def test_numbers_that_do_not_fit_are_errors():
    for wrong in ([-1, 0], np.array([-1, 0]), np.array([-1, 0], ">i2"), np.array([2**63], "u8")):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            native.Sampling.listed(N, wrong)
    for wrong in ([0.5], ["a"], np.array(["1"]), np.array(["2020-01-01"], "M8[D]"), "12", None):
        with pytest.raises((ValueError, TypeError)):
            native.Sampling.listed(N, wrong)
    for fits in (np.array([], ">i8"), [], (), memoryview(b"")):
        assert somafeed.Dataset.select(in_memory(matrix(N, 2)), fits).shape == (0, 2)
