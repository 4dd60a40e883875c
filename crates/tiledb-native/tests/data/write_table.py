"""Writes table*.files, matrix-deleted.files, dense*.files and group.files of this folder with tiledbsoma 2.3.0, from any folder:

    python write_table.py

The form of the packed files is that of write.py. The table has rows 0 to 39 of time 2, 30 to 49 of time 3, which replace ten, and 50 to
59 of time 5; at time 4 a column was added. The group has a member of each kind, and lost one.
In table-deleted and matrix-deleted, cells were deleted at times 6, 7 and 9; the first two deletions were consolidated, at 8 others
were written, and the commits until then are in one file.
table-indexed is indexed by a text and a float; rows were written again at time 3, deleted at time 4, and fragments with the times of
their cells merged; at time 6 others were written, and at 7 some
deleted by a text. The dense arrays have tiles by rows or by columns, and fragments that overlap.
The texts of table-texts have the filters of obs in the Census of 2023: a dictionary, or run lengths, before zstd.
"""

import os
import shutil
import struct
import tempfile

import numpy
import pyarrow as pa
import tiledbsoma

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["B cell", "T cell", "new"]


def context(time):
    return tiledbsoma.SOMATileDBContext(timestamp=time)


def columns(rows, time):
    rows = list(rows)
    kinds = pa.array([row % (2 if time < 5 else 3) for row in rows], pa.int8())
    out = {
        "soma_joinid": pa.array(rows, pa.int64()),
        "name": pa.array([f"row {row} " * (row % 4) for row in rows], pa.large_string()),
        "kind": pa.DictionaryArray.from_arrays(kinds, pa.array(KINDS[: 2 if time < 5 else 3], pa.large_string())),
        "flag": pa.array([None if row % 5 == 0 else row % 2 == 0 for row in rows], pa.bool_()),
        "share": pa.array([row / 4 + time for row in rows], pa.float64()),
        "when": pa.array([row * 1000 for row in rows], pa.timestamp("ms")),
    }
    if time >= 5:
        out["added"] = pa.array([row * 3 for row in rows], pa.int32())
    return pa.table(out)


def date_new_schemas(path, time):
    """Gives the schemas of the present the time `time`."""
    folder = os.path.join(path, "__schema")
    for name in os.listdir(folder):
        if name.startswith("__1") and len(name.split("_")[2]) > 5:
            os.rename(os.path.join(folder, name), os.path.join(folder, f"__{time}_{time}_{name.split('_')[-1]}"))


def write_table(path):
    options = {"tiledb": {"create": {"capacity": 16}}}
    schema = columns([0], 1).schema
    tiledbsoma.DataFrame.create(path, schema=schema, domain=[(0, 99)], platform_config=options, context=context(1)).close()
    date_new_schemas(path, 1)
    for time, rows in [(2, range(0, 40)), (3, range(30, 50)), (5, range(50, 60))]:
        if time == 5:
            with tiledbsoma.DataFrame.open(path, "w", context=context(4)) as frame:
                frame._handle._update_dataframe_schema([], {"added": "i"}, {})
            date_new_schemas(path, 4)
        with tiledbsoma.DataFrame.open(path, "w", context=context(time)) as frame:
            frame.write(columns(rows, time))


