"""A torch DataLoader over a data set."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from somafeed.batches import required
from somafeed.samples import SampleDataset
from somafeed.settings import shown

if TYPE_CHECKING:
    from torch.utils.data import DataLoader
else:
    try:
        from torch.utils.data import DataLoader
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise

        class DataLoader(Generic[TypeVar("T")]):
            """Stands in for torch's class where torch is not installed."""


_T = TypeVar("_T")

_REFUSED = ("shuffle", "batch_size", "sampler", "batch_sampler")


class ExperimentDataLoader(DataLoader[Any]):
    """A DataLoader whose workers, if it has any, get another epoch after each complete pass."""

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        batches, dataset = super().__iter__(), self.dataset
        assert isinstance(dataset, SampleDataset)
        if self.num_workers == 0:
            return _Batches(batches, dataset)
        return self._advancing(batches, dataset)

    def _advancing(self, batches: Iterator[Any], dataset: SampleDataset[Any]) -> Iterator[Any]:
        epoch = dataset.epoch
        # The workers begin there.
        dataset._epochs.forget_loaded()
        yield from batches
        if dataset.epoch == epoch:
            dataset.set_epoch(epoch + 1)


class _Batches(Iterator[Any]):
    """The batches of a DataLoader without workers. One that fails behind the data set, in
    `collate_fn` or while it is pinned, does not count as delivered, and is the last."""

    def __init__(self, batches: Iterator[Any], dataset: SampleDataset[Any]) -> None:
        self._batches = batches
        self._epochs = dataset._epochs

    def __next__(self) -> Any:
        before = self._epochs.delivered()
        try:
            batch = next(self._batches, self)
            if batch is not self:
                return batch
        except BaseException:
            self._epochs.fail_since(before)
            self._batches = iter(())
            raise
        raise StopIteration


def experiment_dataloader(ds: SampleDataset[Any], **dataloader_kwargs: Any) -> DataLoader[Any]:
    """A DataLoader that passes the batches of `ds` on as they are.

    Takes DataLoader's other arguments. Workers are correct and not needed, since native threads
    make batches ahead: each worker reads all cells, and delivers its share of the batches.

    Raises:
        ValueError: `shuffle`, `batch_size`, `sampler` or `batch_sampler` is given; these are
            settings of `ds`.
        TypeError: `ds` is something else.
        ModuleNotFoundError: torch is not installed.
    """
    required("torch", "experiment_dataloader")
    if not isinstance(ds, SampleDataset):
        raise TypeError(f"experiment_dataloader takes a data set of somafeed, not {shown(ds)}")
    refused = [name for name in _REFUSED if name in dataloader_kwargs]
    if refused:
        raise ValueError(
            f"DataLoader's {', '.join(refused)} cannot be used: "
            "the data set shuffles and makes batches itself"
        )
    if dataloader_kwargs.get("num_workers", 0) > 0:
        warn_of_workers()
    ds._epochs.own_shared()
    dataloader_kwargs.setdefault("collate_fn", as_it_is)
    return ExperimentDataLoader(ds, batch_size=None, shuffle=False, **dataloader_kwargs)


def warn_of_workers() -> None:
    """Warns that workers are not needed; the warning's filter shows it once."""
    warnings.warn(
        "num_workers is above 0: the data set reads in native threads, so workers only "
        "repeat the reading. num_workers=0 is as fast, in less memory.",
        UserWarning,
        stacklevel=3,
    )


def as_it_is(batch: _T) -> _T:
    """The batch itself."""
    return batch
