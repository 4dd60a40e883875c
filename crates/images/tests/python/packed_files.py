"""Reads packed files of cubes as the documentation of images::files::packed describes them.

    python packed_files.py FOLDER

Stops at the first FILE.cube whose values are not those of FILE.raw; prints the number of files.
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from numcodecs.zstd import Zstd

TILE = 64
PLAIN = 0


def low_bits(part: bytes, n_bits: int) -> np.ndarray:
    values = np.zeros(TILE, np.int64)
    for width in [8, 4, 2, 1]:
        if n_bits & width:
            stored, part = np.frombuffer(part[: 8 * width], np.uint8), part[8 * width :]
            bits = [stored >> (width * at) & ((1 << width) - 1) for at in range(8 // width)]
            values = values << width | np.concatenate(bits)
    return values


def section(block: bytes, n_pixels: int, n_channels: int) -> tuple[np.ndarray, bytes]:
    reference, n_patches, n_high = struct.unpack_from("<hII", block)
    channel = np.dtype([("weights", "<i2", 6), ("bias", "<i2"), ("low_bits", "u1")])
    channels = np.frombuffer(block, channel, n_channels, 10)
    at = 10 + channels.nbytes
    patches = np.frombuffer(block, [("index", "<u4"), ("added", "<i2")], n_patches, at)
    at += patches.nbytes
    high = np.frombuffer(Zstd().decode(block[at : at + n_high]), np.int8).astype(np.int64)
    at += n_high
    n_tiles = -(-n_pixels // TILE)
    residuals = np.ascontiguousarray(high.reshape(n_channels, n_tiles, TILE).transpose(1, 0, 2))
    for tile in residuals:
        for values, n_bits in zip(tile, channels["low_bits"].tolist()):
            values[:] = values << n_bits | low_bits(block[at : at + 8 * n_bits], n_bits)
            at += 8 * n_bits
    residuals.reshape(-1)[patches["index"]] += patches["added"]
    values = np.zeros((n_channels + 6, n_tiles, TILE), np.int64)
    for c, (weights, bias, _) in enumerate(channels):
        before = values[c : c + 6][::-1]
        total = np.tensordot(weights.astype(np.int64), before, 1) + (int(bias) << 12) + 2048
        predicted = np.clip(total.astype(np.int32) >> 12, -(2**15), 2**15 - 1)
        values[c + 6] = (residuals[:, c] + predicted).astype(np.int16)
    bits = (values[6:] + reference).astype(np.int16)
    bits = np.where(bits < 0, bits ^ 0x7FFF, bits).reshape(n_channels, -1)
    return bits.T[:n_pixels].astype(np.int16).view(np.uint16), block[at:]


def values(block: bytes, dtype: np.dtype, n_pixels: int, n_channels: int) -> np.ndarray:
    if block[0] == PLAIN:
        return np.frombuffer(block, dtype, n_pixels * n_channels, 1)
    upper, rest = section(block[1:], n_pixels, n_channels)
    if dtype.itemsize == 2:
        assert not rest
        return upper.ravel().view(dtype)
    if rest[0]:
        low, high = np.frombuffer(Zstd().decode(rest[1:]), np.uint8).reshape(2, -1)
        lower = low.astype(np.uint32) | high.astype(np.uint32) << 8
    else:
        lower = np.frombuffer(rest, "<u2", upper.size, 1).astype(np.uint32)
    return (upper.ravel().astype(np.uint32) << 16 | lower).view(dtype)


def read(file: bytes) -> np.ndarray:
    assert file[:8] == b"\x89PKCB\r\n\x1a"
    version, element, n_dimensions, n_channels, block_pixels = struct.unpack_from("<HBBII", file, 8)
    assert version == 1
    dtype = np.dtype({1: "<f2", 2: "<f4"}[element])
    shape = struct.unpack_from(f"<{n_dimensions}Q", file, 20)
    n_pixels = int(np.prod(shape)) // n_channels
    at = 20 + 8 * n_dimensions
    index = np.frombuffer(file, "<u4", 2 * -(-n_pixels // block_pixels), at).reshape(-1, 2)
    at += index.nbytes
    assert struct.unpack_from("<I", file, at)[0] == zlib.crc32(file[:at])
    at += 4
    blocks = []
    for first, (length, checksum) in enumerate(index.tolist()):
        block = file[at : at + length]
        assert zlib.crc32(block) == checksum
        pixels = min(block_pixels, n_pixels - first * block_pixels)
        blocks.append(values(block, dtype, pixels, n_channels))
        at += length
    assert at == len(file)
    return np.concatenate(blocks).reshape(shape)


def main() -> None:
    files = sorted(Path(sys.argv[1]).glob("*.cube"))
    for path in files:
        assert read(path.read_bytes()).tobytes() == path.with_suffix(".raw").read_bytes(), path
    print(len(files))


if __name__ == "__main__":
    main()
