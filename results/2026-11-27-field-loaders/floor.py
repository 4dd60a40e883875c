"""The least that a row needs, without a loader: floor.py STORE STEPS BATCH EPOCHS. Two threads share the samples of each batch, in the order of
a permutation: a chunk is read and decoded when it is first needed, by numcodecs into memory of its own that stays; each sample is copied from
there into a batch that is used again. A chunk that is needed once is decoded straight into the batch. Prints samples/s of each epoch, as read.py
does."""
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numcodecs import blosc

store, steps, batch, epochs = sys.argv[1], [int(by) for by in sys.argv[2].split(",")], int(sys.argv[3]), int(sys.argv[4])
import zarr

array = zarr.open_group(store, mode="r")["t"]
n, lat, lon = array.shape
blosc.set_nthreads(1)
blosc.use_threads = False
kept = {}


def decode(step, into):
    blosc.decompress((Path(store) / "t" / f"{step}.0.0").read_bytes(), into)


def put(step, into):
    if len(steps) == 1 and epochs == 1:
        return decode(step, into)
    if step not in kept:
        field = np.empty((lat, lon), "f4")
        decode(step, field)
        kept[step] = field
    np.copyto(into, kept[step])


batches = [np.empty((batch, len(steps), lat, lon), "f4") for _ in range(3)]
with ThreadPoolExecutor(2) as threads:
    for epoch in range(epochs):
        order = np.random.default_rng([1, epoch]).permutation(np.arange(-min(0, *steps), n - max(0, *steps)) if len(steps) > 1 else np.arange(n))
        start, bits = time.perf_counter(), 0

        def fill(at):
            """Two threads fill a batch by halves of its samples."""
            into, these = batches[at // batch % 3], order[at:at + batch]

            def half(which):
                for place in range(which, len(these), 2):
                    for by, step in enumerate(steps):
                        put(these[place] + step, into[place, by])
            return into[:len(these)], [threads.submit(half, which) for which in range(2)]

        ahead = fill(0)
        for at in range(0, len(order), batch):
            (into, halves), ahead = ahead, None
            if len(order) > at + batch:
                ahead = fill(at + batch)
            for one in halves:
                one.result()
            bits = (bits + int(into.view("u8").sum())) % 2**64
        wall = time.perf_counter() - start
        print(f"floor epoch {epoch}: {len(order)} samples, {len(order) / wall:.1f}/s, bits {bits}", flush=True)
