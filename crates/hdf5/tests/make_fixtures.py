"""Writes `data/*.h5` and what h5py reads from them, `data/expected.json`.

Run with an environment that has h5py, numpy and hdf5plugin: `python tests/make_fixtures.py`.
"""

import json
from pathlib import Path

import h5py
import numpy as np

DATA = Path(__file__).parent / "data"
# A filter that is not read, and an array that the test knows.
SKIPPED = ["chunked/lzf", "numbers/long"]


def write(path: Path, libver: str, user_block: int = 0) -> None:
    import hdf5plugin

    random = np.random.default_rng(7)
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
        file.attrs["text"] = "ä text"
        numbers = file.create_group("numbers")
        for kind in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", ">i4", ">f8", "?"]:
            dtype = np.dtype(kind)
            values = random.integers(0, 2 if kind == "?" else 100, 10).astype(dtype)
            name = ("big_" if kind.startswith(">") else "") + dtype.newbyteorder("=").name
            numbers.create_dataset(name, data=values)
        numbers.create_dataset("empty", data=np.zeros(0, np.int32))
        numbers.create_dataset("scalar", data=np.int32(5))
        # More than one of our chunks, and the last is not full.
        numbers.create_dataset("long", data=np.arange(70_001, dtype=np.uint16))
        matrix = random.integers(0, 5, (23, 7)).astype(np.float32)
        numbers.create_dataset("matrix", data=matrix)
        chunked = file.create_group("chunked")
        values = random.integers(0, 50, 1000).astype(np.int32)
        chunked.create_dataset("plain", data=values, chunks=(64,))
        chunked.create_dataset("one", data=values, chunks=(1000,), compression="gzip")
        chunked.create_dataset("gzip", data=values, chunks=(64,), compression="gzip")
        chunked.create_dataset("shuffled", data=values, chunks=(64,), compression="gzip", shuffle=True)
        chunked.create_dataset("checked", data=values, chunks=(64,), compression="gzip", fletcher32=True)
        chunked.create_dataset("growing", data=values, chunks=(64,), maxshape=(None,), compression="gzip")
        chunked.create_dataset("wide", data=matrix, chunks=(4, 3), maxshape=(None, None), compression="gzip")
        chunked.create_dataset("zstd", data=values, chunks=(64,), compression=hdf5plugin.Zstd())
        chunked.create_dataset("blosc", data=values, chunks=(64,), compression=hdf5plugin.Blosc())
        chunked.create_dataset("lzf", data=values, chunks=(64,), compression="lzf")
        # Bytes that deflate makes longer: libhdf5 skips the filter for them.
        noise = random.integers(0, 256, 1000).astype(np.uint8)
        noise[:500] = 0
        chunked.create_dataset("noise", data=noise, chunks=(100,), compression="gzip")
        part = chunked.create_dataset("part", shape=(1000,), dtype="i4", chunks=(64,), fillvalue=3)
        part[:100] = values[:100]
        text = file.create_group("text")
        words = [f"wörd {n}" * (n % 3) for n in range(40)]
        text.create_dataset("variable", data=words, dtype=h5py.string_dtype())
        text.create_dataset("fixed", data=np.array([b"a", b"bcd", b""], dtype="S3"))
        text.create_dataset("chunked", data=words, dtype=h5py.string_dtype(), chunks=(7,), compression="gzip")
        text.create_dataset("none", shape=(0,), dtype=h5py.string_dtype())
        attributes = file.create_group("attributes").attrs
        attributes["shape"] = np.array([3, 4])
        attributes["ordered"] = False
        attributes["names"] = np.array(["b", "a"], dtype=h5py.string_dtype())
        attributes["no names"] = np.zeros(0)
        attributes["ratio"] = 0.5
        attributes["fixed"] = np.bytes_("fixed")
        for n in range(20):
            attributes[f"many {n}"] = n
        file.create_dataset("table", data=np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]))
        old = file.create_group("old")
        categories = old.create_dataset("__categories/kind", data=["x", "y"], dtype=h5py.string_dtype())
        old.create_dataset("kind", data=np.array([0, 1, 1], np.int8)).attrs["categories"] = categories.ref


def write_small(path: Path, libver: str) -> None:
    """Each kind of header, in few bytes."""
    values = np.arange(12, dtype=np.int16)
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("fixed", data=values, chunks=(5,), compression="gzip", shuffle=True)
        file.create_dataset("growing", data=values, chunks=(5,), maxshape=(None,), compression="lzf")
        wide = values.reshape(3, 4)
        file.create_dataset("wide", data=wide, chunks=(2, 2), maxshape=(None, None), scaleoffset=0)
        file.create_dataset("one", data=values, chunks=(12,), compression="gzip", fletcher32=True)
        file.create_dataset("plain", data=values)
        words = ["a", "", "wörd"]
        file.create_dataset("words", data=words, dtype=h5py.string_dtype())
        file.create_dataset("texts", data=words, dtype=h5py.string_dtype(), chunks=(2,), compression="gzip")
        file.create_dataset("short", data=np.array([b"a", b"bcd"], "S3"))
        file["type"] = np.dtype(">f4")
        file.create_dataset("typed", data=values, dtype=file["type"])
        for n in range(10):
            file["plain"].attrs[f"{n}"] = "text" if n % 2 else n
            file[f"group/{n}"] = h5py.SoftLink("/plain")


def content(path: Path) -> dict:
    arrays = {}

    def visit(name: str, found: h5py.Group | h5py.Dataset) -> None:
        if isinstance(found, h5py.Dataset) and found.dtype.kind != "V" and name not in SKIPPED:
            is_text = found.dtype.kind in "OS"
            values = found.asstr()[...] if is_text else found[...]
            arrays[name] = values.tolist()

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return arrays


def main() -> None:
    DATA.mkdir(exist_ok=True)
    write(DATA / "kinds.h5", "earliest")
    write(DATA / "latest.h5", "latest")
    write(DATA / "behind.h5", "earliest", user_block=512)
    write_small(DATA / "small.h5", "earliest")
    write_small(DATA / "small_latest.h5", "latest")
    expected = content(DATA / "kinds.h5")
    assert expected == content(DATA / "latest.h5") == content(DATA / "behind.h5")
    (DATA / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
