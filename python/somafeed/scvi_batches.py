"""The cells of `somafeed.scvi` as dictionaries of tensors, in their own order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import Form, required
from somafeed.cells import Cells
from somafeed.dataset import ExperimentDataset
from somafeed.epoch_loader import EpochLoader
from somafeed.sources import JOINID
from somafeed.splits import Places, Rows

if TYPE_CHECKING:
    import torch

    from somafeed.scvi import DataModule
else:
    torch = required("torch", "somafeed.scvi")

EXPERIMENT = "somafeed experiment"
"""The entry of a batch with the experiments of its cells, if there are several."""

Tensors = dict[str, torch.Tensor]
"""A batch as scvi's modules take it, with a row per cell."""


class InferenceLoader:
    """The cells in their own order, as dictionaries of tensors."""

    def __init__(self, loader: EpochLoader, module: DataModule) -> None:
        self._loader = loader
        self._module = module

    def __iter__(self) -> Iterator[Tensors]:
        for batch in self._loader:
            yield dense_tensors(self._module._tensors(batch))

    def __len__(self) -> int:
        return len(self._loader)


def cells_in_order(module: DataModule, rows: Rows | None = None) -> InferenceLoader:
    """The cells at these places among all of a module, ascending; None means all. Every rank has
    all of them."""
    dataset = module.dataset if rows is None else places_of(module.dataset, rows)
    return InferenceLoader(EpochLoader(dataset.in_order(world=(0, 1))), module)


def places_of(dataset: ExperimentDataset, rows: Rows) -> ExperimentDataset:
    """The cells at these places of a data set, ascending, with its settings."""
    return dataset._with(dataset._samples.part(Places(rows), 0))


def dense_tensors(tensors: Tensors) -> Tensors:
    """The same, with CSR made dense."""
    return {
        name: one if one.layout == torch.strided else one.to_dense()
        for name, one in tensors.items()
    }


class RowNumbers:
    """The place of each cell among all cells of a data set."""

    def __init__(self, dataset: ExperimentDataset) -> None:
        opened = dataset.dataset
        self._joinids = opened.joinids()
        # Joinids ascend within each experiment.
        counts = np.bincount(opened.experiments(), minlength=opened.n_experiments)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def of(self, joinids: npt.NDArray[np.int64], experiments: npt.NDArray[np.integer]) -> Rows:
        """The place of each of these cells."""
        rows = np.empty(len(joinids), np.int64)
        for experiment in np.unique(experiments):
            start, end = self._starts[experiment : experiment + 2]
            of_it = experiments == experiment
            rows[of_it] = start + np.searchsorted(self._joinids[start:end], joinids[of_it])
        return rows


def with_codes(
    dataset: ExperimentDataset,
    encoders: tuple[native.BatchKeyEncoder, ...],
    form: Form,
    numbers: tuple[str, ...],
) -> ExperimentDataset:
    """The same cells in tensors of float32, with these codes and columns of numbers."""
    cells = dataset._cells
    coded = dataset._with(Cells(cells.source, numbers, encoders, None))
    coded._numbers = numbers
    coded._modalities = tuple(
        (name, replace(one, form=None, return_sparse=False)) for name, one in coded._modalities
    )
    coded.experiment_column = EXPERIMENT if coded.dataset.n_experiments > 1 else None
    coded.form, coded.dtype, coded.return_sparse_X = form, "float32", False
    coded.obs_form, coded.obs_column_names = "codes", [JOINID]
    return coded
