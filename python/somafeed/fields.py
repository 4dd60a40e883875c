"""`FieldDataset`: fields on a grid, from Zarr arrays, in shuffled batches, for PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import array_maker, required
from somafeed.device import Device
from somafeed.loaders import OnError, Remainder
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.samplings import Sample
from somafeed.settings import at_least_0, integer, positive, shown
from somafeed.sources import parameters

if TYPE_CHECKING:
    import torch

FieldForm: TypeAlias = Literal["numpy", "torch", "xarray"]
"""The form of each variable in a batch: `numpy.ndarray`, `torch.Tensor` over the same memory, or
`xarray.DataArray` with the coordinates of its dimensions and samples."""

# `Any` is `xarray.DataArray`, for users without it.
FieldBatch: TypeAlias = "dict[str, npt.NDArray[Any] | torch.Tensor | Any]"
"""An array of each variable by its name: samples, then steps if there are several, then the selected
part of the array's other dimensions."""

FORMS: tuple[FieldForm, ...] = ("numpy", "torch", "xarray")

Index: TypeAlias = "int | slice | Sequence[int] | npt.NDArray[Any]"
Label: TypeAlias = "str | float | slice | Sequence[str | float] | npt.NDArray[Any]"

SAMPLE = "sample"


@dataclass(frozen=True)
class Variable:
    """One array of a sample: which part of it, and which steps around the sample's own.

    >>> Variable("fields", steps=[-1, 0], isel={"lat": slice(8, 184)}, sel={"channel": ["t2m"]})
    Variable(path='fields', steps=(-1, 0), isel={'lat': slice(8, 184, None)}, sel={'channel': ['t2m']}, dtype=None, mask_and_scale=True)
    """

    path: str
    """The array's path in the store, for example `t2m` or `era5/t2m`. Its first dimension is that of
    the samples' steps."""
    steps: Sequence[int] = (0,)
    """Steps relative to the sample's own, in the order of the batch."""
    isel: Mapping[str, Index] = field(default_factory=dict)
    """The selected indices of other dimensions, as xarray's `isel` takes them. They ascend."""
    sel: Mapping[str, Label] = field(default_factory=dict)
    """The selected coordinates of other dimensions, as xarray's `sel` takes them: labels equal
    coordinates exactly, in the order of the array; a slice has both of its ends."""
    dtype: Literal["float32"] | None = None
    """`"float32"` converts the elements; None leaves their type."""
    mask_and_scale: bool = True
    """Whether packed numbers are unpacked by the attributes `scale_factor`, `add_offset`,
    `_FillValue`, `missing_value` and `_Unsigned`, and missing ones become NaN, as in xarray."""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str):
            raise TypeError(f"the path of an array is a text, not {shown(self.path)}")
        steps = [self.steps] if isinstance(self.steps, int) else self.steps
        object.__setattr__(self, "steps", tuple(integer("a step", step) for step in steps))
        if self.dtype not in (None, "float32"):
            raise ValueError(f"dtype is 'float32' or None, not {shown(self.dtype)}")
        twice = set(self.isel) & set(self.sel)
        if twice:
            raise ValueError(f"dimension {shown(twice.pop())} is both in isel and in sel")

    @property
    def dropped(self) -> list[str]:
        """The dimensions that are selected by one index or label, which an array then lacks."""
        both = {**self.isel, **self.sel}
        return [one for one, at in both.items() if isinstance(at, int | float | str | np.number)]


