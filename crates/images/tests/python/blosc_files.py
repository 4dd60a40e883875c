"""Writes files of blosc and pickle as htc does, and reads those of crate images.

    python blosc_files.py FOLDER

Writes FOLDER/theirs. Reads FOLDER/ours and stops at the first difference. A key of a dictionary, and
the name of a file of one array, says what is in it: numpy's type, the shuffle, the level and the
number of elements, of which element `i` is `element(i)` below.
"""

import itertools
import pickle
import sys
from pathlib import Path

import blosc
import numpy as np

CODECS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
TYPES = ["|u1", "<f2", "<f4", "<i8"]
SHUFFLES = [blosc.NOSHUFFLE, blosc.SHUFFLE, blosc.BITSHUFFLE]
LEVELS = [0, 1, 5, 9]
LENGTHS = [1, 7, 1000, 20_001]


def values(dtype: np.dtype, length: int) -> np.ndarray:
    idx = np.arange(length, dtype=np.uint64)
    element = idx // 3 + (idx * idx // 64 % 32) * 256 + (idx // 1000) * 2**33
    unsigned = np.dtype(f"u{dtype.itemsize}").newbyteorder(dtype.byteorder)
    return element.astype(unsigned).view(dtype)


def compress(array: np.ndarray, cname: str, shuffle: int, level: int) -> bytes:
    address = array.__array_interface__["data"][0]
    return blosc.compress_ptr(
        address, array.size, array.dtype.itemsize, clevel=level, shuffle=shuffle, cname=cname
    )


def decompress(compressed: bytes, shape: tuple, dtype: np.dtype) -> np.ndarray:
    array = np.empty(shape, dtype)
    blosc.decompress_ptr(compressed, array.__array_interface__["data"][0])
    return array


def write(folder: Path) -> None:
    for cname in CODECS:
        write_dictionary(folder / f"{cname}.blosc", cname)
    for threads in [1, 2]:
        # Several blocks; threads write them in any order.
        blosc.set_nthreads(threads)
        write_one(folder / f"<f2 1 9 530001 {threads}.blosc", pickle.DEFAULT_PROTOCOL)
    for protocol in [2, 3, 4, 5]:
        write_one(folder / f"<f4 1 5 1000 {protocol}.blosc", protocol)
        write_one(folder / f">f4 1 5 1000 {protocol}.blosc", protocol)


def write_dictionary(path: Path, cname: str) -> None:
    meta = {}
    buffers = []
    for described in itertools.product(TYPES, SHUFFLES, LEVELS, LENGTHS):
        name, shuffle, level, length = described
        array = values(np.dtype(name), length)
        buffers.append(compress(array, cname, shuffle, level))
        meta[" ".join(map(str, described))] = (array.shape, array.dtype, len(buffers[-1]))
    with path.open("wb") as file:
        pickle.dump(meta, file)
        for buffer in buffers:
            file.write(buffer)


def write_one(path: Path, protocol: int) -> None:
    name, shuffle, level, length, _ = path.stem.split(" ")
    array = values(np.dtype(name), int(length))
    with path.open("wb") as file:
        pickle.dump((array.shape, array.dtype), file, protocol=protocol)
        file.write(compress(array, "zstd", int(shuffle), int(level)))


def check(found: np.ndarray, described: str) -> None:
    name, _, _, length = described.split(" ")
    expected = values(np.dtype(name), int(length))
    assert found.dtype == expected.dtype, (described, found.dtype)
    assert found.tobytes() == expected.tobytes(), described


def read(path: Path) -> int:
    with path.open("rb") as file:
        meta = pickle.load(file)
        if type(meta) is tuple:
            check(decompress(file.read(), *meta), path.stem)
            return 1
        for described, (shape, dtype, size) in meta.items():
            check(decompress(file.read(size), shape, dtype), described)
        assert file.read() == b"", path
        return len(meta)


def read_cube(path: Path) -> None:
    """A Tivita cube of 4 rows, 6 columns and 5 channels, as htc reads it."""
    shape = np.fromfile(path, dtype=">i4", count=3)
    assert shape.tolist() == [6, 4, 5]
    cube = np.fromfile(path, dtype=">f4", offset=12).reshape(shape)
    cube = np.swapaxes(np.flip(cube, axis=1), 0, 1)
    expected = np.arange(4 * 6 * 5).reshape(4, 6, 5)
    assert np.array_equal(cube, expected), cube


def compare_norms(folder: Path) -> int:
    """Pixels of some channels, divided by a norm: equal to the bit."""
    paths = list(folder.glob("norm *.f32"))
    for path in paths:
        _, order, channels = path.stem.split(" ")
        idx = np.arange(60 * int(channels), dtype=np.uint64)
        pixels = ((idx * idx % 10007).astype(np.float32) / np.float32(7)).reshape(3, 20, -1)
        pixels[0, 0] = 0
        with np.errstate(invalid="ignore"):
            pixels = pixels / np.linalg.norm(pixels, ord=int(order), axis=2, keepdims=True)
        expected = np.nan_to_num(pixels, copy=False)
        assert expected.tobytes() == path.read_bytes(), path
    return len(paths)


def main() -> None:
    folder = Path(sys.argv[1])
    blosc.set_nthreads(1)
    (folder / "theirs").mkdir()
    write(folder / "theirs")
    ours = folder / "ours"
    n_arrays = sum(read(path) for path in ours.glob("*.blosc"))
    read_cube(ours / "cube.dat")
    print(n_arrays, compare_norms(ours))


if __name__ == "__main__":
    main()
