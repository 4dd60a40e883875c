"""A data module with which scvi-tools trains its models from an `ExperimentDataset`.

Needs the packages lightning, torch and scvi-tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from somafeed import _somafeed as native
from somafeed.batches import Form, required
from somafeed.dataset import ExperimentDataset
from somafeed.epoch_loader import EpochLoader
from somafeed.lightning import DataModule as LightningDataModule
from somafeed.scvi_batches import (
    EXPERIMENT,
    InferenceLoader,
    RowNumbers,
    Tensors,
    dense_tensors,
    with_codes,
)
from somafeed.scvi_description import BATCH, LABELS, SAMPLE, Described
from somafeed.scvi_models import check_trained, model_of, train_model
from somafeed.scvi_registry import class_names, registry_of
from somafeed.scvi_streams import with_contrast, with_labelled, without_remainder
from somafeed.settings import names_of, positive, shown
from somafeed.sources import JOINID, whole_of
from somafeed.splits import Rows

if TYPE_CHECKING:
    import torch
else:
    torch = required("torch", "somafeed.scvi")

__all__ = ["DataModule"]

# Models whose training plan takes labelled cells beside a batch.
_SEMISUPERVISED = ("SCANVI",)
# Models that take normalised values.
_OF_NORMALISED = ("SysVI",)


class DataModule(Described, LightningDataModule[ExperimentDataset]):
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
        n_samples_per_label: int | None = None,
        sparse: bool = False,
        encoders: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> None:
        """Learns the codes of the columns, and divides the cells.

        Args:
            dataset: The cells. X must be counts, so without a transform, but for SysVI; its form
                becomes that of tensors, and that of obs codes.
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
            model_name: The model: with `"SCANVI"`, batches come with others of labelled cells.
            n_samples_per_label: Labelled cells of each label that an epoch draws for SCANVI, others
                in each; None means all. A label with fewer cells has all of them.
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
        if _is_transformed(dataset) and model_name not in _OF_NORMALISED:
            raise ValueError("models of scvi-tools take counts: leave X as it is stored")
        if dataset.tokens is not None:
            raise ValueError("models of scvi-tools take counts: leave tokens= out")
        by_name = {
            BATCH: batch_column_names, LABELS: label_keys, SAMPLE: sample_key,
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
        self.n_samples_per_label = (
            None
            if n_samples_per_label is None
            else positive("n_samples_per_label", n_samples_per_label)
        )
        # Places of background and target cells, while contrastiveVI trains.
        self._contrast: tuple[Rows, Rows] | None = None
        self._encoders = self._fitted(dataset, encoders)
        self._classes = {name: class_names(one) for name, one in self._encoders.items()}
        self._code_of_label = self._label_codes()
        form: Form = "torch_csr" if sparse else "torch"
        encoded = tuple(self._encoders.values())
        coded = with_codes(dataset, encoded, form, self._numbers)
        self._check_numbers(coded)
        predict = parts.pop("predict", None)
        if isinstance(predict, ExperimentDataset):
            predict = with_codes(predict, encoded, form, self._numbers)
        self._rows: RowNumbers | None = None
        super().__init__(coded, predict=predict, **parts)
        self.has_unlabeled = bool(
            label_keys and (self._labels_in(coded) == self._unlabeled_code).any()
        )
        """Whether a cell has the label of unlabelled cells."""

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
        return "code" if name == LABELS and self.unlabeled_category is not None else "error"

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
                nulls="unseen" if name == LABELS else "class",
            )
            for name, names in columns.items()
        }

    # Batches

    def setup(self, stage: str) -> None:
        """Checks the model before it trains.

        Raises:
            ValueError: It was made of the registry, but needs a pass over all cells: see `model`.
        """
        super().setup(stage)
        check_trained(self, getattr(getattr(self.trainer, "lightning_module", None), "module", None))

    def train_dataloader(self) -> EpochLoader:
        """The batches of the training part for this rank. Unless the data set says otherwise
        (`remainder=`), cells that do not fill a batch are left out of the epoch: the models'
        batch normalisation cannot train on one cell.

        Raises:
            ValueError: contrastiveVI trains, and the part has no background or no target.
        """
        loader = super().train_dataloader()
        train = loader.experiment_dataset
        assert isinstance(train, ExperimentDataset)
        if self._contrast is not None:
            paired = with_contrast(self, train, without_remainder, loader._n_trained)
            if paired is None:
                raise ValueError("the training part has no background cells, or no target cells")
            loader = paired
        else:
            without_remainder(train)
            if self._is_semisupervised:
                loader = with_labelled(self, loader)
        self._train_loader = loader
        return loader

    def _in_order(self, part: ExperimentDataset | None, name: str) -> Any:
        if self._contrast is None or part is None:
            return super()._in_order(part, name)

        def in_order(one: ExperimentDataset) -> Any:
            return super(DataModule, self)._in_order(one, name).experiment_dataset

        paired = with_contrast(self, part, in_order)
        return [] if paired is None else paired

    @property
    def _is_semisupervised(self) -> bool:
        return self.model_name in _SEMISUPERVISED and LABELS in self._encoders

    def set_batch_size(self, batch_size: int | None) -> None:
        """Sets the cells of a training batch; scvi's models call it. None changes nothing."""
        if batch_size is not None:
            self.train_dataset.batch_size = positive("batch_size", batch_size)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """A batch as scvi's modules take it: a dictionary of tensors with a row per cell."""
        if isinstance(batch, dict):
            return {name: self._tensors(one) for name, one in batch.items()}
        return self._tensors(batch)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch on the device, with X dense.

        While SCANVI trains, it is a pair: this, and another of labelled cells, or None if there are
        none. While it validates, the other has the labelled cells of the batch. For contrastiveVI it
        is a dictionary of the batches of background and target.
        """
        if "X" not in batch:
            batches = {name: dense_tensors(one) for name, one in batch.items()}
            return tuple(batches.values()) if "labelled" in batches else batches
        tensors = dense_tensors(batch)
        if not self._is_semisupervised:
            return tensors
        labelled = batch[LABELS][:, 0] != self._unlabeled_code
        if bool(labelled.all()):
            return tensors, tensors
        if not bool(labelled.any()):
            return tensors, None
        rows = {key: one[labelled] for key, one in tensors.items()}
        return tensors, rows

    def _tensors(self, batch: Any) -> Tensors:
        X, codes = batch[0], batch[1]
        X = X[None] if X.ndim == 1 else X
        zeros = torch.zeros((len(X), 1), dtype=torch.int64)

        def column(name: str) -> torch.Tensor:
            return codes[name][:, None] if name in self._encoders else zeros

        labels = self._code_of_label[codes[LABELS]][:, None] if LABELS in codes else zeros
        tensors: Tensors = {
            "X": X, "batch": column(BATCH), "labels": labels, "sample": column(SAMPLE)
        }
        # What there is none of is missing, as in scvi-tools: SysVI takes a None for covariates.
        if self.categorical_covariate_keys:
            covariates = [column(f"covariate {key}") for key in self.categorical_covariate_keys]
            tensors["extra_categorical_covs"] = torch.cat(covariates, 1)
        for entry, keys in (
            ("extra_continuous_covs", self.continuous_covariate_keys),
            ("size_factor", self.size_factor_key),
        ):
            if keys:
                tensors[entry] = torch.stack([codes[key] for key in keys], 1)
        for entry, modality in (("proteins", self.proteins), ("atac", self.atac)):
            if modality is not None:
                values = batch[2][modality]
                tensors[entry] = values if values.ndim > 1 else values[None]
        if self.atac is not None or self.model_name == "MRVI":
            joinids = codes[JOINID].numpy()
            experiments = codes[EXPERIMENT].numpy() if EXPERIMENT in codes else 0 * joinids
            places = self._row_numbers().of(joinids, experiments)
            tensors["ind_x"] = torch.from_numpy(places)[:, None]
        return tensors

    def inference_dataloader(self, batch_size: int | None = None) -> InferenceLoader:
        """All cells in their own order, for `get_latent_representation(dataloader=...)` and other
        methods of a model. Each of several ranks has its share.

        Args:
            batch_size: Cells of a batch; None means that of the data set.
        """
        size = self.inference_batch_size if batch_size is None else batch_size
        share = self.predict_dataset.in_order(world=self._world(), batch_size=size)
        return InferenceLoader(EpochLoader(share), self)

    @property
    def is_transformed(self) -> bool:
        """Whether X is scaled or its logarithm, so no counts."""
        return _is_transformed(self.dataset)

    def model(self, cls: type[Any], *, rna: str = "rna", **options: Any) -> Any:
        """A model of scvi-tools over the cells of this module, which need not fit into memory. It is
        that of an AnnData with all cells, or for TOTALVI and MULTIVI of a MuData whose modalities
        are called like those of this module: a saved one is loaded with such data. `train` trains
        it.

        Models whose numbers depend on all cells before training have them from one pass: TOTALVI
        the proteins that a batch lacks, SCAR the ambient profile, and all with a prior of the
        library size its mean and variance in each batch. The pseudoinputs of SysVI's prior are read
        by themselves.

        Args:
            cls: The class of the model, for example `scvi.external.SysVI`.
            rna: The name of the modality of X in that MuData.
            options: Arguments of the model.

        Raises:
            ValueError: The model needs or takes other columns or modalities than this module has.
        """
        return model_of(self, cls, rna, options)

    def train(self, model: Any, **options: Any) -> None:
        """Trains a model that `model` made, with this module's batches.

        Args:
            options: Arguments of `model.train`, apart from those that divide the cells. For
                contrastiveVI, `background_indices` and `target_indices` are places among all cells,
                in the order of `inference_dataloader`.
        """
        train_model(self, model, options)

    @property
    def registry(self) -> dict[str, Any]:
        """What scvi-tools knows of the data: `SCVI(registry=module.registry)`."""
        return registry_of(self)


def _is_transformed(dataset: ExperimentDataset) -> bool:
    transform = dataset.transform
    return bool(transform["target_sum"] is not None or transform["log1p"] or transform["clip"])
