"""Reads one level of each step with one reader: read.py STORE READER LEVEL STEPS; prints levels/s, processor seconds, peak memory and a sum."""
import resource
import sys
import time

import numpy as np

path, reader, level = sys.argv[1], sys.argv[2], int(sys.argv[3])
n = int(sys.argv[4]); sums = []
t0 = time.perf_counter()
if reader == "zarr":
    import zarr
    a = zarr.open_group(path, mode="r")["temperature"]; t0 = time.perf_counter(); c0=time.process_time()
    for t in range(n): sums.append(a[t, level].astype("f8").sum())
elif reader == "xarray":
    import xarray as xr
    a = xr.open_zarr(path, chunks=None, consolidated=False)["temperature"]; t0 = time.perf_counter(); c0=time.process_time()
    for t in range(n): sums.append(a.isel(time=t, level=level).values.astype("f8").sum())
elif reader == "tensorstore":
    import tensorstore as ts
    a = ts.open({"driver": "zarr", "kvstore": {"driver": "file", "path": path + "/temperature"}}, context=ts.Context({"data_copy_concurrency": {"limit": 2}})).result(); t0 = time.perf_counter(); c0=time.process_time()
    for t in range(n): sums.append(np.asarray(a[t, level].read().result()).astype("f8").sum())
else:
    from somafeed import FieldDataset, Variable
    ds = FieldDataset(path, {"t": Variable("temperature", isel={"level": level})}, batch_size=1, shuffle=False, threads=2, coordinates=False)
    t0 = time.perf_counter(); c0=time.process_time()
    it = iter(ds)
    for b in it: sums.append(b["t"].astype("f8").sum())
    st = it.stats()
    print({k: st.get(k) for k in ("bytes_read", "bytes_decoded", "bytes_needed")} if isinstance(st, dict) else st, file=sys.stderr)
dt = time.perf_counter() - t0
print(f"{reader}: {n/dt:.1f} levels/s, wall {dt:.3f}, cpu {time.process_time()-c0:.3f}, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024:.0f} MB, sum {sum(sums):.3f}")
