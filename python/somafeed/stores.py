"""Several stores as one: which of them a sample is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from somafeed.settings import shown

STORE = "store"
"""The column with the name of each sample's store, and the entry of a batch with its number."""

_SETTINGS = ("config.", "rest.", "sm.", "soma.", "vfs.")
"""Beginnings of the names of settings of `config=`, whose values may be secrets."""


@dataclass(frozen=True)
class OfStore:
    """The store of each sample, as a column of labels: the samples of one store follow those of
    another."""

    labels: list[Any]
    """The names of the stores."""
    ends: npt.NDArray[np.int64]
    """One past the last sample of each store."""

    @classmethod
    def of(cls, names: list[Any] | None, sizes: Sequence[int]) -> OfStore | None:
        """The stores of these names, with these numbers of samples. None for one without a name."""
        return None if names is None else cls(names, np.cumsum(sizes, dtype=np.int64))

    def codes_of(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The number of the store of each of some samples."""
        return np.searchsorted(self.ends, samples, side="right").astype(np.int64)

    def described(self) -> dict[str, Any]:
        """The column as the native meter of its entropy takes it."""
        return {"n_classes": len(self.labels), "codes": np.zeros(0, np.int64), "ends": self.ends}


def named_stores(stores: Any, one: type | tuple[type, ...]) -> tuple[list[Any] | None, list[Any]]:
    """The names of several stores, and the stores: of a list their numbers. One store has no name.

    Raises:
        TypeError: There is something else among them.
        ValueError: There is none.
    """
    if isinstance(stores, one):
        return None, [stores]
    if isinstance(stores, Mapping):
        names, listed = list(stores), list(stores.values())
    elif isinstance(stores, Sequence) and not isinstance(stores, bytes):
        names, listed = list(range(len(stores))), list(stores)
    else:
        raise TypeError(f"this is neither a store nor several: {shown(stores)}")
    if not listed:
        raise ValueError("there is no store: name at least one")
    if not all(isinstance(name, str | int) for name in names):
        raise TypeError("stores have names: texts or numbers")
    settings = [name for name in names if str(name).startswith(_SETTINGS)]
    if settings:
        raise TypeError(f"{shown(settings[0])} is a setting, not the name of a store: give config=")
    other = [store for store in listed if not isinstance(store, one)]
    if other:
        raise TypeError(f"among several stores is {shown(other[0])}, which is none")
    return names, listed
