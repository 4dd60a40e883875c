"""Trains a model of scvi-tools in one way of feeding it: train.py FOLDER MODEL WAY [--seed 0] [--epochs 3] [--file NAME] [--check].
MODEL is totalvi, multivi or peakvi; WAY is memory (its own loader, all cells in memory), somafeed, or for peakvi annbatch (setup_annbatch) or
tiledbsoma (TileDBDataModule). Prints one JSON row: seconds of the first epoch (from the call of train) and of later ones (from the end of one
to the end of the next, with validation), seconds to open and make the model, ELBO, and peak memory (VmHWM of this process). The model's own
settings, batch size and optimiser throughout. With --check nothing is trained: totalvi and multivi have the same tensors in each batch in
order as in memory, and a training epoch has each cell at most once; peakvi's epoch has the cells that are in the file, each once."""
import argparse
import json
import sys
import time
import warnings
from pathlib import Path

start = time.perf_counter()
import numpy as np  # noqa: E402
import scvi  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch import Callback  # noqa: E402

from cells import ATAC, PROT, RNA, numbers, peak_mb  # noqa: E402

warnings.filterwarnings("ignore")
parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path), parser.add_argument("model", choices=["totalvi", "multivi", "peakvi"])
parser.add_argument("way", choices=["memory", "somafeed", "annbatch", "tiledbsoma"])
parser.add_argument("--seed", type=int, default=0), parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--io", type=int, default=4096), parser.add_argument("--chunk", type=int, default=64)
parser.add_argument("--sparse", action="store_true", help="somafeed: X is CSR until it is on the device")
parser.add_argument("--file", help="the name of the file, without its ending"), parser.add_argument("--check", action="store_true")
args = parser.parse_args()
BATCH = {"totalvi": 256, "multivi": 128, "peakvi": 128}[args.model]
CLASS = {"totalvi": "TOTALVI", "multivi": "MULTIVI", "peakvi": "PEAKVI"}[args.model]
# TOTALVI's background prior is fitted to a sample of cells, which differs; without it, all else is equal.
MODEL = {"totalvi": {"empirical_protein_background_prior": False}, "multivi": {}, "peakvi": {}}[args.model]
FRACTIONS = (1.0,) if args.model == "peakvi" else (0.9, 0.1)
PATH = args.folder / f"{args.file or args.model}{'.h5ad' if args.model == 'peakvi' else '.h5mu'}"
cls = getattr(scvi.model, CLASS)


class Ends(Callback):
    def __init__(self):
        self.times = []

    def on_train_epoch_end(self, trainer, pl_module):
        self.times.append(time.perf_counter())


ends = Ends()
options = {"max_epochs": args.epochs, "batch_size": BATCH, "accelerator": "cpu", "enable_progress_bar": False, "callbacks": [ends],
           "early_stopping": False}
if args.model == "multivi":
    # Its ELBO of the cells held out; TOTALVI has it after each epoch, for its learning rate.
    options["check_val_every_n_epoch"] = args.epochs


def memory_data():
    """As scvi-tools takes it: every modality has all cells, zeros where it was not measured."""
    import anndata
    import mudata
    from scipy import sparse
    if args.model == "peakvi":
        return anndata.read_h5ad(PATH)
    read = mudata.read_h5mu(PATH)
    parts = {}
    for name, one in read.mod.items():
        if one.n_obs == read.n_obs:
            parts[name] = one
            continue
        rows = read.obs_names.get_indexer(one.obs_names)
        place = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, np.arange(len(rows)))), shape=(read.n_obs, len(rows)))
        parts[name] = anndata.AnnData((place @ one.X).tocsr(), obs=read.obs[[]], var=one.var)
    whole = mudata.MuData(parts)
    whole.obs["lane"] = read.obs["lane"].to_numpy()
    whole.obs["lane"] = whole.obs["lane"].astype("category")
    return whole


def memory():
    data = memory_data()
    if args.model == "peakvi":
        cls.setup_anndata(data, batch_key="lane")
    else:
        modalities = {"rna_layer": RNA, **({"protein_layer": PROT} if args.model == "totalvi" else {"atac_layer": ATAC})}
        cls.setup_mudata(data, batch_key="lane", modalities=modalities)
    scvi.settings.seed = args.seed
    model = cls(data, **MODEL)
    return model, lambda: model.train(train_size=FRACTIONS[0], **options)


