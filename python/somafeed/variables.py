"""`Variable` and `Stack`: which parts of which arrays make a sample of fields."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed.axes import dimension_names
from somafeed.settings import at_least_0, integer, no_text, positive, shown
from somafeed.times import TimeSpan, microseconds

Index: TypeAlias = "int | slice | Sequence[int] | npt.NDArray[Any]"
Label: TypeAlias = "str | float | slice | Sequence[str | float] | npt.NDArray[Any]"

Steps: TypeAlias = "int | TimeSpan | Sequence[int | TimeSpan]"

SAMPLE = "sample"
"""The name of the samples' numbers, and of their dimension."""

_ONE_STEP = int | str | np.integer | np.timedelta64 | datetime.timedelta


@dataclass(frozen=True)
class Variable:
    """One array of a sample: which part of it, and which steps around the sample's own.

    >>> Variable("fields", steps=[-1, 0], isel={"lat": slice(8, 184)}, sel={"channel": ["t2m"]})
    Variable(path='fields', dim=None, store=None, steps=(-1, 0), rollout={}, isel={'lat': slice(8, 184, None)}, sel={'channel': ['t2m']}, dims=(), dtype=None, mask_and_scale=True, normalize=None)
    """

    path: str
    """The array's path in the store, for example `t2m` or `era5/t2m`. Its first dimension, or that
    which `FieldDataset(dim=)` names, is that of the samples' steps. Without a dimension of this name
    the array is static: a batch has it once, without samples."""
    dim: str | int | None = None
    """The dimension of its steps, if it is not that of the data set: `"time"` of an analysis beside
    forecasts along `init_time`."""
    store: str | int | Sequence[str | int] | None = None
    """The store that it is read from, or several, by their names or numbers (`FieldDataset(uri=)`).
    None is every store that has it."""
    steps: Steps = (0,)
    """Steps relative to the sample's own, in the order of the batch: numbers of steps, or lengths
    of time (`["-6h", "0h"]`). The latter are found by the array's times, and samples of which one
    is not there are left out (`FieldDataset.left_out`)."""
    rollout: Mapping[int, int] = field(default_factory=dict)
    """How many of the steps a sample has, the first ones, from which epoch on: `{0: 1, 5: 2, 10: 4}`
    with `steps=[1, 2, 3, 4]`. Empty is all of them. Batches then have the dimension of steps in every
    epoch, and samples are those that have all steps, so that each epoch has as many."""
    isel: Mapping[str, Index] = field(default_factory=dict)
    """The selected indices of other dimensions, as xarray's `isel` takes them."""
    sel: Mapping[str, Label] = field(default_factory=dict)
    """The selected coordinates of other dimensions, as xarray's `sel` takes them: labels equal
    coordinates exactly; a slice has both of its ends."""
    dims: Sequence[str] = ()
    """The order in which its other dimensions are delivered, after those that are not named, which
    come as they are stored: `["latitude", "longitude"]`. Empty is that of the data set
    (`FieldDataset(dims=)`)."""
    dtype: Literal["float32"] | None = None
    """`"float32"` converts the elements; None leaves their type."""
    mask_and_scale: bool = True
    """Whether packed numbers are unpacked by the attributes `scale_factor`, `add_offset`,
    `_FillValue`, `missing_value` and `_Unsigned`, and missing ones become NaN, as in xarray."""
    normalize: Sequence[Any] | None = None
    """A mean and a deviation, or an array of them with two rows: less the mean and divided by the
    deviation, numbers are delivered as floating point. One pair for all, or one for each selected
    index of the outermost dimension that is delivered, but that of the samples, such as levels
    (`FieldDataset.statistics` computes them)."""
    spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps as microseconds, if they are lengths of time."""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str):
            raise TypeError(f"the path of an array is a text, not {shown(self.path)}")
        _set_steps(self)
        _checked_rollout(self.rollout)
        object.__setattr__(self, "dims", dimension_names("dims", self.dims))
        _pairs(self.normalize)
        if self.dtype not in (None, "float32"):
            raise ValueError(f"dtype is 'float32' or None, not {shown(self.dtype)}")
        twice = set(self.isel) & set(self.sel)
        if twice:
            raise ValueError(f"dimension {shown(twice.pop())} is both in isel and in sel")

    @property
    def offsets(self) -> tuple[int, ...]:
        """The steps as numbers: of steps, or of microseconds if there are `spans`."""
        return _offsets(self)

    @property
    def dropped(self) -> list[str]:
        """The dimensions that are selected by one index or label, which an array then lacks."""
        both = {**self.isel, **self.sel}
        return [one for one, at in both.items() if isinstance(at, int | float | str | np.number)]


@dataclass(frozen=True)
class Stack:
    """Several variables as the channels of one array, in this order, straight from the store.

    >>> Stack([Variable("t2m"), Variable("z", sel={"level": [500, 850]})], steps=[-1, 0])
    Stack(variables={'t2m': Variable(path='t2m', ...)

    The array has the shape of samples, steps if there are several, channels, and the last two
    dimensions, which all variables share. Levels become channels of their own: here `t2m`, `z_500`
    and `z_850`.
    """

    variables: Mapping[str, Variable | str] | Sequence[Variable | str]
    """The variables by the names of their channels, or in a list, with their paths' last names."""
    steps: Steps = (0,)
    """Steps of all of them: see `Variable.steps`. Those of the variables are not looked at."""
    rollout: Mapping[int, int] = field(default_factory=dict)
    """How many of these steps there are, from which epoch on: see `Variable.rollout`."""
    dims: Sequence[str] = ()
    """The order in which their other dimensions are delivered, of those that have none of their
    own: see `Variable.dims`. Channels come first."""
    dtype: Literal["float32"] | None = "float32"
    """`"float32"` converts the elements; None leaves their type, which all must have."""
    normalize: Sequence[Any] | None = None
    """Two rows of as many numbers as there are channels, means and deviations: see
    `Variable.normalize`."""
    ensemble: str | None = None
    """The name of a new dimension, in place of the channels: the variables are then the members of an
    ensemble, of one shape, and keep all of their dimensions. Their names are its coordinates, as
    integers if all are such. It comes before those of a member, unless `dims` names it, where the
    array is a view of that order. `normalize` is that of one member."""
    spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps as microseconds, if they are lengths of time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", checked_variables(self.variables))
        if len(self.members) < len(self.variables):
            raise TypeError("a Stack has variables, not other stacks")
        if self.dtype not in (None, "float32"):
            raise ValueError(f"dtype is 'float32' or None, not {shown(self.dtype)}")
        _pairs(self.normalize)
        _set_steps(self)
        _checked_rollout(self.rollout)
        object.__setattr__(self, "dims", dimension_names("dims", self.dims))
        if self.ensemble is not None and not (self.ensemble and isinstance(self.ensemble, str)):
            raise TypeError(f"ensemble is the name of a dimension, not {shown(self.ensemble)}")

    @property
    def members(self) -> dict[str, Variable]:
        """The variables by the names of their channels."""
        assert isinstance(self.variables, Mapping)
        return {name: one for name, one in self.variables.items() if isinstance(one, Variable)}

    @property
    def offsets(self) -> tuple[int, ...]:
        """The steps as numbers: of steps, or of microseconds if there are `spans`."""
        return _offsets(self)

    @property
    def dropped(self) -> list[str]:
        """Those that all members of an ensemble lack; none of channels, which indices and labels are."""
        if self.ensemble is None:
            return []
        first, *others = self.members.values()
        return [one for one in first.dropped if all(one in of.dropped for of in others)]


AnyVariable: TypeAlias = Variable | Stack


def arrays_of(named: Mapping[str, AnyVariable]) -> dict[tuple[str, str], Variable]:
    """All variables that are arrays, by the name of the stack that they are in, and by their own."""
    arrays: dict[tuple[str, str], Variable] = {}
    for name, one in named.items():
        if isinstance(one, Stack):
            arrays |= {(name, member): variable for member, variable in one.members.items()}
        else:
            arrays["", name] = one
    return arrays


def _offsets(variable: AnyVariable) -> tuple[int, ...]:
    steps = variable.steps
    assert isinstance(steps, tuple)
    return variable.spans or tuple(integer("a step", step) for step in steps)


def _set_steps(variable: AnyVariable) -> None:
    """Checks the steps, and sets those that are lengths of time."""
    steps = variable.steps
    listed = [steps] if isinstance(steps, _ONE_STEP) else list(steps)
    if all(map(_is_counted, listed)):
        object.__setattr__(variable, "steps", tuple(integer("a step", step) for step in listed))
        return
    # A number of steps is no time, except none of them.
    spans = ("0h" if _is_counted(step) and step == 0 else step for step in listed)
    object.__setattr__(variable, "spans", tuple(microseconds("a step", span) for span in spans))
    object.__setattr__(variable, "steps", tuple(listed))


def _checked_rollout(rollout: Any) -> list[tuple[int, int]]:
    """The numbers of steps by epoch, which ascend.

    Raises:
        TypeError: They are no dictionary of numbers.
        ValueError: A number is negative.
    """
    if not isinstance(rollout, Mapping):
        raise TypeError(f"rollout is a dictionary of numbers by epoch, not {shown(rollout)}")
    what = "a number of rollout"
    return sorted(
        (at_least_0("an epoch of rollout", epoch), positive(what, no_text(what, n)))
        for epoch, n in rollout.items()
    )


def _is_counted(step: object) -> bool:
    # A timedelta64 of numpy is one of its integers.
    return isinstance(step, int | np.integer) and not isinstance(step, np.timedelta64)


def checked_variables(variables: Any) -> dict[str, AnyVariable]:
    """The variables by their names.

    Raises:
        TypeError: They are something else.
        ValueError: There is none.
    """
    if isinstance(variables, str) or not isinstance(variables, Mapping | Sequence):
        raise TypeError(f"variables are a dictionary or a list of paths, not {shown(variables)}")
    if not isinstance(variables, Mapping):
        variables = {_last_name(one): one for one in variables}
    if not variables:
        raise ValueError("name at least one variable")
    named: dict[str, AnyVariable] = {}
    for name, one in variables.items():
        made = Variable(one) if isinstance(one, str) else one
        if not isinstance(name, str) or not isinstance(made, Variable | Stack):
            raise TypeError(f"a variable is a path, a Variable or a Stack, not {shown(one)}")
        named[name] = made
    if SAMPLE in named:
        raise ValueError(f"{SAMPLE!r} is the name of the samples' numbers: take another")
    return named


def _last_name(variable: Any) -> str:
    if isinstance(variable, Stack):
        raise ValueError("a Stack needs a name: give a dictionary")
    path = variable.path if isinstance(variable, Variable) else variable
    return str(path).strip("/").rpartition("/")[2]


def _pairs(normalize: Any) -> list[tuple[float, float]]:
    """Means with their deviations.

    Raises:
        ValueError: They are no two numbers, nor two rows of as many.
    """
    if normalize is None:
        return []
    expected = f"a mean and a deviation, or two rows of them, are expected, not {shown(normalize)}"
    try:
        pairs = np.asarray(normalize, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"normalize: {expected}") from None
    if pairs.ndim not in (1, 2) or len(pairs) != 2:
        raise ValueError(f"normalize: {expected}")
    return [(float(mean), float(by)) for mean, by in np.atleast_2d(pairs.T)]


Selections: TypeAlias = dict[tuple[str, str], dict[str, Any]]
"""Indices and labels of arrays, by the name of the stack that they are in, and by their own."""


def described(
    name: str,
    variable: AnyVariable,
    selections: Selections,
    stores: Mapping[str | int, int],
    stack: str = "",
) -> dict[str, Any]:
    """The variable as the native module takes it. `stores` has the numbers of stores by name."""
    ensemble = variable.ensemble if isinstance(variable, Stack) else None
    plain: dict[str, Any] = {
        "name": name,
        "path": "",
        "along": None,
        "stores": [],
        "steps": [0] if variable.spans else list(variable.offsets),
        "spans": list(variable.spans),
        "rollout": _checked_rollout(variable.rollout),
        "isel": [],
        "sel": [],
        "dims": [one for one in variable.dims if one != ensemble],
        "as_f32": variable.dtype == "float32",
        "mask_and_scale": True,
        "normalize": [],
        "stack": [],
        "ensemble": ensemble,
    }
    if isinstance(variable, Stack):
        members = variable.members.items()
        plain["normalize"] = _pairs(variable.normalize)
        stack_of = [described(*one, selections, stores, name) for one in members]
        return {**plain, "stack": stack_of}
    own = {
        "path": variable.path,
        "along": variable.dim,
        "stores": _numbers_of(variable.store, stores),
        "mask_and_scale": variable.mask_and_scale,
        "normalize": _pairs(variable.normalize),
    }
    return {**plain, **own, **selections.get((stack, name), {})}


def _numbers_of(store: Any, stores: Mapping[str | int, int]) -> list[int]:
    """The numbers of stores.

    Raises:
        ValueError: There is none of a name.
    """
    named = [] if store is None else [store] if isinstance(store, str | int) else list(store)
    unknown = [one for one in named if one not in stores]
    if unknown:
        there = ", ".join(map(repr, stores)) or "one store alone, which has no name"
        raise ValueError(f"there is no store {shown(unknown[0])}; there are {there}")
    return [stores[one] for one in named]


def selected_indices(dimension: str, at: Index, length: int) -> tuple[int, int] | list[int]:
    """Indices as the native module takes them."""
    if isinstance(at, slice):
        start, stop, step = at.indices(length)
        if step == 1:
            return (start, max(start, stop))
        return list(range(start, stop, step))
    listed = np.atleast_1d(np.asarray(at))
    if listed.dtype == np.bool_:
        if len(listed) != length:
            raise ValueError(f"isel of {shown(dimension)} has {len(listed)} of {length} Booleans")
        listed = np.flatnonzero(listed)
    indices = [integer(f"an index of {dimension}", one) for one in listed.tolist()]
    indices = [one + length if one < 0 else one for one in indices]
    if any(not 0 <= one < length for one in indices):
        raise ValueError(f"isel of {shown(dimension)}: an index is not below its {length}")
    return indices


def labels_of(label: Any) -> list[str | float]:
    """Labels as the native module takes them."""
    listed = np.atleast_1d(np.asarray(label)).tolist()
    return [one if isinstance(one, str) else float(one) for one in listed]


def between_labels(dimension: str, label: slice, coordinates: Any) -> list[int]:
    """The indices of coordinates between the ends of a slice, both of which count."""
    if coordinates is None:
        raise ValueError(f"dimension {shown(dimension)} has no coordinates: select by isel")
    if label.step is not None:
        raise ValueError(f"sel of {shown(dimension)}: a slice of labels has no step")
    values = np.asarray(coordinates)
    is_descending = len(values) > 1 and values[0] > values[-1]
    low, high = (label.stop, label.start) if is_descending else (label.start, label.stop)
    is_chosen = np.ones(len(values), np.bool_)
    if low is not None:
        is_chosen &= values >= low
    if high is not None:
        is_chosen &= values <= high
    chosen: list[int] = np.flatnonzero(is_chosen).tolist()
    if not chosen:
        raise ValueError(f"no coordinate of {shown(dimension)} is within the slice")
    return chosen


__all__ = ["Stack", "Variable"]
