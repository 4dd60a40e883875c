"""Writes an experiment with tiledbsoma that has everything which the format allows and others use, and prints what it holds.

What is printed are the values that were handed to tiledbsoma, not what it reads back. Everything is written in two steps, so that
the experiment can be opened as of a time between them.

Usage: write_experiment.py URI
"""

import json
import math
import sys
import time

import numpy as np
import pyarrow as pa
import tiledbsoma

import described

N_OBS, N_VAR = 3000, 2500
CENSUS = {
    "capacity": 65_536,
    "dims": {
        "soma_dim_0": {"tile": 2048, "filters": [{"_type": "ZstdFilter", "level": 5}]},
        "soma_dim_1": {"tile": 2048, "filters": ["ByteShuffleFilter", {"_type": "ZstdFilter", "level": 5}]},
    },
    "attrs": {"soma_data": {"filters": ["ByteShuffleFilter", {"_type": "ZstdFilter", "level": 5}]}},
    "cell_order": "row-major",
    "tile_order": "row-major",
    "allows_duplicates": True,
}


def drawn(rows, n, seed):
    """Numbers below `n` that look drawn."""
    rows = np.asarray(rows, dtype=np.uint64) + np.uint64(seed * 7919)
    with np.errstate(over="ignore"):
        rows = (rows * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(17)
    return (rows % np.uint64(n)).astype(np.int64)


def some_none(values, rows, seed):
    return [None if draw == 0 else value for value, draw in zip(values, drawn(rows, 3, seed))]


def categorical(codes, values, index_type, ordered=False):
    return pa.DictionaryArray.from_arrays(pa.array(codes, index_type), values, ordered=ordered)


def every_column(rows, n_categories):
    """Columns of every type for some joinids. `n_categories` are in use by the unordered categories."""
    rows = np.asarray(rows)
    texts = ["é" * int(a) + "x" * int(b) for a, b in zip(drawn(rows, 4, 1), drawn(rows, 6, 2))]
    numbers = drawn(rows, 120, 3).tolist()
    shares = [math.nan if number == 7 else number / 7 for number in numbers]
    moments = (drawn(rows, 1 << 40, 4) - (1 << 39)).tolist()
    truths = [number % 2 == 0 for number in numbers]
    kinds = pa.array([f"kind {kind} ü" for kind in range(n_categories)], pa.large_string())
    kind = drawn(rows, n_categories, 5).tolist()
    level = drawn(rows, 3, 6).tolist()
    columns = {
        "soma_joinid": (pa.array(rows, pa.int64()), False),
        "text": (pa.array(texts, pa.large_string()), False),
        "short_text": (pa.array(texts, pa.string()), True),
        "text_or_none": (pa.array(some_none(texts, rows, 7), pa.large_string()), True),
        "bytes": (pa.array([text.encode()[1:] for text in texts], pa.large_binary()), True),
        "kind": (categorical(kind, kinds, pa.int8()), False),
        "kind_or_none": (categorical(some_none(kind, rows, 8), kinds, pa.int32()), True),
        "level": (categorical(some_none(level, rows, 9), pa.array(["low", "mid", "high"]), pa.int8(), True), True),
        "dose": (categorical(level, pa.array([300, 1, -20], pa.int64()), pa.int16()), False),
        "share_kind": (categorical(level, pa.array([0.5, -1.5, 2.0], pa.float64()), pa.int8()), False),
        "code": (categorical(level, pa.array([b"\xff\x01", b"", b"x"], pa.large_binary()), pa.int8()), False),
        "truth": (pa.array(truths, pa.bool_()), False),
        "truth_or_none": (pa.array(some_none(truths, rows, 10), pa.bool_()), True),
        "float32": (pa.array(shares, pa.float32()), False),
        "float64": (pa.array(some_none(shares, rows, 11), pa.float64()), True),
    }
    for bits in (8, 16, 32, 64):
        columns[f"int{bits}"] = (pa.array([-number for number in numbers], f"int{bits}"), False)
        columns[f"uint{bits}"] = (pa.array(some_none(numbers, rows, bits), f"uint{bits}"), True)
    for unit in ("s", "ms", "us", "ns"):
        columns[f"moment_{unit}"] = (pa.array(some_none(moments, rows, 12), pa.timestamp(unit)), True)
    fields = [pa.field(name, array.type, nullable) for name, (array, nullable) in columns.items()]
    return pa.Table.from_arrays([array for array, _ in columns.values()], schema=pa.schema(fields))


def cells(rows, per_row, as_value):
    """Some cells of some rows; every fourth row has none."""
    found = {}
    for row in rows:
        if row % 4 != 1:
            for gene, draw in zip(drawn(np.arange(per_row) + row * 31, N_VAR, row), drawn(np.arange(per_row), 250, row)):
                found[row, int(gene)] = as_value(int(draw))
    return found


def table_of(found, arrow_type):
    rows, genes = zip(*found)
    return pa.table({
        "soma_dim_0": pa.array(rows, pa.int64()),
        "soma_dim_1": pa.array(genes, pa.int64()),
        "soma_data": pa.array(found.values(), arrow_type),
    })


def layers():
    """For each layer: options of creation, type, and the cells of each time."""
    first, second = range(1200), range(1200, N_OBS)
    count = float
    yield "raw", CENSUS, pa.float32(), [cells(first, 8, count), cells(second, 8, count)]
    # As tiledbsoma makes them by itself: no duplicates, so that what is written again counts.
    again = {cell: value + 0.5 for cell, value in cells(range(0, 300), 3, count).items()}
    again.update(cells(second, 3, count))
    yield "default", {}, pa.float32(), [cells(first, 3, count), again]
    yield "empty", CENSUS, pa.float32(), [{}, {}]
    yield "float64", CENSUS, pa.float64(), [cells(first, 2, lambda draw: draw / 7), {}]
    for bits in (8, 16, 32, 64):
        yield f"int{bits}", {}, pa.type_for_alias(f"int{bits}"), [cells(first, 1, lambda draw: draw - 125), {}]
        yield f"uint{bits}", {}, pa.type_for_alias(f"uint{bits}"), [cells(first, 1, lambda draw: draw), {}]


def moment():
    """The time in milliseconds, apart from what is before and what comes after."""
    time.sleep(0.003)
    now = time.time_ns() // 1_000_000
    time.sleep(0.003)
    return now


def described_frame(pieces):
    """What a frame holds after all `pieces`; categories are those that the last piece knows."""
    columns = []
    for field in pieces[0].schema:
        last = pieces[-1][field.name]
        values = [value for piece in pieces for value in described.column(field, piece[field.name])["values"]]
        columns.append({**described.column(field, last), "values": values})
    return columns


def create(uri, obs, var):
    """Makes all arrays; gives obs, var and the layers of X with what is to be written to them in each step."""
    with tiledbsoma.Experiment.create(uri) as experiment:
        index = {"index_column_names": ["soma_joinid"]}
        frames = [(experiment.add_new_dataframe("obs", schema=obs[0].schema, domain=[[0, N_OBS - 1]], **index).uri, obs)]
        measurement = experiment.add_new_collection("ms").add_new_collection("RNA", kind=tiledbsoma.Measurement)
        frame = measurement.add_new_dataframe("var", schema=var[0].schema, domain=[[0, N_VAR - 1]], **index)
        frames.append((frame.uri, var))
        x = measurement.add_new_collection("X")
        arrays = []
        for name, options, arrow_type, steps in layers():
            options = {"tiledb": {"create": options}}
            array = x.add_new_sparse_ndarray(name, type=arrow_type, shape=(N_OBS, N_VAR), platform_config=options)
            arrays.append((array.uri, [table_of(found, arrow_type) if found else None for found in steps]))
    return frames + arrays


def holds(obs, var, n_steps):
    """What the experiment holds after some steps."""
    x = {}
    for name, _, arrow_type, steps in layers():
        known = {}
        for found in steps[:n_steps]:
            known.update(found)
        triples = [(row, gene, value) for (row, gene), value in known.items()]
        x[name] = described.layer((N_OBS, N_VAR), arrow_type, triples)
    return {"obs": described_frame(obs[:n_steps]), "var": described_frame(var[:n_steps]), "X": x}


def main(uri):
    # Rows 1200 to 1299 are never written.
    obs = [every_column(np.arange(1200), 5), every_column(np.arange(1300, N_OBS), 9)]
    var = [every_column(np.arange(N_VAR), 3)]
    arrays = create(uri, obs, var)
    moments = []
    for step in range(2):
        # Apart from the making of the arrays: two schemas of the same time, without and with the values of the enumerations,
        # could not be told apart.
        moments.append(moment())
        for array_uri, pieces in arrays:
            if step < len(pieces) and pieces[step] is not None:
                with tiledbsoma.open(array_uri, "w") as array:
                    array.write(pieces[step])
    json.dump({"between": moments[1], "earlier": holds(obs, var, 1), "latest": holds(obs, var, 2)}, sys.stdout)


main(*sys.argv[1:])
