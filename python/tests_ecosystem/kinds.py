"""Data sets of every kind in batches of tensors, for tests and the programs that they start."""

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import somafeed
import torch
from programs import N_CELLS, N_GENES
from programs import dataset as cells
from somafeed import FieldDataset, ImageDataset, OneHot, SequenceDataset, SourceDataset


@dataclass(frozen=True)
class Kind:
    """How samples are written and read, and what a batch has of them."""

    write: Callable
    read: Callable
    features: Callable
    n_features: int
    n_samples: int

    def dataset(self, path, **options):
        settings = {"batch_size": 20, "seed": 7, "shuffle_chunk_size": 4, "io_batch_size": 64}
        return self.read(path, form="torch", **{**settings, **options})

    def numbers(self, batch):
        """The numbers of a batch's samples."""
        numbers = batch["sample"] if isinstance(batch, dict) else batch[1]["soma_joinid"]
        return numbers.tolist()


def generated(kind, *arguments):
    def write(path):
        command = [sys.executable, "-m", "somafeed", kind, "generate", Path(path).name, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(path).parent)

    return write


def write_sequences(path):
    generator = random.Random(3)
    lines = [
        f"{''.join(generator.choices('ACGT', k=generator.randint(5, 40)))},name-{at}\n"
        for at in range(203)
    ]
    file = Path(path).with_suffix(".txt")
    file.write_text("".join(lines))
    somafeed.import_sequences(file, path)


class Lines:
    """Points of a line."""

    n_rows = 203

    def read(self, rows):
        x = np.sin(rows).astype(np.float32)[:, None]
        return {"x": x, "y": 3 * x + 1}


NUMBERED = {"number_samples": True}
KINDS = {
    "cells": Kind(
        lambda path: somafeed.generate_example(path, n_cells=N_CELLS, n_genes=N_GENES, seed=5),
        cells, lambda batch: torch.log1p(batch[0]), N_GENES, N_CELLS,
    ),
    "fields": Kind(
        generated("fields", "--samples", "203", "--lat", "2", "--lon", "4", "--inputs", "1", "--targets", "1"),
        lambda path, **options: FieldDataset(path, ["inputs"], **NUMBERED, **options),
        lambda batch: batch["inputs"].float().flatten(1), 8, 203,
    ),
    "images": Kind(
        generated("cubes", "--images", "83", "--size", "8x8x4", "--formats", "raw16", "--level", "1"),
        lambda path, **options: ImageDataset(path, ["features"], **NUMBERED, **options),
        lambda batch: batch["features"].float().mean((1, 2)), 4, 83,
    ),
    "sequences": Kind(
        write_sequences,
        lambda path, **options: SequenceDataset(
            path, one_hot=OneHot("ACGT"), layout="padded", max_length=30, **NUMBERED, **options
        ),
        lambda batch: batch["one_hot"].mean(1), 4, 203,
    ),
    "own": Kind(
        lambda path: None, lambda path, **options: SourceDataset(Lines(), **NUMBERED, **options),
        lambda batch: batch["x"], 1, 203,
    ),
}