def write_texts(path):
    encoded = {"name": "DictionaryFilter", "kind": "RleFilter", "note": "DictionaryFilter"}
    zstd = {"_type": "ZstdFilter", "level": 19}
    attributes = {name: {"filters": [first, zstd]} for name, first in encoded.items()}
    options = {"tiledb": {"create": {"capacity": 32, "attrs": attributes}}}
    rows = list(range(60))
    table = pa.table(
        {
            "soma_joinid": pa.array(rows, pa.int64()),
            "name": pa.array([f"row {row} " * (row % 4) for row in rows], pa.large_string()),
            "kind": pa.array([KINDS[row // 20] for row in rows], pa.large_string()),
            "note": pa.array([None if row % 5 == 0 else "" if row % 5 == 1 else "seen" for row in rows], pa.string()),
        }
    )
    schema = table.schema
    tiledbsoma.DataFrame.create(path, schema=schema, domain=[(0, 99)], platform_config=options, context=context(1)).close()
    date_new_schemas(path, 1)
    with tiledbsoma.DataFrame.open(path, "w", context=context(2)) as frame:
        frame.write(table)


def consolidate(kind, path, mode):
    with kind.open(path, "w", context=context(8)) as array:
        array._handle.consolidate_and_vacuum([mode])
    commits = os.path.join(path, "__commits")
    for name in os.listdir(commits) if mode == "commits" else []:
        if not name.endswith(".con"):
            os.remove(os.path.join(commits, name))


def delete_rows(path):
    """Deletes rows of the table, in a copy of it."""
    kind = tiledbsoma.DataFrame
    for time, value_filter in [(6, "kind == 'B cell' and share > 8.0"), (7, "name == 'row 33 ' or added not in [150, 153, 156]")]:
        with kind.open(path, "d", context=context(time)) as frame:
            frame.delete_cells((), value_filter=value_filter)
    consolidate(kind, path, "fragments")
    with kind.open(path, "w", context=context(8)) as frame:
        frame.write(columns(range(31, 40), 8))
    consolidate(kind, path, "commits")
    with kind.open(path, "d", context=context(9)) as frame:
        frame.delete_cells(([0, 31, 35, 51],))


def write_matrix(path):
    kind = tiledbsoma.SparseNDArray
    options = {"tiledb": {"create": {"capacity": 32}}}
    kind.create(path, type=pa.float32(), shape=(60, 40), platform_config=options, context=context(1)).close()
    date_new_schemas(path, 1)

    def write(time, rows):
        cells = [(row, (row * 7 + cell * 11) % 40, row + time / 4) for row in rows for cell in range(row % 4)]
        found = {(row, column): value for row, column, value in cells}
        triples = pa.table(
            {
                "soma_dim_0": pa.array([row for row, _ in found], pa.int64()),
                "soma_dim_1": pa.array([column for _, column in found], pa.int64()),
                "soma_data": pa.array(found.values(), pa.float32()),
            }
        )
        with kind.open(path, "w", context=context(time)) as array:
            array.write(triples)

    def delete(time, coords):
        with kind.open(path, "d", context=context(time)) as array:
            array.delete_cells(coords)

    write(2, range(50))
    write(3, range(30, 60))
    delete(6, (slice(5, 12), slice(0, 20)))
    delete(7, ([31, 42, 50],))
    consolidate(kind, path, "fragments")
    write(8, range(3, 12))
    consolidate(kind, path, "commits")
    delete(9, (slice(None), [3, 14, 15]))


def write_matrix_without_rows(path):
    """A matrix in two fragments, of which only whole rows were deleted."""
    kind = tiledbsoma.SparseNDArray
    options = {"tiledb": {"create": {"capacity": 32}}}
    kind.create(path, type=pa.float32(), shape=(60, 40), platform_config=options, context=context(1)).close()
    date_new_schemas(path, 1)
    for time, rows in [(2, range(30)), (3, range(30, 60))]:
        cells = [(row, (row * 7 + cell * 11) % 40, row + time / 4) for row in rows for cell in range(row % 4)]
        fields = ["soma_dim_0", "soma_dim_1", "soma_data"]
        types = [pa.int64(), pa.int64(), pa.float32()]
        triples = pa.table({name: pa.array(values, of) for name, values, of in zip(fields, zip(*cells), types)})
        with kind.open(path, "w", context=context(time)) as array:
            array.write(triples)
    for time, coords in [(4, (slice(5, 12),)), (5, ([31, 42, 50],))]:
        with kind.open(path, "d", context=context(time)) as array:
            array.delete_cells(coords)


def write_indexed(path):
    options = {"tiledb": {"create": {"capacity": 16}}}
    kind = tiledbsoma.DataFrame

    def rows(numbers, time):
        return pa.table(
            {
                "soma_joinid": pa.array(numbers, pa.int64()),
                "name": pa.array([f"row {row // 2}" for row in numbers], pa.large_string()),
                "share": pa.array([(row % 2) - 0.5 if row < 60 else [0.0, -0.0][row % 2] for row in numbers], pa.float64()),
                "note": pa.array([f"note {row}" for row in numbers], pa.large_string()),
                "count": pa.array([None if row % 5 == 0 else row + 100 * time for row in numbers], pa.int32()),
            }
        )

    schema = rows([0], 1).schema
    index, domain = ["name", "share"], [None, (-1.0, 1.0)]
    kind.create(path, schema=schema, index_column_names=index, domain=domain, platform_config=options, context=context(1)).close()
    date_new_schemas(path, 1)
    for time, numbers in [(2, range(0, 40)), (3, range(30, 50))]:
        with kind.open(path, "w", context=context(time)) as frame:
            frame.write(rows(numbers, time))
    with kind.open(path, "d", context=context(4)) as frame:
        frame.delete_cells((), value_filter="count > 340")
    consolidate(kind, path, "fragments")
    with kind.open(path, "w", context=context(6)) as frame:
        frame.write(rows(range(5, 12), 6))
    # Zeros of either sign are two places.
    for row, time in [(60, 5), (61, 6)]:
        with kind.open(path, "w", context=context(time)) as frame:
            frame.write(rows([row], time))
    with kind.open(path, "d", context=context(7)) as frame:
        frame.delete_cells((), value_filter="note == 'note 17' or note == 'note 9'")


def write_dense(path, value_type, cell_order):
    kind = tiledbsoma.DenseNDArray
    dimensions = {"soma_dim_0": {"tile": 8}, "soma_dim_1": {"tile": 10}}
    filters = ["ByteShuffleFilter", {"_type": "ZstdFilter", "level": 9}]
    create = {"dims": dimensions, "attrs": {"soma_data": {"filters": filters}}, "cell_order": cell_order, "tile_order": cell_order}
    kind.create(path, type=value_type, shape=(37, 23), platform_config={"tiledb": {"create": create}}, context=context(1)).close()
    date_new_schemas(path, 1)
    for time, rows, columns in [(2, (0, 36), (0, 22)), (3, (5, 11), (3, 14)), (4, (30, 36), (20, 22))]:
        shape = (rows[1] - rows[0] + 1, columns[1] - columns[0] + 1)
        values = [[(row * 7 + column) % 5 * time for column in range(shape[1])] for row in range(shape[0])]
        tensor = pa.Tensor.from_numpy(numpy.array(values, value_type.to_pandas_dtype()))
        with kind.open(path, "w", context=context(time)) as array:
            array.write((slice(*rows), slice(*columns)), tensor)


def write_group(path):
    with tiledbsoma.Collection.create(path, context=context(1)) as group:
        group.metadata["text"] = "value"
        group.metadata["number"] = 5
        group.add_new_collection("ms", tiledbsoma.Collection)
        group.add_new_collection("lost", tiledbsoma.Collection)
        group.add_new_dataframe("obs", schema=columns([0], 1).schema, domain=[(0, 99)])
    with tiledbsoma.Collection.open(path, "d", context=context(2)) as group:
        del group["lost"]
    with tiledbsoma.Collection.open(path, "w", context=context(3)) as group:
        group.metadata["text"] = "other"
        del group.metadata["number"]
    for name in ["ms", "lost", "obs"]:
        shutil.rmtree(os.path.join(path, name))


def pack(folder, name):
    with open(os.path.join(HERE, name), "wb") as out:
        for base, _, names in sorted(os.walk(folder)):
            for file in sorted(names):
                path = os.path.join(base, file)
                relative = os.path.relpath(path, folder).encode()
                with open(path, "rb") as opened:
                    data = opened.read()
                out.write(struct.pack("<HI", len(relative), len(data)) + relative + data)


def main():
    folder = tempfile.mkdtemp()
    names = ("table", "deleted", "matrix", "texts", "group")
    table, deleted, matrix, texts, group = (os.path.join(folder, name) for name in names)
    write_table(table)
    shutil.copytree(table, deleted)
    pack(table, "table.files")
    with tiledbsoma.DataFrame.open(table, "w") as frame:
        frame._handle.consolidate_and_vacuum(["fragments"])
    pack(table, "table-consolidated.files")
    delete_rows(deleted)
    pack(deleted, "table-deleted.files")
    write_matrix(matrix)
    pack(matrix, "matrix-deleted.files")
    write_texts(texts)
    pack(texts, "table-texts.files")
    write_group(group)
    pack(group, "group.files")
    without_rows = os.path.join(folder, "without-rows")
    write_matrix_without_rows(without_rows)
    pack(without_rows, "matrix-rows-deleted.files")
    indexed = os.path.join(folder, "indexed")
    write_indexed(indexed)
    pack(indexed, "table-indexed.files")
    for name, value_type, order in [("dense", pa.float32(), "row-major"), ("dense-columns", pa.int32(), "col-major")]:
        path = os.path.join(folder, name)
        write_dense(path, value_type, order)
        pack(path, f"{name}.files")
    with tiledbsoma.DataFrame.open(table) as frame:
        print(frame.read().concat().to_pandas())
    shutil.rmtree(folder)


main()
