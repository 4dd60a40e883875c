"""What `run.py` measures in processes of their own: `python3 measured.py FUNCTION ARGUMENTS`.

Figures are printed as JSON objects, a line each.
"""

import json
import multiprocessing
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def report(**values) -> None:
    print(json.dumps(values), flush=True)


def import_package() -> None:
    import somafeed

    report(version=somafeed.__version__)


def tensors_of_the_package(uri: str, device: str) -> None:
    """Batches of the Python package on the device equal those of the CPU."""
    import torch
    from somafeed import ExperimentDataset

    def batches(form):
        cells = ExperimentDataset(
            uri=uri, obs_column_names=["cell_type"], obs_form="codes", form=form,
            batch_size=256, io_batch_size=1024, seed=3,
        )
        for (x, codes), _ in zip(cells, range(8)):
            yield x, codes["cell_type"]

    def sent(x):
        is_dense = x.layout is torch.strided
        host = x.pin_memory() if device != "cpu" and is_dense else x
        x = host.to(device, non_blocking=True)
        return x if is_dense else x.to_dense()

    for form in ["torch", "torch_csr", "torch_coo"]:
        for (x, codes), (dense, wanted) in zip(batches(form), batches("torch"), strict=True):
            assert torch.equal(sent(x).cpu(), dense), form
            assert torch.equal(codes.to(device).cpu(), wanted), form


# A plain AnnData


def write_plain_zarr(uri: str, folder: str, n_cells: str) -> None:
    """Writes the first cells of an experiment as anndata would: Zarr 3, zstd, CSR.

    Neither anndata nor zarr need be installed. Texts have the data type `string` and the codec
    `vlen-utf8`.
    """
    import numpy as np
    import scipy.sparse
    from somafeed import ExperimentDataset

    wanted = int(n_cells)
    cells = ExperimentDataset(
        uri=uri, obs_joinids=np.arange(wanted), obs_column_names=["cell_type"], obs_form="codes",
        shuffle=False, return_sparse_X=True, batch_size=8192,
    )
    parts, codes = zip(*((x, obs["cell_type"]) for x, obs in cells))
    x, codes = scipy.sparse.vstack(parts, format="csr"), np.concatenate(codes)
    root = Path(folder)
    csr = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(x.shape)}
    frame = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
    write_group(root, {"encoding-type": "anndata", "encoding-version": "0.1.0"})
    write_group(root / "X", csr)
    write_numbers(root / "X/data", x.data.astype(np.float32))
    write_numbers(root / "X/indices", x.indices.astype(np.int32))
    write_numbers(root / "X/indptr", x.indptr.astype(np.int64))
    write_group(root / "obs", {**frame, "column-order": ["code"]})
    write_texts(root / "obs/_index", [f"cell{idx}" for idx in range(x.shape[0])])
    write_numbers(root / "obs/code", codes.astype(np.int64))
    write_group(root / "var", {**frame, "column-order": []})
    write_texts(root / "var/_index", [f"gene{idx}" for idx in range(x.shape[1])])


CHUNK = 1 << 17
"""Numbers of a chunk."""
ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}
TEXTS = {"encoding-type": "string-array", "encoding-version": "0.2.0"}


def write_group(folder: Path, attributes: dict) -> None:
    folder.mkdir(parents=True)
    metadata = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    (folder / "zarr.json").write_text(json.dumps(metadata))


