"""How many cells, genes, batches and labels a data module of scvi-tools has, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import required
from somafeed.dataset import ExperimentDataset
from somafeed.scvi_batches import RowNumbers
from somafeed.scvi_registry import feature_names
from somafeed.splits import Rows

if TYPE_CHECKING:
    import torch
else:
    torch = required("torch", "somafeed.scvi")

BATCH, LABELS, SAMPLE = "batch", "labels", "sample"


class Described:
    """What models of scvi-tools ask of a data module."""

    dataset: ExperimentDataset
    train_dataset: ExperimentDataset
    validation_dataset: ExperimentDataset | None
    unlabeled_category: str | None
    categorical_covariate_keys: Sequence[str] | None
    has_unlabeled: bool
    _encoders: dict[str, native.BatchKeyEncoder]
    _classes: dict[str, list[str]]
    _code_of_label: torch.Tensor
    _rows: RowNumbers | None

    def _label_codes(self) -> torch.Tensor:
        """scvi's code for each code of the encoder; that of unlabelled cells at the end, where -1
        points to."""
        classes = self._classes.get(LABELS, [])
        names: list[str | None] = [*self._label_names()]
        mapping = {label: code for code, label in enumerate(names)}
        unlabeled = mapping.get(self.unlabeled_category, -1)
        return torch.tensor([*(mapping[label] for label in classes), unlabeled], dtype=torch.int64)

    def _label_names(self) -> list[str]:
        """The labels by code, that of unlabelled cells at the end, also if no cell has it."""
        names, unlabeled = list(self._classes.get(LABELS, [])), self.unlabeled_category
        if unlabeled in names:
            # It changes places with the last one, as in scvi-tools.
            at = names.index(unlabeled)
            names[at], names[-1] = names[-1], names[at]
        elif unlabeled is not None:
            names.append(unlabeled)
        return names

    @property
    def _unlabeled_code(self) -> int:
        return int(self._code_of_label[-1])

    def _labels_in(self, dataset: ExperimentDataset) -> npt.NDArray[np.int64]:
        """The code of the label of each cell of a part."""
        codes = dataset.dataset.codes().column(LABELS)
        found: npt.NDArray[np.int64] = self._code_of_label.numpy()[codes]
        return found

    def _places_in(self, dataset: ExperimentDataset) -> Rows:
        """The place of each cell of a part among all cells."""
        opened = dataset.dataset
        return self._row_numbers().of(opened.joinids(), opened.experiments())

    def _row_numbers(self) -> RowNumbers:
        if self._rows is None:
            self._rows = RowNumbers(self.dataset)
        return self._rows

    @property
    def n_obs(self) -> int:
        """Number of cells."""
        return self.dataset.dataset.shape[0]

    @property
    def n_train(self) -> int:
        """Number of cells of the training part, by which AUTOZI weighs its loss."""
        return self.train_dataset._samples.n_rows

    @property
    def n_val(self) -> int:
        """Number of cells of the validation part."""
        part = self.validation_dataset
        return 0 if part is None else part._samples.n_rows

    @property
    def n_vars(self) -> int:
        """Number of genes."""
        return self.dataset.dataset.shape[1]

    @property
    def var_names(self) -> list[str]:
        """The name of each gene: what it was selected by, its `feature_id`, or the index of an
        AnnData's var; its joinid as a text if there is none of these."""
        return feature_names(self.dataset, None)

    def modality_names(self, modality: str) -> list[str]:
        """The name of each feature of a modality, like `var_names`."""
        return feature_names(self.dataset, modality)

    @property
    def n_batch(self) -> int:
        """Number of scvi's batches; 1 without a column."""
        return len(self._classes.get(BATCH, [None]))

    @property
    def batch_labels(self) -> npt.NDArray[np.object_] | None:
        """The name of each batch's code; None without a column."""
        return self._names_of(BATCH)

    @property
    def n_labels(self) -> int:
        """Number of labels, with that of unlabelled cells if there are any; 1 without a column."""
        mapping = self.labels_mapping
        return 1 if mapping is None else len(mapping)

    @property
    def labels_mapping(self) -> npt.NDArray[np.object_] | None:
        """The name of each label's code; None without a column."""
        if LABELS not in self._encoders:
            return None
        names, known = self._label_names(), self._classes[LABELS]
        is_spare = not self.has_unlabeled and len(names) > len(known)
        return np.array(names[:-1] if is_spare else names, object)

    @property
    def labels_(self) -> npt.NDArray[np.object_] | None:
        """The label of each cell of the data set by ascending joinid; None without a column.

        The order of `inference_dataloader`, unless `predict` names other cells or ranks share them.
        """
        mapping = self.labels_mapping
        if mapping is None:
            return None
        found: npt.NDArray[np.object_] = mapping[self._labels_in(self.dataset)]
        return found

    @property
    def n_samples(self) -> int:
        """Number of samples; 0 without a column."""
        return len(self._classes.get(SAMPLE, []))

    @property
    def samples(self) -> npt.NDArray[np.object_] | None:
        """The name of each sample's code; None without a column."""
        return self._names_of(SAMPLE)

    @property
    def n_obs_per_sample(self) -> torch.Tensor:
        """Number of cells of each sample."""
        if SAMPLE not in self._encoders:
            return torch.tensor([])
        codes = self.dataset.dataset.codes().column(SAMPLE)
        counts = np.bincount(codes, minlength=self.n_samples)
        return torch.from_numpy(counts).to(torch.float32)

    @property
    def n_cats_per_cov(self) -> list[int] | None:
        """Number of categories of each categorical covariate; None without one."""
        keys = self.categorical_covariate_keys
        return [len(self._classes[f"covariate {key}"]) for key in keys] if keys else None

    @property
    def covariate_categories(self) -> dict[str, npt.NDArray[np.object_]]:
        """The name of each code of each categorical covariate."""
        keys = self.categorical_covariate_keys or ()
        return {key: np.array(self._classes[f"covariate {key}"], object) for key in keys}

    def _names_of(self, name: str) -> npt.NDArray[np.object_] | None:
        return np.array(self._classes[name], object) if name in self._encoders else None
