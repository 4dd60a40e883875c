"""The native loader with a data set's settings, and what makes the user's batches of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from somafeed import _somafeed as native
from somafeed.batches import NATIVE_FORMS, MiniBatch, XOrTokens, beside_maker, x_maker
from somafeed.obs_forms import obs_maker
from somafeed.tokens import token_maker
from somafeed.world import current_worker

if TYPE_CHECKING:
    from somafeed.dataset import ExperimentDataset
    from somafeed.epochs import Epochs
    from somafeed.iteration import Place

Remainder: TypeAlias = Literal["keep", "drop", "pad"]
BatchMaker: TypeAlias = Callable[[native.Batch], MiniBatch]
Made: TypeAlias = tuple[native.Loader, BatchMaker]


class Loaders:
    """The loader of a data set, made anew if its settings change or in another process."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._lanes: int | None = None
        self._loader: native.Loader | None = None
        self._batch_key: tuple[Any, ...] = ()
        self._make_batch: BatchMaker | None = None

    def of(self, dataset: ExperimentDataset, epochs: Epochs, place: Place) -> Made:
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
            # Workers share the processors, which one process may use half of.
            threads = None if current_worker() is None else 2
            loader = native.Loader(dataset.dataset, lanes=lanes, batch_threads=threads, **options)
            self._loader, self._key, self._lanes = loader, key, lanes
        return loader, self.batch_maker(dataset)

    def batch_maker(self, dataset: ExperimentDataset) -> BatchMaker:
        """The function that makes the user's batch of a native one.

        Raises:
            ModuleNotFoundError: A package that batches of this form need is not installed.
            ValueError: A layer and an array of obsm have one name.
        """
        of_obs = (dataset.obs_form, *dataset.obs_column_names, dataset.experiment_column)
        of_x = (dataset.form, dataset.return_sparse_X, dataset.batch_size, dataset.tokens)
        key = (os.getpid(), of_x, of_obs)
        if self._make_batch is None or self._batch_key != key:
            self._make_batch, self._batch_key = _batch_maker(dataset, dataset.dataset), key
        return self._make_batch

    def keep_lanes(self, lanes: int | None) -> None:
        """An epoch of the loader has started with these lanes, which it keeps."""
        self._lanes = lanes


def _batch_maker(dataset: ExperimentDataset, opened: native.Dataset) -> BatchMaker:
    """The function that makes the user's batch of a native one."""
    form, batch_size = dataset.form, dataset.batch_size
    make_x = x_maker(form, dataset.return_sparse_X, batch_size)
    make_tokens = None if dataset.tokens is None else token_maker(dataset.tokens, form)
    make_obs = obs_maker(
        dataset.obs_form, dataset.obs_column_names, dataset.experiment_column, opened, form
    )
    make_beside = beside_maker(make_x, opened, form, batch_size)

    def make(batch: native.Batch) -> MiniBatch:
        x: XOrTokens
        if make_tokens is None:
            x = make_x(batch, (batch.n_rows, batch.n_columns))
        else:
            x = make_tokens(batch)
        obs = make_obs(batch)
        return (x, obs) if make_beside is None else (x, obs, make_beside(batch))

    return make


def remainder_of(dataset: ExperimentDataset, world_size: int) -> Remainder:
    """What becomes of cells that do not fill a global batch."""
    return dataset.remainder or ("keep" if world_size == 1 else "drop")


def _options(dataset: ExperimentDataset, epochs: Epochs) -> dict[str, Any]:
    """The native loader's arguments, without the lanes."""
    rank, world_size = dataset.world
    is_random = dataset.shuffle or dataset.sampling is not None
    if world_size > 1 and is_random and epochs.is_seed_drawn:
        raise ValueError("several ranks need one order: give a seed")
    remainder = remainder_of(dataset, world_size)
    n_cells = dataset.n_samples
    if remainder == "drop" and 0 < n_cells < dataset.batch_size * world_size:
        raise ValueError(
            f"{n_cells} cells do not fill one batch of {dataset.batch_size} on each of "
            f"{world_size} ranks: take a smaller batch_size, or remainder='pad'"
        )
    chunk_rows, chunks_per_block = dataset.io_batch_size, 1
    if dataset.shuffle:
        chunk_rows = dataset.shuffle_chunk_size
        chunks_per_block = dataset.io_batch_size // chunk_rows
    sampling = dataset._cells.sampled(dataset.sampling)
    is_listed = sampling is not None and sampling.is_listed
    if is_listed:
        # Neighbours in the list are not stored together.
        chunk_rows, chunks_per_block = 1, dataset.io_batch_size
    ahead = 1 if dataset.use_eager_fetch else 0
    tokens = dataset.tokens
    is_csr = dataset.return_sparse_X or tokens is not None
    return {
        **{name: getattr(dataset, name) for name in dataset._loader_arguments},
        "chunk_rows": chunk_rows,
        "chunks_per_block": chunks_per_block,
        "form": "csr" if is_csr else NATIVE_FORMS[dataset.form],
        "tokens": dataset.tokenizer(),
        "token_layout": "padded" if tokens is None else tokens.layout,
        "rank": rank,
        "world_size": world_size,
        "remainder": remainder,
        "order": "listed" if is_listed else None,
        "sampling": sampling,
        "prefetch_blocks": ahead,
        "prefetch_batches": ahead,
        **dataset.transform,
    }
