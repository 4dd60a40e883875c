"""Feeds shuffled cells with one loader: read.py FOLDER LOADER WHAT [--format h5mu] [--form torch_csr] [--batch 1024] [--io 4096]
[--epochs 2] [--batches N] [--check]. WHAT are modalities, like rna+prot. Prints one JSON row for the last epoch: seconds, cells, seconds to
its first batch, processor seconds, seconds to open, and peak memory (VmHWM of this process, which did nothing else). With --check nothing is
timed: each row of each modality is compared with what was written for that cell (truth.npz), and each cell must come once.

Loaders: somafeed; two (two somafeed loaders with one seed); memory (these modalities in memory, rows by a permutation); annloaders (one
AnnLoader for each modality in memory, over one permutation); backed (MuData with backed X, rows of a permutation, sorted in each batch);
homeobox (its MultimodalHoxDataset, map-style, with its make_loader)."""
import argparse
import json
import resource
import sys
import time
import warnings
from pathlib import Path

start = time.perf_counter()
import numpy as np  # noqa: E402
import torch  # noqa: E402

from cells import ATAC, PROT, RNA, numbers, peak_mb  # noqa: E402

warnings.filterwarnings("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path), parser.add_argument("loader"), parser.add_argument("what")
parser.add_argument("--format", default="h5mu", choices=["h5mu", "zarr", "10x"])
parser.add_argument("--form", default="torch_csr", choices=["torch_csr", "torch", "numpy"])
parser.add_argument("--batch", type=int, default=1024), parser.add_argument("--io", type=int, default=4096)
parser.add_argument("--chunk", type=int, default=64), parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batches", type=int, help="no more than these of an epoch"), parser.add_argument("--check", action="store_true")
args = parser.parse_args()
WHAT = args.what.split("+")
TYPES = {RNA: "Gene Expression", PROT: "Antibody Capture"}


def dense_form():
    return args.form if args.form != "torch_csr" else "torch"


def ours(what):
    from somafeed import ExperimentDataset, Modality
    path = args.folder / {"h5mu": "cells.h5mu", "zarr": "cells.zarr", "10x": "cells.h5"}[args.format]
    options = {}

    def form(name):
        return dense_form() if name == PROT else args.form

    def beside(name):
        return Modality(form=form(name), feature_type=TYPES[name] if args.format == "10x" else None)

    if args.format == "10x":
        options["feature_type"] = TYPES[what[0]]
    else:
        options["measurement_name"] = what[0]
    return ExperimentDataset(
        uri=str(path), modalities={name: beside(name) for name in what[1:]}, form=form(what[0]), batch_size=args.batch,
        io_batch_size=args.io, shuffle_chunk_size=args.chunk, seed=1, **options)


def our_epochs(dataset, what):
    for epoch in range(args.epochs):
        dataset.set_epoch(epoch)

        def batches():
            for batch in dataset:
                yield batch[1]["soma_joinid"].to_numpy(), [batch[0], *(batch[2][name] for name in what[1:])]
        yield batches()


def somafeed():
    yield from our_epochs(ours(WHAT), WHAT)


def two():
    epochs = [our_epochs(ours([name]), [name]) for name in WHAT]
    for parts in zip(*epochs):
        def batches():
            for batch in zip(*parts):
                assert all(np.array_equal(batch[0][0], part[0]) for part in batch)
                yield batch[0][0], [part[1][0] for part in batch]
        yield batches()


def modalities_in_memory():
    """Only those that are asked for."""
    import mudata
    return [mudata.read(f"{args.folder}/cells.h5mu/{name}") for name in WHAT]


def orders(n_cells):
    for epoch in range(args.epochs):
        yield np.random.default_rng([1, epoch]).permutation(n_cells)


def as_form(rows):
    """As somafeed delivers it: f4, CSR as torch's or dense."""
    if hasattr(rows, "indptr") and args.form == "torch_csr":
        parts = (torch.from_numpy(part) for part in (rows.indptr, rows.indices, rows.data))
        return torch.sparse_csr_tensor(*parts, size=rows.shape)
    rows = rows.toarray() if hasattr(rows, "indptr") else np.asarray(rows)
    return rows if args.form == "numpy" else torch.from_numpy(rows)


def memory():
    parts = [adata.X for adata in modalities_in_memory()]
    for order in orders(parts[0].shape[0]):
        def batches():
            for at in range(0, len(order), args.batch):
                rows = order[at:at + args.batch]
                yield rows, [as_form(X[rows]) for X in parts]
        yield batches()


def backed():
    import mudata
    mdata = mudata.read_h5mu(args.folder / "cells.h5mu", backed="r")
    for order in orders(mdata.n_obs):
        def batches():
            for at in range(0, len(order), args.batch):
                # HDF5 wants ascending rows.
                rows = np.sort(order[at:at + args.batch])
                yield rows, [as_form(mdata[name].X[rows]) for name in WHAT]
        yield batches()


def annloaders():
    from anndata.experimental import AnnLoader
    adatas = modalities_in_memory()
    for order in orders(adatas[0].n_obs):
        def batches():
            loaders = [AnnLoader(adata, batch_size=args.batch, sampler=order) for adata in adatas]
            for at, parts in enumerate(zip(*loaders)):
                yield order[at * args.batch:(at + 1) * args.batch], [part.X for part in parts]
        yield batches()


def homeobox():
    import homeobox as hox
    from homeobox.dataloader import make_loader
    fields = {RNA: "gene_expression", PROT: "protein_abundance"}
    atlas = hox.RaggedAtlas.checkout_latest(str(args.folder / "homeobox"))
    columns = ["number"]
    dataset = atlas.query().to_multimodal_dataset([fields[name] for name in WHAT], metadata_columns=columns)
    torch.manual_seed(1)
    loader = make_loader(dataset, batch_size=args.batch, shuffle=True)

    def rows(batch, name):
        one = batch.modalities[fields[name]]
        counts = one.layers["counts"]
        if name == PROT:
            return torch.from_numpy(counts.astype(np.float32))
        parts = (torch.from_numpy(part) for part in (one.offsets, one.indices.astype(np.int64), counts.astype(np.float32)))
        return torch.sparse_csr_tensor(*parts, size=(len(one), one.n_features))

    for _ in range(args.epochs):
        def batches():
            for batch in loader:
                yield batch.metadata["number"].to_numpy(), [rows(batch, name) for name in WHAT]
        yield batches()


def check(epochs):
    """Counts the cells that are wrong, and those that do not come once."""
    with np.load(args.folder / "truth.npz") as truth:
        truth = [truth[name] for name in WHAT]
    wrong = 0
    for batches in epochs:
        times = np.zeros(len(truth[0]), np.int64)
        for n_batches, (cells, parts) in enumerate(batches):
            if n_batches == args.batches:
                break
            np.add.at(times, cells, 1)
            for part, written in zip(parts, truth):
                wrong += int((numbers(part) != written[cells]).sum())
        never = int((times == 0).sum()) if args.batches is None else 0
        if wrong or never or times.max() > 1:
            sys.exit(f"{args.loader} {args.what}: {wrong} wrong rows, {never} cells never, {int((times > 1).sum())} more than once")
    return {"equal": True}


def timed(epochs):
    opened = None
    for batches in epochs:
        opened = opened or time.perf_counter() - start
        before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        first, n_cells = None, 0
        for n_batches, (cells, _) in enumerate(batches):
            if n_batches == args.batches:
                break
            first = first or time.perf_counter() - before
            n_cells += len(cells)
        secs, after = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {"secs": round(secs, 3), "cells": n_cells, "first_secs": round(first, 3), "cpu_secs": round(cpu, 2), "open_secs": round(opened, 2)}


settings = {key: str(value) if isinstance(value, Path) else value for key, value in vars(args).items() if key not in ("folder", "check")}
imported = peak_mb()
result = (check if args.check else timed)(globals()[args.loader]())
print(json.dumps({"part": "modalities", **settings, **result, "peak_mb": round(peak_mb()), "imports_mb": round(imported)}), flush=True)
