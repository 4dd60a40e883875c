"""Writes arrays with every codec that is read, and prints what is in them: `codecs.py FOLDER SEED N`.

Each array is FOLDER/0 and so on. Prints one JSON object by array: the type and the elements in C order.
"""

import json
import sys
import warnings
from pathlib import Path

import numcodecs
import numpy as np
import zarr
from zarr.codecs import numcodecs as v3

folder = Path(sys.argv[1])
rng = np.random.default_rng(int(sys.argv[2]))
# zarr-python warns about codecs and types that are no part of the specification.
warnings.simplefilter("ignore")

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U3", "U8", "S4", "S9"]


def pick(options):
    return options[rng.integers(len(options))]


def elements(dtype, shape):
    kind = np.dtype(dtype).kind
    if kind in "US":
        words = ["", "a", "gène", "B cell", "T"] if kind == "U" else ["", "a", "gene", "B cell", "T"]
        return np.array([pick(words) for _ in range(np.prod(shape))], dtype).reshape(shape)
    if kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -1000), min(info.max, 1000), shape).astype(dtype)


def checksum(module):
    where = pick([None, None, "start", "end"])
    kind = pick(["CRC32", "Adler32"])
    return getattr(module, kind)(**({} if where is None else {"location": where}))


def compressors(module):
    """One codec of bytes, or two."""
    gzip = [lambda: module.GZip(level=pick([-1, 1, 9])), lambda: module.Zlib(level=pick([-1, 6]))]
    others = [
        lambda: module.LZ4(acceleration=1),
        lambda: module.BZ2(level=1),
        lambda: module.Zstd(level=pick([-1, 3])),
        lambda: module.Blosc(cname=pick(["lz4", "zstd"]), clevel=5, shuffle=pick([-1, 0, 1, 2])),
        lambda: module.Shuffle(elementsize=1),
    ]
    checks = [lambda: checksum(module), lambda: module.Fletcher32(), lambda: checksum(module)]
    return pick([pick(gzip), pick(others), pick(others), pick(checks)])()


def filters(module, dtype):
    kind, size = dtype[0], np.dtype(dtype).itemsize
    if kind in "US" or rng.random() < 0.5:
        return []
    if kind == "f" and size > 2 and rng.random() < 0.5:
        return [module.BitRound(keepbits=7)]
    if kind == "f":
        return [module.Delta(dtype=f"<{dtype}")]
    wider = [f"<{kind}{n}" for n in (1, 2, 4, 8) if n >= size]
    return [module.Delta(**({"dtype": f"<{dtype}"} | ({"astype": pick(wider)} if rng.random() < 0.7 else {})))]


found = {}
for i in range(int(sys.argv[3])):
    version = 2 + i % 2
    dtype = pick(TYPES)
    shape = [int(n) for n in rng.integers(1, 9, 1 if dtype[0] in "US" else rng.integers(1, 4))]
    chunks = [int(rng.integers(1, n + 1)) for n in shape]
    values = elements(dtype, shape)
    settings = {"shape": shape, "chunks": chunks, "zarr_format": version}
    if version == 2:
        order = pick("<>") if dtype[0] == "U" else "<" if dtype[0] != "S" else "|"
        stored = order + dtype
        settings |= {"filters": filters(numcodecs, dtype) or None, "compressors": compressors(numcodecs)}
        settings["order"] = "C" if settings["filters"] else pick("CF")
    else:
        stored = dtype
        settings |= {"filters": filters(v3, dtype), "compressors": [compressors(v3) for _ in range(rng.integers(1, 3))]}
        if rng.random() < 0.3:
            settings["shards"] = [n * int(rng.integers(1, 3)) for n in chunks]
    array = zarr.create_array(folder / str(i), dtype=stored, **settings)
    try:
        array[...] = values.astype(stored)
        # What zarr-python reads: filters may change values.
        values = zarr.open_array(folder / str(i), mode="r")[...]
    except ValueError as error:
        # It knows no byte order for differences that are wider than bytes.
        assert "endianness" in str(error), error
        continue
    listed = [text.decode() if isinstance(text, bytes) else text for text in values.ravel().tolist()]
    found[str(i)] = {"type": dtype, "shape": shape, "elements": listed, "settings": repr(settings)}
print(json.dumps(found))