def write_numbers(folder: Path, values) -> None:
    """Writes an array in chunks of 2^17 numbers, compressed by zstd."""
    import numpy as np
    import pyarrow

    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": [len(values)], "fill_value": 0,
        "data_type": str(values.dtype), "attributes": ARRAY,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
        ],
    }
    (folder / "c").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(metadata))
    padded = np.zeros(-(-len(values) // CHUNK) * CHUNK, values.dtype)
    padded[: len(values)] = values

    def zstd(chunk: bytes) -> bytes:
        return pyarrow.Codec("zstd", compression_level=1).compress(chunk, asbytes=True)

    def write(idx: int) -> None:
        chunk = padded[idx * CHUNK : (idx + 1) * CHUNK].tobytes()
        (folder / "c" / str(idx)).write_bytes(zstd(chunk))

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, range(len(padded) // CHUNK)))


def read_numbers(folder: Path, dtype: str, begin: int, end: int):
    """Reads a range of an array that `write_numbers` wrote: its chunks, decoded whole."""
    import numpy as np
    import pyarrow

    first, parts = begin // CHUNK, []
    n_bytes = CHUNK * np.dtype(dtype).itemsize
    for idx in range(first, max(first, -(-end // CHUNK))):
        encoded = (folder / "c" / str(idx)).read_bytes()
        decoded = pyarrow.decompress(encoded, n_bytes, codec="zstd", asbytes=True)
        parts.append(np.frombuffer(decoded, dtype))
    values = np.concatenate(parts) if parts else np.empty(0, dtype)
    return values[begin - first * CHUNK : end - first * CHUNK]


def write_texts(folder: Path, texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    chunk = b"".join([
        len(texts).to_bytes(4, "little"),
        *(len(text).to_bytes(4, "little") + text for text in encoded),
    ])
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": [len(texts)], "data_type": "string",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(texts)]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "", "codecs": [{"name": "vlen-utf8"}], "attributes": TEXTS,
    }
    (folder / "c").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(metadata))
    (folder / "c/0").write_bytes(chunk)


def feed_by_data_loader(
    store: str, device: str, n_genes: str, n_workers: str, seconds: str
) -> None:
    """Dense batches from a DataLoader with workers and pinned memory, over plain Zarr.

    A batch is 16 random runs of 64 rows, shuffled; a worker decodes their chunks by pyarrow's zstd.
    """
    import numpy as np
    import torch

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


def tokens(uri: str, n_epochs: str) -> None:
    """Ranked tokens of whole epochs, made by the loader's threads."""
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
        n_rows = sum(len(batch["input_ids"]) for batch, _ in cells)
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


# Training


def train_vae(uri: str, device: str, way: str, small: str) -> None:
    """Trains a VAE of counts: time of an epoch and of its waits, by how batches come.

    The model is a stand-in for scVI: as many layers and nodes, a Poisson likelihood. The way
    `memory` cycles batches that are in memory before the training begins.
    """
    import itertools

    import numpy as np
    import torch
    from somafeed import ExperimentDataset

    torch.manual_seed(0)
    n_genes = 100 if int(small) else 8_000
    form = "torch_csr" if way == "sparse" else "torch"
    cells = ExperimentDataset(
        uri=uri, var_joinids=np.arange(n_genes), form=form, obs_form="codes", encoders=[],
        obs_column_names=["soma_joinid"], batch_size=1024, seed=0,
    )
    on_gpu = device != "cpu"
    model = Vae(n_genes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept = [x for x, _ in itertools.islice(iter(cells), 64)] if way == "memory" else []

    def batches(epoch):
        if kept:
            yield from itertools.islice(itertools.cycle(kept), len(cells))
            return
        cells.set_epoch(epoch)
        for x, _ in cells:
            yield x

    for epoch in range(2 if int(small) else 4):
        begin, waited, loss = time.perf_counter(), 0.0, None
        iterator, n_batches = batches(epoch), 0
        while True:
            asked = time.perf_counter()
            x = next(iterator, None)
            waited += time.perf_counter() - asked
            if x is None:
                break
            x = x.to(device, non_blocking=True)
            loss = model(x.to_dense() if form == "torch_csr" else x)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            n_batches += 1
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        report(
            what="VAE", way=way, epoch=epoch, seconds=seconds, waited_share=waited / seconds,
            seconds_per_step=seconds / n_batches, batches=n_batches, loss=float(loss),
            genes=n_genes,
            gpu_memory_bytes=torch.cuda.max_memory_allocated() if on_gpu else 0,
        )


def Vae(n_genes: int, n_hidden: int = 128, n_latent: int = 10):  # noqa: N802
    """A module that returns the negative ELBO of counts, per cell and gene."""
    import torch
    from torch.nn import Linear, Module, ReLU, Sequential
    from torch.nn.functional import poisson_nll_loss, softmax

    class CountVae(Module):
        def __init__(self):
            super().__init__()
            self.encoder = Sequential(Linear(n_genes, n_hidden), ReLU(), Linear(n_hidden, 2 * n_latent))
            self.decoder = Sequential(Linear(n_latent, n_hidden), ReLU(), Linear(n_hidden, n_genes))

        def forward(self, x):
            mean, log_variance = self.encoder(torch.log1p(x)).chunk(2, dim=1)
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
            rate = softmax(self.decoder(z), dim=1) * x.sum(1, keepdim=True)
            kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
            return poisson_nll_loss(rate, x, log_input=False) + kl / n_genes

    return CountVae()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
