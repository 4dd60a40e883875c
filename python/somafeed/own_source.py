"""`SourceDataset`: samples that your own Python code reads, in shuffled batches, for PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from typing import Any, Literal, Protocol, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import array_maker
from somafeed.engine import EngineSettings
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.settings import shown

SourceForm: TypeAlias = Literal["numpy", "torch"]
"""The form of each array in a batch: `numpy.ndarray`, or `torch.Tensor` over the same memory."""

SourceBatch: TypeAlias = dict[str, Any]
"""An array or tensor of each name; its first dimension is the samples'."""

SAMPLE = "sample"


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


class OwnSamples(OpenedSamples[native.OwnSamples]):
    """Samples of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        _ = self.opened

    def _open_all(self) -> native.OwnSamples:
        return native.OwnSamples(partial(_start, self.source))


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
        source: Source,
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
            source: The samples: see `Source`.
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
        if not callable(getattr(source, "read", None)) or not hasattr(source, "n_rows"):
            raise TypeError(f"a source has n_rows and read(rows), but this is {shown(source)}")
        self.form: SourceForm = form
        self.number_samples = bool(number_samples)
        self._opened_samples = OwnSamples(source)
        if SAMPLE in self.shapes:
            raise ValueError(f"{SAMPLE!r} is the name of the samples' numbers: take another")
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

        def make(batch: native.SampleBatch) -> SourceBatch:
            arrays = {name: made(array) for name, array in batch.arrays()}
            if number_samples:
                arrays[SAMPLE] = made(batch.samples)
            return arrays

        return make


__all__ = ["Source", "SourceBatch", "SourceDataset", "SourceForm"]
