"""A `LightningDataModule` over a data set of any kind, and predictions of several ranks in order.

Needs the package lightning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from somafeed.batches import required
from somafeed.epoch_loader import EpochLoader
from somafeed.predictions import RankPredictions, join_ranks
from somafeed.samples import SampleDataset
from somafeed.samplings import Sample
from somafeed.settings import shown
from somafeed.splits import checked_fractions

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningDataModule, Trainer
else:
    _lightning = required("lightning.pytorch", "somafeed.lightning")
    Callback, LightningDataModule = _lightning.Callback, _lightning.LightningDataModule

__all__ = ["DataModule", "PredictionWriter"]

D = TypeVar("D", bound=SampleDataset[Any])
"""The data set's class."""

_NAMES = ("train", "validation", "test")


@dataclass(frozen=True)
class _Division:
    """How samples are divided into parts."""

    fractions: tuple[float, ...]
    group: str | tuple[str, ...] | None
    label: str | None
    seed: int

    def parts(self, dataset: D) -> tuple[D, ...]:
        if self.group is not None:
            return dataset.split_by_group(
                self.group, *self.fractions, seed=self.seed, label=self.label
            )
        if self.label is not None:
            return dataset.split_by_label(self.label, *self.fractions, seed=self.seed)
        return dataset.random_split(*self.fractions, seed=self.seed, method="deterministic")


class DataModule(LightningDataModule, Generic[D]):
    """Samples for a Lightning `Trainer`: parts for training, validation and test, and prediction.

    Training batches are shuffled by the data set's seed and the trainer's epoch. A checkpoint of
    the trainer has their place, also in the middle of an epoch: `Trainer.fit(ckpt_path=...)` goes
    on with the batches that would have come. The number of ranks may change, if batch size times
    ranks stays.

    Samples for validation, test and prediction come in their own order, each exactly once on all
    ranks together (`in_order`).
    """

    def __init__(
        self,
        dataset: D,
        *,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        group: str | Sequence[str] | None = None,
        label: str | None = None,
        split_seed: int = 0,
        sampling: Sample | None = None,
        predict: D | None = None,
        inference_batch_size: int | None = None,
    ) -> None:
        """Divides the samples.

        Args:
            dataset: The samples, with the settings of all batches; for tensors `form="torch"`, of
                cells also `"torch_csr"`, with `obs_form="codes"`. It needs a `seed` if there are
                several ranks.
            fractions: Of training, validation and test; the last or the last two may be missing.
            group: Columns of labels, of cells those of obs: samples with the same values, for
                example of a donor, are in one part.
            label: A column of labels: each part has its share of every label.
            split_seed: Draws the parts; the same parts on all ranks and in all runs.
            sampling: What each epoch draws from the training part, for example
                `ClassBalanced("cell_type")`; None means each cell once.
            predict: The samples to predict; None means all of `dataset`.
            inference_batch_size: Samples of a batch for validation, test and prediction; None means
                that of `dataset`.

        Raises:
            ValueError: The fractions do not sum to 1 or are more than three; there is no such
                column.
            TypeError: `dataset` or `predict` is something else.
        """
        super().__init__()
        for one in (dataset, predict):
            if one is not None and not isinstance(one, SampleDataset):
                raise TypeError(f"DataModule takes a data set of somafeed, not {shown(one)}")
        checked = checked_fractions(fractions)
        if len(checked) > len(_NAMES):
            raise ValueError(f"fractions are of train, validation and test, not {checked}")
        names = group if group is None or isinstance(group, str) else tuple(group)
        division = _Division(checked, names, label, split_seed)
        parts = dict(zip(_NAMES, division.parts(dataset)))
        self.dataset = dataset
        """All samples."""
        self.train_dataset = parts["train"].with_sampling(sampling)
        """The training part."""
        self.validation_dataset = parts.get("validation")
        """The validation part; None without a fraction for it."""
        self.test_dataset = parts.get("test")
        """The test part; None without a fraction for it."""
        self.predict_dataset = dataset if predict is None else predict
        """The samples to predict."""
        self.inference_batch_size = inference_batch_size
        # With fewer samples than ranks, some ranks predict nothing.
        self.allow_zero_length_dataloader_with_multiple_devices = True
        self._train_loader: EpochLoader | None = None

    # Loaders

    def train_dataloader(self) -> EpochLoader:
        """The batches of the training part for this rank."""
        train = self.train_dataset.with_sampling(self.train_dataset.sampling)
        train._world = self._world()
        trainer = self.trainer
        if trainer is not None and trainer.overfit_batches > 0:
            train.shuffle = False
        n_trained = None if trainer is None else _Trained(trainer)
        self._train_loader = EpochLoader(train, n_trained)
        return self._train_loader

    def val_dataloader(self) -> Any:
        """The batches of the validation part for this rank; an empty list without one.

        Raises:
            ValueError: Some rank would have no batch: several ranks validate in step.
        """
        return self._in_order(self.validation_dataset, "validation")

    def test_dataloader(self) -> Any:
        """The batches of the test part for this rank; an empty list without one."""
        return self._in_order(self.test_dataset, "test")

    def predict_dataloader(self) -> EpochLoader:
        """The batches of this rank's share of the samples to predict."""
        return EpochLoader(self.predict_share())

    def predict_share(self) -> D:
        """This rank's share of the samples to predict, in their order."""
        size = self.inference_batch_size
        return self.predict_dataset.in_order(world=self._world(), batch_size=size)

    def _in_order(self, part: D | None, name: str) -> Any:
        if part is None or part._samples.n_rows == 0:
            return []
        world = self._world()
        if part._samples.n_rows < world[1]:
            raise ValueError(
                f"{part._samples.n_rows} {part._noun} for {name} are fewer than {world[1]} ranks: give "
                f"{name} a larger fraction"
            )
        return EpochLoader(part.in_order(world=world, batch_size=self.inference_batch_size))

    def _world(self) -> tuple[int, int]:
        """Rank and world size: the data set's own, or those of the trainer among the processes
        that have different data."""
        if self.dataset._world is not None:
            return self.dataset._world
        if self.trainer is None:
            return self.dataset.world
        ranks = self.trainer.distributed_sampler_kwargs
        if ranks is None:
            return self.trainer.global_rank, self.trainer.world_size
        return ranks["rank"], ranks["num_replicas"]

    # Ends

    def on_exception(self, exception: BaseException) -> None:
        """Ends the threads that read ahead."""
        self._close()

    def teardown(self, stage: str) -> None:
        """Ends the threads that read ahead."""
        self._close()

    def _close(self) -> None:
        if self._train_loader is not None:
            self._train_loader.close()


