"""Epochs of CSR and packed batches from the processor's memory: read.py csr|packed [COPY]"""

import sys
import time
from pathlib import Path

import numpy as np
from somafeed import ExperimentDataset
from somafeed import _somafeed as native

form, uri = sys.argv[1], (sys.argv[2:] or ["x-relaid"])[0]
sizes = {"batch_size": 1024, "chunk_rows": 64, "chunks_per_block": 1024, "seed": 1}
loader = native.Loader(ExperimentDataset(uri=uri).dataset, form=form, **sizes)
for number in range(4):
    epoch, begin, cpu = loader.epoch(number), time.perf_counter(), time.process_time()
    n_bytes = n_rows = total = 0
    for batch in epoch:
        parts = batch.csr()
        n_rows += batch.n_rows
        n_bytes += sum(part.nbytes for part in parts)
        types = [str(part.dtype) for part in parts[1:]]
        if number == 0:
            total += sum(int(part.sum(dtype=np.float64)) for part in parts[1:])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    of_batches = epoch.stats()["batch_secs"]
    if number == 0:
        print(form, types, "sum", total)
    else:
        print(f"{form}: {n_rows / seconds:,.0f} cells/s, {n_bytes / 1e9:.2f} GB, cpu {cpu:.2f} s, "
              f"batches {of_batches:.2f} s")
print(form, next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
