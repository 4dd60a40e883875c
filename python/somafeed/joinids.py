"""Joinids in compressed form, so that a selection of a hundred million cells can be pickled."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, final

import numpy as np
import numpy.typing as npt

NDArrayJoinId = npt.NDArray[np.int64]
"""Joinids: a one-dimensional array of int64."""


@final
class Joinids:
    """Joinids of cells or genes in a fixed order.

    Pickles as ranges, or as compressed differences: a range takes 100 bytes, an arbitrary half of
    all cells about a bit per cell.

    >>> import pickle
    >>> joinids = Joinids(range(100_000_000, 100_100_000))
    >>> len(joinids), joinids.selection()
    (100000, (100000000, 100100000))
    >>> len(pickle.dumps(joinids)) < 300
    True
    """

    __slots__ = ("_array",)

    def __init__(self, joinids: Iterable[int] | npt.ArrayLike) -> None:
        """Copies the joinids.

        Raises:
            ValueError: They are not integers, one is negative, or there is more than one dimension.
        """
        if isinstance(joinids, range):
            joinids = np.arange(joinids.start, joinids.stop, joinids.step)
        elif not isinstance(joinids, np.ndarray):
            to_numpy = getattr(joinids, "to_numpy", None)
            joinids = to_numpy() if to_numpy is not None else np.asarray(joinids)
        array = np.asarray(joinids)
        if array.size == 0:
            array = np.zeros(0, np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(
                f"joinids must be a list of integers, not {array.ndim}-dimensional {array.dtype}"
            )
        if array.size > 0 and (int(array.min()) < 0 or int(array.max()) > np.iinfo(np.int64).max):
            raise ValueError("joinids must be from 0 to 2^63 - 1")
        self._array: NDArrayJoinId = array.astype(np.int64)
        self._array.flags.writeable = False

    def ascending(self) -> Joinids:
        """The same joinids in ascending order.

        Raises:
            ValueError: A joinid is there twice.
        """
        steps = np.diff(self._array)
        if bool(np.all(steps > 0)):
            return self
        ordered = np.sort(self._array)
        twice = np.flatnonzero(np.diff(ordered) == 0)
        if twice.size > 0:
            raise ValueError(f"joinid {ordered[twice[0]]} is selected twice")
        return Joinids(ordered)

    def array(self) -> NDArrayJoinId:
        """The joinids as a read-only array."""
        return self._array

    def selection(self) -> NDArrayJoinId | tuple[int, int]:
        """The joinids for the native module: a range `(start, stop)` if they are one."""
        n = self._array.size
        if n > 0 and bool(np.all(np.diff(self._array) == 1)):
            start = int(self._array[0])
            return start, start + n
        return self._array

    def __len__(self) -> int:
        return int(self._array.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Joinids) and np.array_equal(self._array, other._array)

    def __hash__(self) -> int:
        return hash(self._array.tobytes())

    def __repr__(self) -> str:
        return f"Joinids({np.array2string(self._array, threshold=6)})"

    def __reduce__(self) -> tuple[Any, ...]:
        steps = np.diff(self._array, prepend=np.int64(0))
        breaks = np.flatnonzero(steps != 1)
        # A run is its first joinid, as a step from the run before, and its length.
        if 4 * breaks.size < steps.size:
            lengths = np.diff(breaks, append=steps.size)
            head = int(breaks[0]) if breaks.size > 0 else steps.size
            return _from_runs, (head, _pack(steps[breaks]), _pack(lengths))
        return _from_steps, (_pack(steps),)


def _pack(numbers: npt.NDArray[Any]) -> tuple[str, bytes]:
    """Numbers in the smallest type that holds them, compressed."""
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size > 0 else (0, 0)
    smallest = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    dtype = smallest if smallest.kind in "iu" else np.dtype(np.int64)
    little = dtype.newbyteorder("<")
    return little.str, zlib.compress(numbers.astype(little).tobytes(), 9)


def _unpack(packed: tuple[str, bytes]) -> NDArrayJoinId:
    dtype, data = packed
    return np.frombuffer(zlib.decompress(data), dtype).astype(np.int64)


def _from_steps(steps: tuple[str, bytes]) -> Joinids:
    return Joinids(np.cumsum(_unpack(steps)))


def _from_runs(head: int, steps: tuple[str, bytes], lengths: tuple[str, bytes]) -> Joinids:
    all_lengths = _unpack(lengths)
    every = np.ones(head + int(all_lengths.sum()), np.int64)
    places = head + np.cumsum(all_lengths) - all_lengths
    every[places] = _unpack(steps)
    return Joinids(np.cumsum(every))
