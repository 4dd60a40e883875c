"""Feeds batches of sequences as words with a loader that Python users have, over whole epochs.

The order comes on stdin, as JSON:

    {"cache": "warm", "task": {"store": "my-store", "form": "windows", "epochs": [[3, 1, 0], [0, 3, 1]],
     "batch": 2, "workers": 2, "k": 4, "stride": 4, "n_frames": 4, "padding": 3, "context": 3, "n_noise": 5,
     "words": ["ACGT", ...], "counts": [17, ...], "chunk": 2, "chunks_per_block": 2, "shuffled": true,
     "seed": 0, "consumer_millis": 0.0, "check": false}}

`store` is the folder of a store (see sequence_store.py). `form` says what a batch has of each
sequence: tokens are its words, windows are each word with its neighbours and with noise. `epochs`
has the sequences of each epoch by their numbers; the last batch of an epoch may be smaller. `words`
are those of the vocabulary by their numbers, with padding before a sequence as X and after it as Y;
`counts` say how often each occurs. somafeed-python counts the words itself, and draws the order of
`epochs` itself from `chunk`, `chunks_per_block`, `shuffled` and `seed`; it fails if that is another
one. `workers` are processes (for somafeed-python and tokenizers, threads). The consumer sleeps for
`consumer_millis` per batch.

Events are those of feeding.py. Checksums are of each sequence: for tokens, those of the lengths of
its frames and of its words; for windows, those of its targets and of their contexts; all as
unsigned numbers of 32 bits in little-endian order. Noise is random, so that it is not compared. The
readers:

    somafeed-python   somafeed's own package: SequenceDataset, whose threads cut and number words
    dataloader        torch's DataLoader over single sequences, whose words are strings in lists: the way
                      of Dragon's Doc2Vec example, written anew from its description, with two changes
                      without which no epoch of it runs. Noise is drawn by a method instead of a lambda,
                      which no worker can be sent, and sequences of different lengths are put together
                      end to end.
    numpy             torch's DataLoader over whole batches, whose words are made by numpy without a loop
                      over letters, words or targets
    tokenizers        Hugging Face's tokenizers, which cuts and numbers the words of a batch in threads;
                      only tokens of words that do not overlap
"""

import argparse
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import torch

import sequence_readers
from feeding import measure, perform, versions
from measuring import print_event
from sequence_readers import Batch
from sequence_store import Task

DEFAULTS = {"seed": 0, "consumer_millis": 0.0, "check": False}


@dataclass
class Reader:
    """A way to feed sequences."""

    open: Callable[[Task], Any]
    packages: list[str] = field(default_factory=list)
    """Packages whose versions are recorded, besides those that all have."""


READERS = {
    "somafeed-python": Reader(sequence_readers.Somafeed, ["somafeed"]),
    "dataloader": Reader(sequence_readers.Lists),
    "numpy": Reader(sequence_readers.Arrays),
    "tokenizers": Reader(lambda task: import_module("sequence_tokenizers").Threads(task), ["tokenizers"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", required=True, choices=READERS, help="the reader that feeds")
    reader = READERS[parser.parse_args().reader]
    perform(lambda task, _: run(reader, DEFAULTS | task))


def run(reader: Reader, task: Task) -> None:
    if 0 in map(len, task["epochs"]) or task["workers"] < 1 or task["batch"] < 1:
        raise ValueError("each epoch needs a sequence, and workers and batch must be at least 1")
    torch.manual_seed(task["seed"])
    np.random.seed(task["seed"])
    started = time.perf_counter()
    loader = reader.open(task)
    open_secs = time.perf_counter() - started
    facts = {"open_secs": open_secs, "versions": versions([*reader.packages, "torch", "numpy"])}
    of_rows, n_rows = sum(map(len, task["epochs"])), 0
    for epoch, rows in enumerate(task["epochs"]):
        if task["check"]:
            check(loader.epoch(rows), task["form"])
            continue
        measured = measure(lambda rows=rows: loader.epoch(rows), size, task["consumer_millis"], (n_rows, of_rows))
        n_rows += len(rows)
        file_bytes = loader.store.n_letters(rows)
        print_event({"Answer": {"Read": facts | {"epoch": epoch, "file_bytes": file_bytes} | measured}})


def size(batch: Batch) -> tuple[int, int]:
    return len(batch["rows"]), sum(values.nbytes for values in batch.values())


def check(batches: Iterator[Batch], form: str) -> None:
    """Prints the checksums of each sequence as delivered."""
    for batch in batches:
        values = {key: tensor.numpy() for key, tensor in batch.items()}
        n_words = values["lengths"].sum(axis=1) if form == "tokens" else values["n_targets"]
        ends = np.cumsum(n_words)
        for place, row in enumerate(values["rows"].tolist()):
            of_row = slice(ends[place] - n_words[place], ends[place])
            if form == "tokens":
                parts = [values["lengths"][place], values["words"][of_row]]
            else:
                parts = [values["targets"][of_row], values["contexts"][of_row]]
            crc32 = [zlib.crc32(np.ascontiguousarray(part, dtype="<u4")) for part in parts]
            print_event({"Answer": {"Checksum": {"sample": row, "crc32": crc32}}})


if __name__ == "__main__":
    main()
