"""The native loader with a data set's settings, and what makes the user's batches of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from somafeed.device import gpu_of

if TYPE_CHECKING:
    from somafeed.epochs import Epochs
    from somafeed.iteration import Place
    from somafeed.samples import NativeLoader, SampleDataset

Remainder: TypeAlias = Literal["keep", "drop", "pad"]
OnError: TypeAlias = Literal["raise", "skip"]
"""What happens if samples cannot be read."""
BatchMaker: TypeAlias = Callable[[Any], Any]


class Loaders:
    """The loader of a data set, made anew if its settings change or in another process."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._lanes: int | None = None
        self._loader: NativeLoader | None = None
        self._batch_key: tuple[Any, ...] = ()
        self._make_batch: BatchMaker | None = None

    def of(
        self, dataset: SampleDataset[Any], epochs: Epochs, place: Place
    ) -> tuple[NativeLoader, BatchMaker]:
        """The loader for a place, and the function that makes the user's batch.

        Raises:
            ValueError: The settings do not fit together, or not to the number of ranks.
            MemoryError: The limit of memory is too small for a block.
        """
        options = _options(dataset, epochs)
        key = (os.getpid(), options)
        lanes = place.lanes or epochs.lanes
        loader = self._loader
        if loader is None or self._key != key or self._lanes != lanes:
            loader = dataset._native_loader({"lanes": lanes, **options})
            self._loader, self._key, self._lanes = loader, key, lanes
        return loader, self.batch_maker(dataset)

    def batch_maker(self, dataset: SampleDataset[Any]) -> BatchMaker:
        """The function that makes the user's batch of a native one.

        Raises:
            ModuleNotFoundError: A package that batches of this form need is not installed.
            ValueError: A layer and an array of obsm have one name.
        """
        key = (os.getpid(), dataset.device, *dataset._batch_key())
        if self._make_batch is None or self._batch_key != key:
            self._make_batch, self._batch_key = dataset._placed_batch_maker(), key
        return self._make_batch

    def keep_lanes(self, lanes: int | None) -> None:
        """An epoch of the loader has started with these lanes, which it keeps."""
        self._lanes = lanes


def remainder_of(dataset: SampleDataset[Any], world_size: int) -> Remainder:
    """What becomes of samples that do not fill a global batch."""
    return dataset.remainder or ("keep" if world_size == 1 else "drop")


def _options(dataset: SampleDataset[Any], epochs: Epochs) -> dict[str, Any]:
    """The native loader's arguments, without the lanes."""
    rank, world_size = dataset.world
    is_random = dataset.shuffle or dataset.sampling is not None
    if world_size > 1 and is_random and epochs.is_seed_drawn:
        raise ValueError("several ranks need one order: give a seed")
    remainder = remainder_of(dataset, world_size)
    n_samples = dataset.n_samples
    if remainder == "drop" and 0 < n_samples < dataset.batch_size * world_size:
        raise ValueError(
            f"{n_samples} {dataset._noun} do not fill one batch of {dataset.batch_size} on each "
            f"of {world_size} ranks: take a smaller batch_size, or remainder='pad'"
        )
    chunk_rows, chunks_per_block = dataset.io_batch_size, 1
    if dataset.shuffle:
        chunk_rows = dataset.shuffle_chunk_size
        chunks_per_block = dataset.io_batch_size // chunk_rows
    sampling = dataset._samples.sampled(dataset.sampling)
    is_listed = sampling is not None and sampling.is_listed
    if is_listed:
        # Neighbours in the list are not stored together.
        chunk_rows, chunks_per_block = 1, dataset.io_batch_size
    ahead = 1 if dataset.use_eager_fetch else 0
    return {
        "batch_size": dataset.batch_size,
        "shuffle": dataset.shuffle,
        "seed": dataset.seed,
        "ramp_blocks": dataset.ramp_blocks,
        "on_error": dataset.on_error,
        "memory": dataset.memory,
        "gpu": gpu_of(dataset.device),
        "chunk_rows": chunk_rows,
        "chunks_per_block": chunks_per_block,
        "rank": rank,
        "world_size": world_size,
        "remainder": remainder,
        "order": "listed" if is_listed else None,
        "sampling": sampling,
        "prefetch_blocks": ahead,
        "prefetch_batches": ahead,
        **dataset._own_options(),
    }
