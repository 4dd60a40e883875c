"""Writes HDF5 files with each property of datasets and datatypes that h5py can set, and prints, as JSON,
what h5py reads of each: `write_matrix.py FOLDER DRAWN SEED`.

A case says what is expected: `values` are those of h5py; `refused` is an error that has a word; `either` is
one of both. `DRAWN` datasets more have properties drawn by `SEED`.
"""

import itertools
import json
import random
import struct
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import h5py
import numcodecs
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

LIBVERS = ["earliest", "v108", "v110", "latest"]
N = 37
CHUNK_INDICES = {
    "one": ((N,), None),
    "few": ((8,), None),
    "growing": ((8,), (None,)),
    "bounded": ((8,), (200,)),
}
ZSTD, BLOSC, LZ4 = 32015, 32001, 32004


def number(value):
    """A value as JSON: floats as their bits, so that they are compared exactly."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return "nan" if np.isnan(value) else "f:" + struct.pack(">d", float(value)).hex()
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


class Matrix:
    """The files and the cases in them."""

    def __init__(self, folder: Path, libver: str):
        self.name = f"{libver}.h5"
        self.folder = folder
        self.file = h5py.File(folder / self.name, "w", libver=(libver, "latest"))
        self.cases = []

    def case(self, path, expect="values", word=None):
        self.cases.append({"file": self.name, "path": path, "expect": expect, "word": word})

    def dataset(self, path, tid, data, mtype=None, dcpl=None, shape=None, maxshape=None, rows=None, **case):
        """A dataset by the low-level interface; only its first `rows` are written."""
        shape = data.shape if shape is None else shape
        limits = None if maxshape is None else tuple(h5s.UNLIMITED if n is None else n for n in maxshape)
        space = h5s.create_simple(shape, limits) if shape != () else h5s.create(h5s.SCALAR)
        parent, name = path.rsplit("/", 1)
        group = self.file.require_group(parent)
        found = h5d.create(group.id, name.encode(), tid, space, dcpl)
        if data is not None and rows != 0:
            memory = h5s.ALL
            if rows is not None:
                space.select_hyperslab((0,) * len(shape), (rows, *shape[1:]))
                data = np.ascontiguousarray(data[:rows])
                memory = h5s.create_simple(data.shape)
            found.write(memory, space if rows is not None else h5s.ALL, data, mtype or h5t.py_create(data.dtype))
        self.case(path, **case)
        return found

    def expected(self):
        """The cases, with the values that h5py reads."""
        self.file.close()
        # h5py reads fill values that are strings only of a file that it may write to.
        with h5py.File(self.folder / self.name, "r+") as file:
            for case in self.cases:
                try:
                    case["values"] = case.pop("known", None) or read(file, case)
                except Exception as error:  # noqa: BLE001
                    # Where h5py fails, an error is as good as any value.
                    case["values"] = None
                    case["h5py"] = f"{type(error).__name__}: {error}"[:200]
        return self.cases


def read(file, case):
    path, _, attribute = case["path"].partition("@")
    if attribute:
        value = file[path].attrs[attribute]
        return [number(v) for v in np.atleast_1d(value).ravel()]
    if case["expect"] == "names":
        return sorted(file[path])
    if case["expect"] == "refused":
        return None
    found = file[path]
    values = found.asstr()[()] if h5py.check_string_dtype(found.dtype) else found[()]
    return [number(value) for value in np.asarray(values).ravel()]


def values_of(dtype, n=N):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.arange(n) % 3 == 0
    if dtype.kind == "f":
        values = (np.arange(n) - n // 2) * 0.75
        values[:4] = [np.nan, np.inf, -np.inf, -0.0]
        return values.astype(dtype)
    if dtype.kind == "i":
        return ((np.arange(n) - n // 2) * 3).astype(dtype)
    return ((np.arange(n) * 5) % 120).astype(dtype)


NUMBERS = [order + kind + size for kind, sizes in [("i", "1248"), ("u", "1248"), ("f", "248")] for size in sizes for order in ("<" if size == "1" else "<>")]


def chunked(chunk, *filters):
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    for each in filters:
        each(dcpl)
    return dcpl


FILTERS = {
    "plain": [],
    "gzip0": [lambda p: p.set_deflate(0)],
    "gzip": [lambda p: p.set_deflate(4)],
    "gzip9": [lambda p: p.set_deflate(9)],
    "twice": [lambda p: p.set_deflate(4), lambda p: p.set_deflate(4)],
    "shuffle": [lambda p: p.set_shuffle()],
    "shuffle gzip": [lambda p: p.set_shuffle(), lambda p: p.set_deflate(4)],
    "gzip shuffle": [lambda p: p.set_deflate(4), lambda p: p.set_shuffle()],
    "fletcher32": [lambda p: p.set_fletcher32()],
    "gzip fletcher32": [lambda p: p.set_deflate(4), lambda p: p.set_fletcher32()],
    "fletcher32 gzip": [lambda p: p.set_fletcher32(), lambda p: p.set_deflate(4)],
    "lzf": [lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)],
    "shuffle lzf fletcher32": [
        lambda p: p.set_shuffle(),
        lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL),
        lambda p: p.set_fletcher32(),
    ],
    "nbit": [lambda p: p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL)],
    "nbit gzip": [lambda p: p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL), lambda p: p.set_deflate(4)],
    "szip nn": [lambda p: p.set_szip(h5z.SZIP_NN_OPTION_MASK, 8)],
    "szip ec": [lambda p: p.set_szip(h5z.SZIP_EC_OPTION_MASK, 4)],
    "scaleoffset": [lambda p: p.set_scaleoffset(h5z.SO_INT, 0)],
    "scaleoffset gzip": [lambda p: p.set_scaleoffset(h5z.SO_INT, 0), lambda p: p.set_deflate(4)],
    "scaleoffset float": [lambda p: p.set_scaleoffset(h5z.SO_FLOAT_DSCALE, 3)],
}


def fits(name, dtype):
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    if "scaleoffset float" in name:
        return kind == "f" and size > 2
    if "scaleoffset" in name:
        return kind in "iu"
    return not ("szip" in name and (kind == "f" and size == 2))


def add_filters(matrix):
    for name, filters in FILTERS.items():
        for dtype in ["<i4", ">u2", "<f8", ">f4", "|i1", "<f2"]:
            if not fits(name, dtype):
                continue
            tid = h5t.py_create(np.dtype(dtype))
            for index in ["few", "one"] if dtype != "<i4" else CHUNK_INDICES:
                chunk, maxshape = CHUNK_INDICES[index]
                path = f"filters/{name} {tid.dtype.str} {index}"
                data = values_of(dtype)
                if "scaleoffset float" in name:
                    data = np.round(np.abs(np.nan_to_num(data, posinf=1, neginf=2)), 2)
                matrix.dataset(path, tid, data, dcpl=chunked(chunk, *filters), maxshape=maxshape)
        tid = h5t.py_create(np.dtype("<i2"))
        if fits(name, "<i2"):
            for chunk, maxshape in [((3, 4), None), ((3, 4), (30, 20)), ((3, 4), (None, 7)), ((3, 4), (None, 20)), ((3, 4), (None, None)), ((23, 7), None)]:
                path = f"filters/{name} matrix {chunk} {maxshape}"
                data = values_of("<i2", 23 * 7).reshape(23, 7)
                matrix.dataset(path, tid, data, dcpl=chunked(chunk, *filters), maxshape=maxshape)
        words = np.array([f"wörd {n}" * (n % 3) for n in range(N)], object)
        if "nbit" not in name and "szip" not in name and "scaleoffset" not in name:
            text = h5py.string_dtype()
            # libhdf5 makes no checksums of strings of variable length.
            if "fletcher32" not in name:
                tid = h5t.py_create(text, logical=True)
                matrix.dataset(f"filters/{name} words", tid, words, h5t.py_create(text), chunked((8,), *filters))
            fixed = np.array([b"word %d" % n * (n % 3) for n in range(N)], "S21")
            matrix.dataset(f"filters/{name} fixed", h5t.py_create(fixed.dtype), fixed, dcpl=chunked((8,), *filters))


def add_plugin_filters(matrix):
    """Chunks of filters that are not part of h5py are written as they are stored."""
    data = values_of("<i4", 40)
    lz4 = numcodecs.LZ4()

    def lz4_blocks(chunk, block=16):
        parts = [chunk[at : at + block] for at in range(0, len(chunk), block)]
        stored = [lz4.encode(part)[4:] for part in parts]
        stored = [part if len(part) <= len(new) else new for part, new in zip(parts, stored)]
        return struct.pack(">QI", len(chunk), block) + b"".join(struct.pack(">I", len(p)) + p for p in stored)

    encoders = {f"blosc {c} {s}": (BLOSC, numcodecs.Blosc(c, shuffle=s).encode) for c in ["lz4", "lz4hc", "zstd", "zlib", "blosclz"] for s in [0, 1]}
    encoders |= {"zstd": (ZSTD, numcodecs.Zstd(3).encode), "lz4": (LZ4, lz4_blocks)}
    for name, (identifier, encode) in encoders.items():
        add = lambda p: p.set_filter(identifier, h5z.FLAG_OPTIONAL)  # noqa: B023, E731
        long = np.repeat(np.arange(1000), 5).astype("<i4")
        for kind, values in [("i4", data), ("long", long), ("S8", np.array([b"w%d" % (n % 7) for n in range(4000)], "S8"))]:
            dcpl = chunked((len(values) // 2,), add)
            path = f"plugins/{name} {kind}"
            dataset = matrix.dataset(path, h5t.py_create(values.dtype), values, dcpl=dcpl, rows=0)
            for start in [0, len(values) // 2]:
                stored = values[start : start + len(values) // 2].tobytes()
                dataset.write_direct_chunk((start,), bytes(encode(stored)))
            matrix.cases[-1]["known"] = [number(value) for value in values]
        # Blosc skips itself where a chunk does not shrink.
        dcpl = chunked((20,), add)
        dataset = matrix.dataset(f"plugins/{name} skipped", h5t.STD_I32LE, data[:40], dcpl=dcpl, rows=0)
        dataset.write_direct_chunk((0,), data[:20].tobytes(), 1)
        dataset.write_direct_chunk((20,), bytes(encode(data[20:40].tobytes())))
        matrix.cases[-1]["known"] = [number(value) for value in data[:40]]
    add = lambda p: p.set_filter(32008, h5z.FLAG_OPTIONAL)  # noqa: E731
    matrix.dataset("plugins/bitshuffle", h5t.STD_I32LE, data, dcpl=chunked((20,), add), rows=0, expect="refused", word="32008")
    add = lambda p: p.set_fletcher32()  # noqa: E731
    dataset = matrix.dataset("plugins/checksum", h5t.STD_I32LE, data, dcpl=chunked((40,), add), rows=0, expect="refused", word="hecksum")
    dataset.write_direct_chunk((0,), data.tobytes() + b"sum?")
    # Filters that a chunk skips.
    for mask in range(4):
        dcpl = chunked((20,), lambda p: p.set_shuffle(), lambda p: p.set_deflate(4))
        dataset = matrix.dataset(f"plugins/skipped {mask}", h5t.STD_I32LE, data, dcpl=dcpl, rows=0)
        for start in [0, 20]:
            stored = data[start : start + 20].tobytes()
            if not mask & 1:
                stored = np.frombuffer(stored, "u1").reshape(20, 4).T.tobytes()
            dataset.write_direct_chunk((start,), stored if mask & 2 else zlib.compress(stored), mask)


def add_numbers(matrix):
    for dtype in [*NUMBERS, "?"]:
        tid, data = h5t.py_create(np.dtype(dtype), logical=True), values_of(dtype)
        for layout in ["compact", "contiguous", "chunked"]:
            dcpl = h5p.create(h5p.DATASET_CREATE)
            dcpl.set_layout(getattr(h5d, layout.upper()))
            if layout == "chunked":
                dcpl.set_chunk((10,))
            matrix.dataset(f"numbers/{layout} {np.dtype(dtype).str}", tid, data, dcpl=dcpl)
            square = data[:36].reshape(6, 6)
            if layout == "chunked":
                dcpl.set_chunk((4, 5))
            matrix.dataset(f"numbers/{layout} {np.dtype(dtype).str} matrix", tid, square, dcpl=dcpl)
    for maxshape in [None, (30, 20), (23, 7), (None, 20), (None, None)]:
        dcpl = chunked((3, 4))
        dcpl.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        data = values_of("<i4", 23 * 7).reshape(23, 7)
        matrix.dataset(f"numbers/early {maxshape}", h5t.STD_I32LE, data, dcpl=dcpl, maxshape=maxshape)
    for shape in [(0,), (0, 5), (1,)]:
        matrix.file.create_dataset(f"numbers/shape {shape}", data=np.zeros(shape, "i4"))
        matrix.case(f"numbers/shape {shape}")
    matrix.file["numbers/null"] = h5py.Empty("f4")
    matrix.case("numbers/null", "refused", "null dataspace")


def add_fills(matrix):
    for dtype, fill in [("<i4", -3), (">u2", 500), ("<f4", np.nan), (">f8", -np.inf), ("<f2", 1.5), ("?", True)]:
        dtype = np.dtype(dtype)
        for fill_time, alloc_time, is_chunked, is_set in itertools.product(
            ["ALLOC", "NEVER", "IFSET"], ["DEFAULT", "EARLY", "LATE", "INCR"], [False, True], [False, True]
        ):
            if alloc_time == "INCR" and not is_chunked or fill_time == "NEVER" and (is_set or not is_chunked or alloc_time != "INCR"):
                continue
            dcpl = chunked((8,)) if is_chunked else h5p.create(h5p.DATASET_CREATE)
            dcpl.set_fill_time(getattr(h5d, f"FILL_TIME_{fill_time}"))
            dcpl.set_alloc_time(getattr(h5d, f"ALLOC_TIME_{alloc_time}"))
            dcpl.set_obj_track_times(is_set)
            if is_set:
                dcpl.set_fill_value(np.array(fill, dtype))
            for rows in [0, 8]:
                path = f"fills/{dtype.str} {fill_time} {alloc_time} {is_chunked} {is_set} {rows}"
                matrix.dataset(path, h5t.py_create(dtype, logical=True), values_of(dtype), dcpl=dcpl, rows=rows)
    for dtype, fill in [(h5py.string_dtype(), "fïll"), (np.dtype("S5"), b"fill")]:
        found = matrix.file.create_dataset(f"fills/{dtype.kind}", (20,), dtype, chunks=(8,), fillvalue=fill)
        found[:8] = "word"
        matrix.case(f"fills/{dtype.kind}")


def add_integers(matrix, random):
    for size, signed, order in itertools.product([1, 2, 4, 8], [False, True], [h5t.ORDER_LE, h5t.ORDER_BE]):
        bits = size * 8
        pairs = {(1, 0), (bits - 1, 0), (bits - 1, 1), (bits // 2, 0), (bits // 2, bits // 4), (bits // 2, bits // 2)}
        pairs |= {(p, random.randint(0, bits - p)) for p in random.sample(range(1, bits + 1), 3)}
        for precision, offset in sorted(pairs):
            tid = {1: h5t.STD_U8LE, 2: h5t.STD_U16LE, 4: h5t.STD_U32LE, 8: h5t.STD_U64LE}[size].copy()
            tid.set_order(order)
            tid.set_sign(h5t.SGN_2 if signed else h5t.SGN_NONE)
            tid.set_precision(precision)
            tid.set_offset(offset)
            tid.set_pad(*random.choice(list(itertools.product([h5t.PAD_ZERO, h5t.PAD_ONE], repeat=2))))
            data = values_of(f"{'i' if signed else 'u'}{size}")
            for filters in [None, "nbit", "gzip"]:
                dcpl = chunked((8,), *FILTERS[filters]) if filters else None
                path = f"integers/{size} {signed} {order} {precision} {offset} {filters}"
                with suppress(ValueError):  # libhdf5 does not write those that are "unusual".
                    matrix.dataset(path, tid, data, h5t.py_create(data.dtype), dcpl)
    for size in [3, 5, 16]:
        tid = h5t.STD_I32LE.copy()
        tid.set_size(size)
        tid.set_precision(size * 8)
        matrix.dataset(f"integers/{size} bytes", tid, values_of("i4"), h5t.NATIVE_INT32, expect="refused", word="integer")


def float_type(size, precision, sign, exponent, mantissa, bias, order=h5t.ORDER_LE, norm=h5t.NORM_IMPLIED):
    tid = h5t.IEEE_F64LE.copy()
    if size > 8:
        tid.set_size(size)
    tid.set_fields(sign, *exponent, *mantissa)
    tid.set_precision(precision)
    tid.set_ebias(bias)
    if size <= 8:
        tid.set_size(size)
    tid.set_norm(norm)
    tid.set_order(order)
    return tid


def add_floats(matrix):
    data = np.array([0, 1, -1, 0.5, 1.5, -2.25, 3, 100, 0.015625, -448, 2**-14, 2**-20, np.inf, -np.inf, np.nan, -0.0])
    kinds = {
        "bfloat16": (2, 16, 15, (7, 8), (0, 7), 127),
        "e4m3": (1, 8, 7, (3, 4), (0, 3), 7),
        "e5m2": (1, 8, 7, (2, 5), (0, 2), 15),
        "tf32": (4, 19, 18, (10, 8), (0, 10), 127),
        "biased": (4, 32, 31, (23, 8), (0, 23), 100),
        "very biased": (8, 64, 63, (52, 11), (0, 52), 1500),
        "wide": (8, 64, 63, (48, 15), (0, 48), 16383),
        "f24": (4, 24, 23, (16, 7), (0, 16), 63),
        "f48": (8, 48, 47, (36, 11), (0, 36), 1023),
        "mantissa first": (4, 32, 31, (0, 8), (8, 23), 127),
        "half in four": (4, 16, 15, (10, 5), (0, 10), 15),
    }
    for name, parts in kinds.items():
        for order in ["LE", "BE", "VAX"]:
            with suppress(ValueError):
                tid = float_type(*parts, order=getattr(h5t, f"ORDER_{order}"))
                matrix.dataset(f"floats/{name} {order}", tid, data, h5t.NATIVE_DOUBLE, expect="either", word="float")
    for name, norm in [("none", h5t.NORM_NONE), ("first bit", h5t.NORM_MSBSET)]:
        tid = float_type(8, 64, 63, (52, 11), (0, 52), 1023, norm=norm)
        matrix.dataset(f"floats/{name}", tid, data, h5t.NATIVE_DOUBLE, expect="either", word="float")
    tid = h5t.NATIVE_LDOUBLE
    matrix.dataset("floats/long double", tid, data, h5t.NATIVE_DOUBLE, expect="refused", word="float")
    for order in ["LE", "BE"]:
        tid = h5t.IEEE_F32LE.copy()
        tid.set_order(getattr(h5t, f"ORDER_{order}"))
        matrix.dataset(f"floats/f4 {order}", tid, data, h5t.NATIVE_DOUBLE)
    for size, order in itertools.product([4, 8], ["LE", "BE"]):
        tid = getattr(h5t, f"IEEE_F{size * 8}{order}").copy()
        with suppress(ValueError):
            tid.set_order(h5t.ORDER_VAX)
            matrix.dataset(f"floats/vax {size} {order}", tid, data, h5t.NATIVE_DOUBLE, expect="either", word="float")


def add_strings(matrix):
    words = [b"", b"a", b"ab  ", b"  c", "wörd".encode(), b"1234567", b"x\x00y"]
    for pad, cset in itertools.product(["NULLTERM", "NULLPAD", "SPACEPAD"], [h5t.CSET_ASCII, h5t.CSET_UTF8]):
        tid = h5t.C_S1.copy()
        tid.set_size(8)
        tid.set_strpad(getattr(h5t, f"STR_{pad}"))
        tid.set_cset(cset)
        data = np.array([w for w in words if cset == h5t.CSET_UTF8 or w.isascii()], "S8")
        if pad == "SPACEPAD":
            data = np.array([w.ljust(8) for w in data], "S8")
        matrix.dataset(f"strings/{pad} {cset}", tid, data, tid)
        matrix.dataset(f"strings/{pad} {cset} chunked", tid, data, tid, chunked((3,)))
    for cset in ["ascii", "utf-8"]:
        dtype = h5py.string_dtype(cset)
        data = np.array([w.decode() for w in words if b"\x00" not in w and (cset == "utf-8" or w.isascii())], object)
        matrix.file.create_dataset(f"strings/{cset}", data=data, dtype=dtype)
        matrix.case(f"strings/{cset}")
        part = matrix.file.create_dataset(f"strings/{cset} part", (100_000,), dtype, chunks=(1000,))
        part[500:505] = data[:5]
        matrix.case(f"strings/{cset} part")
    many = np.array([f"cell {n}" for n in range(70_000)], object)
    matrix.file.create_dataset("strings/many", data=many, dtype=h5py.string_dtype())
    matrix.case("strings/many")
    matrix.file.create_dataset("strings/latin", data=np.array([b"w\xf6rd"], "S4"))
    matrix.case("strings/latin", "refused", "not UTF-8")
    # Few bytes that stand for many strings.
    n, text = 2000, h5py.string_dtype()
    alias = matrix.file.create_dataset("strings/alias", (n,), text, chunks=(n,), compression="gzip")
    alias[0] = "x" * 60_000
    matrix.file.flush()
    first = zlib.decompress(alias.id.read_direct_chunk((0,))[1])[:16]
    alias.id.write_direct_chunk((0,), zlib.compress(first * n))
    matrix.case("strings/alias", "refused", "so often")
    fixed = matrix.file.create_dataset("strings/fixed", (1 << 20,), "S2000", chunks=(1000,), compression="gzip")
    fixed[0] = b"x"
    matrix.case("strings/fixed", "refused", "strings, more than a file")
    matrix.file.create_dataset("strings/declared", (1 << 45,), text, chunks=(1000,))
    matrix.case("strings/declared", "refused", "strings, more than a file")


def add_other_types(matrix):
    file = matrix.file
    enum = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i2")
    file.create_dataset("types/enum", data=np.array([0, 1, 42, 1], "i2"), dtype=enum)
    matrix.case("types/enum")
    for base in ["<i4", ">i4", "<u2", "|i1"]:
        for names in [("FALSE", "TRUE"), ("TRUE", "FALSE"), ("FALSE", "YES")]:
            tid = h5t.enum_create(h5t.py_create(np.dtype(base)))
            for name in names:
                tid.enum_insert(name.encode(), int(name != "FALSE"))
            path = f"types/enum {base} {names}"
            matrix.dataset(path, tid, np.array([0, 1, 1, 0], base), tid)
    file.create_dataset("types/compound", data=np.zeros(3, [("a", "i4"), ("b", "f8")]))
    file.create_dataset("types/complex", data=np.zeros(3, "c8"))
    file.create_dataset("types/array", (3,), dtype=np.dtype(("i4", (2,))))
    file.create_dataset("types/vlen", (3,), dtype=h5py.vlen_dtype("i4"))
    file.create_dataset("types/opaque", data=np.zeros(3, "V7"))
    file.create_dataset("types/times", data=np.zeros(3, "M8[s]").astype(h5py.opaque_dtype("M8[s]")))
    file.create_dataset("types/reference", data=[file.ref], dtype=h5py.ref_dtype)
    file.create_dataset("types/region", (1,), dtype=h5py.regionref_dtype)
    words = {"compound": "compound", "complex": "hdf5.comp", "array": "array", "vlen": "vlen", "opaque": "opaque", "times": "opaque", "reference": "reference", "region": "reference"}
    for name, word in words.items():
        matrix.case(f"types/{name}", "refused", word)
    for name in ["STD_B8LE", "STD_B16BE", "STD_B64LE"]:
        if hasattr(h5t, name):
            matrix.dataset(f"types/{name}", getattr(h5t, name), np.zeros(3, "u1"), shape=(3,), rows=0, expect="refused", word="bitfield")
    if hasattr(h5t, "UNIX_D32LE"):
        matrix.dataset("types/time", h5t.UNIX_D32LE, np.zeros(3, "i4"), rows=0, expect="refused", word="time")
    # Committed datatypes.
    file["committed/type"] = np.dtype(">i4")
    file["committed/text"] = h5py.string_dtype()
    file["committed/enum"] = enum
    matrix.case("committed/type", "refused", "committed datatype")
    file.create_dataset("committed/numbers", data=values_of("i4"), dtype=file["committed/type"])
    file.create_dataset("committed/words", data=["a", "bc"], dtype=file["committed/text"], chunks=(1,))
    for name in ["numbers", "words"]:
        matrix.case(f"committed/{name}")


def add_attributes(matrix):
    file = matrix.file
    for style, phase in [("compact", (60, 40)), ("dense", (0, 0)), ("usual", None)]:
        gcpl = h5p.create(h5p.GROUP_CREATE)
        dcpl = h5p.create(h5p.DATASET_CREATE)
        for creation in [gcpl, dcpl]:
            if phase and matrix.name != "earliest.h5":
                creation.set_attr_phase_change(*phase)
            creation.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        matrix.file.require_group("attributes")
        h5py.h5g.create(file["attributes"].id, style.encode(), gcpl=gcpl)
        matrix.dataset(f"attributes/{style} array", h5t.STD_I32LE, values_of("i4"), dcpl=dcpl)
        for owner in [f"attributes/{style}", f"attributes/{style} array"]:
            attrs = file[owner].attrs
            for dtype in [*NUMBERS, "?"]:
                name = np.dtype(dtype).str
                if name[1:] == "f2":
                    continue
                attrs[f"one {name}"] = values_of(dtype)[5]
                attrs[f"many {name}"] = values_of(dtype)
                matrix.case(f"{owner}@one {name}")
                matrix.case(f"{owner}@many {name}")
            attrs["text"] = "ä text"
            attrs["fixed"] = np.bytes_("fixed")
            attrs["texts"] = np.array(["b", "", "äöü"], dtype=h5py.string_dtype())
            attrs["fixed texts"] = np.array([b"b", b"", b"abc"])
            attrs["long"] = "x" * 60_000
            for name in ["text", "fixed", "texts", "fixed texts", "long"]:
                matrix.case(f"{owner}@{name}")
            attrs["compound"] = np.zeros(2, [("a", "i4")])
            attrs["empty"] = h5py.Empty("f4")
            for name in ["type", "text", "enum"]:
                attrs.create(f"committed {name}", ["a", "b"] if name == "text" else [1, 0], dtype=file[f"committed/{name}"])
                matrix.case(f"{owner}@committed {name}")
            tid = h5t.STD_I32LE.copy()
            tid.set_precision(12)
            tid.set_offset(7)
            odd = h5py.h5a.create(file[owner].id, b"odd", tid, h5s.create_simple((N,)))
            odd.write(values_of("i4"), h5t.NATIVE_INT32)
            matrix.case(f"{owner}@odd")


def add_links(matrix):
    file = matrix.file
    with h5py.File(matrix.folder / "other.h5", "a") as other:
        if "x" not in other:
            other["x"] = np.arange(3)
    group = file.create_group("links")
    group["target"] = values_of("i4")
    group["inner/deep"] = values_of("u2")
    group["hard"] = group["target"]
    group["soft"] = h5py.SoftLink("/links/target")
    group["relative"] = h5py.SoftLink("inner/./deep")
    group["of soft"] = h5py.SoftLink("/links/group/deep")
    group["group"] = h5py.SoftLink("inner")
    for name in ["hard", "soft", "relative", "of soft", "group/deep"]:
        matrix.case(f"links/{name}")
    group["dangling"] = h5py.SoftLink("/nowhere/x")
    group["circle"] = h5py.SoftLink("/links/circle")
    group["outside"] = h5py.ExternalLink("other.h5", "/x")
    group["inner/up"] = group
    matrix.case("links/dangling", "refused", "soft link")
    matrix.case("links/circle", "refused", "soft link")
    matrix.case("links/outside", "refused", "external link")
    matrix.case("links/inner/up", "refused", "circular link")
    matrix.case("links", "names")
    many = file.create_group("many", track_order=matrix.name == "v110.h5")
    n_names, long = 9000, "n" * 80
    many["first"] = values_of("i4")
    for n in range(n_names):
        many[f"{n:06} {long}"] = many["first"]
    matrix.case("many", "names")
    for n in [0, n_names // 2, n_names - 1]:
        matrix.case(f"many/{n:06} {long}")


def add_exotic_layouts(matrix):
    file = matrix.file
    raw = matrix.folder / f"{matrix.name}.bin"
    raw.write_bytes(values_of("<i4").tobytes())
    file.create_dataset("layouts/external", (N,), "<i4", external=[(str(raw), 0, h5py.h5f.UNLIMITED)])
    matrix.case("layouts/external", "refused", "external")
    file["layouts/source"] = values_of("i4")
    if matrix.name != "earliest.h5" or h5py.version.hdf5_version_tuple >= (1, 10):
        layout = h5py.VirtualLayout((N,), "i4")
        layout[:] = h5py.VirtualSource(file["layouts/source"])
        file.create_virtual_dataset("layouts/virtual", layout)
        matrix.case("layouts/virtual", "refused", "virtual")


def add_drawn(matrix, n_drawn, random):
    """Datasets with properties drawn at random."""
    for case in range(n_drawn):
        dtype = np.dtype(random.choice([*NUMBERS, "?", "S5", "O"]))
        shape = tuple(random.choice([0, 1, 5, 23, 100]) for _ in range(random.choice([1, 1, 2])))
        # Strings are read in lists.
        shape = shape[:1] if dtype.kind in "SO" else shape
        n = int(np.prod(shape))
        if dtype.kind == "O":
            dtype, data = h5py.string_dtype(), np.array(["wörd" * random.randint(0, 5) for _ in range(n)], object)
        elif dtype.kind == "S":
            data = np.array([b"w" * random.randint(0, 5) for _ in range(n)], dtype)
        else:
            wide = np.array([random.randint(0, 1 << 62) for _ in range(n)], "u8") >> random.randint(0, 62)
            with np.errstate(over="ignore"):
                data = wide.astype(dtype)
            data = data.astype("?") if dtype.kind == "b" else data
        data = data.reshape(shape)
        layout = random.choice(["compact", "contiguous", "chunked", "chunked", "chunked"])
        is_text = dtype.kind in "SO"
        dcpl = h5p.create(h5p.DATASET_CREATE)
        maxshape = None
        if layout == "compact" and n * dtype.itemsize < 60_000:
            dcpl.set_layout(h5d.COMPACT)
        elif layout == "chunked":
            dcpl.set_chunk(tuple(random.randint(1, max(1, len)) for len in shape))
            maxshape = random.choice([None, tuple(random.choice([len, None, len + 10]) for len in shape)])
            names = [name for name in FILTERS if not ((is_text or dtype.kind == "b") and ("bit" in name or "sz" in name or "scale" in name))]
            names = [name for name in names if is_text or fits(name, dtype)]
            name = random.choice([name for name in names if "float" not in name])
            for each in FILTERS[name]:
                each(dcpl)
        dcpl.set_obj_track_times(random.random() < 0.5)
        if random.random() < 0.3 and not is_text:
            dcpl.set_fill_value(np.array(random.randint(0, 100)).astype(dtype))
        rows = random.choice([None, random.randint(0, shape[0])])
        tid = h5t.py_create(dtype, logical=True)
        try:
            matrix.dataset(f"drawn/{case}", tid, data, h5t.py_create(dtype) if is_text else None, dcpl, maxshape=maxshape, rows=rows)
        except ValueError as error:
            # Some filters refuse some chunks.
            if "suitable" not in str(error) and "pixels per block" not in str(error):
                raise


def main():
    folder, n_drawn, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    cases = []
    for libver in LIBVERS:
        matrix = Matrix(folder, libver)
        draw = random.Random(f"{seed} {libver}")
        add_numbers(matrix)
        add_filters(matrix)
        add_plugin_filters(matrix)
        add_fills(matrix)
        add_integers(matrix, draw)
        add_floats(matrix)
        add_strings(matrix)
        add_other_types(matrix)
        add_attributes(matrix)
        add_links(matrix)
        add_exotic_layouts(matrix)
        add_drawn(matrix, n_drawn // len(LIBVERS), draw)
        cases += matrix.expected()
    json.dump(cases, sys.stdout)


if __name__ == "__main__":
    main()
