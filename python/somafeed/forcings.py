"""`Forcing`: fields that are computed from the times of samples, and weights of latitudes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed.settings import shown
from somafeed.steps import OfSteps, Steps

if TYPE_CHECKING:
    from somafeed import _somafeed as native

DType: TypeAlias = Literal["float32", "float16", "bfloat16"]
"""A type of elements, which are rounded once from double precision."""

DTYPES = ("float32", "float16", "bfloat16")

BuiltIn: TypeAlias = Literal[
    "cos_solar_zenith_angle",
    "year_progress_sin",
    "year_progress_cos",
    "day_progress_sin",
    "day_progress_cos",
]
"""What the loader computes.

| name | value |
|---|---|
| `"cos_solar_zenith_angle"` | cosine of the angle between sun and zenith; negative at night |
| `"year_progress_sin"`, `"year_progress_cos"` | sine and cosine of 2 pi times the share of the calendar's year that has passed |
| `"day_progress_sin"`, `"day_progress_cos"` | the same of the local day, which begins an hour earlier for each 15 degrees east |
"""

BUILT_IN: tuple[BuiltIn, ...] = (
    "cos_solar_zenith_angle",
    "year_progress_sin",
    "year_progress_cos",
    "day_progress_sin",
    "day_progress_cos",
)

Function: TypeAlias = Callable[
    [npt.NDArray[np.datetime64], npt.NDArray[Any] | None, npt.NDArray[Any] | None], Any
]
"""A function of times, latitudes and longitudes, in shapes that numpy broadcasts."""


@dataclass(frozen=True)
class Forcing(OfSteps):
    """A field that is computed from the times of a sample's steps, without an array.

    >>> Forcing("cos_solar_zenith_angle", steps=[1, 2])
    Forcing(what='cos_solar_zenith_angle', steps=(1, 2), rollout={}, dtype='float32')

    It has the shape of samples, steps if there are several, latitudes and longitudes: of the first
    variable of the samples that has both, in its order and direction and in its patches; in a
    `Stack` of the others there. Both need coordinates, in degrees. A latitude that is selected by a
    single index is a dimension here.
    """

    what: BuiltIn | Function
    """The name of what the loader computes on its threads. Or a function, which is called in Python
    as a batch is handed over: with the times of the steps, `datetime64[us]`, the latitudes and the
    longitudes, each shaped so that numpy broadcasts the three; what it returns is broadcast to the
    whole shape. Latitudes and longitudes are None if no variable has both."""
    steps: Steps = (0,)
    """Steps relative to the sample's own: see `Variable.steps`."""
    rollout: Mapping[int, int] = field(default_factory=dict)
    """How many of these steps there are, from which epoch on: see `Variable.rollout`."""
    dtype: DType | None = "float32"
    """The type of elements: see `Variable.dtype`. None leaves that of a function's result, and is
    float32 otherwise."""
    spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps as microseconds, if they are lengths of time."""

    def __post_init__(self) -> None:
        if not callable(self.what) and not (isinstance(self.what, str) and self.what in BUILT_IN):
            raise ValueError(
                f"a Forcing is a function or one of {', '.join(BUILT_IN)}, not {shown(self.what)}"
            )
        checked_dtype(self.dtype)
        self.set_steps()

    @property
    def name(self) -> str:
        """The name that it has in a list of variables.

        Raises:
            ValueError: It is a function.
        """
        if callable(self.what):
            raise ValueError("a Forcing that is a function needs a name: give a dictionary")
        return self.what

    @property
    def dropped(self) -> list[str]:
        """None: dimensions are those of another variable."""
        return []


def computed(
    forcing: Forcing,
    name: str,
    micros: npt.NDArray[np.int64],
    batch: native.FieldBatch,
    grid: tuple[str, str, str] | None,
) -> npt.NDArray[Any]:
    """What the function of a forcing makes of times, which are microseconds since 1970, on the grid
    of a variable, of which the names of latitudes and longitudes are given.

    Raises:
        TypeError: It has no numbers.
        ValueError: It has another shape.
    """
    assert callable(forcing.what)
    times = micros.astype("datetime64[us]")
    places: list[npt.NDArray[Any] | None] = [None, None]
    lengths: list[int] = []
    if grid is not None:
        gridded, *both = grid
        order = [one for one in batch.dimensions(gridded) if one in both]
        times = times.reshape(*micros.shape, 1, 1)
        places, lengths = _places(batch, gridded, both, order, micros.ndim)
    made = np.asarray(forcing.what(times, *places))
    if made.dtype.kind not in "biufc" and not (forcing.dtype is None and made.dtype.kind in "mM"):
        raise TypeError(
            f"the function of forcing {shown(name)} made elements of type {made.dtype}: return numbers"
        )
    if forcing.dtype not in (None, "bfloat16"):
        made = made.astype(forcing.dtype)
    elif forcing.dtype == "bfloat16":
        made = made.astype(np.float32)
    shape = (*micros.shape, *lengths)
    try:
        whole = np.broadcast_to(made, shape)
    except ValueError:
        raise ValueError(
            f"the function of forcing {shown(name)} made an array of shape {made.shape}, which is "
            f"not broadcast to {shape}"
        ) from None
    # It belongs to the user.
    return np.array(whole)


def _places(
    batch: native.FieldBatch, gridded: str, both: list[str], order: list[str], n_leading: int
) -> tuple[list[Any], list[int]]:
    """Latitudes and longitudes, shaped so that they are broadcast, and the lengths of the grid."""
    found: dict[str, npt.NDArray[Any]] = {}
    of_patches = batch.patch_coordinates(gridded)
    for dimension, numbers, _ in [*batch.coordinates(gridded), *of_patches]:
        if dimension not in both:
            continue
        places = np.asarray(numbers, np.float64)
        is_cut = any(dimension == one for one, *_ in of_patches)
        leading = (len(batch.samples), *[1] * (n_leading - 1)) if is_cut else (1,) * n_leading
        of_grid = (-1, 1) if order.index(dimension) == 0 else (1, -1)
        n = places.size // math.prod(leading)
        shape = tuple(n if length == -1 else length for length in of_grid)
        found[dimension] = places.reshape(*leading, *shape)
    lengths = [max(found[one].shape[-2:]) for one in order]
    return [found[one] for one in both], lengths


def checked_dtype(dtype: Any) -> None:
    """Checks a type of elements.

    Raises:
        ValueError: It is unknown.
    """
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(f"dtype is None or one of {', '.join(DTYPES)}, not {shown(dtype)}")


def latitude_weights(
    latitudes: npt.ArrayLike, method: Literal["area", "cosine"] = "area"
) -> npt.NDArray[np.float64]:
    """Weights of latitudes in degrees, with the mean 1: for the mean of a field over the sphere.

    >>> latitude_weights([-60, 0, 60])
    array([0.75, 1.5 , 0.75])

    Args:
        latitudes: In degrees; for areas they ascend or descend.
        method: `"area"` is the area of the cells: the sine of their upper bound less that of the
            lower one, as in WeatherBench 2 (`get_lat_weights` of its `metrics.py`). Bounds lie in the
            middle between latitudes; the outer ones as far beyond, at most at the poles. `"cosine"`
            is the cosine of the latitude, as in WeatherBench (Rasp et al., 2020, equation 2), where
            poles have no weight.

    Raises:
        ValueError: There is no latitude, or one that is not between -90 and 90; they neither ascend
            nor descend; the method is unknown.
    """
    try:
        degrees = np.atleast_1d(np.asarray(latitudes, np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"latitudes are numbers, not {shown(latitudes)}") from None
    if degrees.ndim != 1 or not len(degrees) or not (np.abs(degrees) <= 90).all():
        raise ValueError("latitudes are a list of degrees between -90 and 90")
    if method == "cosine":
        weights = np.cos(np.radians(degrees))
    elif method == "area":
        steps = np.diff(degrees)
        if not ((steps > 0).all() or (steps < 0).all()):
            raise ValueError("latitudes neither ascend nor descend: give method='cosine'")
        middles = degrees[:-1] + steps / 2
        # A single latitude has any cell.
        half = steps / 2 if len(steps) else np.ones(1)
        bounds = np.concatenate([degrees[:1] - half[:1], middles, degrees[-1:] + half[-1:]])
        weights = np.abs(np.diff(np.sin(np.radians(np.clip(bounds, -90, 90)))))
    else:
        raise ValueError(f"method is 'area' or 'cosine', not {shown(method)}")
    normal: npt.NDArray[np.float64] = weights / weights.mean()
    return normal


__all__ = ["Forcing", "latitude_weights"]
