"""`FieldDataset`: fields on a grid, from Zarr arrays, in shuffled batches, for PyTorch."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.axes import Direction, dimension_names, directions_of
from somafeed.batches import array_maker, required
from somafeed.engine import EngineSettings
from somafeed.ensembles import ensemble_of, place_of_members, placed
from somafeed.labels import LabelColumn, Labels
from somafeed.forcings import Forcing, computed, latitude_weights
from somafeed.missing import Missing, MissingKind, WhenMissing, checked_missing
from somafeed.patches import PATCH, CutDimension, PatchColumn, Patches
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.settings import at_least_0, positive, shown
from somafeed.sources import parameters
from somafeed.statistics import Statistics, statistics_of
from somafeed.stores import STORE, OfStore, named_stores
from somafeed.times import MICROSECONDS_PER_HOUR, Date, TimeSpan, date_text, microseconds
from somafeed.variables import (
    SAMPLE,
    AnyVariable,
    Selections,
    Stack,
    Variable,
    arrays_of,
    between_labels,
    checked_variables,
    described,
    function_of,
    labels_of,
    selected_indices,
)

if TYPE_CHECKING:
    import xarray

FieldForm: TypeAlias = Literal["numpy", "torch", "xarray"]
"""The form of each variable in a batch: `numpy.ndarray`, `torch.Tensor` over the same memory, or
`xarray.DataArray` with the coordinates of its dimensions and samples; a dimension that is cut into
patches is called `patch_` and its name there, and its coordinates are those of each sample."""

FieldBatch: TypeAlias = dict[str, Any]
"""An array of each variable by its name, in the form `FieldForm`: samples, then steps if there are
several, then the selected part of the array's other dimensions. Of a static variable only these."""

Stores: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]]"
"""The address of a Zarr store, a list of several, or several by their names."""

FORMS: tuple[FieldForm, ...] = ("numpy", "torch", "xarray")

LEAD = "lead"
"""The entry of a batch with the lead time of each sample."""

PLAIN: dict[str, Any] = {
    "normalize": [], "steps": [0], "spans": [], "minus": [], "minus_spans": [], "rollout": [],
    "dims": [],
}  # fmt: skip
"""What a variable has whose whole array is opened."""

PLAIN_OPTIONS: dict[str, Any] = {
    "periods": [], "frequency": None, "patches": None, "dims": [], "orient": [], "missing": [],
    "counted": None, "lead": None, "start": None, "end": None, "stride": 1,
}  # fmt: skip
"""Options by which whole arrays are opened."""