def our_module():
    from somafeed import ExperimentDataset
    from somafeed.scvi import DataModule
    read = dict(uri=str(PATH), batch_size=BATCH, io_batch_size=args.io, shuffle_chunk_size=args.chunk, seed=args.seed,
                remainder="keep")
    part = {"totalvi": {"proteins": PROT}, "multivi": {"atac": ATAC}, "peakvi": {}}[args.model]
    cells = ExperimentDataset(**read, modalities=list(part.values()))
    return DataModule(cells, fractions=FRACTIONS, batch_column_names=["lane"], model_name=CLASS, sparse=args.sparse, **part)


def somafeed():
    module = our_module()
    scvi.settings.seed = args.seed
    if args.model == "peakvi":
        model = cls(registry=module.registry, **MODEL)
        return model, lambda: model.train(datamodule=module, **options)
    model = module.model(cls, rna=RNA, **MODEL)
    return model, lambda: module.train(model, **options)


def annbatch_module():
    return cls.setup_annbatch(collection_path=str(args.folder / "peakvi-annbatch.zarr"), rebuild=False, batch_key="lane", batch_size=BATCH,
                              shuffle=True, preload_to_gpu=False)


def tiledbsoma_module():
    import tiledbsoma
    from scvi.dataloaders import TileDBDataModule
    experiment = tiledbsoma.Experiment.open(str(args.folder / "peakvi-soma"))
    query = experiment.axis_query(measurement_name=ATAC)
    return TileDBDataModule(query, layer_name="data", batch_size=BATCH, io_batch_size=args.io, shuffle=True, shuffle_chunk_size=args.chunk,
                            seed=args.seed, batch_column_names=["lane"], train_size=1.0, model_name=CLASS, accelerator="cpu")


def by_module(made):
    module = made()
    scvi.settings.seed = args.seed
    model = cls(registry=module.registry, **MODEL)
    return model, lambda: model.train(datamodule=module, **options)


WAYS = {"memory": memory, "somafeed": somafeed, "annbatch": lambda: by_module(annbatch_module),
        "tiledbsoma": lambda: by_module(tiledbsoma_module)}


def epoch_of(module):
    """Tensors of a training epoch."""
    module.setup("fit")
    for batch in module.train_dataloader():
        tensors = module.on_after_batch_transfer(module.on_before_batch_transfer(batch, 0), 0)
        yield tensors


def check():
    if args.model == "peakvi":
        expected = np.sort(numbers(memory_data().X))
        module = {"somafeed": our_module, "annbatch": annbatch_module, "tiledbsoma": tiledbsoma_module}[args.way]()
        got = np.sort(np.concatenate([numbers(tensors["X"]) for tensors in epoch_of(module)]))
        dropped = len(expected) - len(got)
        if not np.isin(got, expected).all() or len(np.unique(got)) != len(got) or dropped >= BATCH:
            sys.exit(f"peakvi {args.way}: other cells than in memory")
        return {"equal": True, "cells": len(got)}
    beside, _ = memory()
    module = our_module()
    model = module.model(cls, rna=RNA, **MODEL)
    model.module.eval(), beside.module.eval()
    beside.module.load_state_dict(model.module.state_dict())
    theirs = beside._make_data_loader(adata=beside.adata, batch_size=1000)
    n_cells = 0
    for our, their in zip(module.inference_dataloader(batch_size=1000), theirs, strict=True):
        for key, tensor in their.items():
            assert torch.equal(our[key].double(), tensor.double()), key
        losses = []
        for one, tensors in ((model, our), (beside, their)):
            torch.manual_seed(3)
            *_, loss = one.module(tensors)
            losses.append(float(loss.loss))
        assert abs(losses[0] - losses[1]) <= 1e-6 * abs(losses[0]), losses
        n_cells += len(our["X"])
    all_cells = np.concatenate([numbers(their["X"]) for their in theirs])
    got = np.concatenate([numbers(tensors["X"]) for tensors in epoch_of(module)])
    assert np.isin(got, all_cells).all() and len(np.unique(got)) == len(got)
    return {"equal": True, "cells": n_cells, "cells_of_an_epoch": len(got)}


def trained():
    model, train = WAYS[args.way]()
    before = time.perf_counter()
    train()
    laters = np.diff(ends.times)
    history = {key: float(model.history[key].to_numpy()[-1, 0]) for key in ("elbo_train", "elbo_validation", "train_loss") if key in model.history}
    return {"first_secs": round(ends.times[0] - before, 2), "later_secs": [round(float(secs), 2) for secs in laters],
            "open_secs": round(before - start, 2), **history}


imported = peak_mb()
result = check() if args.check else trained()
print(json.dumps({"part": "training", "model": args.model, "way": args.way, "file": PATH.name, "seed": args.seed, "epochs": args.epochs,
                  "sparse": args.sparse, **result, "peak_mb": round(peak_mb()), "imports_mb": round(imported)}), flush=True)
