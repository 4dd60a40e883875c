"""A data module with which scvi-tools trains its models from an `ExperimentDataset`.

Needs the packages lightning, torch and scvi-tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import Form, required
from somafeed.cells import Cells
from somafeed.dataset import ExperimentDataset
from somafeed.epoch_loader import EpochLoader
from somafeed.lightning import DataModule as LightningDataModule
from somafeed.scvi_multimodal import multimodal_model, train_multimodal
from somafeed.scvi_registry import class_names, feature_names, registry_of
from somafeed.settings import names_of, positive, shown
from somafeed.sources import JOINID, whole_of

if TYPE_CHECKING:
    import torch
else:
    torch = required("torch", "somafeed.scvi")

__all__ = ["DataModule"]

_BATCH, _LABELS, _SAMPLE = "batch", "labels", "sample"
# The entry of a batch with the experiments of its cells, if there are several.
_EXPERIMENT = "somafeed experiment"
# Models whose training plan takes the labelled cells of a batch beside the batch.
_SEMISUPERVISED = ("SCANVI",)


class DataModule(LightningDataModule[ExperimentDataset]):
    """Cells for models of scvi-tools: `model.train(datamodule=...)`.

    Has the arguments of scvi-tools' `TileDBDataModule` for columns of obs, and the parts,
    checkpoints and ranks of `somafeed.lightning.DataModule`. Columns become codes in native
    threads. `inference_dataloader` has the cells in their own order.
    """

    def __init__(
        self,
        dataset: ExperimentDataset,
        *,
        batch_column_names: Sequence[str] | None = None,
        label_keys: Sequence[str] | None = None,
        unlabeled_category: str | None = "Unknown",
        sample_key: Sequence[str] | None = None,
        categorical_covariate_keys: Sequence[str] | None = None,
        continuous_covariate_keys: Sequence[str] | None = None,
        size_factor_key: str | Sequence[str] | None = None,
        proteins: str | None = None,
        atac: str | None = None,
        model_name: str = "SCVI",
        sparse: bool = False,
        encoders: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> None:
        """Learns the codes of the columns, and divides the cells.

        Args:
            dataset: The cells. X must be counts, so without a transform; its form becomes that of
                tensors, and that of obs codes.
            batch_column_names: Columns of obs whose values together are scvi's batch, which is not
                a batch of training.
            label_keys: Columns whose values together are a cell's label.
            unlabeled_category: The label of cells whose type is not known. It has the last code,
                which cells with a null, or with a label that `encoders` do not know, get too; with
                None, there may be no such cells.
            sample_key: Columns whose values together are a cell's sample.
            categorical_covariate_keys: Further columns, with codes of their own each.
            continuous_covariate_keys: Columns of numbers, which come as they are, in this order.
            size_factor_key: The column with each cell's size factor, which is above 0; for MULTIVI
                that of RNA and that of ATAC.
            proteins: The modality with the counts of proteins, for TOTALVI and MULTIVI (`model`).
            atac: The modality with the peaks, for MULTIVI (`model`).
            model_name: The model: with `"SCANVI"`, batches have the labelled cells apart.
            sparse: Whether X goes to the device as CSR and becomes dense there.
            encoders: The codes of an earlier module (its `encoders`), for cells that a trained
                model has not seen; None learns them from all cells of the experiment's selection.
            parts: Arguments of `somafeed.lightning.DataModule`: `fractions`, `group` and others.

        Raises:
            ValueError: There is no such column; X is transformed; `encoders` lack one.
            TypeError: `dataset` or `predict` is something else, or columns are one text.
        """
        if not isinstance(dataset, ExperimentDataset):
            raise TypeError(f"DataModule takes an ExperimentDataset, not {shown(dataset)}")
        transform = dataset.transform
        if transform["target_sum"] is not None or transform["log1p"] or transform["clip"]:
            raise ValueError("models of scvi-tools take counts: leave X as it is stored")
        if dataset.tokens is not None:
            raise ValueError("models of scvi-tools take counts: leave tokens= out")
        by_name = {
            _BATCH: batch_column_names, _LABELS: label_keys, _SAMPLE: sample_key,
            **{f"covariate {key}": [key] for key in categorical_covariate_keys or ()},
        }
        self._columns = {
            name: names_of(name, columns) for name, columns in by_name.items() if columns
        }
        self.batch_column_names = batch_column_names
        self.label_keys = label_keys
        self.sample_key = sample_key
        self.categorical_covariate_keys = categorical_covariate_keys
        self.continuous_covariate_keys = (
            names_of("continuous_covariate_keys", continuous_covariate_keys or ()) or None
        )
        factors = [size_factor_key] if isinstance(size_factor_key, str) else size_factor_key
        self.size_factor_key = names_of("size_factor_key", factors or ()) or None
        self.proteins, self.atac = proteins, atac
        known = [name for name, _ in dataset.dataset.modalities]
        for name in (proteins, atac):
            if name is not None and name not in known:
                raise ValueError(
                    f"there is no modality {shown(name)}; the data set has {known}: request it by "
                    "ExperimentDataset(modalities=...)"
                )
        self.unlabeled_category = unlabeled_category
        self.model_name = model_name
        self._encoders = self._fitted(dataset, encoders)
        self._classes = {name: class_names(one) for name, one in self._encoders.items()}
        self._code_of_label = self._label_codes()
        form: Form = "torch_csr" if sparse else "torch"
        encoded = tuple(self._encoders.values())
        coded = _with_codes(dataset, encoded, form, self._numbers)
        self._check_numbers(coded)
        predict = parts.pop("predict", None)
        if isinstance(predict, ExperimentDataset):
            predict = _with_codes(predict, encoded, form, self._numbers)
        self._rows = _RowNumbers(coded) if atac is not None else None
        super().__init__(coded, predict=predict, **parts)

    @property
    def _numbers(self) -> tuple[str, ...]:
        """The columns of numbers that batches have, each once."""
        columns = (*(self.continuous_covariate_keys or ()), *(self.size_factor_key or ()))
        return tuple(dict.fromkeys(columns))

    def _check_numbers(self, coded: ExperimentDataset) -> None:
        """Fails unless covariates are numbers and size factors are above 0."""
        obs = coded.dataset.obs()
        for key in self._numbers:
            try:
                values = obs.column(key)
            except ValueError as error:
                raise ValueError(f"obs column {shown(key)} must be numbers: {error}") from None
            if key in (self.size_factor_key or ()) and not bool(np.all(values > 0)):
                cell = int(np.flatnonzero(~(values > 0))[0])
                joinid = coded.dataset.joinids()[cell]
                raise ValueError(
                    f"size factors must be above 0, but {shown(key)} is {values[cell]} for cell "
                    f"{joinid}: leave the cell out"
                )

    def _unseen(self, name: str) -> Any:
        """A label that is not known is that of an unlabelled cell; of the rest, it is an error."""
        return "code" if name == _LABELS and self.unlabeled_category is not None else "error"

    def _label_codes(self) -> torch.Tensor:
        """scvi's code for each code of the encoder; that of unlabelled cells at the end, where -1
        points to."""
        classes = self._classes.get(_LABELS, [])
        names: list[str | None] = [*self._label_names()]
        mapping = {label: code for code, label in enumerate(names)}
        unlabeled = mapping.get(self.unlabeled_category, -1)
        return torch.tensor([*(mapping[label] for label in classes), unlabeled], dtype=torch.int64)

    def _label_names(self) -> list[str]:
        named = [one for one in self._classes.get(_LABELS, []) if one != self.unlabeled_category]
        return named if self.unlabeled_category is None else [*named, self.unlabeled_category]

    @property
    def encoders(self) -> dict[str, str]:
        """The codes of all columns as JSON, to save with a model and give to another module."""
        return {name: encoder.to_json() for name, encoder in self._encoders.items()}

    def _fitted(
        self, dataset: ExperimentDataset, saved: Mapping[str, str] | None
    ) -> dict[str, native.BatchKeyEncoder]:
        """An encoder for each name: the saved one, or one for all cells that were selected."""
        columns = self._columns
        if saved is not None:
            missing = [name for name in columns if name not in saved]
            if missing:
                raise ValueError(f"the encoders lack {missing[0]!r}; they have {sorted(saved)}")
            return {
                name: native.BatchKeyEncoder.from_json(saved[name]).with_unseen(self._unseen(name))
                for name in columns
            }
        needed = list(dict.fromkeys(column for names in columns.values() for column in names))
        whole = whole_of(dataset._cells.source).open(needed) if needed else None
        fit = native.BatchKeyEncoder.fit
        return {
            name: fit(
                name, names, whole, unseen=self._unseen(name),
                nulls="unseen" if name == _LABELS else "class",
            )
            for name, names in columns.items()
        }

    # Batches

    def train_dataloader(self) -> EpochLoader:
        """The batches of the training part for this rank. Unless the data set says otherwise
        (`remainder=`), cells that do not fill a batch are left out of the epoch: the models'
        batch normalisation cannot train on one cell."""
        loader = super().train_dataloader()
        train = loader.experiment_dataset
        if train.remainder is None and train.n_samples >= train.batch_size:
            train.remainder = "drop"
        return loader

    def set_batch_size(self, batch_size: int | None) -> None:
        """Sets the cells of a training batch; scvi's models call it. None changes nothing."""
        if batch_size is not None:
            self.train_dataset.batch_size = positive("batch_size", batch_size)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """A batch as scvi's modules take it: a dictionary of tensors with a row per cell."""
        return self._tensors(batch)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch on the device, with X dense.

        While SCANVI trains, it is a pair: this, and the same of the labelled cells alone, or None
        if there are none.
        """
        tensors = {name: None if one is None else _dense(one) for name, one in batch.items()}
        if self.model_name not in _SEMISUPERVISED or _LABELS not in self._encoders:
            return tensors
        labelled = batch[_LABELS][:, 0] != self._code_of_label[-1]
        if bool(labelled.all()):
            return tensors, tensors
        if not bool(labelled.any()):
            return tensors, None
        rows = {key: None if one is None else one[labelled] for key, one in tensors.items()}
        return tensors, rows

    def _tensors(self, batch: Any) -> dict[str, torch.Tensor | None]:
        X, codes = batch[0], batch[1]
        X = X[None] if X.ndim == 1 else X
        zeros = torch.zeros((len(X), 1), dtype=torch.int64)

        def column(name: str) -> torch.Tensor:
            return codes[name][:, None] if name in self._encoders else zeros

        labels = self._code_of_label[codes[_LABELS]][:, None] if _LABELS in codes else zeros
        def numbers(keys: Sequence[str] | None) -> torch.Tensor | None:
            return torch.stack([codes[key] for key in keys], 1) if keys else None

        covariates = [f"covariate {key}" for key in self.categorical_covariate_keys or ()]
        further = {}
        if self.size_factor_key:
            further["size_factor"] = numbers(self.size_factor_key)
        for key, name in (("proteins", self.proteins), ("atac", self.atac)):
            if name is not None:
                further[key] = batch[2][name] if batch[2][name].ndim > 1 else batch[2][name][None]
        if self._rows is not None:
            further["ind_x"] = self._rows.of(codes)
        return {
            **further,
            "X": X,
            "batch": column(_BATCH),
            "labels": labels,
            "sample": column(_SAMPLE),
            "extra_categorical_covs": torch.cat([column(one) for one in covariates], 1)
            if covariates
            else None,
            "extra_continuous_covs": numbers(self.continuous_covariate_keys),
        }

    def inference_dataloader(self, batch_size: int | None = None) -> InferenceLoader:
        """All cells in their own order, for `get_latent_representation(dataloader=...)` and other
        methods of a model. Each of several ranks has its share.

        Args:
            batch_size: Cells of a batch; None means that of the data set.
        """
        size = self.inference_batch_size if batch_size is None else batch_size
        share = self.predict_dataset.in_order(world=self._world(), batch_size=size)
        return InferenceLoader(EpochLoader(share), self)

    # What scvi's models ask of a data module

    @property
    def n_obs(self) -> int:
        """Number of cells."""
        return self.dataset.dataset.shape[0]

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
        return len(self._classes.get(_BATCH, [None]))

    @property
    def batch_labels(self) -> npt.NDArray[np.object_] | None:
        """The name of each batch's code; None without a column."""
        return self._names_of(_BATCH)

    @property
    def n_labels(self) -> int:
        """Number of labels, with that of unlabelled cells; 1 without a column."""
        return len(self._label_names()) if _LABELS in self._encoders else 1

    @property
    def labels_mapping(self) -> npt.NDArray[np.object_] | None:
        """The name of each label's code; None without a column."""
        return np.array(self._label_names(), object) if _LABELS in self._encoders else None

    @property
    def labels_(self) -> npt.NDArray[np.object_] | None:
        """The label of each cell of the data set by ascending joinid; None without a column.

        The order of `inference_dataloader`, unless `predict` names other cells or ranks share them.
        """
        mapping = self.labels_mapping
        if mapping is None:
            return None
        codes = self.dataset.dataset.codes().column(_LABELS)
        found: npt.NDArray[np.object_] = mapping[self._code_of_label.numpy()[codes]]
        return found

    @property
    def n_samples(self) -> int:
        """Number of samples; 0 without a column."""
        return len(self._classes.get(_SAMPLE, []))

    @property
    def samples(self) -> npt.NDArray[np.object_] | None:
        """The name of each sample's code; None without a column."""
        return self._names_of(_SAMPLE)

    @property
    def n_obs_per_sample(self) -> torch.Tensor:
        """Number of cells of each sample."""
        if _SAMPLE not in self._encoders:
            return torch.tensor([])
        codes = self.dataset.dataset.codes().column(_SAMPLE)
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

    def model(self, cls: type[Any], *, rna: str = "rna", **options: Any) -> Any:
        """A model of scvi-tools that takes cells with proteins or peaks, TOTALVI or MULTIVI, over
        the cells of this module. What it learns before training (the library sizes of batches, the
        proteins that a batch lacks) comes from one pass over the cells, which need not fit into
        memory.

        The model is that of a MuData whose modalities are called like those of this module, so a
        saved one is loaded with such a MuData. `train` trains it.

        Args:
            cls: `scvi.model.TOTALVI` or `scvi.model.MULTIVI`.
            rna: The name of the modality of X in that MuData.
            options: Arguments of the model.

        Raises:
            ValueError: The model needs a modality that this module has not.
        """
        return multimodal_model(self, cls, rna, options)

    def train(self, model: Any, **options: Any) -> None:
        """Trains a model that `model` made, with this module's batches.

        Args:
            options: Arguments of `model.train`, apart from those that divide the cells.
        """
        train_multimodal(self, model, options)

    @property
    def registry(self) -> dict[str, Any]:
        """What scvi-tools knows of the data: `SCVI(registry=module.registry)`."""
        return registry_of(self)

    def _names_of(self, name: str) -> npt.NDArray[np.object_] | None:
        return np.array(self._classes[name], object) if name in self._encoders else None