class Fields(OpenedSamples[native.Fields]):
    """Samples of Zarr arrays. Pickled as a description: each process opens its own."""

    def __init__(
        self,
        stores: Stores,
        variables: Mapping[str, AnyVariable],
        options: dict[str, Any],
    ) -> None:
        """Opens the arrays.

        Raises:
            ValueError: A dimension, an index or a label is not there; the arrays differ in the
                number of steps; there is no sample.
        """
        names, listed = named_stores(stores, (str, os.PathLike))
        self._stores = [os.fspath(one) for one in listed]
        self._numbers = {name: at for at, name in enumerate(names or ())}
        self._options = dict(options)
        self.variables = dict(variables)
        selections = self._selections()
        self._described = [
            described(name, one, selections, self._numbers) for name, one in variables.items()
        ]
        # Those of ensembles are placed by views.
        ensembles = [ensemble_of(one) for one in variables.values()]
        self.dims = list(options["dims"])
        self._options["dims"] = [one for one in self.dims if one not in ensembles]
        twice = {options["dim"], options["lead"]} & set(ensembles) - {None}
        if twice:
            raise ValueError(f"samples are made of {shown(twice.pop())}: name ensemble= otherwise")
        self._check_places_of_members(ensembles)
        # Other processes need not count again.
        self._options["counted"] = self.opened.counted()
        sizes = np.bincount(self.opened.stores().astype(np.int64), minlength=len(listed))
        self.stores = OfStore.of(names, sizes.tolist())
        columns: dict[str, LabelColumn] = {} if self.stores is None else {STORE: self.stores}
        patches = options["patches"]
        if patches is not None and PATCH in variables:
            raise ValueError(f"{PATCH!r} is the name of the patches' places: take another")
        if patches is not None and patches["random"] is None:
            n_patches = math.prod(of.n for of in self.patches().values())
            columns[PATCH] = PatchColumn(n_patches, self.opened.n_samples)
        self.labels = Labels(columns)
        if options["lead"] is not None and LEAD in variables:
            raise ValueError(f"{LEAD!r} is the name of the lead times: take another")
        if self.stores is not None and STORE in variables:
            raise ValueError(f"{STORE!r} is the name of the stores' numbers: take another")

    def _open_all(self) -> native.Fields:
        return native.Fields(self._stores, self._described, **self._options)

    def _check_places_of_members(self, ensembles: list[str | None]) -> None:
        """Checks that the order of dimensions places members only where they are an ensemble's.

        Raises:
            ValueError: Another variable has a stored dimension of this name.
        """
        placed_by_all = [one for one in self.dims if one in ensembles]
        for name, _, dimensions, _, _ in self.opened.variables():
            of = self.variables[name]
            stored = [one for one in placed_by_all if one in dimensions]
            if stored and ensemble_of(of) is None and isinstance(of, Variable) and not of.dims:
                raise ValueError(
                    f"dims= places the members of an ensemble along {shown(stored[0])}, which {shown(name)} "
                    "has stored: give each variable its own dims"
                )

    def _whole(
        self, described: dict[str, Any], beside: Sequence[dict[str, Any]], options: dict[str, Any]
    ) -> native.Fields:
        """An array of the first store that has it; one without steps beside one that has some."""
        first, *others = described["stores"] or range(len(self._stores))
        one = {**described, "stores": []}
        try:
            for at in others:
                try:
                    return native.Fields([self._stores[first]], [one], **options)
                except FileNotFoundError:
                    first = at
            return native.Fields([self._stores[first]], [one], **options)
        except ValueError:
            for other in beside:
                with suppress(ValueError):
                    return native.Fields(self._stores, [other, described], **options)
            raise

    @property
    def lead(self) -> str | None:
        """The dimension of lead times."""
        lead: str | None = self._options["lead"]
        return lead

    def patches(self) -> dict[str | int, CutDimension]:
        """The dimensions that are cut into patches."""
        return {name: CutDimension(*of) for name, *of in self.opened.patches()}

    def grid_shape(self) -> dict[str, int]:
        """The lengths of the grid's two dimensions, latitudes and longitudes in their order."""
        grid = self.opened.grid()
        if grid is None:
            return {}
        name, *both = grid
        [of_grid] = [of for of in self.opened.variables() if of[0] == name]
        return {one: n for one, n in zip(of_grid[2], of_grid[3]) if one in both}

    def _selections(self) -> Selections:
        """The indices and labels that are selected of each array."""
        arrays = arrays_of(self.variables)
        selected = {key: one for key, one in arrays.items() if one.isel or one.sel}
        if not selected:
            return {}
        names = {key: "/".join(key) for key in arrays}
        whole = {
            key: {**described(names[key], one, {}, self._numbers), **PLAIN}
            for key, one in arrays.items()
        }
        selects_labels = any(one.sel for one in arrays.values())
        options = {**self._options, **PLAIN_OPTIONS, "coordinates": selects_labels}
        if are_timed(self._options, self.variables):
            # They may have other numbers of steps.
            opened = [
                self._whole(whole[key], [other for at, other in whole.items() if at != key], options)
                for key in selected
            ]
        else:
            opened = [native.Fields(self._stores, list(whole.values()), **options)]
        wholes = {name: (of, dims, shape) for of in opened for name, _, dims, shape, _ in of.variables()}
        selections: Selections = {}
        for key, variable in selected.items():
            name = names[key]
            array, dims, shape = wholes[name]
            lengths = dict(zip(dims, shape))
            unknown = [one for one in [*variable.isel, *variable.sel] if one not in lengths]
            if unknown:
                raise ValueError(
                    f"variable {shown(key[1])} has no dimension {shown(unknown[0])}: it has "
                    f"{', '.join(lengths)}"
                )
            isel = [
                (one, selected_indices(one, at, lengths[one])) for one, at in variable.isel.items()
            ]
            sel = []
            for one, label in variable.sel.items():
                if isinstance(label, slice):
                    isel.append((one, between_labels(one, label, array.coordinates(name, one))))
                else:
                    sel.append((one, labels_of(label)))
            selections[key] = {"isel": isel, "sel": sel}
        return selections


