"""What `run.py` measures in processes of their own: `python3 measured.py FUNCTION ARGUMENTS`.

Figures are printed as JSON objects, a line each.
"""

import json
import multiprocessing
import sys
import time
from itertools import islice
from pathlib import Path


def report(**values) -> None:
    print(json.dumps(values), flush=True)


def import_package() -> None:
    import somafeed

    report(version=somafeed.__version__)


# Feed


class Step:
    """Work on a device that takes about the same time for each batch: matrix products."""

    def __init__(self, milliseconds: float, device: str):
        """Finds the number of products that takes this time."""
        import torch

        self.wait = torch.cuda.synchronize if device != "cpu" else lambda: None
        n_rows = 1_024 if device != "cpu" else 128
        self.matrix, self.n_products = torch.randn(n_rows, n_rows, device=device), 10
        # The first products are slow: the device chooses its kernels.
        self.timed(10)
        seconds_of_product = self.timed(20) / self.n_products
        self.n_products = round(milliseconds / 1e3 / seconds_of_product)
        self.seconds = self.timed(40) if self.n_products else 0.0

    def timed(self, n_steps: int) -> float:
        """Mean time of a step."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(n_steps):
            self.queue()
        self.wait()
        return (time.perf_counter() - begin) / n_steps

    def queue(self) -> None:
        for _ in range(self.n_products):
            self.matrix @ self.matrix


def feed(batches, step_ms: float, device: str, seconds: str, **row) -> None:
    """Times a step for each dense batch of the epochs `batches(epoch)`, and reports the row.

    It ends with the first epoch that reaches the time, or after twice the time.
    """
    step, least = Step(step_ms, device), float(seconds)
    n_cells = n_batches = n_epochs = 0
    first_seconds = after_first = 0.0
    begin = time.perf_counter()
    while n_cells == 0 or time.perf_counter() - begin < least:
        asked, first = time.perf_counter(), None
        for x in batches(n_epochs):
            first = first or time.perf_counter()
            n_cells += len(x)
            n_batches += 1
            step.queue()
            if time.perf_counter() - begin > 2 * least:
                break
        step.wait()
        n_epochs += 1
        first_seconds += first - asked
        after_first += time.perf_counter() - first
    elapsed = time.perf_counter() - begin
    report(
        **row, step_ms=step_ms, device=device, seconds=elapsed, epochs=n_epochs, cells=n_cells,
        batches=n_batches, cells_per_second=n_cells / elapsed, batch_rows=1024,
        first_batch_seconds=first_seconds / n_epochs, step_seconds=step.seconds,
        au=n_batches * step.seconds / elapsed,
        au_after_first=n_batches * step.seconds / after_first,
    )


def feed_by_package(uri: str, device: str, n_genes: str, seconds: str) -> None:
    """Batches of the Python package with `device=`: dense; CSR, made dense by the user; f16."""
    import numpy as np
    from somafeed import ExperimentDataset

    for way, form in {
        "package, dense on the device": "torch",
        "package, CSR, then to_dense": "torch_csr",
        "package, dense f16": "torch_f16",
    }.items():
        cells = ExperimentDataset(
            uri=uri, var_joinids=np.arange(int(n_genes)), form=form, device=device, seed=1,
            obs_form="codes", encoders=[], obs_column_names=["soma_joinid"], batch_size=1024,
        )

        def batches(epoch, cells=cells, is_csr=form == "torch_csr"):
            cells.set_epoch(epoch)
            for x, _ in cells:
                yield x.to_dense() if is_csr else x

        # Of the epochs before, like those of `feed_device`, no time is taken.
        n_cells = sum(len(x) for x in batches(0))
        assert n_cells == cells.n_samples
        for step_ms in (0.0, 5.0):
            feed(batches, step_ms, device, seconds, way=way, genes=int(n_genes))


def feed_by_annbatch(store: str, device: str, seconds: str) -> None:
    """annbatch's sparse batches from plain Zarr, decoded by zarrs, preloaded to the GPU if there is
    one, and made dense there: with the blocks of ours, and with its own."""
    import anndata
    import numpy as np
    import zarr
    from annbatch import Loader

    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    group = zarr.open_group(store, mode="r")
    obs = anndata.io.read_elem(group["obs"])
    for chunk_rows, n_chunks in ((64, 1024), (512, 32)):
        loader = Loader(
            chunk_size=chunk_rows, preload_nchunks=n_chunks, batch_size=1024, shuffle=True,
            preload_to_gpu=device != "cpu", to="torch", rng=np.random.default_rng(0),
        ).add_adata(anndata.AnnData(X=anndata.io.sparse_dataset(group["X"]), obs=obs))

        def batches(epoch, loader=loader):
            for batch in loader:
                yield batch["X"].to(device).to_dense()

        for step_ms in (0.0, 5.0):
            feed(
                batches, step_ms, device, seconds, way=f"annbatch, {chunk_rows} x {n_chunks}",
                genes=loader.n_var,
            )


def feed_by_data_loader(
    store: str, device: str, n_genes: str, n_workers: str, seconds: str
) -> None:
    """Dense batches from a DataLoader with workers and pinned memory, from plain Zarr.

    A batch is 16 random runs of 64 rows, shuffled; a worker decodes their chunks by pyarrow's zstd.
    """
    import numpy as np
    import torch
    from plain_zarr import read_numbers

    matrix, n_columns, on_gpu = Path(store) / "X", int(n_genes), device != "cpu"
    n_cells = json.loads((matrix / "zarr.json").read_text())["attributes"]["shape"][0]
    indptr = read_numbers(matrix / "indptr", "int64", 0, n_cells + 1)

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return n_cells // 64

        def __getitems__(self, runs):
            dense = np.zeros((64 * len(runs), n_columns), np.float32)
            for place, run in enumerate(runs):
                offsets = indptr[64 * run : 64 * run + 65]
                columns = read_numbers(matrix / "indices", "int32", offsets[0], offsets[-1])
                values = read_numbers(matrix / "data", "float32", offsets[0], offsets[-1])
                rows = np.repeat(np.arange(64 * place, 64 * place + 64), np.diff(offsets))
                kept = columns < n_columns
                dense[rows[kept], columns[kept]] = values[kept]
            return torch.from_numpy(dense)[torch.randperm(len(dense))]

    workers = int(n_workers)
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=16, shuffle=True, drop_last=True, num_workers=workers,
        pin_memory=on_gpu, collate_fn=lambda batch: batch, persistent_workers=True,
        multiprocessing_context="fork",
    )
    begin = first = None
    started = time.perf_counter()
    while begin is None or time.perf_counter() - begin < float(seconds):
        for x in loader:
            x = x.to(device, non_blocking=True)
            if begin is None:
                first = time.perf_counter() - started
                begin, n_fed = time.perf_counter(), 0
                continue
            n_fed += len(x)
            if time.perf_counter() - begin >= float(seconds):
                break
        if on_gpu:
            torch.cuda.synchronize()
    elapsed = time.perf_counter() - begin
    report(
        way="DataLoader", genes=n_columns, workers=workers, cells_per_second=n_fed / elapsed,
        seconds=elapsed, first_batch_seconds=first, batch_rows=1024, step_ms=0.0, device=device,
    )


# Threads


def tokens(uri: str, n_epochs: str, n_batches: str) -> None:
    """Ranked tokens of the first batches of epochs, made by the loader's threads."""
    import pyarrow
    import somafeed
    from somafeed import ExperimentDataset, RankTokens

    names = pyarrow.table(somafeed.Experiment(uri).var("RNA"))["feature_id"].to_pylist()
    vocabulary = {"<pad>": 0, "<mask>": 1, "<cls>": 2}
    vocabulary |= {name: 3 + idx for idx, name in enumerate(names)}
    ranks = RankTokens(vocabulary, dict.fromkeys(names, 1.5), max_length=2048)
    cells = ExperimentDataset(
        uri=uri, tokens=ranks, batch_size=1024, form="torch", obs_form="codes", seed=1,
        encoders=[], obs_column_names=["soma_joinid"],
    )
    for epoch in range(int(n_epochs)):
        cells.set_epoch(epoch)
        begin, before = time.perf_counter(), time.process_time()
        first = islice(cells, int(n_batches))
        n_rows = sum(len(batch["input_ids"]) for batch, _ in first)
        elapsed = time.perf_counter() - begin
        report(
            epoch=epoch, samples_per_sec=n_rows / elapsed, elapsed=elapsed,
            cpu_secs=time.process_time() - before,
        )


def decode_zstd(n_processes: str, seconds: str) -> None:
    """Bytes per second of independent processes that do nothing but decode zstd: the floor."""
    n, within = int(n_processes), float(seconds)
    with multiprocessing.Pool(n) as pool:
        pool.map(decoded_bytes, [0.0] * n, chunksize=1)
        begin = time.perf_counter()
        total = sum(pool.map(decoded_bytes, [within] * n, chunksize=1))
        elapsed = time.perf_counter() - begin
    report(samples_per_sec=total / elapsed, elapsed=elapsed, unit="decoded bytes per second")


def decoded_bytes(seconds: float) -> int:
    """Decodes the same megabytes of counts again and again for a time; returns their bytes."""
    import numpy as np
    import pyarrow

    counts = np.random.default_rng(1).geometric(0.4, 1 << 20).astype(np.int32)
    encoded = pyarrow.compress(counts.tobytes(), codec="zstd", asbytes=True)
    n_bytes, begin = 0, time.perf_counter()
    while n_bytes == 0 or time.perf_counter() - begin < seconds:
        pyarrow.decompress(encoded, counts.nbytes, codec="zstd", asbytes=True)
        n_bytes += counts.nbytes
    return n_bytes


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
