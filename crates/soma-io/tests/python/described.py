"""The form in which experiments are compared: what a frame or a layer of X holds, as plain JSON."""

import struct

import pyarrow as pa
import tiledbsoma

assert tiledbsoma.__version__ == "2.3.0", f"tiledbsoma 2.3.0 is needed, this is {tiledbsoma.__version__}"


def plain(value):
    """A value as JSON can hold it without loss: floats by their bits."""
    if isinstance(value, float):
        return "bits " + str(struct.unpack("<Q", struct.pack("<d", value))[0])
    if isinstance(value, bytes):
        return "bytes " + value.hex()
    return value


def type_name(arrow_type):
    """The name of a type. tiledbsoma gives texts and bytes with 64-bit offsets, whichever they were written with."""
    if pa.types.is_dictionary(arrow_type):
        ordered = ", ordered" if arrow_type.ordered else ""
        return f"dictionary<{arrow_type.index_type}, {type_name(arrow_type.value_type)}{ordered}>"
    return {"string": "large_string", "binary": "large_binary"}.get(str(arrow_type), str(arrow_type))


def plain_values(array):
    """The values of an array, timestamps as integers."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [plain(value) for value in array.to_pylist()]


def column(field, array):
    """A column: its type, its values, and when it is categorical the values that it can have, in order."""
    described = {"name": field.name, "type": type_name(field.type), "nullable": field.nullable}
    if pa.types.is_dictionary(field.type):
        array = array.unify_dictionaries() if isinstance(array, pa.ChunkedArray) else array
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        described["categories"] = plain_values(chunks[0].dictionary) if chunks else []
        array = pa.chunked_array([chunk.dictionary_decode() for chunk in chunks], field.type.value_type)
    described["values"] = plain_values(array)
    return described


def frame(table):
    """A data frame: its columns."""
    return [column(field, table[field.name]) for field in table.schema]


def layer(shape, arrow_type, cells):
    """A layer of X: its shape, type, and cells (row, column, value) sorted."""
    return {
        "shape": list(shape),
        "type": str(arrow_type),
        "cells": [[row, gene, plain(value)] for row, gene, value in sorted(cells)],
    }
