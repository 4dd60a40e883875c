"""Writes an experiment with random dense arrays as layers of X and in obsm, and prints what tiledbsoma reads of them.

Each array is written in blocks that overlap or leave places out, some of them after the time that is printed.

Usage: write_random_dense.py URI SEED N_LAYERS
"""

import json
import random
import sys
import time

import numpy as np
import pyarrow as pa
import tiledbsoma

import described

TYPES = ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FILTERS = [
    [],
    [{"_type": "ZstdFilter", "level": 3}],
    ["ByteShuffleFilter", {"_type": "ZstdFilter", "level": 3}],
    ["BitShuffleFilter", {"_type": "LZ4Filter", "level": 3}],
    [{"_type": "GzipFilter", "level": 3}],
]


def moment():
    """The time in milliseconds, apart from what is before and what comes after."""
    time.sleep(0.003)
    now = time.time_ns() // 1_000_000
    time.sleep(0.003)
    return now


def values(rng, shape, dtype):
    """Numbers, most of them zero."""
    numbers = np.array([rng.choice([0, 0, 0, 1, 2, 100, 127]) for _ in range(shape[0] * shape[1])])
    if dtype.kind == "f":
        numbers = numbers * rng.choice([1, 0.5, -0.25])
    return numbers.reshape(shape).astype(dtype)


def write_block(rng, uri, shape, dtype):
    """Writes some rows and columns, or all."""
    first = [rng.randrange(n) for n in shape] if rng.random() < 0.7 else [0, 0]
    last = [rng.randrange(low, n) if rng.random() < 0.5 else n - 1 for low, n in zip(first, shape)]
    block = values(rng, [high - low + 1 for low, high in zip(first, last)], dtype)
    coordinates = tuple(slice(low, high) for low, high in zip(first, last))
    with tiledbsoma.open(uri, "w") as array:
        array.write(coordinates, pa.Tensor.from_numpy(block))


def create(rng, collection, name, shape, dtype):
    tiles = [rng.choice([1, 3, 8, 500]) for _ in shape]
    options = {
        "dims": {f"soma_dim_{i}": {"tile": tiles[i]} for i in range(2)},
        "attrs": {"soma_data": {"filters": rng.choice(FILTERS)}},
        "cell_order": rng.choice(["row-major", "row-major", "col-major"]),
        "tile_order": rng.choice(["row-major", "col-major"]),
    }
    platform_config = {"tiledb": {"create": options}}
    of = pa.from_numpy_dtype(dtype)
    return collection.add_new_dense_ndarray(name, type=of, shape=shape, platform_config=platform_config).uri


def held(uri, timestamp):
    with tiledbsoma.open(uri, tiledb_timestamp=timestamp) as array:
        read = array.read().to_numpy()
        rows = [[described.plain(value) for value in row] for row in read.astype("f8").tolist()]
        return {"type": str(array.schema.field("soma_data").type), "rows": rows}


def main(uri, seed, n_layers):
    rng = random.Random(int(seed))
    arrays = []
    with tiledbsoma.Experiment.create(uri) as experiment:
        measurement = experiment.add_new_collection("ms").add_new_collection("RNA", kind=tiledbsoma.Measurement)
        x = measurement.add_new_collection("X")
        obsm = measurement.add_new_collection("obsm")
        for number in range(int(n_layers)):
            shape = [rng.choice([1, 7, 40, 90]), rng.choice([1, 5, 30, 300])]
            dtype = np.dtype(rng.choice(TYPES))
            arrays.append((create(rng, x, f"layer_{number}", shape, dtype), shape, dtype))
        arrays.append((create(rng, obsm, "places", [40, 3], np.dtype("f4")), [40, 3], np.dtype("f4")))
    moments = []
    for least in (0, 1):
        for array in arrays:
            for _ in range(rng.randint(least, 3)):
                write_block(rng, *array)
                time.sleep(0.002)
        moments.append(moment())
    states = [{array[0].rsplit("/", 1)[1]: held(array[0], at) for array in arrays} for at in moments]
    json.dump({"between": moments[0], "earlier": states[0], "latest": states[1]}, sys.stdout)


main(*sys.argv[1:])
