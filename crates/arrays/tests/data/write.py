"""Writes the stores beside this script with zarr-python: `python write.py`.

Element i of every array, counted in C order, is i (but for the chunk that is never written).
"""

import shutil
from pathlib import Path

import numpy as np
import zarr
from numcodecs import Blosc, Zlib

here = Path(__file__).parent
shape = (7, 3, 5)
values = np.arange(np.prod(shape)).reshape(shape)


def create(name, dtype, **settings):
    shutil.rmtree(here / name, ignore_errors=True)
    array = zarr.create_array(here / name, shape=shape, dtype=dtype, **settings)
    array[...] = values.astype(dtype)
    return array


create("v2-zlib-big-endian", ">f4", chunks=(2, 3, 5), zarr_format=2, compressors=Zlib(1))
create("v2-blosc", "<i2", chunks=(3, 2, 5), zarr_format=2, compressors=Blosc("lz4", 5, Blosc.BITSHUFFLE))
create("v2-none-fortran", "<f8", chunks=(4, 2, 5), zarr_format=2, compressors=None, order="F")
create("v3-zstd", "float16", chunks=(1, 3, 5), compressors=zarr.codecs.ZstdCodec(level=3, checksum=True))
create("v3-blosc-sharded", "float32", chunks=(1, 3, 1), shards=(4, 3, 5))
create("v3-gzip-crc", "uint8", chunks=(7, 1, 2), compressors=[zarr.codecs.GzipCodec(), zarr.codecs.Crc32cCodec()])

# Rows 4 and 5 are in a chunk that is not stored.
shutil.rmtree(here / "v3-missing-chunk", ignore_errors=True)
holes = zarr.create_array(
    here / "v3-missing-chunk", shape=shape, dtype="float32", chunks=(2, 3, 5), fill_value=-1.5
)
holes[:4] = values[:4]
holes[6:] = values[6:]
