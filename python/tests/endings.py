"""Programs that end while a daemon thread waits in the native module.

Their threads use neither pyarrow nor torch: before Python 3.14 a program that ends while a daemon
thread is within one of their calls is aborted, without this package as well.
"""

import subprocess
import sys

_PROGRAM = """
import os, random, sys, threading, time
import numpy as np
import somafeed
from somafeed import _somafeed as native

uri = sys.argv[1]
experiment = native.Experiment(uri)
dataset = native.Dataset.from_experiment(experiment, obs_columns=["cell_type"])
loader = native.Loader(dataset, batch_size=64)
labels = np.arange(100_000) % 7
datasets = [
    somafeed.ExperimentDataset(uri=uri, batch_size=64, io_batch_size=1024, seed=1, **{options})
    for _ in range(2)
]

key = {"name": "features", "origin": None, "role": "image"}
images = [
    somafeed.ImageDataset(folder, ["features"], batch_size=2, seed=1)
    for folder in sys.argv[2:] for _ in range(2)
]

def batches():
    for _ in loader.epoch(0):
        pass

def stats():
    epoch = loader.epoch(0)
    for _ in epoch:
        epoch.stats(), epoch.state(), epoch.utilization()

def close():
    epoch = loader.epoch(0)
    next(epoch)
    epoch.close()

def iterate(datasets):
    ds = datasets.pop()
    while True:
        for _ in ds:
            begun.set()

def sequences():
    # Once, by the first thread.
    with making:
        store = f"{uri}-sequences"
        if not os.path.exists(store):
            with open(f"{store}.txt", "w") as file:
                file.writelines(f"{'ACGT' * 50},{number}\\n" for number in range(5000))
            native.import_sequences([f"{store}.txt"], store)
    return native.Sequences([store])

def iterate_sequences():
    opened = sequences()
    entries = opened.with_entries(ENTRIES, vocabulary=opened.count_words(KMERS))
    loader = native.SampleLoader(entries)
    while True:
        for _ in loader.epoch(0):
            begun.set()

def train_sequences():
    opened = sequences()
    trainer = native.Doc2VecTrainer(opened, opened.count_words(KMERS), TRAINING)
    while True:
        trainer.epoch(0)
        begun.set()

def infer_vectors():
    opened = sequences()
    words = opened.count_words(KMERS)
    _, inputs, outputs = native.Doc2VecTrainer(opened, words, TRAINING).vectors()
    inference = native.Doc2VecInference(words, TRAINING, inputs, outputs)
    while True:
        inference.infer(["ACGT" * 50] * 500, 5, 0.025, 0.0, 2)
        begun.set()

making = threading.Lock()
ENTRIES = {"letters": True, "names": True, "one_hot": None, "windows": None, "layout": "ragged",
           "max_length": None, "pad": None}
KMERS = {"k": 4, "stride": 4, "frames": 4, "padding": 3, "unknown": "fail", "alphabet": None,
         "fold_case": False}
TRAINING = {"vector_size": 8, "window": 3, "negative": 5, "epochs": 9, "dm": True, "dm_mean": True,
            "shrink_windows": True, "alpha": 0.025, "min_alpha": 0.0, "sample": 0.0,
            "ns_exponent": 0.75, "workers": 2, "seed": 1, "n_words": None}

def work():
    {work}

begun = threading.Event()

def repeat():
    while True:
        work()
        begun.set()

for _ in range(2):
    threading.Thread(target=repeat, daemon=True).start()
begun.wait()
time.sleep(random.uniform(0, 0.05))
print("trained")
"""

# What each thread does again and again.
WORKS = {
    "Experiment": "native.Experiment(uri)",
    "Experiment.obs": "experiment.obs()",
    "Experiment.var": "experiment.var('RNA')",
    "Experiment.layers": "experiment.layers('RNA')",
    "Dataset.from_experiment": "native.Dataset.from_experiment(experiment, obs_filter='nnz > 2')",
    "Dataset.concat": "native.Dataset.concat([dataset, dataset])",
    "Dataset.select": "dataset.select(np.arange(0, 1000, 3))",
    "Dataset.with_encoders":
        "dataset.with_encoders([native.LabelEncoder.fit('cell_type', dataset)])",
    "Dataset.groups": "dataset.groups(['cell_type'])",
    "Dataset.obs": "len(dataset.obs()), dataset.joinids()",
    "BatchKeyEncoder.fit": "native.BatchKeyEncoder.fit('batch', ['cell_type'], dataset)",
    "split_by_fraction": "native.split_by_fraction(100_000, [0.5, 0.5], seed=1)",
    "split_by_label": "native.split_by_label(labels, [0.5, 0.5], seed=1)",
    "Sampling.class_balanced": "native.Sampling.class_balanced(labels, 100_000)",
    "Loader": "native.Loader(dataset, batch_size=64)",
    "Loader.epoch": "loader.epoch(0)",
    "Epoch.__next__": "batches()",
    "Epoch.stats": "stats()",
    "Epoch.close": "close()",
    "ExperimentDataset": "iterate(datasets)",
    "Sequences": "sequences().names()",
    "Sequences.count_words": "sequences().count_words(KMERS)",
    "SampleLoader.epoch": "iterate_sequences()",
    "Doc2VecTrainer.epoch": "train_sequences()",
    "Doc2VecInference.infer": "infer_vectors()",
    "generate_example":
        "native.generate_example(f'{uri}-{time.monotonic_ns()}', n_cells=300, n_genes=20)",
}


# The same with a folder of images.
WORKS_WITH_IMAGES = {
    "Images": "native.Images([sys.argv[2]], [key])",
    "ImageDataset": "iterate(images)",
}


def ending(uri, work, options="{'obs_form': 'codes'}", python=sys.executable, images=()):
    """Runs a program whose threads do this work when it ends: its exit code, and what it wrote."""
    works = {**WORKS, **WORKS_WITH_IMAGES}
    program = _PROGRAM.replace("{work}", works[work]).replace("{options}", options)
    command = [python, "-c", program, uri, *images]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return ran.returncode, ran.stdout + ran.stderr
