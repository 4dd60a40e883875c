"""`Variable` and `Stack`: which parts of which arrays make a sample of fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed.axes import dimension_names
from somafeed.forcings import DType, Forcing, checked_dtype
from somafeed.settings import at_least_0, integer, number, shown
from somafeed.steps import OfSteps, Steps

Index: TypeAlias = "int | slice | Sequence[int] | npt.NDArray[Any]"
Label: TypeAlias = "str | float | slice | Sequence[str | float] | npt.NDArray[Any]"

SAMPLE = "sample"
"""The name of the samples' numbers, and of their dimension."""

STEP = "step"
"""The name of the dimension of steps."""


@dataclass(frozen=True)
class Variable(OfSteps):
    """One array of a sample: which part of it, and which steps around the sample's own.

    >>> Variable("fields", steps=[-1, 0], isel={"lat": slice(8, 184)}, sel={"channel": ["t2m"]})
    Variable(path='fields', dim=None, store=None, steps=(-1, 0), rollout={}, isel={'lat': slice(8, 184, None)}, sel={'channel': ['t2m']}, dims=(), dtype=None, mask_and_scale=True, normalize=None, clip=None, log=None, minus=())
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
    dtype: DType | None = None
    """The type of elements: `"float32"`, `"float16"` or, with `form="torch"`, `"bfloat16"`; None
    leaves their type. Numbers are rounded once, from double precision; those beyond the range of a
    type become infinite (of float16 from 65,520 on)."""
    mask_and_scale: bool = True
    """Whether packed numbers are unpacked by the attributes `scale_factor`, `add_offset`,
    `_FillValue`, `missing_value` and `_Unsigned`, and missing ones become NaN, as in xarray."""
    normalize: Sequence[Any] | None = None
    """A mean and a deviation, or an array of them with two rows: less the mean and divided by the
    deviation, numbers are delivered as floating point. One pair for all, or one for each selected
    index of the outermost dimension that is delivered, but that of the samples, such as levels
    (`FieldDataset.statistics` computes them)."""
    clip: tuple[float | None, float | None] | None = None
    """The least and the greatest number: those beyond become these. None of the two is no end. NaN
    stays NaN."""
    log: float | None = None
    """The natural logarithm of the number plus this is taken, after `clip`: `log=0` is ln(x), `log=1`
    is ln(1 + x), and `log=1e-5` suits precipitation in m."""
    minus: Steps = ()
    """Steps whose numbers are subtracted, counted from the sample's own like `steps`, after `clip` and
    `log` of both and before `normalize`. One for all steps, `steps=[1, 2], minus=0`: the change since
    the last input. Or one for each, `steps=[1, 2], minus=[0, 1]`: from step to step."""
    spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps as microseconds, if they are lengths of time."""
    minus_spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps that are subtracted as microseconds, if they are lengths of time."""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str):
            raise TypeError(f"the path of an array is a text, not {shown(self.path)}")
        if self.dim is not None and not isinstance(self.dim, str):
            at_least_0("dim", self.dim)
        self.set_steps()
        object.__setattr__(self, "dims", dimension_names("dims", self.dims))
        _pairs(self.normalize)
        _ends(self.clip)
        if self.log is not None:
            number("log", self.log)
        checked_dtype(self.dtype)
        twice = set(self.isel) & set(self.sel)
        if twice:
            raise ValueError(f"dimension {shown(twice.pop())} is both in isel and in sel")

    @property
    def dropped(self) -> list[str]:
        """The dimensions that are selected by one index or label, which an array then lacks."""
        both = {**self.isel, **self.sel}
        return [one for one, at in both.items() if isinstance(at, int | float | str | np.number)]


@dataclass(frozen=True)
class Stack(OfSteps):
    """Several variables as the channels of one array, in this order, straight from the store.

    >>> Stack([Variable("t2m"), Variable("z", sel={"level": [500, 850]})], steps=[-1, 0])
    Stack(variables={'t2m': Variable(path='t2m', ...)

    The array has the shape of samples, steps if there are several, channels, and the last two
    dimensions, which all variables share. Levels become channels of their own: here `t2m`, `z_500`
    and `z_850`.
    """

    variables: Mapping[str, Variable | Forcing | str] | Sequence[Variable | Forcing | str]
    """The variables by the names of their channels, or in a list, with their paths' last names. A
    `Forcing` is one channel on the grid of the others."""
    steps: Steps = (0,)
    """Steps of all of them: see `Variable.steps`. Those of the variables are not looked at."""
    rollout: Mapping[int, int] = field(default_factory=dict)
    """How many of these steps there are, from which epoch on: see `Variable.rollout`."""
    dims: Sequence[str] = ()
    """The order in which their other dimensions are delivered, of those that have none of their
    own: see `Variable.dims`. Channels come first."""
    dtype: DType | None = "float32"
    """The type of the elements: see `Variable.dtype`. None leaves their type, which all must have."""
    normalize: Sequence[Any] | None = None
    """Two rows of as many numbers as there are channels, means and deviations: see
    `Variable.normalize`."""
    minus: Steps = ()
    """Steps that are subtracted from these: see `Variable.minus`. Those of the variables are not
    looked at."""
    ensemble: str | None = None
    """The name of a new dimension, in place of the channels: the variables are then the members of an
    ensemble, of one shape, and keep all of their dimensions. Their names are its coordinates, as
    integers if all are such. It comes before those of a member, unless `dims` names it, where the
    array is a view of that order. `normalize` is that of one member."""
    spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps as microseconds, if they are lengths of time."""
    minus_spans: tuple[int, ...] = field(default=(), init=False, repr=False, compare=False)
    """The steps that are subtracted as microseconds, if they are lengths of time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", checked_variables(self.variables))
        if len(self.members) < len(self.variables):
            raise TypeError("a Stack has variables, not other stacks")
        if any(function_of(one) is not None for one in self.members.values()):
            raise TypeError("a Stack has no functions: give the Forcing beside it")
        checked_dtype(self.dtype)
        _pairs(self.normalize)
        self.set_steps()
        object.__setattr__(self, "dims", dimension_names("dims", self.dims))
        if self.ensemble is not None and not (self.ensemble and isinstance(self.ensemble, str)):
            raise TypeError(f"ensemble is the name of a dimension, not {shown(self.ensemble)}")
        if self.ensemble in (SAMPLE, STEP):
            raise ValueError(f"a batch has a dimension {self.ensemble} already: name ensemble= otherwise")

    @property
    def members(self) -> dict[str, Variable | Forcing]:
        """The variables by the names of their channels."""
        assert isinstance(self.variables, Mapping)
        return {
            name: one
            for name, one in self.variables.items()
            if isinstance(one, Variable | Forcing)
        }

    @property
    def dropped(self) -> list[str]:
        """Those that all members of an ensemble lack; none of channels, which indices and labels are."""
        if self.ensemble is None:
            return []
        first, *others = self.members.values()
        return [one for one in first.dropped if all(one in of.dropped for of in others)]


AnyVariable: TypeAlias = Variable | Stack | Forcing


def function_of(variable: AnyVariable) -> Forcing | None:
    """The variable if a function of Python makes it of times."""
    return variable if isinstance(variable, Forcing) and callable(variable.what) else None


def arrays_of(named: Mapping[str, AnyVariable]) -> dict[tuple[str, str], Variable]:
    """All variables that are arrays, by the name of the stack that they are in, and by their own."""
    arrays: dict[tuple[str, str], Variable] = {}
    for name, one in named.items():
        members = one.members.items() if isinstance(one, Stack) else [(name, one)]
        stack = name if isinstance(one, Stack) else ""
        arrays |= {(stack, own): of for own, of in members if isinstance(of, Variable)}
    return arrays


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
        if not isinstance(name, str) or not isinstance(made, AnyVariable):
            raise TypeError(
                f"a variable is a path, a Variable, a Stack or a Forcing, not {shown(one)}"
            )
        named[name] = made
    if SAMPLE in named:
        raise ValueError(f"{SAMPLE!r} is the name of the samples' numbers: take another")
    return named


def _last_name(variable: Any) -> str:
    if isinstance(variable, Stack):
        raise ValueError("a Stack needs a name: give a dictionary")
    if isinstance(variable, Forcing):
        return variable.name
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


def _ends(clip: Any) -> tuple[float, float] | None:
    """The least and the greatest number.

    Raises:
        TypeError: They are no pair of numbers.
        ValueError: The least is greater than the greatest.
    """
    if clip is None:
        return None
    if not isinstance(clip, Sequence) or isinstance(clip, str) or len(clip) != 2:
        raise TypeError(f"clip is a pair of numbers, (low, high), not {shown(clip)}")
    low, high = (
        end if at is None else number("an end of clip", at)
        for at, end in zip(clip, (-math.inf, math.inf))
    )
    if not low <= high:
        raise ValueError(f"clip is (low, high), and {low} is not at most {high}")
    return low, high


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
        **variable.described_steps(),
        "isel": [],
        "sel": [],
        "dims": [],
        "dtype": variable.dtype,
        "mask_and_scale": True,
        "clip": None,
        "log": None,
        "normalize": [],
        "stack": [],
        "forcing": None,
        "ensemble": ensemble,
    }
    if isinstance(variable, Forcing):
        if callable(variable.what):
            # Its times, of which the function makes the rest.
            return {**plain, "dtype": None, "forcing": "time"}
        return {**plain, "forcing": variable.what}
    dims = [one for one in variable.dims if one != ensemble]
    plain |= {"dims": dims, "normalize": _pairs(variable.normalize)}
    if isinstance(variable, Stack):
        members = variable.members.items()
        return {**plain, "stack": [described(*one, selections, stores, name) for one in members]}
    own = {
        "path": variable.path,
        "along": variable.dim,
        "stores": _numbers_of(variable.store, stores),
        "mask_and_scale": variable.mask_and_scale,
        "clip": _ends(variable.clip),
        "log": None if variable.log is None else number("log", variable.log),
    }
    return {**plain, **own, **selections.get((stack, name), {})}


def _numbers_of(store: Any, stores: Mapping[str | int, int]) -> list[int]:
    """The numbers of stores.

    Raises:
        TypeError: It is no name or number, nor several.
        ValueError: There is none of a name; there is no name.
    """
    if store is None:
        return []
    named = [store] if isinstance(store, str | int) else store
    if not isinstance(named, Sequence) or not all(isinstance(one, str | int) for one in named):
        raise TypeError(f"store is the name or the number of a store, or several, not {shown(store)}")
    if not named:
        raise ValueError("store names no store: None is every store that has the variable")
    unknown = [one for one in named if one not in stores]
    if unknown and not stores:
        raise ValueError(f"there is no store {shown(unknown[0])}: the data set has one, without a name")
    if unknown:
        there = ", ".join(map(repr, stores))
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


__all__ = ["Forcing", "Stack", "Variable"]
