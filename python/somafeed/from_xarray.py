"""An `xarray.Dataset` or `xarray.DataArray` that was opened from Zarr, as arrays of its store.

The address comes from the Zarr array that a variable still reads, and what was selected from the
keys by which it is read, or from coordinates. Elements that xarray has are compared with those of
the store at opening, so that nothing that was computed is left out unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from somafeed.axes import in_order
from somafeed.fields import FieldDataset
from somafeed.settings import shown
from somafeed.splits import Places
from somafeed.variables import Variable, between_labels, selected_indices
from somafeed.xarray_source import (
    WAY_OUT,
    ReadArray,
    are_equal,
    check_packing,
    decoded_like,
    not_in_root,
    opened_anew,
)

Selected = dict[str, "int | npt.NDArray[np.int64]"]
"""The indices of each dimension of a stored array; a single one if the dimension was dropped."""

_COMPARED_BYTES = 16 << 20
"""Bytes of an array in memory that are compared at once."""


@dataclass(frozen=True)
class Window:
    """Evenly spaced or listed steps of the store, which count as the only ones there are."""

    places: npt.NDArray[np.int64]
    n_stored: int
    """Steps of the store."""

    @property
    def is_part(self) -> bool:
        """Whether they are not all steps of the store, in their order."""
        return not np.array_equal(self.places, np.arange(self.n_stored))

    @property
    def spacing(self) -> int:
        """Steps of the store from one to the next; 0 if they are not evenly spaced."""
        gaps = np.diff(self.places)
        if len(gaps) == 0:
            return 1
        return int(gaps[0]) if (gaps == gaps[0]).all() else 0

    def steps_of(self, variable: Variable) -> dict[str, Any]:
        """The steps of the store that a variable has. Those that are lengths of time stay so."""
        if variable.spans:
            return {}
        n, counted = len(variable.offsets), [at * self.spacing for at in variable.counted]
        return {"steps": counted[:n], "minus": counted[n:]}

    def options(
        self, steps: Sequence[int], start: int | None, end: int | None, stride: int
    ) -> tuple[dict[str, Any], Places | None]:
        """The options `start`, `end` and `stride` for the whole arrays, and the samples of those
        if they are not all: None, or a split with one part.

        Raises:
            ValueError: There is no such sample; steps beside the sample's own are wanted, and those
                that were selected are not evenly spaced.
        """
        before, after = -min([0, *steps]), max([0, *steps])
        first = before if start is None else start
        last = len(self.places) if end is None else end
        if first < before or last > len(self.places):
            raise ValueError(
                f"samples are about the selected steps from {before} to {len(self.places)}: "
                f"start={first}, end={last} are beyond"
            )
        last = min(last, len(self.places) - after)
        if last <= first:
            raise ValueError(f"there is no sample: {len(self.places)} steps are selected")
        if not self.spacing:
            if before or after:
                raise ValueError(
                    "the selected steps are not evenly spaced, so none is before or after another: "
                    f"select a slice, {WAY_OUT}"
                )
            listed = Places(self.places[first:last:stride])
            return {"start": None, "end": None, "stride": 1}, listed
        start, end = int(self.places[first]), int(self.places[last - 1]) + 1
        return {"start": start, "end": end, "stride": stride * self.spacing}, None


@dataclass(frozen=True)
class StoredArrays:
    """The address of a Zarr store, variables of its arrays, and the steps that are selected."""

    uri: str
    variables: dict[str, Variable]
    window: Window


def names_in(data: Any) -> list[str]:
    """The variables that are taken if none is named: all of a data set, or the array itself.

    Raises:
        TypeError: It is a tree of groups.
        ValueError: The array has no name.
    """
    if hasattr(data, "children"):
        raise TypeError("a DataTree has several groups: give one, like tree['era5'].to_dataset()")
    if hasattr(data, "data_vars"):
        return [str(name) for name in data.data_vars]
    if data.name is None:
        raise ValueError("the DataArray has no name: give it one by .rename('t2m')")
    return [str(data.name)]


def stored_arrays(
    data: Any,
    variables: Mapping[str, Variable],
    options: Mapping[str, Any],
) -> StoredArrays:
    """The store's arrays that the variables name, with what was selected of them in xarray, by the
    options of the data set.

    Raises:
        ValueError: An array does not come from Zarr as it is, or its selection cannot be found.
    """
    config, dim = options["config"], options["dim"]
    opened: dict[Any, Any] = {}
    names = dict.fromkeys(one.path for one in variables.values())
    arrays = {name: _Array.found(data, name, opened, dim) for name in names}
    places = {array.address: array for array in arrays.values()}
    if len(places) > 1:
        one, other = list(places.values())[:2]
        raise ValueError(
            f"variables {shown(one.name)} and {shown(other.name)} lie in different stores: make a "
            "FieldDataset of each"
        )
    first, *others = arrays.values()
    window = Window(first.steps(), first.whole.shape[0])
    for other in others:
        is_same = other.whole.dims[0] == first.whole.dims[0]
        if not is_same or not np.array_equal(other.steps(), window.places):
            raise ValueError(
                f"variables {shown(first.name)} and {shown(other.name)} have other steps, which "
                f"are {shown(str(first.whole.dims[0]))} and {shown(str(other.whole.dims[0]))}: name "
                "variables with the same dimension of samples"
            )
    for array in arrays.values():
        array.check_values(config)
    [address] = places
    return StoredArrays(
        address,
        {
            name: arrays[one.path].variable(one, window, options["dims"])
            for name, one in variables.items()
        },
        window,
    )


@dataclass
class _Array:
    """A variable of xarray, and the array of a store that it is a part of."""

    name: str
    given: Any
    """The `xarray.DataArray`."""
    whole: Any
    """The whole array, opened anew."""
    address: str
    path: str
    is_in_memory: bool
    is_decoded: bool | None
    """Whether xarray unpacks numbers; None if that is not known."""
    selected: Selected
    dim: str | int | None
    """The dimension of samples, as the store's array is opened."""

    @classmethod
    def found(
        cls, data: Any, name: str, opened: dict[Any, Any], dim: str | int | None
    ) -> _Array:
        """The array of a variable. Groups that are opened anew are kept in `opened`."""
        given = _named(data, name)
        empty = [one for one, n in given.sizes.items() if n == 0]
        if empty:
            raise ValueError(
                f"nothing of {shown(str(empty[0]))} of variable {shown(name)} is selected"
            )
        source = ReadArray.of(given, name)
        store, address, path = source.place(data, name)
        folder, _, stored_name = path.rpartition("/")
        key = address, folder
        if key not in opened:
            opened[key] = opened_anew(store, folder, name)
        if stored_name not in opened[key].data_vars:
            raise not_in_root(name)
        whole = decoded_like(given, opened[key], stored_name, name)
        if source.is_decoded:
            check_packing(given, opened[key][stored_name], name)
        selected = {
            str(one): _selected(given, whole, one, source.positions(given, whole, one), name)
            for one in whole.dims
        }
        _check_samples_dimension(given, whole, dim, name)
        if dim is not None:
            # Samples come first in what is read.
            first = _dimension(whole, dim, name)
            whole = whole.transpose(first, ...)
            given = given.transpose(first, ..., missing_dims="ignore")
        in_memory, decoded = source.array is None, source.is_decoded
        return cls(name, given, whole, address, path, in_memory, decoded, selected, dim)

    def steps(self) -> npt.NDArray[np.int64]:
        """The indices of the samples' dimension."""
        dimension = self.whole.dims[0]
        steps = self.selected[dimension]
        if isinstance(steps, int):
            raise ValueError(
                f"variable {shown(self.name)} has lost the dimension of the samples, "
                f"{shown(dimension)}: select it by a list, isel({dimension}=[{steps}])"
            )
        if (np.diff(steps) <= 0).any():
            raise ValueError(
                f"the indices of {shown(dimension)} of variable {shown(self.name)} must ascend: "
                f"samples come by their steps. Sort batches, {WAY_OUT}"
            )
        return steps

    @property
    def dims(self) -> list[str]:
        """The dimensions but that of the samples, in xarray's order."""
        return [str(one) for one in self.given.dims if one != self.whole.dims[0]]

    def variable(self, wanted: Variable, window: Window, of_all: Sequence[str]) -> Variable:
        """The part of the store's array that a variable of the given one is. Its dimensions are
        in its own order, in that `of_all`, or in xarray's."""
        kept = {
            one: at
            for one, at in self.selected.items()
            if one != self.whole.dims[0] and not isinstance(at, int)
        }
        unknown = [one for one in (*wanted.isel, *wanted.sel) if one not in kept]
        if unknown:
            raise ValueError(
                f"variable {shown(self.name)} has no dimension {shown(unknown[0])}: it has "
                f"{', '.join(kept)}"
            )
        inner = {one: at for one, at in self.selected.items() if one != self.whole.dims[0]}
        for one, at in wanted.isel.items():
            inner[one] = _part(kept[one], at, one)
        for one, label in wanted.sel.items():
            inner[one] = _part(kept[one], self._at_labels(one, label), one)
        named = wanted.dims or [one for one in of_all if one in self.dims]
        dims = in_order(self.dims, named)
        stored = [str(one) for one in self.whole.dims if one in dims]
        return replace(
            wanted,
            path=self.path,
            dims=wanted.dims if dims == stored else dims,
            **window.steps_of(wanted),
            isel=_isel(inner, self.whole.sizes),
            sel={},
            mask_and_scale=wanted.mask_and_scale and self.is_decoded is not False,
        )

    def _at_labels(self, dimension: str, label: Any) -> Any:
        """The positions of labels in the given array."""
        if dimension not in self.given.coords:
            raise ValueError(f"dimension {shown(dimension)} has no coordinates: select by isel")
        values = self.given[dimension].values
        if isinstance(label, slice):
            return between_labels(dimension, label, values)
        found = []
        for one in np.atleast_1d(np.asarray(label)):
            at = np.flatnonzero(values == one)
            if len(at) != 1:
                raise ValueError(
                    f"{len(at)} coordinates of {shown(dimension)} are {shown(str(one))}"
                )
            found.append(int(at[0]))
        return found[0] if np.ndim(label) == 0 else found

    def check_values(self, config: Mapping[str, str]) -> None:
        """Compares elements that xarray has with those of the store: all that are in memory, of
        others the first, the last and one between of each dimension.

        Raises:
            ValueError: They differ.
        """
        first = self.whole.dims[0]
        compared = {
            one: np.arange(n) if self.is_in_memory else np.unique([0, n // 2, n - 1])
            for one, n in self.given.sizes.items()
        }
        inner: Selected = {}
        for one, at in self.selected.items():
            if one != first:
                inner[one] = at if isinstance(at, int) else at[compared[one]]
        steps = self.steps()[compared[first]]
        # Whether numbers that are in memory were unpacked is not known.
        for is_decoded in (True, False) if self.is_decoded is None else (self.is_decoded,):
            isel = _isel(inner, self.whole.sizes)
            wanted = Variable(self.path, isel=isel, dims=self.dims, mask_and_scale=is_decoded)
            read = _read(self.address, (wanted, self.dim), steps, config)
            if self._equals(compared, read):
                self.is_decoded = is_decoded
                return
        what = "computed or changed in xarray"
        if self.is_in_memory:
            what += ", or lies in a group, which is not known of values in memory"
        raise ValueError(
            f"variable {shown(self.name)} has other values than {shown(self.path)} in "
            f"{shown(self.address)}: it was {what}. Write the result and give its address, "
            f"{WAY_OUT}"
        )

    def _equals(
        self, compared: Mapping[str, npt.NDArray[np.int64]], read: Iterator[npt.NDArray[Any]]
    ) -> bool:
        first = self.whole.dims[0]
        given = self.given.isel({one: at for one, at in compared.items() if one != first})
        at = 0
        for values in read:
            theirs = given.isel({first: compared[first][at : at + len(values)]}).values
            at += len(values)
            if theirs.dtype.kind != values.dtype.kind:
                if self.is_decoded is None:
                    return False
                raise ValueError(
                    f"variable {shown(self.name)} has the type {theirs.dtype} in xarray, and "
                    f"{values.dtype} in the store: give the store's address instead"
                )
            theirs = theirs.astype(values.dtype)
            if not are_equal(theirs, values):
                return False
        return True


def _named(data: Any, name: str) -> Any:
    """A variable of a data set, or the array itself.

    Raises:
        ValueError: There is no such variable.
    """
    names = names_in(data)
    if name not in names:
        raise ValueError(f"there is no variable {shown(name)}: there are {', '.join(names)}")
    return data[name] if hasattr(data, "data_vars") else data


def _selected(
    given: Any, whole: Any, dimension: Any, known: int | npt.NDArray[np.int64] | None, name: str
) -> int | npt.NDArray[np.int64]:
    """The indices of a dimension of the whole array that the given one has.

    Raises:
        ValueError: They are not known; coordinates are others than the store's.
    """
    places = known
    has_labels = dimension in given.coords and dimension in whole.coords
    if has_labels:
        places = _places_of_labels(given, whole, dimension, known, name)
    elif places is None:
        if given.sizes.get(dimension) != whole.sizes[dimension]:
            raise ValueError(
                f"dimension {shown(dimension)} of variable {shown(name)} has no coordinates, so "
                f"which part was selected is not known: select it by Variable({name!r}, "
                f"isel={{{dimension!r}: ...}}), and samples by start=, end= and stride="
            )
        places = np.arange(whole.sizes[dimension])
    return places


def _places_of_labels(
    given: Any, whole: Any, dimension: Any, known: int | npt.NDArray[np.int64] | None, name: str
) -> int | npt.NDArray[np.int64]:
    """The indices by coordinates, which agree with those that are known.

    Raises:
        ValueError: They do not, or there are no such coordinates, or several.
    """
    labels, of_whole = given[dimension], whole.get_index(dimension)
    if labels.ndim > (dimension in given.dims):
        raise ValueError(
            f"points were selected of variable {shown(name)}, which has no dimension "
            f"{shown(dimension)} any more: select by slices and lists, {WAY_OUT}"
        )
    values = np.atleast_1d(labels.values)
    if known is not None:
        places = np.atleast_1d(known)
        is_same = are_equal(values, of_whole.values[places])
    elif of_whole.is_unique:
        places = of_whole.get_indexer(values).astype(np.int64)
        is_same = not (places < 0).any()
    else:
        places = np.arange(len(of_whole))
        is_same = are_equal(values, of_whole.values)
    if not is_same:
        raise ValueError(
            f"variable {shown(name)} has coordinates of {shown(dimension)} that the store does not "
            f"have, or has twice: they were assigned or computed in xarray. Give the arrays as "
            f"they were opened, {WAY_OUT}"
        )
    return int(places[0]) if dimension not in given.dims else places


def _part(of: npt.NDArray[np.int64], at: Any, dimension: str) -> Any:
    """The indices in the store of a part of those that are selected."""
    found = selected_indices(dimension, at, len(of))
    if isinstance(found, tuple):
        return of[slice(*found)]
    is_one = not isinstance(at, slice) and np.ndim(at) == 0
    return int(of[found[0]]) if is_one else of[found]


def _isel(selected: Selected, sizes: Mapping[Any, int]) -> dict[str, Any]:
    """Indices as `isel` of a variable: slices if they have no gaps, none of a whole dimension."""
    isel: dict[str, Any] = {}
    for one, at in selected.items():
        if isinstance(at, int) or not len(at) or (np.diff(at) != 1).any():
            isel[one] = at
        elif len(at) < sizes[one]:
            isel[one] = slice(int(at[0]), int(at[-1]) + 1)
    return isel


def _check_samples_dimension(given: Any, whole: Any, dim: str | int | None, name: str) -> None:
    """Fails if the dimension of samples has another place than in the store and is not named.

    Raises:
        ValueError: It has.
    """
    kept = [one for one in whole.dims if one in given.dims]
    at = dim or 0
    if isinstance(at, str) or list(given.dims) == kept or len(whole.dims) <= at:
        return
    first = whole.dims[at]
    if dim is not None or given.dims[0] != first:
        raise ValueError(
            f"variable {shown(name)} was transposed, from {', '.join(map(str, kept))} to "
            f"{', '.join(map(str, given.dims))}: name the dimension of samples, dim={first!r}"
        )


def _dimension(whole: Any, dim: str | int, name: str) -> str:
    """The name of the samples' dimension.

    Raises:
        ValueError: The array has none of this name or position.
    """
    dims = [str(one) for one in whole.dims]
    found = dims[dim : dim + 1] if isinstance(dim, int) else [one for one in dims if one == dim]
    if not found:
        raise ValueError(
            f"variable {shown(name)} has no dimension {shown(dim)}: it has {', '.join(dims)}"
        )
    return found[0]


def _read(
    address: str,
    along: tuple[Variable, str | int | None],
    steps: npt.NDArray[np.int64],
    config: Mapping[str, str],
) -> Iterator[npt.NDArray[Any]]:
    """A variable at these steps of a dimension, in batches."""
    wanted, dim = along
    options: Any = {"dim": dim, "shuffle": False, "coordinates": False, "world": (0, 1), "seed": 0}
    try:
        read = FieldDataset(address, {"x": wanted}, config=config, **options)
    except OSError as error:
        error.add_note("xarray does not keep the storage_options of a store: give them as config=")
        raise
    sample_bytes = 8 * int(np.prod(read.shapes["x"], dtype=np.int64))
    listed = read._with(read._samples.part(Places(steps), 0))
    listed.batch_size = max(1, _COMPARED_BYTES // max(1, sample_bytes))
    listed.io_batch_size = listed.batch_size
    for batch in listed:
        yield np.asarray(batch["x"])
