"""`SourceDataset`: samples that your own Python code reads, in shuffled batches, for PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Thread
from typing import Any, Literal, Protocol, TypeAlias, Unpack, runtime_checkable

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import array_maker
from somafeed.engine import EngineSettings
from somafeed.labels import Labels
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.settings import shown
from somafeed.stores import STORE, OfStore, named_stores

SourceForm: TypeAlias = Literal["numpy", "torch"]
"""The form of each array in a batch: `numpy.ndarray`, or `torch.Tensor` over the same memory."""

SourceBatch: TypeAlias = dict[str, Any]
"""An array or tensor of each name; its first dimension is the samples'."""

SAMPLE = "sample"


@runtime_checkable
class Source(Protocol):
    """Samples that Python code reads. Pickled for DataLoader workers that are not forked."""

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        ...

    def read(self, rows: npt.NDArray[np.int64]) -> Mapping[str, Any]:
        """Reads samples: an array for each name, whose first dimension is that of `rows`.

        Called in another thread than the one that iterates, for the rows of a block, which ascend.
        Names, types and shapes of a sample are those of sample 0, which is read when the data set
        is made.
        """
        ...


class Joined:
    """Several sources as one: the samples of the first, then those of the second and so on."""

    def __init__(self, names: Sequence[Any], sources: Sequence[Source]) -> None:
        """Reads the first sample of each.

        Raises:
            ValueError: Samples of two sources have other arrays.
        """
        self._sources = list(sources)
        self.sizes = [source.n_rows for source in sources]
        self._ends = np.cumsum(self.sizes)
        first: tuple[Any, Any] | None = None
        for name, source, size in zip(names, sources, self.sizes):
            if size == 0:
                continue
            read = source.read(np.zeros(1, np.int64)).items()
            arrays = {one: (np.asarray(of).dtype, np.shape(of)[1:]) for one, of in read}
            first = first or (name, arrays)
            if first[1] != arrays:
                raise ValueError(
                    f"samples of source {shown(first[0])} have {_described(first[1])}, those of "
                    f"{shown(name)} {_described(arrays)}"
                )

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return sum(self.sizes)

    def read(self, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Reads samples of the sources that have them."""
        of_rows = np.searchsorted(self._ends, rows, side="right")
        parts = [
            self._sources[at].read(rows[of_rows == at] - (self._ends[at] - self.sizes[at]))
            for at in np.unique(of_rows)
        ]
        if len(parts) == 1:
            return dict(parts[0])
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _described(arrays: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{name} of {dtype} {shape}" for name, (dtype, shape) in arrays.items())


class OwnSamples(OpenedSamples[native.OwnSamples]):
    """Samples of sources."""

    def __init__(self, sources: Sources) -> None:
        """Reads sample 0."""
        names, listed = named_stores(sources, Source)
        self.source: Source = listed[0]
        if names is not None:
            joined = Joined(names, listed)
            self.source, self.stores = joined, OfStore.of(names, joined.sizes)
            self.labels = Labels({} if self.stores is None else {STORE: self.stores})
        _ = self.opened

    def _open_all(self) -> native.OwnSamples:
        return native.OwnSamples(partial(_start, self.source))


Sources: TypeAlias = Source | Sequence[Source] | Mapping[str, Source]
"""A source, a list of several, or several by their names."""


def _start(source: Source, requests: Any) -> None:
    Thread(target=_answer, args=(source, requests), name="somafeed-source", daemon=True).start()


def _answer(source: Source, requests: Any) -> None:
    """Reads what is asked for, until nobody can ask any more."""
    for request in requests:
        try:
            rows = request.rows
            request.answer(source.n_rows if rows is None else source.read(rows))
        except BaseException as error:
            # Raised where the batch is waited for.
            request.fail(error)
        del request


class SourceDataset(OpenedDataset[SourceBatch, OwnSamples]):
    """Samples that your own Python code reads: order, ranks, resuming, memory limit, reading ahead
    and batches are the engine's.

    >>> import numpy as np
    >>> class Squares:
    ...     n_rows = 1_000
    ...     def read(self, rows):
    ...         return {"x": rows.astype(np.float32), "y": rows**2}
    >>> ds = SourceDataset(Squares(), batch_size=4, io_batch_size=64, shuffle=False)
    >>> batch = next(iter(ds))
    >>> batch["y"]
    array([0, 1, 4, 9])
    """

    def __init__(
        self,
        source: Sources,
        *,
        batch_size: int = 1,
        io_batch_size: int | None = None,
        shuffle: bool = True,
        shuffle_chunk_size: int = 1,
        seed: int | None = None,
        use_eager_fetch: bool = True,
        form: SourceForm = "numpy",
        number_samples: bool = False,
        **engine: Unpack[EngineSettings],
    ) -> None:
        """Reads sample 0.

        Args:
            source: The samples: see `Source`. A list of several, or a dictionary of them by names,
                gives the samples of the first, then those of the second and so on. A batch then
                has the entry `"store"`, the number of each sample's source, and the column `store`,
                for splits and `sampling`, has its name.
            form: The form of arrays in a batch: see `SourceForm`.
            number_samples: Whether a batch has the entry `"sample"`, the numbers of its samples.

        The other arguments are those of `FieldDataset`, and the engine's (`EngineSettings`).

        Raises:
            ValueError: Arguments that do not fit together; an array whose first dimension is not
                that of the rows.
            TypeError: `read` returns no dictionary, or an array of something else than numbers.
            ModuleNotFoundError: A package that batches of this form need is not installed.

        What the source raises, in its constructor or later, is raised as it is.
        """
        super().__init__(
            batch_size=batch_size,
            io_batch_size=batch_size if io_batch_size is None else io_batch_size,
            shuffle=shuffle,
            shuffle_chunk_size=shuffle_chunk_size,
            seed=seed,
            use_eager_fetch=use_eager_fetch,
            form=form,
            **engine,
        )
        if form not in ("numpy", "torch"):
            raise ValueError(f"unknown form {shown(form)}; there are numpy, torch")
        if not isinstance(source, Source | Mapping | Sequence):
            raise TypeError(f"a source has n_rows and read(rows), but this is {shown(source)}")
        self.form: SourceForm = form
        self.number_samples = bool(number_samples)
        self._opened_samples = OwnSamples(source)
        for name in (SAMPLE, STORE) if self._samples.stores else (SAMPLE,):
            if name in self.shapes:
                raise ValueError(f"{name!r} is the name of the samples' numbers: take another")
        # Now, so that settings that do not fit are an error here.
        self._loaders.batch_maker(self)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one sample of each array."""
        return {name: tuple(shape) for name, _, shape in self._samples.opened.arrays()}

    def __repr__(self) -> str:
        names = ", ".join(self.shapes)
        n = self._samples.n_rows
        return f"SourceDataset({n} samples of {names} in batches of {self.batch_size})"

    # What it says of its kind of samples

    def _batch_maker(self) -> Callable[[native.SampleBatch], SourceBatch]:
        number_samples, made = self.number_samples, array_maker(self.form)
        stores = self._samples.stores

        def make(batch: native.SampleBatch) -> SourceBatch:
            arrays = {name: made(array) for name, array in batch.arrays()}
            if number_samples:
                arrays[SAMPLE] = made(batch.samples)
            if stores is not None:
                arrays[STORE] = made(stores.codes_of(batch.samples))
            return arrays

        return make


__all__ = ["Source", "SourceBatch", "SourceDataset", "SourceForm"]