class Fields(OpenedSamples[native.Fields]):
    """Samples of Zarr arrays. Pickled as a description: each process opens its own."""

    def __init__(self, uri: str, variables: Mapping[str, Variable], options: dict[str, Any]) -> None:
        """Opens the arrays.

        Raises:
            ValueError: A dimension, an index or a label is not there; the arrays differ in the
                number of steps; there is no sample.
        """
        self._uri = uri
        self._options = options
        self.variables = dict(variables)
        self._described = [_plain(name, one) for name, one in self.variables.items()]
        if any(one.isel or one.sel for one in self.variables.values()):
            self._described = self._resolved()
        _ = self.opened

    def _open_all(self) -> native.Fields:
        return native.Fields(self._uri, self._described, **self._options)

    def _resolved(self) -> list[dict[str, Any]]:
        """The variables with the indices of their selections."""
        coordinates = {**self._options, "coordinates": True}
        whole = native.Fields(self._uri, self._described, **coordinates)
        shapes = {name: dict(zip(dims, shape)) for name, _, dims, shape in whole.variables()}
        described = []
        for plain, (name, variable) in zip(self._described, self.variables.items()):
            lengths = shapes[name]
            unknown = [one for one in [*variable.isel, *variable.sel] if one not in lengths]
            if unknown:
                raise ValueError(
                    f"variable {shown(name)} has no dimension {shown(unknown[0])}: it has "
                    f"{', '.join(lengths)}"
                )
            isel = [(one, _indices(one, at, lengths[one])) for one, at in variable.isel.items()]
            sel = []
            for one, label in variable.sel.items():
                if isinstance(label, slice):
                    isel.append((one, _between(one, label, whole.coordinates(name, one))))
                else:
                    sel.append((one, _labels(label)))
            described.append({**plain, "isel": isel, "sel": sel})
        return described


