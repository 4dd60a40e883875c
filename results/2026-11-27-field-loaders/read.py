"""Feeds shuffled samples with one loader: read.py STORE LOADER STEPS BATCH EPOCHS [--box A:B,C:D] [--memory GiB].
With --cold the store is not in the page cache. With --link 30ms,90MB/s,1GB/s --server FIELDS the store is served by `fields serve-link` and read over that link.
Prints a row for each epoch: samples/s, MB/s delivered, seconds to the first batch, processor seconds, peak memory, and a sum
over the bits of all that was delivered (as 64-bit words), which is equal for loaders that deliver the same."""
import argparse
import os
import resource
import shlex
import subprocess
import sys
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("store"), parser.add_argument("loader"), parser.add_argument("steps")
parser.add_argument("batch", type=int), parser.add_argument("epochs", type=int)
parser.add_argument("--box"), parser.add_argument("--memory", type=float, default=0.0)
parser.add_argument("--workers", type=int, default=0), parser.add_argument("--cache", default=None)
parser.add_argument("--blocks", type=int, default=1), parser.add_argument("--array", default="t")
parser.add_argument("--link"), parser.add_argument("--server"), parser.add_argument("--cold", action="store_true")
args = parser.parse_args()
steps = [int(by) for by in args.steps.split(",")]
box = None if args.box is None else [slice(*map(int, part.split(":"))) for part in args.box.split(",")]

link = None
if args.cold:
    # The store's files leave the page cache of this machine; what its host keeps is not known.
    for folder, _, names in os.walk(args.store):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