class InferenceLoader:
    """The cells in their own order, as dictionaries of tensors."""

    def __init__(self, loader: EpochLoader, module: DataModule) -> None:
        self._loader = loader
        self._module = module

    def __iter__(self) -> Iterator[dict[str, torch.Tensor | None]]:
        for batch in self._loader:
            tensors = self._module._tensors(batch)
            yield {name: None if one is None else _dense(one) for name, one in tensors.items()}

    def __len__(self) -> int:
        return len(self._loader)


def _dense(X: torch.Tensor) -> torch.Tensor:
    return X if X.layout == torch.strided else X.to_dense()


class _RowNumbers:
    """The position of each cell among all cells of a data set."""

    def __init__(self, dataset: ExperimentDataset) -> None:
        opened = dataset.dataset
        self._joinids = opened.joinids()
        # Joinids ascend within each experiment.
        counts = np.bincount(opened.experiments(), minlength=opened.n_experiments)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def of(self, codes: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The positions of a batch's cells, one in each row."""
        joinids = codes[JOINID].numpy()
        rows = np.empty(len(joinids), np.int64)
        experiments = codes[_EXPERIMENT].numpy() if _EXPERIMENT in codes else 0 * joinids
        for experiment in np.unique(experiments):
            start, end = self._starts[experiment : experiment + 2]
            of_it = experiments == experiment
            rows[of_it] = start + np.searchsorted(self._joinids[start:end], joinids[of_it])
        return torch.from_numpy(rows)[:, None]


def _with_codes(
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
    coded.experiment_column = _EXPERIMENT if coded.dataset.n_experiments > 1 else None
    coded.form, coded.dtype, coded.return_sparse_X = form, "float32", False
    coded.obs_form, coded.obs_column_names = "codes", [JOINID]
    return coded
