"""Predictions of several ranks, written to a folder and joined in the samples' own order."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from somafeed.settings import shown

_ONLY = "predictions"


class RankPredictions:
    """Writes what one rank predicts: a file of arrays for each name, a row per sample."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        numbers: npt.NDArray[np.int64],
        rank: int,
        batch_size: int,
        number_name: str = "soma_joinid",
    ) -> None:
        """Makes the folder.

        Args:
            folder: A folder that all ranks share.
            numbers: The samples of this rank, in the order in which they are predicted.
            rank: Rank of this process.
            batch_size: Samples of each batch but the last.
            number_name: What the numbers are called, and their file.
        """
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._numbers, self._number_name = numbers, number_name
        self._rank = rank
        self._batch_size = batch_size
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._n_written = self._n_planned = 0
        self._written: list[npt.NDArray[np.int64]] = []

    def write(self, predicted: Any, numbers: Any = None) -> None:
        """Appends the predictions of the next batch.

        Args:
            predicted: An array or a tensor with a row per sample, or a dictionary of such by name.
            numbers: The numbers of the batch's samples, which may lack some that could not be read.
                None means all that are planned.

        Raises:
            TypeError: It is something else.
            ValueError: An array has not a row for each sample of the batch; arrays have other names,
                or rows of another shape or type, than those before.
        """
        named = {name: _array(name, rows) for name, rows in _by_name(predicted, self._number_name).items()}
        planned = self._numbers[self._n_planned : self._n_planned + self._batch_size]
        of_batch = planned if numbers is None else _on_cpu(numbers).astype(np.int64)
        start = self._n_written
        stop = start + len(of_batch)
        for name, rows in named.items():
            if len(rows) != stop - start:
                raise ValueError(
                    f"prediction {name!r} has {len(rows)} rows, but the batch has {stop - start} "
                    "samples: return a row per sample"
                )
        if not self._arrays:
            self._arrays = {name: self._create(name, rows) for name, rows in named.items()}
        if self._arrays.keys() != named.keys():
            raise ValueError(f"predictions are {sorted(named)}, before {sorted(self._arrays)}")
        for name, rows in named.items():
            array = self._arrays[name]
            if array.shape[1:] != rows.shape[1:]:
                raise ValueError(
                    f"a prediction of {name!r} has shape {rows.shape[1:]}, before {array.shape[1:]}"
                )
            if not np.can_cast(rows.dtype, array.dtype, "safe"):
                raise ValueError(
                    f"a prediction of {name!r} has the type {rows.dtype}, before {array.dtype}: "
                    "return one type for all batches"
                )
            array[start:stop] = rows
        self._n_written = stop
        self._n_planned += len(planned)
        self._written.append(of_batch)

    def _create(self, name: str, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        shape = (len(self._numbers), *rows.shape[1:])
        file = _rank_file(self._folder, name, self._rank)
        return np.lib.format.open_memmap(file, mode="w+", dtype=rows.dtype, shape=shape)

    def finish(self) -> None:
        """Writes the numbers of the predicted samples beside the arrays, and closes the files."""
        for array in self._arrays.values():
            array.flush()  # type: ignore[attr-defined]
        # Fewer than the samples if the framework was asked for a part of the batches, or if some
        # could not be read.
        file = _rank_file(self._folder, self._number_name, self._rank)
        np.save(file, np.concatenate([self._numbers[:0], *self._written]))
        names = json.dumps(sorted(self._arrays))
        (self._folder / f"rank-{self._rank:05}.json").write_text(names)
        self._arrays = {}


def join_ranks(
    folder: str | os.PathLike[str], world_size: int, number_name: str = "soma_joinid"
) -> None:
    """Joins the files of all ranks into `NAME.npy` and that of the numbers, and removes them.

    Raises:
        FileNotFoundError: A rank wrote nothing to this folder.
        ValueError: Ranks predicted arrays of other names, types or shapes.
    """
    folder = Path(folder)
    by_rank = [set(json.loads(_names_file(folder, rank).read_text())) for rank in range(world_size)]
    # A rank without samples has no arrays.
    names = max(by_rank, key=len)
    other = [rank for rank, of_rank in enumerate(by_rank) if of_rank not in (names, set())]
    if other:
        raise ValueError(
            f"rank {other[0]} predicted {sorted(by_rank[other[0]])}, others {sorted(names)}"
        )
    numbers = [np.load(_rank_file(folder, number_name, rank)) for rank in range(world_size)]
    sizes = [len(of_rank) for of_rank in numbers]
    np.save(folder / f"{number_name}.npy", np.concatenate(numbers))
    for name in names:
        _join(folder, name, sizes)
    for rank, of_rank in enumerate(by_rank):
        for name in (number_name, *of_rank):
            _rank_file(folder, name, rank).unlink()
        _names_file(folder, rank).unlink()


def _join(folder: Path, name: str, sizes: list[int]) -> None:
    """Copies the rows of one array from the files of all ranks, one file in memory at a time."""
    files = [_rank_file(folder, name, rank) for rank in range(len(sizes))]
    ranks = [(np.load(file, mmap_mode="r"), n) for file, n in zip(files, sizes) if n > 0]
    first = ranks[0][0]
    kinds = {(rows.dtype, rows.shape[1:]) for rows, _ in ranks}
    if len(kinds) > 1:
        raise ValueError(
            f"ranks predicted {name!r} with rows of several types and shapes: "
            + ", ".join(sorted(f"{dtype} {shape}" for dtype, shape in kinds))
        )
    shape = (sum(sizes), *first.shape[1:])
    joined = np.lib.format.open_memmap(
        folder / f"{name}.npy", mode="w+", dtype=first.dtype, shape=shape
    )
    start = 0
    for rows, n in ranks:
        joined[start : start + n] = rows[:n]
        start += n
    joined.flush()


def _rank_file(folder: Path, name: str, rank: int) -> Path:
    return folder / f"{name}.rank-{rank:05}.npy"


def _names_file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank:05}.json"


def _by_name(predicted: Any, number_name: str) -> Mapping[str, Any]:
    if not isinstance(predicted, Mapping):
        return {_ONLY: predicted}
    wrong = [
        name for name in predicted if not isinstance(name, str) or name != os.path.basename(name)
    ]
    if wrong or not predicted or number_name in predicted:
        raise ValueError(
            f"predictions need names that files can have, other than {number_name}: {list(predicted)}"
        )
    return predicted


def _on_cpu(rows: Any) -> npt.NDArray[Any]:
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
        # numpy has no bfloat16.
        rows = rows.float() if str(rows.dtype) == "torch.bfloat16" else rows
    return np.asarray(rows)


def _array(name: str, rows: Any) -> npt.NDArray[Any]:
    """An array on the CPU, of at least rank 1."""
    if hasattr(rows, "detach"):
        rows = _on_cpu(rows)
    if not isinstance(rows, np.ndarray) or rows.ndim == 0 or rows.dtype.hasobject:
        raise TypeError(
            f"prediction {name!r} must be an array with a row per sample, not {shown(rows)}"
        )
    return rows
