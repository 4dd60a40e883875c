"""The least that a row needs, without a loader: floor.py STORE STEPS BATCH EPOCHS [keep] [ARRAY]. Two threads read and decode chunks by numcodecs
and fill batches that are used again. A chunk of one step is decoded straight into its batch or, with `keep`, once into memory that stays. Chunks
of several steps are decoded 16 at a time into memory that is used again, as loaders that shuffle blocks do. Samples are copied from there. With
--cold the store is not in the page cache, with --link and --server it is read over that link (see read.py): 8 or 32 further threads then fetch the
chunks of up to 4 batches ahead. Prints samples/s of each epoch and the sum of bits, as read.py does."""
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import zarr
from numcodecs import blosc

arguments, is_cold, link, server = sys.argv[1:], "--cold" in sys.argv, None, None
if is_cold:
    arguments.remove("--cold")
if "--link" in arguments:
    at = arguments.index("--link")
    link, server = arguments[at + 1], arguments[at + 3]
    del arguments[at:at + 4]
store, steps, batch, epochs = arguments[0], [int(by) for by in arguments[1].split(",")], int(arguments[2]), int(arguments[3])
keep = "keep" in arguments[4:]
name = ([one for one in arguments[4:] if one != "keep"] or ["t"])[0]
array = zarr.open_group(store, mode="r")[name]
(n, *shape), rows = array.shape, array.chunks[0]
assert list(array.chunks[1:]) == shape, "chunks hold whole steps"
blosc.set_nthreads(1)
blosc.use_threads = False
kept = {}
in_block = [np.empty((rows, *shape), "f4") for _ in range(16 if rows > 1 else 0)]


def key(chunk):
    return ".".join([str(chunk), *"0" * len(shape)])


def fetch(chunk):
    """The bytes of a chunk as stored."""
    if link is None:
        return (Path(store) / name / key(chunk)).read_bytes()
    return obstore.get(far, f"{Path(store).name}/{name}/{key(chunk)}").bytes()


def decode(chunk, into):
    fetched = coming.pop(chunk, None)
    blosc.decompress(fetched.result() if fetched else fetch(chunk), into)


coming = {}
if is_cold:
    for file in Path(store, name).iterdir():
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
if link is not None:
    import obstore
    folder = str(Path(store).parent)
    running = subprocess.Popen([*shlex.split(server), "serve-link", "--link", link, "--name", "data", folder],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    far = obstore.store.from_url("s3://link/data", endpoint=f"http://{running.stdout.readline().strip()}", region="us-east-1",
                                 skip_signature=True, client_options={"allow_http": True})
fetching = ThreadPoolExecutor(32 if link else 8) if link or is_cold else None


def put(step, into):
    if rows > 1:
        return np.copyto(into, in_block[places[step // rows]][step % rows])
    if not keep:
        return decode(step, into)
    if step not in kept:
        field = np.empty(shape, "f4")
        decode(step, field)
        kept[step] = field
    np.copyto(into, kept[step])


batches = [np.empty((batch, len(steps), *shape), "f4") for _ in range(3)]
places = {}
with ThreadPoolExecutor(2) as threads:
    def in_order(epoch):
        """Samples, each block's after its chunks are there."""
        rng = np.random.default_rng([1, epoch])
        if rows == 1:
            yield rng.permutation(np.arange(-min(0, *steps), n - max(0, *steps)) if len(steps) > 1 else np.arange(n))
            return
        chunks = rng.permutation(-(-n // rows))
        for start in range(0, len(chunks), 16):
            block = chunks[start:start + 16]
            places.update({chunk: place for place, chunk in enumerate(block)})
            list(threads.map(decode, block, in_block))
            yield rng.permutation(np.concatenate([np.arange(chunk * rows, min(n, (chunk + 1) * rows)) for chunk in block]))

    for epoch in range(epochs):
        start, bits, n_samples = time.perf_counter(), 0, 0
        for order in in_order(epoch):
            def fill(at):
                """Two threads fill a batch by halves of its samples."""
                into, these = batches[at // batch % 3], order[at:at + batch]
                if fetching is not None:
                    first = at and at + 4 * batch
                    coming.update({chunk: fetching.submit(fetch, chunk) for chunk in order[first:at + 5 * batch]})

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
            n_samples += len(order)
        wall = time.perf_counter() - start
        print(f"floor epoch {epoch}: {n_samples} samples, {n_samples / wall:.1f}/s, bits {bits}", flush=True)
