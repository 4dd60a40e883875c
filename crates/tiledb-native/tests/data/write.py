"""Writes the packed arrays of this folder, each with the libtiledb of its time.

Run once for each version of tiledb-py in VERSIONS, in an environment that has it (Python 3.7 for the oldest, 3.9 with numpy 1.22
for 0.14 to 0.23), from any folder:

    python write.py              # format-NN.files and format-NN-consolidated.files of the installed version
    python write.py append 09    # with tiledb 0.36.1: format-09-appended.files, from format-09.files and one more fragment

A packed array is its files one after another: length of the path (u16), length of the file (u32), path, file.
"""

import os
import shutil
import struct
import sys
import tempfile

import numpy as np
import tiledb

VERSIONS = {
    "0.7.7": 6, "0.8.0": 7, "0.8.11": 8, "0.9.5": 9, "0.10.5": 10, "0.13.3": 11, "0.14.4": 12, "0.15.6": 13, "0.16.5": 14,
    "0.17.6": 15, "0.18.3": 16, "0.20.0": 17, "0.21.6": 18, "0.22.0": 19, "0.23.4": 20, "0.30.2": 21, "0.36.1": 22,
}
HERE = os.path.dirname(os.path.abspath(__file__))


def create(path):
    shuffled = tiledb.FilterList([tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(level=5)])
    domain = tiledb.Domain(
        tiledb.Dim(name="soma_dim_0", domain=(0, 99), tile=16, dtype=np.int64, filters=tiledb.FilterList([tiledb.ZstdFilter(level=5)])),
        tiledb.Dim(name="soma_dim_1", domain=(0, 299), tile=64, dtype=np.int64, filters=shuffled),
    )
    attribute = tiledb.Attr(name="soma_data", dtype=np.float32, filters=shuffled)
    schema = tiledb.ArraySchema(
        domain=domain, attrs=[attribute], sparse=True, allows_duplicates=True, capacity=500, cell_order="row-major", tile_order="row-major"
    )
    tiledb.Array.create(path, schema)


def write(path, rows, step, by, timestamp):
    cells = [(row, column) for row in rows for column in range(row % step, 300, step)]
    row, column = np.array(cells).T
    with tiledb.open(path, "w", timestamp=timestamp) as array:
        array[row, column] = ((row * 7 + column) % 50 + by).astype(np.float32)


def fill(path):
    create(path)
    write(path, range(0, 40), 7, 0, 1)
    write(path, range(30, 60), 11, 100, 2)
    write(path, range(70, 100), 13, 200, 3)


def pack(folder, name):
    with open(os.path.join(HERE, name), "wb") as out:
        for base, _, names in sorted(os.walk(folder)):
            for file in sorted(names):
                path = os.path.join(base, file)
                relative = os.path.relpath(path, folder).encode()
                with open(path, "rb") as opened:
                    data = opened.read()
                if file != "__lock.tdb":
                    out.write(struct.pack("<HI", len(relative), len(data)) + relative + data)


def unpack(name, folder):
    with open(os.path.join(HERE, name), "rb") as packed:
        while header := packed.read(6):
            path_len, data_len = struct.unpack("<HI", header)
            path = os.path.join(folder, packed.read(path_len).decode())
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(packed.read(data_len))


def main():
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "array")
    format = VERSIONS[tiledb.__version__]
    if sys.argv[1:2] == ["append"]:
        assert format == 22
        old = sys.argv[2]
        unpack(f"format-{old}.files", path)
        write(path, range(50, 70), 9, 300, 4)
        pack(path, f"format-{old}-appended.files")
    else:
        fill(path)
        pack(path, f"format-{format:02}.files")
        tiledb.consolidate(path)
        tiledb.vacuum(path)
        pack(path, f"format-{format:02}-consolidated.files")
    shutil.rmtree(folder)


main()
