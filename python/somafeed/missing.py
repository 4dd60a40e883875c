"""Missing numbers of fields: in chunks that are not stored, fill values and NaN, counted apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed.settings import shown

KINDS = ("chunk", "fill", "nan")
DONE = ("keep", "leave out", "error")

WhenMissing: TypeAlias = Literal["keep", "leave out", "error"]
"""What is done with a sample that has missing numbers of a kind."""

MissingKind: TypeAlias = Literal["chunk", "fill", "nan"]
"""Numbers in chunks that are not stored; in stored ones, those that `_FillValue` or `missing_value`
name; in stored ones, NaN. A fill value that is NaN counts as NaN."""


@dataclass(frozen=True)
class MissingNumbers:
    """The missing numbers of a variable: how many each of its steps has in the selected part."""

    steps: npt.NDArray[np.int64]
    """The steps, ascending, counted over all stores."""
    chunk: npt.NDArray[np.int64]
    """Numbers in chunks that are not stored, of each step."""
    fill: npt.NDArray[np.int64]
    """Numbers in stored chunks that a fill value is, of each step."""
    nan: npt.NDArray[np.int64]
    """Numbers in stored chunks that are NaN, of each step."""
    n_elements: int
    """Numbers of the selected part of a step."""
    description: str
    """What distinguishes the part from those of other arrays."""


@dataclass(frozen=True)
class Missing:
    """The missing numbers of samples. It may be pickled, and given to `FieldDataset(counted=)`."""

    variables: dict[str, MissingNumbers]
    """Those of each variable that has steps."""
    has_values: bool = True
    """Whether numbers in stored chunks were counted, too."""

    @classmethod
    def of(cls, counted: Any) -> Missing:
        """The counts of the native module."""
        has_values, variables = counted
        named = {}
        for name, description, n_elements, *columns in variables:
            steps, chunk, fill, nan = (np.array(column, np.int64) for column in columns)
            named[name] = MissingNumbers(steps, chunk, fill, nan, n_elements, description)
        return cls(named, has_values)

    def described(self) -> Any:
        """The counts as the native module takes them."""
        each = [
            (name, of.description, of.n_elements)
            + tuple(np.asarray(one).tolist() for one in (of.steps, of.chunk, of.fill, of.nan))
            for name, of in self.variables.items()
        ]
        return self.has_values, each


def checked_missing(missing: Any) -> list[tuple[str, str]]:
    """What is done with samples, by what they lack.

    Raises:
        TypeError: It is no dictionary.
        ValueError: A kind or what is done is another text.
    """
    if missing is None:
        return []
    if not isinstance(missing, Mapping):
        raise TypeError(f"missing is a dictionary by {', '.join(KINDS)}, not {shown(missing)}")
    for kind, done in missing.items():
        if kind not in KINDS:
            raise ValueError(f"missing has {shown(kind)}: there are {', '.join(KINDS)}")
        if done not in DONE:
            raise ValueError(f"missing {shown(kind)} is none of {', '.join(DONE)}")
    return [(kind, done) for kind, done in missing.items()]


__all__ = ["Missing", "MissingKind", "MissingNumbers", "WhenMissing"]