class FieldDataset(OpenedDataset[FieldBatch, Fields]):
    """Fields of a Zarr store in shuffled batches: a dictionary with an array of each variable.

    Native threads read, decode and make batches ahead, so a DataLoader needs no workers. A batch
    belongs to the user: it may be changed and kept, nothing overwrites it.
    """

    _gives_blocks = True
    # While the last chunks of one block are decoded, the first of the next are.
    _n_blocks_read = 2

    def __init__(
        self,
        uri: Stores | xarray.Dataset | xarray.DataArray,
        variables: Mapping[str, AnyVariable | str] | Sequence[Variable | str] | None = None,
        batch_size: int = 1,
        io_batch_size: int | None = None,
        shuffle: bool = True,
        shuffle_chunk_size: int = 1,
        seed: int | None = None,
        use_eager_fetch: bool = True,
        *,
        dim: str | int | None = None,
        lead: str | None = None,
        start: int | Date | None = None,
        end: int | Date | None = None,
        stride: int = 1,
        periods: Sequence[tuple[Date | None, Date | None]] = (),
        frequency: TimeSpan | None = None,
        patches: Patches | None = None,
        dims: Sequence[str] = (),
        orient: Mapping[str, Direction] | None = None,
        missing: Mapping[MissingKind, WhenMissing] | None = None,
        counted: Missing | None = None,
        form: FieldForm = "numpy",
        number_samples: bool = False,
        coordinates: bool = True,
        threads: int = 2,
        config: Mapping[str, Any] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        """Opens the arrays, and reads the coordinates of their dimensions.

        Args:
            uri: A path or an address in an object store, of a Zarr group or of a Zip archive with
                one. Several, in a list or a dictionary with their names, are read as one: the steps
                of a variable are those of the first store that has it, then those of the second, and
                so on. A batch then has the entry `"store"`, the number of the store of each sample,
                and the column `store`, for splits and `sampling`, has its name. Or a data set or an
                array that xarray opened from there, and of which parts may be selected: samples are
                then of those parts, and read without xarray.
            variables: The arrays of a sample by their names in a batch: a `Variable`, or the path of
                a whole array, a `Stack` of several, or a `Forcing` that is computed. Several may be
                parts of one array. For xarray, paths are the names of variables, and None means all.
            batch_size: Samples of a batch; the last may have fewer.
            io_batch_size: Samples that are read, and shuffled, together; a multiple of
                `shuffle_chunk_size` if shuffled. None means `batch_size`: then no batch is copied.
            shuffle: Whether samples come in an order drawn from `seed` and the epoch's number;
                otherwise they come by their steps.
            shuffle_chunk_size: Neighbouring samples that are read together: as many as a Zarr chunk
                has, so that each is decoded once a block.
            seed: From 0 to 2^64 - 1. None draws one, which several ranks may not do.
            use_eager_fetch: Whether blocks and batches are made ahead, in threads: one block, from an
                object store three, with four read at a time. With `memory`, as many as it allows.
            dim: The dimension along which samples lie, by its name or position. None means the first
                of every array. An array without a dimension of this name is static.
            lead: The dimension of lead times. Variables that have it are forecasts, `dim` is that of
                their initial times, and a sample is an initial time and a lead time: steps are lead
                times that follow each other, and other variables are found at the sample's time,
                which is the sum of both. Samples one of whose times is not there are left out, and
                counted (`left_out`). A batch then has the entry `"lead"`, the lead time of each
                sample in hours. `start`, `end`, `stride`, `periods` and `frequency` are about
                initial times; `isel` and `sel` of this dimension choose lead times.
            start: The step that the first sample is about. None means the first one before which
                there are as many as the variables look back. Or the first date that samples are
                about: see `Date`.
            end: Samples are about steps before this one. None means the number of steps. Or the last
                date, which is included: `"2020"` is all of the year.
            stride: Steps from one sample to the next.
            periods: Samples are about times within one of these pairs of dates, the second one
                included; None is the first or the last time.
            frequency: Samples are about the first time, and times a multiple of this after it.
            patches: Patches of the grid, each of which is a sample with its step; None is the whole
                grid. A batch then has the entry `"patch"`: of each sample, the first index of its
                patch in each dimension that is cut, counted from the first selected one. Those of a
                grid have the column `patch`, the number of the patch within its step, for splits
                and `sampling`.
            dims: The order in which dimensions are delivered, for instance
                `["latitude", "longitude"]`: of each variable that has no `dims` of its own, those of
                them that it has, after its others.
            orient: The direction of coordinates in which dimensions are delivered, `"ascending"` or
                `"descending"`: of all variables that have the dimension, whichever way each is
                stored. `{"latitude": "descending"}` has the north first.
            missing: What is done with samples that have missing numbers, by what these are:
                `{"chunk": "error", "fill": "leave out", "nan": "keep"}`. None keeps all. Otherwise
                they are counted when the data set is opened; of `"fill"` and `"nan"` that decodes
                every chunk once.
            counted: What `missing()` counted before, of the same variables, in place of counting
                again. Whether the store is still the same is not known.
            form: The form of arrays in a batch: see `FieldForm`.
            number_samples: Whether a batch has the entry `"sample"`, the numbers of its samples.
            coordinates: Whether coordinates are read, for `form="xarray"`.
            threads: Threads that read and decode one block.
            config: Settings of an object store, by TileDB's names.
            **engine: The engine's settings: see `EngineSettings`.

        Raises:
            ValueError: Arguments that do not fit together; a dimension, an index or a label is not
                there; the arrays differ in the number of steps; what xarray has was computed.
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
            form=form,
            **engine,
        )
        if form not in FORMS:
            raise ValueError(f"unknown form {shown(form)}; there are {', '.join(FORMS)}")
        if form != "numpy":
            required(form, f"form={form!r}")
        self.form: FieldForm = form
        self.number_samples = bool(number_samples)
        options: dict[str, Any] = {
            "config": parameters(config or {}),
            "dim": dim if dim is None or isinstance(dim, str) else at_least_0("dim", dim),
            "lead": lead if lead is None else _name_of_dimension("lead", lead),
            "stride": positive("stride", stride),
            **_between(start, end, periods),
            "frequency": None if frequency is None else microseconds("frequency", frequency),
            "patches": None if patches is None else checked_patches(patches).described(),
            "dims": list(dimension_names("dims", dims)),
            "orient": directions_of(orient),
            "missing": checked_missing(missing),
            "counted": None if counted is None else counted.described(),
            "threads": positive("threads", threads),
            "coordinates": bool(coordinates) or form == "xarray",
        }
        if is_xarray(uri):
            self._opened_samples = _samples_in(uri, variables, options)
        else:
            self._opened_samples = Fields(uri, checked_variables(variables), options)
        # Now, so that settings that do not fit are an error here.
        self._loaders.batch_maker(self)

    @property
    def variables(self) -> dict[str, AnyVariable]:
        """The variables by their names."""
        return dict(self._samples.variables)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one sample of each variable, with the most steps that a rollout has."""
        shapes: dict[str, tuple[int, ...]] = {}
        grid = self._samples.grid_shape()
        for name, _, dims, shape, _ in self._samples.opened.variables():
            variable = self._samples.variables[name]
            kept = [(one, n) for one, n in zip(dims, shape) if one not in variable.dropped]
            moved = place_of_members([one for one, _ in kept], variable, self._samples.dims)
            of_grid = grid.values() if function_of(variable) is not None else ()
            shapes[name] = (*(n for _, n in placed(kept, moved)), *of_grid)
        return shapes

    @property
    def left_out(self) -> dict[str, int]:
        """How many samples were left out since their steps are not all there, by the reason:
        `ends` (before the first or after the last time), `gaps`, `doubled` (several steps have the
        time), `invalid` (outside the dates that the store names as valid), `chunk`, `fill` and
        `nan` (missing numbers, as `missing=` says). Counted for the whole store. None are left out
        unless times matter, by dates, `frequency` or steps that are lengths of time, or numbers are
        missing."""
        return dict(self._samples.opened.left_out())

    def missing(self) -> Missing:
        """How many numbers are missing of each variable, at each step of the samples of the data
        set: in chunks that are not stored, fill values and NaN, counted apart in one pass. Static
        variables have no steps, and no counts.

        >>> train.missing().variables["t2m"].nan.sum()  # doctest: +SKIP
        """
        return Missing.of(self._samples.opened.missing())

    def statistics(self) -> dict[str, Statistics]:
        """Mean, deviation and number of the values of each variable, over all samples of the data
        set: in one pass, in double precision, without NaN. There is one for each index of the
        outermost dimension but those of samples and steps, channels or levels, if there are more
        than two others; else one for all. Static variables have none. Their `pairs` are what
        `Variable(normalize=)` takes.

        >>> train.statistics()["x"].pairs  # doctest: +SKIP
        """
        described = self._samples.opened.variables()
        variables = self._samples.variables
        # Members of an ensemble are like samples, and lie beside them.
        leading = {
            name: 1 + ("step" in dims) + (ensemble_of(variables[name]) is not None)
            for name, _, dims, _, has_steps in described
            if has_steps
        }
        for name, _, dims, _, _ in described:
            if place_of_members(dims, variables[name], self._samples.dims):
                raise ValueError(
                    f"statistics() need the members of {shown(name)} first: open it without "
                    f"{shown(ensemble_of(variables[name]))} in dims="
                )
        return statistics_of(self.in_order(world=(0, 1)), leading)

    def latitude_weights(
        self, method: Literal["area", "cosine"] = "area"
    ) -> npt.NDArray[np.float64]:
        """Weights of the selected latitudes, with the mean 1, in the order in which they are
        delivered: `somafeed.latitude_weights` of the grid that a `Forcing` has. Of patches,
        `weights[batch["patch"][:, [0]] + np.arange(size)]`, if latitudes are the first dimension
        that is cut, without padding.

        Raises:
            ValueError: No variable has latitudes and longitudes with coordinates.
        """
        grid = self._samples.opened.grid()
        if grid is None:
            raise ValueError("no variable has latitudes and longitudes with coordinates")
        name, latitude, _ = grid
        return latitude_weights(
            np.asarray(self._samples.opened.coordinates(name, latitude)), method
        )

    @property
    def patches(self) -> dict[str | int, CutDimension]:
        """The dimensions that are cut into patches, with the number of patches along each, and of
        the indices that are left out after the last one. Empty if samples are whole steps."""
        return self._samples.patches()

    def patch_starts(self, epoch: int | None = None) -> npt.NDArray[np.int64]:
        """The first index of each sample's patch in each of `patches`, of shape samples, dimensions:
        counted from the first selected index, negative in the padding before it. Those of random
        boxes are of one epoch; None is the present one."""
        number = self.epoch if epoch is None else at_least_0("epoch", epoch)
        starts = self._samples.opened.patch_starts(number)
        return starts.reshape(-1, len(self._samples.patches())).astype(np.int64)

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """The step that each sample is about: its index in the arrays' first dimension, of forecasts
        that of the initial time."""
        return self._samples.opened.steps().astype(np.int64)

    @property
    def leads(self) -> npt.NDArray[np.float64]:
        """The lead time of each sample in hours; empty if samples have none (`lead=`)."""
        return self._samples.opened.lead_times() / MICROSECONDS_PER_HOUR

    def __repr__(self) -> str:
        names = ", ".join(self.variables)
        n = self._samples.n_rows
        return f"FieldDataset({n} samples of {names} in batches of {self.batch_size})"

    # What it says of its kind of samples

    def _batch_maker(self) -> Callable[[native.FieldBatch], FieldBatch]:
        elements = {name: element for name, element, *_ in self._samples.opened.variables()}
        halves = [name for name, element in elements.items() if element == "bfloat16"]
        of_functions = [
            name
            for name, one in self.variables.items()
            if function_of(one) is not None and one.dtype == "bfloat16"
        ]
        if (halves or of_functions) and self.form != "torch":
            raise TypeError(
                f"variable {shown([*halves, *of_functions][0])} has elements of type bfloat16, "
                'which numpy does not have: take form="torch", or give it dtype="float32"'
            )
        makers = {"numpy": _arrays, "torch": _tensors, "xarray": _data_arrays}
        lead, variables = self._samples.lead, self.variables
        dropped = {
            name: [drop for drop in one.dropped if drop != lead] for name, one in variables.items()
        }
        dims, grid = self._samples.dims, self._samples.opened.grid()
        make_array = makers[self.form](_Made(variables, halves, grid, dims))
        number_samples, number = self.number_samples, array_maker(self.form)
        stores, n_cut = self._samples.stores, len(self._samples.patches())

        def make(batch: native.FieldBatch) -> FieldBatch:
            made = {
                name: make_array(batch, name, _values(batch, name, drop, variables[name], dims))
                for name, drop in dropped.items()
            }
            if lead is not None:
                made[LEAD] = number(batch.lead_times() / MICROSECONDS_PER_HOUR)
            if number_samples:
                made[SAMPLE] = number(batch.samples.astype(np.int64))
            if n_cut:
                made[PATCH] = number(batch.patch_starts().reshape(-1, n_cut))
            if stores is not None:
                made[STORE] = number(stores.codes_of(batch.samples.astype(np.int64)))
            return made

        return make


def checked_patches(patches: Any) -> Patches:
    """The patches.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(patches, Patches):
        raise TypeError(f"patches are a somafeed.Patches, not {shown(patches)}")
    return patches


def _between(start: Any, end: Any, periods: Any) -> dict[str, Any]:
    """The options of steps and of dates between which samples lie.

    Raises:
        TypeError: One is neither a step nor a date.
        ValueError: Dates are given twice.
    """
    steps = {
        name: at_least_0(name, at) if isinstance(at, int | np.integer) else None
        for name, at in (("start", start), ("end", end))
    }
    dates = [
        None if at is None or steps[name] is not None else date_text(name, at)
        for name, at in (("start", start), ("end", end))
    ]
    pairs = [
        tuple(None if at is None else date_text("a date of periods", at) for at in pair)
        for pair in periods
    ]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a period is a pair of dates")
    if any(dates):
        if pairs:
            raise ValueError("give dates as start and end, or as periods, not both")
        pairs = [tuple(dates)]
    return {**steps, "periods": pairs}


def _name_of_dimension(what: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{what} is the name of a dimension, not {shown(name)}")
    return name


def are_timed(options: Mapping[str, Any], variables: Mapping[str, AnyVariable]) -> bool:
    """Whether samples are found by their times."""
    by_options = options["periods"] or options["frequency"] or options["lead"]
    return bool(by_options) or any(one.spans for one in variables.values())


def is_xarray(thing: Any) -> bool:
    """Whether it is a data set, an array or a tree of xarray."""
    xarray = sys.modules.get("xarray")
    kinds = ("Dataset", "DataArray", "DataTree")
    return xarray is not None and isinstance(
        thing, tuple(getattr(xarray, kind) for kind in kinds if hasattr(xarray, kind))
    )


def _samples_in(data: Any, variables: Any, options: dict[str, Any]) -> Fields:
    """The samples of a data set or an array of xarray."""
    from somafeed.from_xarray import names_in, stored_arrays

    named = checked_variables(names_in(data) if variables is None else variables)
    stacked = [name for name, one in named.items() if isinstance(one, Stack)]
    if stacked:
        raise ValueError(
            f"{shown(stacked[0])} stacks arrays of xarray: give the store's address instead"
        )
    whole = {name: one for name, one in named.items() if isinstance(one, Variable)}
    if not whole:
        raise ValueError("what is computed needs the times of a variable: name one")
    if options["lead"] or any(one.dim is not None or one.store is not None for one in whole.values()):
        raise ValueError(
            "lead=, Variable(dim=) and Variable(store=) need the store's address instead of what "
            "xarray opened"
        )
    stored = stored_arrays(data, whole, options)
    spacing = stored.window.spacing
    # In their order, with steps of the store.
    variables = {
        name: replace(one, steps=[step * spacing for step in one.counted])
        if isinstance(one, Forcing) and not one.spans
        else stored.variables.get(name, one)
        for name, one in named.items()
    }
    is_timed = are_timed(options, named)
    if is_timed and stored.window.is_part:
        raise ValueError(
            "steps were selected by xarray, and times are to choose samples: select by start=, end= "
            "and frequency= alone, from the data set as it was opened"
        )
    window, part = stored.window.options(
        [step for one in named.values() for step in one.counted],
        **{name: options[name] for name in ("start", "end", "stride")},
    )
    if is_timed:
        return Fields(stored.uri, variables, options)
    samples = Fields(stored.uri, variables, {**options, **window})
    return samples if part is None else samples.part(part, 0)


def _values(
    batch: native.FieldBatch,
    name: str,
    drop: Sequence[str],
    variable: AnyVariable,
    dims: Sequence[str],
) -> npt.NDArray[Any]:
    """The values of a variable, without dimensions of one index, with ensembles in their place."""
    values = batch.values(name)
    dimensions = batch.dimensions(name)
    if drop:
        values = values.squeeze(tuple(dimensions.index(one) for one in drop))
    moved = place_of_members([one for one in dimensions if one not in drop], variable, dims)
    return values if moved is None else np.moveaxis(values, *moved)


ArrayMaker: TypeAlias = Callable[[native.FieldBatch, str, npt.NDArray[Any]], Any]


@dataclass(frozen=True)
class _Made:
    """What arrays of a batch are made of."""

    variables: Mapping[str, AnyVariable]
    halves: Sequence[str]
    """Those of bfloat16, which come as the bits."""
    grid: tuple[str, str, str] | None
    """The variable that has the grid, its latitudes and its longitudes."""
    dims: Sequence[str]
    """The order of dimensions."""

    def values(
        self, batch: native.FieldBatch, name: str, values: npt.NDArray[Any]
    ) -> npt.NDArray[Any]:
        """The values of a variable, computed of the times if a function makes them."""
        variable = function_of(self.variables[name])
        return values if variable is None else computed(variable, name, values, batch, self.grid)


def _arrays(of: _Made) -> ArrayMaker:
    return of.values


def _tensors(of: _Made) -> ArrayMaker:
    tensor = array_maker("torch")
    torch = required("torch", "form='torch'")

    def made(batch: native.FieldBatch, name: str, values: npt.NDArray[Any]) -> Any:
        if name in of.halves:
            return tensor(values.view(np.int16)).view(torch.bfloat16)
        array = tensor(of.values(batch, name, values))
        variable = function_of(of.variables[name])
        is_half = variable is not None and variable.dtype == "bfloat16"
        return array.to(torch.bfloat16) if is_half else array

    return made


def _data_arrays(of: _Made) -> ArrayMaker:
    xarray = required("xarray", "form='xarray'")
    variables = of.variables

    def made(batch: native.FieldBatch, name: str, values: npt.NDArray[Any]) -> Any:
        variable = variables[name]
        drop = variable.dropped
        # What a function makes has the grid of another variable.
        is_function, gridded = function_of(variable) is not None, name
        all_dimensions = batch.dimensions(name)
        if is_function:
            values = of.values(batch, name, values)
            gridded, *both = of.grid or (name,)
            all_dimensions += [one for one in batch.dimensions(gridded) if one in both]
        cut = {one: f"{PATCH}_{one}" for one in batch.cut_dimensions(gridded)}
        kept = [one for one in all_dimensions if one not in drop]
        kept = placed(kept, place_of_members(kept, variable, of.dims))
        dimensions = [cut.get(one, one) for one in kept]
        coordinates: dict[str, Any] = {}
        if SAMPLE in dimensions:
            coordinates[SAMPLE] = (SAMPLE, batch.samples.astype(np.int64))
        if "step" in dimensions:
            steps = np.array(variable.offsets)[: values.shape[dimensions.index("step")]]
            coordinates["step"] = ("step", steps.astype("m8[us]") if variable.spans else steps)
        of_samples = [batch.sample_coordinates(name), batch.lead_coordinates(name)]
        of_samples = of_samples if SAMPLE in dimensions else []
        for dimension, numbers, attributes in filter(None, of_samples):
            outer = dimensions[: 2 if "step" in dimensions else 1]
            shape = values.shape[: len(outer)]
            numbers = np.asarray(numbers).reshape(shape)
            coordinates[dimension] = (outer, numbers, json.loads(attributes))
        for dimension, numbers, attributes in batch.coordinates(gridded):
            if dimension not in all_dimensions:
                continue
            at = np.asarray(numbers)
            whole = ((), at[0]) if dimension in drop else (dimension, at)
            coordinates[dimension] = (*whole, json.loads(attributes))
        for dimension, numbers, attributes in batch.patch_coordinates(gridded):
            if dimension not in all_dimensions:
                continue
            at = np.asarray(numbers).reshape(len(values), -1)
            of_sample = ((SAMPLE,), at[:, 0]) if dimension in drop else None
            of_patch = of_sample or ((SAMPLE, cut[dimension]), at)
            coordinates[dimension] = (*of_patch, json.loads(attributes))
        array = xarray.DataArray(values, coordinates, dimensions, name)
        return xarray.decode_cf(array.to_dataset(), mask_and_scale=False, decode_timedelta=True)[name]

    return made


__all__ = ["FieldBatch", "FieldDataset", "FieldForm", "Forcing", "Patches", "Stack", "Variable"]
