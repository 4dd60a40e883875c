"""Writes an experiment whose obs and var are indexed by random columns, and prints what tiledbsoma reads of them.

Rows are written in several steps, some of them again, and some are deleted; the last ones after the time that is printed. Rows are printed by joinid.

Usage: write_indexed_experiment.py URI SEED
"""

import json
import random
import sys
import time

import numpy as np
import pyarrow as pa
import tiledbsoma

import described

N_ROWS = 300
KINDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "string"]
KINDS += [f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns")]


CATEGORIES = ["b", "a", "c", "", "z", "ä"]
FLOATS = [0.5, float("nan"), -0.0, 1.0, 0.0, float("inf"), -2.0, float("-inf"), 3.0, -float("nan"), 4.0]


def moment():
    """The time in milliseconds, apart from what is before and what comes after."""
    time.sleep(0.003)
    now = time.time_ns() // 1_000_000
    time.sleep(0.003)
    return now


def index_values(rng, kind, joinids):
    """Values of a column, below 0 where the type has such."""
    least = 0 if kind[0] == "u" else -50
    numbers = [rng.randint(least, 60) for _ in joinids]
    if kind == "string":
        return pa.array([f"{'x' * (number % 5)}{number}" for number in numbers], pa.large_string())
    if kind.startswith("float"):
        # Both zeros are values of their own.
        return pa.array([-0.0 if number == 0 and j % 2 else number / 4 for number, j in zip(numbers, joinids)], kind)
    if kind.startswith("timestamp"):
        return pa.array(numbers, pa.int64()).cast(pa.timestamp(kind[10:-1]))
    return pa.array(numbers, kind)


def domain_of(name, kind):
    if name == "soma_joinid":
        return (0, N_ROWS * 4)
    if kind == "string":
        return None
    least, greatest = (0 if kind[0] == "u" else -60), 70
    if kind.startswith("timestamp"):
        unit = kind[10:-1]
        return (np.datetime64(least, unit), np.datetime64(greatest, unit))
    return (float(least), float(greatest)) if kind.startswith("float") else (least, greatest)


def rows_of(joinids, index, others):
    columns = {"soma_joinid": pa.array(joinids, pa.int64()), **index}
    columns["text"] = pa.array([None if j % 5 == 0 else "ü" * (j % 7) + str(others) for j in joinids], pa.large_string())
    columns["number"] = pa.array([j * 10 + others for j in joinids], pa.int32())
    # Later writes extend the categories.
    n_kinds = 3 + others
    codes = pa.array([j % n_kinds for j in joinids], pa.int8())
    columns["kind"] = pa.DictionaryArray.from_arrays(codes, pa.array(CATEGORIES[:n_kinds]))
    columns["share"] = pa.array([FLOATS[(j + others) % len(FLOATS)] for j in joinids], pa.float64())
    columns["ratio"] = pa.array([FLOATS[j * 3 % len(FLOATS)] for j in joinids], pa.float32())
    columns["truth"] = pa.array([j % 2 == 0 for j in joinids], pa.bool_())
    return pa.table(columns)


def described_frame(uri, timestamp):
    """All rows by joinid, with the joinid as the first column."""
    with tiledbsoma.open(uri, tiledb_timestamp=timestamp) as frame:
        table = frame.read().concat()
    table = table.take(pa.compute.sort_indices(table["soma_joinid"]))
    names = ["soma_joinid"] + [name for name in table.column_names if name != "soma_joinid"]
    return described.frame(table.select(names))


class Frame:
    """A data frame with random index columns, and the rows that are written to it."""

    def __init__(self, rng, collection, name):
        self.rng = rng
        kinds = rng.sample(KINDS, rng.randint(0, 2))
        self.index = {f"dim_{kind.split('[')[0]}_{number}": kind for number, kind in enumerate(kinds)}
        names = list(self.index)
        if not names or rng.random() < 0.6:
            names.insert(rng.randint(0, len(names)), "soma_joinid")
        # Without the joinid as a dimension, other columns must tell rows apart.
        if "soma_joinid" not in names:
            self.index["row"] = "string" if rng.random() < 0.5 else "int64"
            names.insert(rng.randint(0, len(names)), "row")
        elif names == ["soma_joinid"]:
            self.index["cell_type"] = "string"
            names.insert(rng.randint(0, 1), "cell_type")
        joinids = rng.sample(range(N_ROWS * 4), N_ROWS)
        index = {name: index_values(rng, kind, joinids) for name, kind in self.index.items()}
        if "row" in index:
            of_row = [f"row {j:04}" for j in joinids] if self.index["row"] == "string" else joinids
            index["row"] = pa.array(of_row, pa.large_string() if self.index["row"] == "string" else pa.int64())
        self.joinids, self.values = joinids, index
        domain = [(0, N_ROWS * 4) if name == "row" and self.index[name] == "int64" else domain_of(name, self.index.get(name)) for name in names]
        create = {"capacity": rng.choice([10, 64, 100_000]), "cell_order": rng.choice(["row-major", "col-major"])}
        options = {"tiledb": {"create": create}}
        rows = self.rows(range(N_ROWS), 0)
        self.uri = collection.add_new_dataframe(name, schema=rows.schema, index_column_names=names, domain=domain, platform_config=options).uri

    def rows(self, which, others):
        which = list(which)
        index = {name: values.take(pa.array(which, pa.int64())) for name, values in self.values.items()}
        return rows_of([self.joinids[row] for row in which], index, others)

    def write(self, which, others):
        with tiledbsoma.open(self.uri, "w") as frame:
            frame.write(self.rows(which, others))
        time.sleep(0.002)


    def delete(self):
        """Deletes some rows by a condition on an attribute, on the joinid, or on both."""
        number = self.rng.randint(0, 9) * N_ROWS * 4
        conditions = [
            "kind == 'a'", f"number >= {number} and number < {number + N_ROWS * 4}", "text == 'ü1'",
            f"soma_joinid < {self.rng.randint(0, N_ROWS)} and truth == True",
            "kind in ['a', 'z']", "kind != 'b'", "kind == 'z' or kind == ''", "kind not in ['c', 'ä']",
            "share == 0.0", "share != 0.0", "share < 0.5 and ratio >= 0.0", "ratio <= -0.0", "not share > 0.5", "ratio in [0.0, 3.0, -2.0]",
        ]
        with tiledbsoma.open(self.uri, "d") as frame:
            try:
                frame.delete_cells(value_filter=self.rng.choice(conditions))
            except (tiledbsoma.SOMAError, RuntimeError):
                # It has no such category yet, or does not evaluate the condition.
                pass
        time.sleep(0.002)


def main(uri, seed):
    rng = random.Random(int(seed))
    with tiledbsoma.Experiment.create(uri) as experiment:
        frames = [Frame(rng, experiment, "obs")]
        measurement = experiment.add_new_collection("ms").add_new_collection("RNA", kind=tiledbsoma.Measurement)
        frames.append(Frame(rng, measurement, "var"))
        x = measurement.add_new_collection("X").add_new_sparse_ndarray("raw", type=pa.float32(), shape=(N_ROWS * 4 + 1, N_ROWS * 4 + 1))
        cells = [[frame.joinids[row] for row in range(0, N_ROWS, 3)] for frame in frames]
        x.write(pa.table({"soma_dim_0": cells[0], "soma_dim_1": cells[1], "soma_data": pa.array(range(1, len(cells[0]) + 1), pa.float32())}))
    moment()
    for frame in frames:
        frame.write(range(200), 0)
        if rng.random() < 0.6:
            frame.write(rng.sample(range(200), 40), 1)
        if rng.random() < 0.5:
            frame.delete()
    between = moment()
    for frame in frames:
        if rng.random() < 0.6:
            frame.write(rng.sample(range(200), 30), 2)
        if rng.random() < 0.5:
            frame.delete()
        frame.write(range(200, N_ROWS), 3)
    moment()
    states = [{"obs": described_frame(frames[0].uri, at), "var": described_frame(frames[1].uri, at)} for at in (between, None)]
    json.dump({"between": between, "earlier": states[0], "latest": states[1]}, sys.stdout)


main(*sys.argv[1:])
