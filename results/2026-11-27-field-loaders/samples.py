"""Samples by their index, for the workers of a DataLoader, which get them pickled."""
import numpy as np


class OfAnemoi:
    def __init__(self, store, steps):
        from anemoi.datasets import open_dataset
        self.ds, self.before, self.after, self.steps = open_dataset(store), -min(0, *steps, 0), max(0, *steps, 0), steps

    def __len__(self):
        return len(self.ds) - self.before - self.after

    def __getitem__(self, i):
        return np.stack([self.ds[i + self.before + by] for by in self.steps])


class OfXbatcher:
    def __init__(self, generator):
        self.generator = generator

    def __len__(self):
        return len(self.generator)

    def __getitem__(self, i):
        return self.generator[i].values