class _Trained:
    """Number of batches of the current epoch that a trainer has trained on."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def __call__(self) -> int:
        # What the trainer itself counts from when it resumes.
        return int(self._trainer.fit_loop.epoch_loop.batch_progress.current.processed)


class PredictionWriter(Callback):
    """Writes what `predict_step` returns to a folder, one row per sample, in the samples' own order.

    Each rank writes files of its own; at the end rank 0 joins them into `predictions.npy`, or
    `NAME.npy` for each entry of a dictionary, and the samples' numbers (`sample_numbers`) into
    `soma_joinid.npy`, of other kinds than cells `sample.npy`. Samples that could not be read
    (`on_error="skip"`) are in none of them. Needs a folder that all ranks share, and `Trainer.predict(..., datamodule=DataModule(...))`;
    `return_predictions=False` keeps them out of memory.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Names the folder, which is made if it is missing."""
        self.folder = folder
        self._written: RankPredictions | None = None
        self._numbers_of: Callable[[Any], Any] | None = None

    def setup(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Makes the folder before a prediction.

        Raises:
            TypeError: The trainer has no `DataModule`, so the samples are not known.
            ValueError: Several processes have the same samples.
        """
        # What a prediction that failed has left.
        self._written = self._numbers_of = None
        if stage != "predict":
            return
        module = getattr(trainer, "datamodule", None)
        if not isinstance(module, DataModule):
            raise TypeError("PredictionWriter needs a somafeed.lightning.DataModule at predict()")
        if module._world() != (trainer.global_rank, trainer.world_size):
            raise ValueError("PredictionWriter needs ranks of which each predicts its own samples")
        share = module.predict_share()
        self._numbers_of = share._numbers_in
        self._written = RankPredictions(
            self.folder,
            share.sample_numbers,
            trainer.global_rank,
            share.batch_size,
            share._number_name,
        )

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Writes the predictions of a batch.

        Raises:
            TypeError, ValueError: They are not a row per sample; see `RankPredictions.write`.
        """
        assert self._written is not None and self._numbers_of is not None
        self._written.write(outputs, self._numbers_of(batch))

    def teardown(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Joins the files of all ranks after a prediction.

        Not in `on_predict_end`, which a rank without samples does not reach.
        """
        if stage != "predict" or self._written is None:
            return
        self._written.finish()
        self._written = None
        trainer.strategy.barrier("somafeed.lightning.PredictionWriter: written")
        if trainer.is_global_zero:
            name = trainer.datamodule.predict_dataset._number_name
            join_ranks(self.folder, trainer.world_size, name)
        trainer.strategy.barrier("somafeed.lightning.PredictionWriter: joined")