class FieldDataset(OpenedDataset[FieldBatch, Fields]):
    """Fields of a Zarr store in shuffled batches: a dictionary with an array of each variable.

    Native threads read, decode and make batches ahead, so a DataLoader needs no workers. A batch
    belongs to the user: it may be changed and kept, nothing overwrites it.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        variables: Mapping[str, Variable | str] | Sequence[str],
        batch_size: int = 1,
        io_batch_size: int | None = None,
        shuffle: bool = True,
        shuffle_chunk_size: int = 1,
        seed: int | None = None,
        use_eager_fetch: bool = True,
        *,
        start: int | None = None,
        end: int | None = None,
        stride: int = 1,
        form: FieldForm = "numpy",
        number_samples: bool = False,
        coordinates: bool = True,
        threads: int = 2,
        config: Mapping[str, Any] | None = None,
        memory: int | str | None = None,
        world: tuple[int, int] | None = None,
        remainder: Remainder | None = None,
        sampling: Sample | None = None,
        ramp_blocks: int = 0,
        on_error: OnError = "raise",
        device: Device | None = None,
    ) -> None:
        """Opens the arrays, and reads the coordinates of their dimensions.

        Args:
            uri: A path or an address in an object store, of a Zarr group or of a Zip archive with
                one.
            variables: The arrays of a sample by their names in a batch: a `Variable`, or the path of
                a whole array. Several may be parts of one array.
            batch_size: Samples of a batch; the last may have fewer.
            io_batch_size: Samples that are read, and shuffled, together; a multiple of
                `shuffle_chunk_size` if shuffled. None means `batch_size`: then no batch is copied.
            shuffle: Whether samples come in an order drawn from `seed` and the epoch's number;
                otherwise they come by their steps.
            shuffle_chunk_size: Neighbouring samples that are read together: as many as a Zarr chunk
                has, so that each is decoded once a block.
            seed: From 0 to 2^64 - 1. None draws one, which several ranks may not do.
            use_eager_fetch: Whether blocks and batches are made ahead, in threads.
            start: The step that the first sample is about. None means the first one before which
                there are as many as the variables look back.
            end: Samples are about steps before this one. None means the number of steps.
            stride: Steps from one sample to the next.
            form: The form of arrays in a batch: see `FieldForm`.
            number_samples: Whether a batch has the entry `"sample"`, the numbers of its samples.
            coordinates: Whether coordinates are read, for `form="xarray"`.
            threads: Threads that read and decode one block.
            config: Settings of an object store, by TileDB's names.
            memory: Limit for blocks, batches and reading: bytes, or like `"2GiB"`. Each process has
                this much, and so each DataLoader worker.
            world: `(rank, world size)`. None asks torch.distributed, then the launcher's variables.
            remainder: What becomes of samples that do not fill a global batch: see
                `ExperimentDataset`.
            sampling: Which samples an epoch has, if not each once: `WithReplacement`, or a native
                `Sampling`.
            ramp_blocks: Number of smaller blocks at the start of an epoch: see `ExperimentDataset`.
            on_error: What happens if a sample cannot be read: see `ExperimentDataset`.
            device: The device of a batch's tensors: see `ExperimentDataset`.

        Raises:
            ValueError: Arguments that do not fit together; a dimension, an index or a label is not
                there; the arrays differ in the number of steps.
            TypeError: An argument of another type.
            ModuleNotFoundError: A package that batches of this form need is not installed.
            OSError: The storage cannot be read.
        """
        super().__init__(
            batch_size=batch_size,
            io_batch_size=batch_size if io_batch_size is None else io_batch_size,
            shuffle=shuffle,
            shuffle_chunk_size=shuffle_chunk_size,
            seed=seed,
            use_eager_fetch=use_eager_fetch,
            memory=memory,
            world=world,
            remainder=remainder,
            sampling=sampling,
            ramp_blocks=ramp_blocks,
            on_error=on_error,
            form=form,
            device=device,
        )
        if form not in FORMS:
            raise ValueError(f"unknown form {shown(form)}; there are {', '.join(FORMS)}")
        if form != "numpy":
            required(form, f"form={form!r}")
        if not isinstance(uri, str | os.PathLike):
            raise TypeError(
                f"FieldDataset takes the address of a Zarr store, not {shown(uri)}: give its path, "
                "and selections as Variable(isel=, sel=)"
            )
        self.form: FieldForm = form
        self.number_samples = bool(number_samples)
        named = checked_variables(variables)
        if SAMPLE in named:
            raise ValueError(f"{SAMPLE!r} is the name of the samples' numbers: take another")
        self._opened_samples = Fields(
            os.fspath(uri),
            named,
            {
                "config": parameters(config or {}),
                "start": None if start is None else at_least_0("start", start),
                "end": None if end is None else at_least_0("end", end),
                "stride": positive("stride", stride),
                "threads": positive("threads", threads),
                "coordinates": bool(coordinates) or form == "xarray",
            },
        )
        # Now, so that settings that do not fit are an error here.
        self._loaders.batch_maker(self)

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables by their names."""
        return dict(self._samples.variables)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one sample of each variable."""
        return {
            name: tuple(
                n for one, n in zip(dims, shape) if one not in self._samples.variables[name].dropped
            )
            for name, _, dims, shape in self._samples.opened.variables()
        }

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """The step that each sample is about: its index in the arrays' first dimension."""
        return self._samples.opened.steps().astype(np.int64)

    def __repr__(self) -> str:
        names = ", ".join(self.variables)
        n = self._samples.n_rows
        return f"FieldDataset({n} samples of {names} in batches of {self.batch_size})"

    # What it says of its kind of samples

    def _batch_maker(self) -> Callable[[native.FieldBatch], FieldBatch]:
        makers = {"numpy": _arrays, "torch": _tensors, "xarray": _data_arrays}
        dropped = {name: one.dropped for name, one in self.variables.items()}
        make_array = makers[self.form](self.variables)
        number_samples, number = self.number_samples, array_maker(self.form)

        def make(batch: native.FieldBatch) -> FieldBatch:
            made = {
                name: make_array(batch, name, _squeezed(batch, name, drop))
                for name, drop in dropped.items()
            }
            if number_samples:
                made[SAMPLE] = number(batch.samples.astype(np.int64))
            return made

        return make


def checked_variables(variables: Any) -> dict[str, Variable]:
    """The variables by their names.

    Raises:
        TypeError: They are something else.
        ValueError: There is none.
    """
    if isinstance(variables, str) or not isinstance(variables, Mapping | Sequence):
        raise TypeError(f"variables are a dictionary or a list of paths, not {shown(variables)}")
    if not isinstance(variables, Mapping):
        variables = {str(path).strip("/").rpartition("/")[2]: path for path in variables}
    if not variables:
        raise ValueError("name at least one variable")
    named: dict[str, Variable] = {}
    for name, one in variables.items():
        made = Variable(one) if isinstance(one, str) else one
        if not isinstance(name, str) or not isinstance(made, Variable):
            raise TypeError(f"a variable is a path or a Variable, not {shown(one)}")
        named[name] = made
    return named