if args.link and __name__ == "__main__":
    folder, name = os.path.split(args.store)
    server = subprocess.Popen([*shlex.split(args.server), "serve-link", "--link", args.link, "--name", "data", folder],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    link = server.stdout.readline().strip()
    args.store = f"s3://link/data/{name}"


def far_store():
    """The store over the link, by obstore: the fastest client of xarray and zarr here."""
    import obstore
    from zarr.storage import ObjectStore
    return ObjectStore(obstore.store.from_url(args.store, **OBSTORE), read_only=True)


OBSTORE = dict(endpoint=f"http://{link}", region="us-east-1", skip_signature=True, client_options={"allow_http": True}) if link else {}


def insitubatch():
    from insitubatch import InSituDataset, obstore_store, open_geometries, split_by_chunk
    store = obstore_store(args.store if link else "file://" + args.store, **OBSTORE)
    [whole] = open_geometries(store, variables=[args.array]).values()
    geometries = {f"t{by}": whole.shift(by) for by in steps}
    manifest = split_by_chunk(whole, fractions=(1.0, 0.0, 0.0))
    options = dict(batch_size=args.batch, block_chunks=16, seed=1)
    if args.memory:
        options["cache_budget_bytes"] = int(args.memory * 2**30)
    if args.cache:
        options |= dict(cache_dir=args.cache, persist=True)
    ds = InSituDataset(store, manifest, geometries, **options)
    for epoch in range(args.epochs):
        ds.set_epoch(epoch)
        def batches():
            for batch in ds.train if hasattr(ds, "train") else ds:
                arrays = getattr(batch, "arrays", None) or batch
                yield [np.asarray(arrays[name]) for name in geometries]
        yield batches()


def somafeed():
    from somafeed import FieldDataset, Variable
    import zarr
    chunk = zarr.open_group(far_store() if link else args.store, mode="r")[args.array].chunks[0]
    config = {"vfs.s3.scheme": "http", "vfs.s3.region": "us-east-1", "vfs.s3.no_sign_request": True,
              "vfs.s3.use_virtual_addressing": False, "vfs.s3.endpoint_override": link} if link else None
    # One sample a chunk needs no block; else as many chunks in a block as insitubatch has.
    rows = max(chunk, 1)
    io = args.batch * (args.blocks) if rows == 1 else -(-16 * rows // args.batch) * args.batch
    if rows > 1:
        io = -(-io // rows) * rows
    isel = {} if box is None else dict(zip(("latitude", "longitude"), box))
    variable = Variable(args.array, steps=steps, isel=isel)
    if chunk >= 1000:
        rows, io = 1, args.batch
    ds = FieldDataset(args.store, {args.array: variable}, args.batch, seed=1, shuffle_chunk_size=min(rows, io), io_batch_size=io,
                      coordinates=False, threads=2, config=config, memory=f"{args.memory}GiB" if args.memory else None)
    for epoch in range(args.epochs):
        def batches():
            it = iter(ds)
            for batch in it:
                yield [batch[args.array]]
            s = it.stats()
            print({k: s.get(k) for k in ("bytes_read", "bytes_decoded", "bytes_needed")}, file=sys.stderr)
        yield batches()


class Indices:
    def __init__(self, n, before, after):
        self.places = np.arange(before, n - after)

    def shuffled(self, epoch):
        return np.random.default_rng([1, epoch]).permutation(self.places)


def places(n):
    return Indices(n, -min([0, *steps]), max([0, *steps]))


def by_index(read, n):
    """A plain loop: for each batch, each sample by its index, in random order."""
    for epoch in range(args.epochs):
        order = places(n).shuffled(epoch)
        def batches():
            for at in range(0, len(order), args.batch):
                these = order[at:at + args.batch]
                yield [np.stack([read(int(i) + by) for i in these]) for by in steps]
        yield batches()


def xarray():
    import xarray as xr
    a = xr.open_zarr(far_store() if link else args.store, chunks=None, consolidated=False)[args.array]
    if box: a = a.isel(latitude=box[0], longitude=box[1])
    yield from by_index(lambda i: a.isel(time=i).values.astype("f4", copy=False), a.sizes["time"])


def zarr():
    import zarr
    a = zarr.open_group(far_store() if link else args.store, mode="r")[args.array]
    yield from by_index(lambda i: a[(i, *(box or ()))], a.shape[0])


def tensorstore():
    import tensorstore as ts
    driver = "zarr3" if "shards" in args.store else "zarr"
    kvstore = {"driver": "s3", "bucket": "link", "path": args.store.removeprefix("s3://link/") + f"/{args.array}/", "endpoint": f"http://{link}",
               "aws_region": "us-east-1", "aws_credentials": {"type": "anonymous"}} if link else {"driver": "file", "path": args.store + f"/{args.array}"}
    context = ts.Context({"data_copy_concurrency": {"limit": 2}, "cache_pool": {"total_bytes_limit": int(args.memory * 2**30)}})
    a = ts.open({"driver": driver, "kvstore": kvstore}, context=context).result()
    for epoch in range(args.epochs):
        order = places(a.shape[0]).shuffled(epoch)
        def batches():
            ahead = []
            def ask(at):
                these = order[at:at + args.batch]
                return [a[ts.d[0][(these + by).tolist()]][(slice(None), *(box or ()))].read() for by in steps]
            for at in range(0, len(order), args.batch):
                ahead.append(ask(at))
                if len(ahead) > 2:
                    yield [f.result() for f in ahead.pop(0)]
            for one in ahead:
                yield [f.result() for f in one]
        yield batches()


def by_workers(samples):
    """Batches of a DataLoader over samples by their index."""
    import torch.utils.data as tud
    of_workers = dict(multiprocessing_context="forkserver", persistent_workers=True) if args.workers else {}
    loader = tud.DataLoader(samples, batch_size=args.batch, shuffle=True, num_workers=args.workers, **of_workers)
    for epoch in range(args.epochs):
        yield ([batch.numpy()] for batch in loader)


def anemoi():
    from samples import OfAnemoi
    yield from by_workers(OfAnemoi(args.store, steps))


def xbatcher():
    import xarray as xr
    import xbatcher as xb
    a = xr.open_zarr(far_store() if link else args.store, chunks=None, consolidated=False)[args.array]
    if box: a = a.isel(latitude=box[0], longitude=box[1])
    window = max(steps) - min(steps) + 1
    dims = {"time": window, **{d: a.sizes[d] for d in a.dims[1:]}}
    gen = xb.BatchGenerator(a, input_dims=dims, input_overlap={"time": window - 1} if window > 1 else {}, preload_batch=False)
    from samples import OfXbatcher
    yield from by_workers(OfXbatcher(gen))


def worker_peaks():
    """The peak memory of the processes below this one, but the link's server, added up: MB."""
    of = {}
    for folder in os.listdir("/proc"):
        try:
            lines = dict(line.split(":", 1) for line in open(f"/proc/{folder}/status")) if folder.isdigit() else {}
        except OSError:
            continue
        if "VmHWM" in lines:
            of[int(folder)] = int(lines["PPid"]), int(lines["VmHWM"].split()[0]) / 1024
    below = lambda pid: sum(own + below(child) for child, (parent, own) in of.items() if parent == pid and not (args.link and child == server.pid))
    return below(os.getpid())


if __name__ == "__main__":
    for epoch, batches in enumerate(globals()[args.loader]()):
        t0, c0 = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        n = bits = 0
        n_bytes = 0
        first = None
        for arrays in batches:
            if box is not None and args.loader == "insitubatch":
                arrays = [array[(slice(None), *box)] for array in arrays]
            first = first or time.perf_counter() - t0
            n += len(arrays[0])
            for array in arrays:
                array = np.ascontiguousarray(array)
                n_bytes += array.nbytes
                bits = (bits + int(array.view("u8").sum())) % 2**64
        wall = time.perf_counter() - t0
        c1 = resource.getrusage(resource.RUSAGE_SELF)
        cpu = c1.ru_utime + c1.ru_stime - c0.ru_utime - c0.ru_stime
        print(f"{args.loader} epoch {epoch}: {n} samples, {n / wall:.1f}/s, {n_bytes / wall / 1e6:.0f} MB/s, first {first:.3f} s, "
              f"cpu {cpu:.2f} s, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB (+{worker_peaks():.0f} in workers), bits {bits}", flush=True)
