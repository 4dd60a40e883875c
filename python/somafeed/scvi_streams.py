"""Two streams of cells in step, for models that train on two batches at once: SCANVI on all cells
and on labelled ones, contrastiveVI on background and target."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.dataset import ExperimentDataset
from somafeed.epoch_loader import EpochLoader
from somafeed.epochs import Epochs
from somafeed.loaders import remainder_of
from somafeed.scvi_batches import places_of
from somafeed.settings import shown

if TYPE_CHECKING:
    from somafeed.scvi import DataModule


class PairedLoader(EpochLoader):
    """The batches of one data set, each beside one of another, which begins again as often as
    needed: a dictionary of both. The other's batches of an epoch repeat in the same order, as in
    scvi-tools."""

    def __init__(
        self,
        names: tuple[str, str],
        dataset: ExperimentDataset,
        beside: ExperimentDataset,
        n_trained: Callable[[], int] | None = None,
    ) -> None:
        """Wraps both; `beside` has at least one batch, and `names` are their entries."""
        super().__init__(dataset, n_trained)
        self.names, self.beside = names, beside
        self._beside: Iterator[Any] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next batch. A loaded place in another epoch is forgotten."""
        super().set_epoch(epoch)
        self.beside.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        """The pairs of an epoch; after `load_state_dict`, the rest of it."""
        batches = super().__iter__()
        epoch = self.experiment_dataset.epoch
        self.beside.set_epoch(epoch)
        return self._pairs(batches, epoch)

    def _pairs(self, batches: Iterator[Any], epoch: int) -> Iterator[Any]:
        self._beside = iter(self.beside)
        for batch in batches:
            other = next(self._beside, None)
            if other is None:
                self.beside.set_epoch(epoch)
                self._beside = iter(self.beside)
                other = next(self._beside)
            yield dict(zip(self.names, (batch, other), strict=True))

    def close(self) -> None:
        """Ends the current iterators and their threads. The state stays."""
        super().close()
        close = getattr(self._beside, "close", None)
        if close is not None:
            close()
        self._beside = None

    def state_dict(self) -> dict[str, Any]:
        """The place after the last pair that the model was trained on; the same on every rank."""
        state, beside = super().state_dict(), self.beside.state_dict()
        beside["epoch"] = state["epoch"]
        if state["loader"] is None or beside["loader"] is None:
            beside["loader"] = None
        else:
            place = json.loads(beside["loader"])
            n_pairs = json.loads(state["loader"])["batches_delivered"]
            place["batches_delivered"] = n_pairs % len(self.beside)
            beside["loader"] = json.dumps(place)
        return {**state, "beside": beside}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues at a saved place.

        Raises:
            ValueError: The state is of something else, or of another seed.
        """
        if "beside" not in state:
            raise ValueError("this is the state of one stream, and there are two")
        state = dict(state)
        self.beside.load_state_dict(state.pop("beside"))
        super().load_state_dict(state)


def with_labelled(module: DataModule, loader: EpochLoader) -> EpochLoader:
    """Training batches, each beside one of labelled cells: each epoch draws up to
    `n_samples_per_label` of every label, or has all of them."""
    train = loader.experiment_dataset
    assert isinstance(train, ExperimentDataset)
    labels = module._labels_in(train)
    rows = np.flatnonzero(labels != module._unlabeled_code)
    if len(rows) == 0:
        return loader
    labelled = _with_other_seed(places_of(train, rows))
    labelled.sampling = labelled.remainder = None
    if module.n_samples_per_label is not None:
        labelled.sampling = native.Sampling.at_most_per_class(
            labels[rows].astype(np.uint32), module.n_samples_per_label
        )
    _leave_out_one_cell(labelled)
    return PairedLoader(("cells", "labelled"), train, labelled, loader._n_trained)


def with_contrast(
    module: DataModule,
    dataset: ExperimentDataset,
    prepare: Callable[[ExperimentDataset], ExperimentDataset],
    n_trained: Callable[[], int] | None = None,
) -> EpochLoader | None:
    """A part's background beside its target, each after `prepare`. The one with fewer batches
    begins again as often as needed. None if the part lacks one of them."""
    assert module._contrast is not None
    places = module._places_in(dataset)
    parts = [np.flatnonzero(np.isin(places, rows)) for rows in module._contrast]
    if any(len(rows) == 0 for rows in parts):
        return None
    background, target = (places_of(dataset, rows) for rows in parts)
    streams = [("background", prepare(background)), ("target", prepare(_with_other_seed(target)))]
    (first, longer), (second, shorter) = sorted(streams, key=lambda one: -len(one[1]))
    return PairedLoader((first, second), longer, shorter, n_trained)


def contrast_of(
    background: Sequence[int], target: Sequence[int], n_obs: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The places of background and target cells among all.

    Raises:
        ValueError: There are none, or they are not among the cells.
    """
    checked = []
    for name, rows in (("background_indices", background), ("target_indices", target)):
        places = np.asarray(rows)
        is_integer = places.ndim == 1 and places.dtype.kind in "iu" and len(places) > 0
        if not is_integer or places.min() < 0 or places.max() >= n_obs:
            raise ValueError(
                f"{name} must be places of cells from 0 to {n_obs - 1}, not {shown(rows)}"
            )
        checked.append(places.astype(np.int64))
    return checked[0], checked[1]


def _with_other_seed(dataset: ExperimentDataset) -> ExperimentDataset:
    """The data set with an order of its own. One seed would pair equal positions of two data sets
    of one size in every epoch."""
    epochs = dataset._epochs
    dataset._epochs = Epochs((epochs.seed + 1) % (1 << 64), epochs.is_seed_drawn)
    return dataset


def without_remainder(dataset: ExperimentDataset) -> ExperimentDataset:
    """The data set, without cells that do not fill a batch unless it says otherwise: the models'
    batch normalisation cannot train on one cell."""
    if dataset.remainder is None and dataset.n_samples >= dataset.batch_size:
        dataset.remainder = "drop"
    return dataset


def _leave_out_one_cell(dataset: ExperimentDataset) -> None:
    """Leaves a last batch of one cell out, which batch normalisation cannot train on."""
    world_size = dataset.world_size
    global_batch = dataset.batch_size * world_size
    if world_size > 1 and dataset.n_samples < global_batch:
        dataset.remainder = "pad"
    elif remainder_of(dataset, world_size) == "keep" and dataset.n_samples > global_batch:
        dataset.remainder = "drop" if dataset.n_samples % global_batch == 1 else "keep"