def _plain(name: str, variable: Variable) -> dict[str, Any]:
    return {
        "name": name,
        "path": variable.path,
        "steps": list(variable.steps),
        "isel": [],
        "sel": [],
        "as_f32": variable.dtype == "float32",
        "mask_and_scale": variable.mask_and_scale,
    }


def _indices(dimension: str, at: Index, length: int) -> tuple[int, int] | list[int]:
    """Ascending indices as the native module takes them."""
    if isinstance(at, slice):
        start, stop, step = at.indices(length)
        if step == 1:
            return (start, max(start, stop))
        return sorted(range(start, stop, step)) if step > 0 else _unordered(dimension)
    listed = np.atleast_1d(np.asarray(at))
    if listed.dtype == np.bool_:
        if len(listed) != length:
            raise ValueError(f"isel of {shown(dimension)} has {len(listed)} of {length} Booleans")
        listed = np.flatnonzero(listed)
    indices = [integer(f"an index of {dimension}", one) for one in listed.tolist()]
    indices = [one + length if one < 0 else one for one in indices]
    if any(not 0 <= one < length for one in indices):
        raise ValueError(f"isel of {shown(dimension)}: an index is not below its {length}")
    if any(b <= a for a, b in zip(indices, indices[1:])):
        _unordered(dimension)
    return indices


def _unordered(dimension: str) -> list[int]:
    raise ValueError(f"indices of {shown(dimension)} must ascend: the array's order is kept")


def _labels(label: Any) -> list[str | float]:
    listed = np.atleast_1d(np.asarray(label)).tolist()
    return [one if isinstance(one, str) else float(one) for one in listed]


def _between(dimension: str, label: slice, coordinates: Any) -> list[int]:
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


def _squeezed(
    batch: native.FieldBatch, name: str, drop: Sequence[str]
) -> npt.NDArray[Any]:
    values = batch.values(name)
    if not drop:
        return values
    dimensions = batch.dimensions(name)
    return values.squeeze(tuple(dimensions.index(one) for one in drop))


ArrayMaker: TypeAlias = Callable[[native.FieldBatch, str, npt.NDArray[Any]], Any]


def _arrays(_: Mapping[str, Variable]) -> ArrayMaker:
    return lambda batch, name, values: values


def _tensors(_: Mapping[str, Variable]) -> ArrayMaker:
    tensor = array_maker("torch")
    return lambda batch, name, values: tensor(values)


def _data_arrays(variables: Mapping[str, Variable]) -> ArrayMaker:
    xarray = required("xarray", "form='xarray'")

    def made(batch: native.FieldBatch, name: str, values: npt.NDArray[Any]) -> Any:
        variable = variables[name]
        drop = variable.dropped
        dimensions = [one for one in batch.dimensions(name) if one not in drop]
        coordinates: dict[str, Any] = {SAMPLE: (SAMPLE, batch.samples.astype(np.int64))}
        if "step" in dimensions:
            coordinates["step"] = ("step", np.array(variable.steps))
        of_samples = batch.sample_coordinates(name)
        if of_samples is not None:
            dimension, numbers, attributes = of_samples
            of = dimensions[: 2 if "step" in dimensions else 1]
            shape = values.shape[: len(of)]
            numbers = np.asarray(numbers).reshape(shape)
            coordinates[dimension] = (of, numbers, json.loads(attributes))
        for dimension, numbers, attributes in batch.coordinates(name):
            at = np.asarray(numbers)
            whole = ((), at[0]) if dimension in drop else (dimension, at)
            coordinates[dimension] = (*whole, json.loads(attributes))
        array = xarray.DataArray(values, coordinates, dimensions, name)
        return xarray.decode_cf(array.to_dataset(), mask_and_scale=False)[name]

    return made


__all__ = ["FieldBatch", "FieldDataset", "FieldForm", "Variable"]
