"""Writes random arrays with random attributes of packing, and prints what xarray reads: `packing.py FOLDER SEED N`.

Each array `x` is in a group of its own, FOLDER/0 and so on, with its own name as its dimension, beside an array `y` of
the same dimension, whose coordinates it is. The odd groups are written by xarray, the others file by file. Prints one
JSON object by group: the type and the numbers that xarray reads, `None` for NaN, or its error.
"""

import base64
import json
import struct
import sys
import warnings
from pathlib import Path

import numpy as np
import xarray as xr
from xarray.backends import ZarrStore
from xarray.conventions import decode_cf_variable

folder = Path(sys.argv[1])
rng = np.random.default_rng(int(sys.argv[2]))
# xarray warns about attributes that it drops, and zarr-python about consolidated metadata.
warnings.simplefilter("ignore")
np.seterr(all="ignore")

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "b1"]
V3_NAMES = {"i": "int", "u": "uint", "f": "float"}


def pick(options):
    return options[rng.integers(len(options))]


def stored_values(dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        pool = [True, False]
    elif kind == "f":
        pool = [0.0, 0.5, -1.0, 100.0, -999.0, 0.1, float("nan"), float("inf")]
    else:
        info = np.iinfo(dtype)
        pool = [n for n in (0, 1, 2, -1, 100, 200, -999, info.min, info.max) if info.min <= n <= info.max]
    return np.array([pick(pool) for _ in range(rng.integers(1, 6))], dtype)


def plain(number):
    """A number of numpy as one of Python."""
    return number.item() if hasattr(number, "item") else number


def one_number(number):
    """An attribute that is one number, in a form of it, or something else. And whether it is understood."""
    right = [number, number, number, [number], [[number]], None]
    wrong = [[number, number], [], str(number), True, {"value": number}]
    if rng.random() < 0.85:
        return pick(right), True
    return pick(wrong), False


def numbers(values, dtype):
    """An attribute of numbers."""
    some = [plain(n) for n in rng.choice(values, 2)]
    right = [some[0], some[0], [some[0]], some, some[0], float("nan"), None, []]
    wrong = [str(some[0]), {"value": some[0]}] + ([] if dtype == "b1" else [True, [True]])
    if rng.random() < 0.85:
        return pick(right), True
    return pick(wrong), False


def fill_value_v3(values, dtype):
    number = plain(rng.choice(values))
    kind = np.dtype(dtype).kind
    if kind == "f":
        text = base64.standard_b64encode(struct.pack("<d", number)).decode()
        return (text, True) if rng.random() < 0.85 else (pick([number, [number], "?", None]), False)
    right = [number, number] if kind == "b" else [number, float(number)]
    return (pick(right), True) if rng.random() < 0.85 else (pick([[number], str(number), None]), False)


def attributes(values, dtype, version, with_fill=True):
    """Random attributes, and whether all of them are understood."""
    found, understood = {}, True

    def add(name, chance, attribute):
        nonlocal understood
        if rng.random() < chance:
            found[name], is_understood = attribute()
            understood &= is_understood

    add("scale_factor", 0.5, lambda: one_number(pick([0.5, 0.1, -2.0])))
    add("add_offset", 0.4, lambda: one_number(pick([10.0, -0.25, 250])))
    add("missing_value", 0.4, lambda: numbers(values, dtype))
    add("_FillValue", 0.4 * with_fill, lambda: fill_value_v3(values, dtype) if version == 3 else numbers(values, dtype))
    kind = np.dtype(dtype).kind
    if rng.random() < 0.25:
        found["_Unsigned"] = pick(["true", "true", "false", pick(["True", True, 1])])
        understood &= kind not in "iu" or found["_Unsigned"] in ("true", "false")
    return found, understood


def xarray_cannot(found, kind):
    """Whether xarray fails, or reads nonsense, because of the form of attributes that are understood."""
    # Fill values of unsigned numbers that are to be signed, and lists of those of the other sign.
    turned = (kind, found.get("_Unsigned")) in [("i", "true"), ("u", "false")]
    if turned and "_FillValue" in found and (kind == "u" or isinstance(found["_FillValue"], list)):
        return True
    # It adds to Booleans in their place where an attribute names no value that is missing.
    is_scaled = "scale_factor" in found or "add_offset" in found
    return kind == "b" and is_scaled and ("missing_value" in found or "_FillValue" in found)


def write_by_hand(path, version, dtype, values, found, fill):
    # xarray swaps the bytes of a fill value that is to be unsigned.
    is_turned = found.get("_Unsigned") == "true" and (fill is not None or "_FillValue" in found)
    (path / "x").mkdir(parents=True)
    n = len(values)
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    if version == 2:
        order = "|" if size == 1 else "<" if is_turned else pick("<>")
        metadata = {"zarr_format": 2, "shape": [n], "chunks": [n], "dtype": order + dtype, "fill_value": fill}
        metadata |= {"compressor": None, "filters": None, "order": "C"}
        (path / "x/.zarray").write_text(json.dumps(metadata))
        (path / "x/.zattrs").write_text(json.dumps(found | {"_ARRAY_DIMENSIONS": ["x"]}))
        (path / "x/0").write_bytes(values.astype(order + dtype).tobytes())
        (path / ".zgroup").write_text('{"zarr_format": 2}')
    else:
        name = "bool" if kind == "b" else f"{V3_NAMES[kind]}{size * 8}"
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        grid = {"name": "regular", "configuration": {"chunk_shape": [n]}}
        keys = {"name": "default", "configuration": {"separator": "/"}}
        metadata = {"zarr_format": 3, "node_type": "array", "shape": [n], "data_type": name, "chunk_grid": grid}
        metadata |= {"chunk_key_encoding": keys, "codecs": codecs, "fill_value": False if kind == "b" else 0}
        metadata |= {"attributes": found, "dimension_names": ["x"]}
        (path / "x/zarr.json").write_text(json.dumps(metadata))
        (path / "x/c").mkdir()
        (path / "x/c/0").write_bytes(values.astype("<" + dtype).tobytes())
        (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')


def by_hand(path, version):
    dtype = pick(TYPES)
    values = stored_values(dtype)
    # The fill value of version 2 takes the place of the attribute.
    fill = plain(rng.choice(values)) if version == 2 and dtype != "b1" and rng.random() < 0.5 else None
    while True:
        found, understood = attributes(values, dtype, version, with_fill=fill is None)
        if not xarray_cannot(found | ({} if fill is None else {"_FillValue": fill}), np.dtype(dtype).kind):
            break
    write_by_hand(path, version, dtype, values, found, fill)
    return len(values), dtype, found, understood


def by_xarray(path, version):
    dtype = pick(["i1", "i2", "i4", "u1", "u2", "f4", "f8"])
    values = np.where(rng.random(4) < 0.3, np.nan, rng.integers(0, 100, 4) / 2)
    encoding = {"dtype": dtype}
    fill = 99 if rng.random() < 0.5 else -99 if dtype[0] != "u" else 101
    encoding |= {"_FillValue": fill} if rng.random() < 0.7 else {"missing_value": fill}
    if rng.random() < 0.7:
        encoding["scale_factor"] = 0.5
    if rng.random() < 0.5:
        encoding["add_offset"] = 10.0
    if dtype[0] == "u" and encoding.get("_FillValue") == 101 and rng.random() < 0.5:
        encoding |= {"dtype": dtype.replace("u", "i"), "_Unsigned": "true"}
    dataset = xr.Dataset({"x": ("x", values)})
    dataset.to_zarr(path, zarr_format=version, encoding={"x": encoding}, consolidated=False)
    return len(values), encoding["dtype"], encoding, True


def add_y(path, version, n):
    """Adds an array that has `x` as its coordinates."""
    write_by_hand(path / "with", version, "i4", np.arange(n, dtype="i4"), {}, None)
    (path / "with/x").rename(path / "y")


def describe(path):
    try:
        store = ZarrStore.open_group(path, consolidated=False)
        variable = store.open_store_variable("x")
        decoded = decode_cf_variable("x", variable, decode_times=False).values
        values = [None if value != value else repr(float(value)) for value in decoded.ravel()]
        return {"type": str(decoded.dtype), "values": values}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


found = {}
for i in range(int(sys.argv[3])):
    path = folder / str(i)
    version = int(rng.integers(2, 4))
    n, dtype, attributes_of, understood = (by_xarray if i % 2 else by_hand)(path, version)
    is_scaled = "scale_factor" in attributes_of or "add_offset" in attributes_of
    found[str(i)] = describe(path) | {
        "stored": dtype,
        "version": version,
        "attributes": repr(attributes_of),
        "understood": understood,
        "scaled": is_scaled,
    }
    add_y(path, version, n)
print(json.dumps(found))
