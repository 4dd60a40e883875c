"""Writes an experiment whose obs has a column of every kind, and runs value filters on it with tiledbsoma.

Prints a list with the answer to each filter: {"joinids": [...]}, {"error": message}, or {"crash": signal} where it killed the
process. Each filter is tried in a child process for that reason; a child goes on with the next filters until one kills it.

Usage: run_filters.py URI FILTERS, with FILTERS a JSON file that holds a list of texts
"""

import json
import math
import os
import sys
import time
import warnings

import pyarrow as pa
import tiledbsoma

import described  # noqa: F401: it checks the version

N_OBS = 60


def some_none(values, rest):
    return [None if at % 5 == rest else value for at, value in enumerate(values)]


def cycle(*values):
    return [values[at % len(values)] for at in range(N_OBS)]


def categorical(codes, values, index_type=pa.int8(), ordered=False):
    return pa.DictionaryArray.from_arrays(pa.array(codes, index_type), values, ordered=ordered)


def every_column():
    texts = cycle("", "a", "b", "é", "Zz", "a b", 'quote"d')
    blobs = cycle(b"", b"\xff\x01", b"x", b"\x00y")
    floats = cycle(-1.5, 0.0, -0.0, math.nan, 2.5, math.inf, 0.1)
    truths = cycle(True, False, False)
    moments = cycle(-(10**6), 0, 1, 10**9)
    kinds = pa.array(["k0", "k1", "k2", "é"], pa.large_string())
    levels = pa.array(["low", "mid", "high"])
    four, three = cycle(0, 1, 2, 3), cycle(0, 1, 2)
    columns = {
        # With gaps.
        "soma_joinid": (pa.array([2 * at for at in range(N_OBS)], pa.int64()), False),
        "text": (pa.array(texts, pa.large_string()), False),
        "text_or_none": (pa.array(some_none(texts, 1), pa.large_string()), True),
        "bytes": (pa.array(blobs, pa.large_binary()), False),
        "bytes_or_none": (pa.array(some_none(blobs, 2), pa.large_binary()), True),
        "kind": (categorical(four, kinds), False),
        "kind_or_none": (categorical(some_none(four, 3), kinds, pa.int32()), True),
        "level": (categorical(three, levels, ordered=True), False),
        "level_or_none": (categorical(some_none(three, 4), levels, ordered=True), True),
        "dose": (categorical(three, pa.array([300, 1, -20], pa.int64()), pa.int16()), False),
        "dose_or_none": (categorical(some_none(three, 0), pa.array([300, 1, -20], pa.int32())), True),
        "share": (categorical(three, pa.array([0.5, -1.5, 2.0])), False),
        "ordered_share": (categorical(three, pa.array([0.5, -1.5, 2.0]), ordered=True), False),
        "code": (categorical(three, pa.array([b"\xff\x01", b"", b"x"], pa.large_binary())), False),
        "truth": (pa.array(truths), False),
        "truth_or_none": (pa.array(some_none(truths, 4)), True),
        "orig.ident": (pa.array(range(N_OBS), pa.int32()), False),
    }
    for bits in (32, 64):
        columns[f"float{bits}"] = (pa.array(floats, f"float{bits}"), False)
        columns[f"float{bits}_or_none"] = (pa.array(some_none(floats, 4), f"float{bits}"), True)
    for bits in (8, 16, 32, 64):
        signed = cycle(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -1, 0, 1, 5)
        unsigned = cycle(0, 2**bits - 1, 1, 5, 2 ** (bits - 1), 7)
        columns[f"int{bits}"] = (pa.array(signed, f"int{bits}"), False)
        columns[f"int{bits}_or_none"] = (pa.array(some_none(signed, 2), f"int{bits}"), True)
        columns[f"uint{bits}"] = (pa.array(unsigned, f"uint{bits}"), False)
        columns[f"uint{bits}_or_none"] = (pa.array(some_none(unsigned, 1), f"uint{bits}"), True)
    for unit in ("s", "ms", "us", "ns"):
        columns[f"moment_{unit}"] = (pa.array(moments, pa.timestamp(unit)), False)
        columns[f"moment_{unit}_or_none"] = (pa.array(some_none(moments, 1), pa.timestamp(unit)), True)
    fields = [pa.field(name, array.type, nullable) for name, (array, nullable) in columns.items()]
    return pa.Table.from_arrays([array for array, _ in columns.values()], schema=pa.schema(fields))


def write(uri):
    table = every_column()
    with tiledbsoma.Experiment.create(uri) as experiment:
        index = {"index_column_names": ["soma_joinid"], "domain": [[0, 2 * N_OBS]]}
        experiment.add_new_dataframe("obs", schema=table.schema, **index)
        experiment.add_new_collection("ms")
    # Two schemas of the same millisecond, without and with the values of the enumerations, could not be told apart.
    time.sleep(0.003)
    with tiledbsoma.open(f"{uri}/obs", "w") as obs:
        obs.write(table)


# Processes in which a filter has to crash to be one that crashes.
TRIES = 3


def answers(obs_uri, filters, out):
    """Writes one line for each filter, at once, so that the lines before a crash remain."""
    with tiledbsoma.open(obs_uri) as obs:
        for text in filters:
            try:
                table = obs.read(column_names=["soma_joinid"], value_filter=text).concat()
                answer = {"joinids": sorted(table["soma_joinid"].to_pylist())}
            except Exception as error:
                answer = {"error": str(error)}
            os.write(out, (json.dumps(answer) + "\n").encode())


def survived(obs_uri, filters):
    """The answers up to a crash, and the number of the signal, 0 where there was none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        answers(obs_uri, filters, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as lines:
        done = [json.loads(line) for line in lines]
    status = os.waitpid(child, 0)[1]
    return done, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main(uri, filters_path):
    # Python warns of escapes and of numbers that it will no longer take one day.
    warnings.simplefilter("ignore")
    # TileDB's threads would not live on in a child.
    child = os.fork()
    if child == 0:
        write(uri)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the experiment could not be written"
    with open(filters_path, encoding="utf-8") as file:
        filters = json.load(file)
    # A filter that crashes does so every time; once in hundreds of runs tiledbsoma crashes over one that it can answer.
    found, tries = [], 0
    while len(found) < len(filters):
        done, signal = survived(f"{uri}/obs", filters[len(found) :])
        found += done
        tries = 1 if done else tries + 1
        if signal and tries < TRIES:
            continue
        if signal:
            found.append({"crash": signal})
            tries = 0
        elif len(found) < len(filters):
            raise SystemExit("a child ended early")
    json.dump(found, sys.stdout)


main(*sys.argv[1:])
