"""Copies the store to chunks of one level with a peer: peers.py SOURCE TARGET xarray|dask|zarr SHARD. Prints seconds, MB/s of values and the
process's peak memory."""
import resource
import sys
import time

import xarray as xr
import zarr
from zarr.codecs import BloscCodec

source, target, peer, shard = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
start = time.perf_counter()
codec = BloscCodec(typesize=4, cname="lz4", clevel=5, shuffle="shuffle")
chunks, shards = (1, 1, 721, 1440), (shard, 1, 721, 1440) if shard > 1 else None
if peer == "zarr":
    old, new = zarr.open_group(source, mode="r"), zarr.open_group(target, mode="w", zarr_format=3)
    for name, array in old.arrays():
        names = array.attrs["_ARRAY_DIMENSIONS"]
        attributes = {key: value for key, value in array.attrs.items() if key != "_ARRAY_DIMENSIONS"}
        if name != "t":
            new.create_array(name, shape=array.shape, dtype=array.dtype, dimension_names=names, attributes=attributes)[:] = array[:]
            continue
        copy = new.create_array("t", shape=array.shape, dtype=array.dtype, chunks=chunks, shards=shards, compressors=codec,
                                dimension_names=names, attributes=attributes)
        for step in range(0, array.shape[0], shard):
            copy[step:step + shard] = array[step:step + shard]
else:
    ds = xr.open_zarr(source, consolidated=False, chunks={"time": shard, "level": 1} if peer == "dask" else None)
    for one in ds.variables.values():
        one.encoding.clear()
    encoding = {"t": {"chunks": chunks, "compressors": codec} | ({"shards": shards} if shards else {})}
    ds.to_zarr(target, mode="w", zarr_format=3, consolidated=False, encoding=encoding)
wall = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{peer}: {wall:.1f} s, {16 * 37 * 721 * 1440 * 4 / wall / 1e6:.0f} MB/s, peak {peak:.0f} MB", flush=True)
