"""Models on a device, by how their batches come: `python3 training.py FUNCTION ARGUMENTS`.

A row per epoch, as JSON. `waited_share` is the share of the time in which the program asked for a
batch; a device may still compute then. So the cost of loading is the time of a step beside that
with batches in memory.
"""

import itertools
import os
import sys
import time

import torch
from measured import report
from torch.nn import Linear, Module, ReLU, Sequential


def train(model, loss_of, batches, n_epochs: int, device: str, **row) -> None:
    """Trains epochs of `batches(epoch)` and reports the time of each."""
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    on_gpu = device != "cpu"
    for epoch in range(n_epochs):
        begin, waited, loss, n_batches = time.perf_counter(), 0.0, None, 0
        iterator = iter(batches(epoch))
        while True:
            asked = time.perf_counter()
            batch = next(iterator, None)
            waited += time.perf_counter() - asked
            if batch is None:
                break
            loss = loss_of(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            n_batches += 1
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        report(
            **row, epoch=epoch, seconds=seconds, waited_share=waited / seconds,
            seconds_per_step=seconds / n_batches, batches=n_batches, loss=float(loss.detach()),
            gpu_memory_bytes=torch.cuda.max_memory_allocated() if on_gpu else 0,
        )


def opened_cells(uri: str, **options):
    import numpy as np
    from somafeed import ExperimentDataset

    n_genes = options.pop("n_genes")
    return ExperimentDataset(
        uri=uri, var_joinids=np.arange(n_genes), obs_form="codes", batch_size=1024, seed=0,
        **options,
    )


def epochs_of(dataset):
    """A function of an epoch's number that gives its batches."""
    def batches(epoch: int):
        dataset.set_epoch(epoch)
        return iter(dataset)

    return batches


def cycled(kept: list, n_batches: int):
    return lambda epoch: itertools.islice(itertools.cycle(kept), n_batches)


def cell_types(uri: str, device: str, small: str) -> None:
    """A linear classifier of cell types, after the Census's tutorial.

    The ways: 32 batches on the device, again and again; dense batches, sent by the user; batches
    of the package on the device.
    """
    n_genes = 100 if int(small) else 60_000
    settings = {
        "n_genes": n_genes, "obs_column_names": ["cell_type"], "target_sum": 1e4, "log1p": True,
        "form": "torch",
    }
    on_device = opened_cells(uri, device=device, **settings)
    on_host = opened_cells(uri, **settings)

    def sent(epoch: int):
        # The slowest way: a part of an epoch says enough.
        for x, obs in itertools.islice(epochs_of(on_host)(epoch), 60):
            yield x.to(device), {"cell_type": obs["cell_type"].to(device)}

    kept = list(itertools.islice(iter(on_device), 32))
    ways = {
        "memory": cycled(kept, len(on_device)), "dense": sent, "device": epochs_of(on_device),
    }
    for way, batches in ways.items():
        torch.manual_seed(0)
        # The generator draws from fewer types.
        model = Linear(n_genes, 128, device=device)

        def loss_of(batch, model=model):
            return torch.nn.functional.cross_entropy(model(batch[0]), batch[1]["cell_type"])

        n_epochs = 2 if int(small) or way == "dense" else 4
        train(model, loss_of, batches, n_epochs, device, what="cell types", way=way, genes=n_genes)
        kept.clear()


def vae(uri: str, device: str, ways: str, small: str) -> None:
    """A VAE of counts, a stand-in for scVI: as many layers and nodes, a Poisson likelihood.

    The ways: 64 dense batches that are in pageable memory before the training begins; dense or CSR
    batches, sent by the user; batches of the package on the device.
    """
    n_genes = 100 if int(small) else 8_000
    for way in ways.split(","):
        torch.manual_seed(0)
        cells = opened_cells(
            uri, n_genes=n_genes, obs_column_names=["soma_joinid"], encoders=[],
            form="torch_csr" if way == "sparse" else "torch",
            device=device if way == "device" else None,
        )
        batches = epochs_of(cells)
        if way == "memory":
            batches = cycled(list(itertools.islice(batches(0), 64)), len(cells))
        model = CountVae(n_genes).to(device)

        def loss_of(batch, model=model):
            x = batch[0].to(device, non_blocking=True)
            return model(x.to_dense() if x.layout is torch.sparse_csr else x)

        n_epochs = 2 if int(small) else 4
        train(model, loss_of, batches, n_epochs, device, what="VAE", way=way, genes=n_genes)


class CountVae(Module):
    """Returns the negative ELBO of counts, per cell and gene."""

    def __init__(self, n_genes: int, n_hidden: int = 128, n_latent: int = 10):
        super().__init__()
        self.n_genes = n_genes
        self.encoder = Sequential(Linear(n_genes, n_hidden), ReLU(), Linear(n_hidden, 2 * n_latent))
        self.decoder = Sequential(Linear(n_latent, n_hidden), ReLU(), Linear(n_hidden, n_genes))

    def forward(self, x):
        mean, log_variance = self.encoder(torch.log1p(x)).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        rate = torch.softmax(self.decoder(z), dim=1) * x.sum(1, keepdim=True)
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
        return torch.nn.functional.poisson_nll_loss(rate, x, log_input=False) + kl / self.n_genes


def forecast(store: str, device: str, small: str) -> None:
    """A convolutional network that predicts the targets of fields from their inputs.

    The ways: 4 batches on the device, again and again; batches of the package on the device.
    """
    from somafeed import FieldDataset

    fields = FieldDataset(
        store, {"x": "inputs", "y": "targets"}, batch_size=4, form="torch", seed=0, device=device,
        threads=len(os.sched_getaffinity(0)),
    )
    n_inputs, n_targets = (fields.shapes[name][-1] for name in ("x", "y"))
    n_hidden = 8 if int(small) else 256
    kept = list(itertools.islice(iter(fields), 4))
    for way, batches in {"memory": cycled(kept, len(fields)), "device": epochs_of(fields)}.items():
        torch.manual_seed(0)
        model = Sequential(
            torch.nn.BatchNorm2d(n_inputs),
            torch.nn.Conv2d(n_inputs, n_hidden, 3, padding=1), ReLU(),
            torch.nn.Conv2d(n_hidden, n_hidden, 3, padding=1), ReLU(),
            torch.nn.Conv2d(n_hidden, n_targets, 3, padding=1),
        ).to(device, memory_format=torch.channels_last)

        def loss_of(batch, model=model):
            # Channels lie last in memory, as the model has them.
            predicted = model(batch["x"].permute(0, 3, 1, 2))
            return torch.nn.functional.mse_loss(predicted, batch["y"].permute(0, 3, 1, 2))

        n_epochs = 2 if int(small) else 5
        train(model, loss_of, batches, n_epochs, device, what="forecast", way=way)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
