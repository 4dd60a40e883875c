"""Measures whole epochs whose batches are tokens: cells per second from an experiment to padded
sequences in torch tensors, beside the same epochs without tokens.

Each line is an epoch of a process of its own, after one that is not measured. The vocabulary has
the first 25,000 genes of the experiment, as many as Geneformer's, with medians from a seed: speed
does not depend on which genes they are.

    somafeed generate cells --cells 100000 --genes 60000
    python benches/tokens/epochs.py cells
"""

import argparse
import subprocess
import sys
import time
from statistics import median

import numpy as np
import pyarrow as pa
from somafeed import BinTokens, Dataset, Experiment, ExperimentDataset, RankTokens

N_KNOWN = 25_000
KINDS = ["ranks", "bins", "x"]


def tokens(kind, names):
    """The tokenizer of a kind; None for batches of X."""
    vocabulary = {"<pad>": 0, "<cls>": 1} | {name: 2 + at for at, name in enumerate(names)}
    medians = np.random.default_rng(0).lognormal(size=len(names)) + 0.1
    if kind == "ranks":
        return RankTokens(vocabulary, dict(zip(names, medians.tolist())), gene_column="feature_id")
    return BinTokens(vocabulary, gene_column="feature_id") if kind == "bins" else None


def measure(uri, kind):
    """Prints the cells per second of one epoch."""
    opened = Dataset.from_experiment(Experiment(uri), obs_columns=[], var_columns=["feature_id"])
    names = pa.table(opened.var())["feature_id"].to_pylist()[:N_KNOWN]
    sparse = {"form": "torch_csr"} if kind == "x" else {"form": "torch"}
    cells = ExperimentDataset(
        uri=uri, batch_size=1024, io_batch_size=65536, shuffle_chunk_size=64, seed=1,
        obs_column_names=["cell_type"], obs_form="codes", tokens=tokens(kind, names), **sparse,
    )
    for _ in range(2):
        start, n_cells = time.perf_counter(), 0
        for _, obs in cells:
            n_cells += len(obs["cell_type"])
        seconds = time.perf_counter() - start
    print(n_cells / seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("uri", help="the experiment")
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--repetitions", type=int, default=3, help="default: 3")
    arguments = parser.parse_args()
    if arguments.kind:
        measure(arguments.uri, arguments.kind)
        return
    found = {kind: [] for kind in KINDS}
    for _ in range(arguments.repetitions):
        for kind, speeds in found.items():
            command = [sys.executable, __file__, arguments.uri, "--kind", kind]
            speeds.append(float(subprocess.run(command, check=True, stdout=-1, text=True).stdout))
    for kind, speeds in found.items():
        print(f"{kind}: {median(speeds):,.0f} ({min(speeds):,.0f} to {max(speeds):,.0f}) cells/s")


if __name__ == "__main__":
    main()
