"""Batches for the loops of a training framework, which count epochs and save checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from somafeed.iteration import ExperimentIterator
from somafeed.samples import SampleDataset


class EpochLoader:
    """The batches of a data set, epoch by epoch, with a state for checkpoints.

    A framework that knows the number of batches asks for no more, so that it never sees the end of
    the iterator; it sets the number of each epoch instead, through `sampler`.
    """

    def __init__(
        self, dataset: SampleDataset[Any], n_trained: Callable[[], int] | None = None
    ) -> None:
        """Wraps a data set.

        Args:
            dataset: The samples, with the rank and the world size of this process.
            n_trained: Returns the number of this epoch's batches that the model was trained on. A
                framework may have taken more: one ahead, or one at which it failed. None means all
                that were taken.
        """
        self.experiment_dataset = dataset
        self._n_trained = n_trained
        self._iterator: ExperimentIterator[Any] | None = None

    @property
    def sampler(self) -> EpochLoader:
        """This loader: frameworks look for `set_epoch` at the sampler of a loader."""
        return self

    @property
    def batch_sampler(self) -> None:
        """None, like that of a DataLoader whose data set makes the batches."""
        return None

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next batch. A loaded place in another epoch is forgotten."""
        self.experiment_dataset.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.experiment_dataset)

    def __iter__(self) -> Iterator[Any]:
        """The batches of an epoch; after `load_state_dict`, the rest of it."""
        self.close()
        self._iterator = iter(self.experiment_dataset)
        return self._iterator

    def close(self) -> None:
        """Ends the current iterator and its threads. The state stays."""
        if self._iterator is not None:
            self._iterator.close()
        self._iterator = None

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that the model was trained on; the same on every rank."""
        state = self.experiment_dataset.state_dict()
        if self._n_trained is None or state["loader"] is None:
            return state
        place = json.loads(state["loader"])
        place["batches_delivered"] = min(place["batches_delivered"], self._n_trained())
        return {**state, "loader": json.dumps(place)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues at a saved place.

        Raises:
            ValueError: The state is of something else, or of another seed.
        """
        self.experiment_dataset.load_state_dict(state)
