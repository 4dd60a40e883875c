"""`Patches`: samples that are patches of a grid, of a fixed grid of them or at random places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed.settings import at_least_0, checked_seed, no_text, positive, shown

PATCH = "patch"
"""The entry of a batch with the first index of each patch, and the column of patches' numbers."""

Mode: TypeAlias = Literal["reflect", "periodic"]

Padding: TypeAlias = "Mode | tuple[Literal['reflect'], int, int] | tuple[Literal['periodic'], int]"
"""What lies beyond the ends of a dimension: `"reflect"` adds after the end, like `numpy.pad`, as many
indices as the last patch lacks, `("reflect", 8, 8)` 8 before and 8 after; `"periodic"` is a
circle, like longitudes, and `("periodic", 8)` has its first patch begin 8 indices before the first
one."""


class CutDimension(NamedTuple):
    """A dimension that is cut into patches."""

    length: int
    """The number of its selected indices."""
    size: int
    """Indices of a patch."""
    n: int
    """Patches along it; of random boxes, the places where one may begin."""
    left_out: int
    """Indices after the last patch, too few for another one."""


@dataclass(frozen=True)
class Patches:
    """Patches of the grid, each of which is a sample with its step.

    >>> Patches({"lat": 64, "lon": 64}, stride={"lat": 48}, padding={"lon": "periodic"})
    Patches(sizes={'lat': 64, 'lon': 64}, stride={'lat': 48}, padding={'lon': 'periodic'}, random=None, seed=0)

    All variables that have a dimension are cut alike along it, static ones too. What they select of
    it (`isel`, `sel`) is selected first, and patches lie within. Samples count the patches of a
    step, the last dimension of `sizes` fastest, and then the steps.
    """

    sizes: Mapping[str | int, int]
    """Indices of a patch by the names of dimensions, or by their positions in the arrays."""
    stride: int | Mapping[str | int, int] | None = None
    """Indices from a patch to the next, of all dimensions or by their names; less than the size if
    patches overlap. None, and dimensions that are not named, have patches side by side."""
    padding: Mapping[str | int, Padding] = field(default_factory=dict)
    """What lies beyond the ends of dimensions: see `Padding`. Without it, indices after the last
    patch that are too few for another one are left out (`FieldDataset.patches` counts them)."""
    random: int | None = None
    """Boxes at random places, this many of each step, in place of a grid of patches. Every place is
    as likely; it depends on `seed`, the epoch and the sample alone, so it is the same for any
    number of ranks."""
    seed: int = 0
    """The seed of random boxes, from 0 to 2^64 - 1."""

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, Mapping) or not self.sizes:
            raise TypeError(
                f"patches have sizes by dimensions, like {{'lat': 64}}, not {shown(self.sizes)}"
            )
        for name, given in (("stride", self.stride), ("padding", self.padding)):
            by_name: Mapping[Any, Any] = given if isinstance(given, Mapping) else {}
            unknown = [one for one in by_name if one not in self.sizes]
            if unknown:
                raise ValueError(f"{name} has {shown(unknown[0])}, which no patch has a size of")
        if not isinstance(self.padding, Mapping):
            raise TypeError(f"padding is given by dimensions, not {shown(self.padding)}")
        if self.random is not None:
            positive("random", self.random)
            if self.stride is not None:
                raise ValueError("random boxes have no stride: give one or the other")
        self.described()

    def described(self) -> dict[str, Any]:
        """The patches as the native module takes them."""
        is_by_name = isinstance(self.stride, Mapping)
        strides: Any = self.stride if is_by_name else {}
        of_all: Any = None if is_by_name else self.stride
        dimensions = []
        for name, size in self.sizes.items():
            dimension = name if isinstance(name, str) else at_least_0("a dimension", name)
            what = f"the size of {shown(name)}"
            size = positive(what, no_text(what, size))
            stride = strides.get(name, size if of_all is None else of_all)
            what = f"the stride of {shown(name)}"
            stride = positive(what, no_text(what, stride))
            padding = _padding_of(name, self.padding.get(name))
            dimensions.append((dimension, size, stride, padding))
        return {"dimensions": dimensions, "random": self.random, "seed": checked_seed(self.seed)}


def _padding_of(dimension: Any, padding: Any) -> tuple[str, int, int | None]:
    """The mode, and the indices before and after, None for as many as needed.

    Raises:
        ValueError: It is something else.
    """
    if padding is None:
        return "none", 0, None
    mode, *numbers = padding if isinstance(padding, tuple | list) and padding else (padding,)
    n_numbers = (0, 2) if mode == "reflect" else (0, 1) if mode == "periodic" else ()
    if len(numbers) not in n_numbers:
        raise ValueError(
            f"padding of {shown(dimension)} is none of 'reflect', ('reflect', before, after), "
            "'periodic' and ('periodic', before)"
        )
    before, after, *_ = [*(at_least_0("padding", n) for n in numbers), None, None]
    return str(mode), before or 0, after


class PatchColumn:
    """The number of each sample's patch within its step, as a column of labels."""

    def __init__(self, n_patches: int, n_samples: int) -> None:
        self.n_patches, self.n_samples = n_patches, n_samples

    @property
    def labels(self) -> list[Any]:
        """The numbers."""
        return list(range(self.n_patches))

    def codes_of(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The patch of each of some samples."""
        return samples % self.n_patches

    def described(self) -> dict[str, Any]:
        """The column as the native meter of its entropy takes it."""
        codes = np.resize(np.arange(self.n_patches, dtype=np.uint32), self.n_samples)
        return {"n_classes": self.n_patches, "codes": codes, "ends": np.zeros(0, np.int64)}


__all__ = ["CutDimension", "Padding", "Patches"]
