"""The array of a Zarr store that a variable of xarray reads, and how it is decoded.

xarray keeps neither in public: what is found here is checked against the store afterwards.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from somafeed.settings import shown

WAY_OUT = "or give the store's address instead, and select by Variable(isel=, sel=)"

_PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")

_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "http": "http", "https": "https"}
_SCHEMES |= {name: "azure" for name in ("az", "abfs", "abfss", "azure")}


@dataclass(frozen=True)
class ReadArray:
    """What a variable reads: an array of Zarr, or memory."""

    array: Any
    """The `zarr.Array`; None if the numbers are in memory."""
    is_decoded: bool | None
    known: list[int | npt.NDArray[np.int64]] | None
    """The indices of each of its dimensions that are read; None if they are not known."""
    layer: str | None
    """The layer of dask that reads, if another selects parts of it."""

    @classmethod
    def of(cls, given: Any, name: str) -> ReadArray:
        # xarray has no public way to the array that a variable reads. Whatever is found here is
        # checked against the store afterwards.
        data: Any = given.variable._data
        layer = None
        graph = getattr(data, "dask", None)
        if graph is not None:
            data, layer = _of_graph(graph, name)
        keys, is_known, is_decoded = [], True, False
        while type(data).__module__.partition(".")[0] == "xarray":
            kind = type(data).__name__
            is_decoded |= kind == "_ElementwiseFunctionArray"
            if kind == "LazilyIndexedArray":
                keys.append(data.key.tuple)
            if kind == "LazilyVectorizedIndexedArray":
                # So are arrays that were transposed.
                along = _along_dimensions(data.key.tuple)
                keys.append(along)
                is_known &= along is not None
            get = getattr(data, "get_array", None)
            data = getattr(data, "array", None) if get is None else get()
        if isinstance(data, np.ndarray) and graph is None:
            return cls(None, None, None, None)
        if type(data).__module__.partition(".")[0] != "zarr":
            raise ValueError(
                f"variable {shown(name)} was not opened from Zarr, but is an object of type "
                f"{type(data).__name__}: open it by xarray.open_zarr, or give a store's address"
            )
        return cls(data, is_decoded, _positions(data.shape, keys) if is_known else None, layer)

    def positions(
        self, given: Any, whole: Any, dimension: Any
    ) -> int | npt.NDArray[np.int64] | None:
        """The indices of a dimension of the whole array; None if they are not known."""
        if self.known is None:
            return None
        known = self.known[list(whole.dims).index(dimension)]
        if not isinstance(known, int) and len(known) == 1 and dimension not in given.dims:
            known = int(known[0])
        if self.layer is None or isinstance(known, int):
            return known
        has_labels = dimension in given.coords and dimension in whole.coords
        if has_labels and whole.get_index(dimension).is_unique:
            return None
        # Has dask select from numbers of indices instead.
        line: Any = given.isel({one: 0 for one in given.dims if one != dimension}).data
        graph = dict(line.dask)
        axes = [one for one, at in zip(whole.dims, self.known) if not isinstance(at, int)]
        indices = known.reshape([-1 if one == dimension else 1 for one in axes])
        graph[self.layer] = np.broadcast_to(indices, graph[self.layer].shape)
        selecting: Any = type(line)(graph, line.name, line.chunks, dtype=np.int64)
        found = np.asarray(selecting.compute(scheduler="synchronous"))
        return int(found) if found.ndim == 0 else found

    def place(self, data: Any, name: str) -> tuple[Any, str, str]:
        """What xarray opens, the store's address for us, and the array's path in it."""
        if self.array is not None:
            return self.array.store, _address(self.array.store, name), self.array.path
        source = data.encoding.get("source")
        if not isinstance(source, str | os.PathLike):
            raise ValueError(
                f"variable {shown(name)} is in memory, loaded or computed: give what "
                f"xarray.open_zarr opened, before values were used, {WAY_OUT}"
            )
        return os.fspath(source), os.fspath(source), name


def _of_graph(graph: Any, name: str) -> tuple[Any, str | None]:
    """What a graph of dask reads, and the layer that reads if another selects a part.

    Raises:
        ValueError: It does more than reading, selecting and transposing.
    """
    layers = [str(layer) for layer in getattr(graph, "layers", ())]
    sources = [layer for layer in layers if layer.startswith("original-")]
    source = sources[0] if len(sources) == 1 else ""
    others = [one for one in layers if one not in (source, source.removeprefix("original-"))]
    computed = [one for one in others if not one.startswith(("getitem-", "rechunk-", "transpose-"))]
    if not source or computed:
        what = f" ({computed[0].rpartition('-')[0]})" if computed else ""
        raise ValueError(
            f"variable {shown(name)} is computed by dask{what}, not only read and selected: write "
            f"the result and give its address, {WAY_OUT}"
        )
    return graph[source], source if any(one.startswith("getitem-") for one in others) else None


def _along_dimensions(key: Sequence[Any]) -> list[npt.NDArray[Any]] | None:
    """The indices of each dimension, if each has a dimension of its own in the result."""
    axes: list[int] = []
    for at in key:
        axes += [axis for axis, n in enumerate(np.shape(at)) if n > 1]
        if np.size(at) != max([1, *np.shape(at)]):
            return None
    return None if len(set(axes)) < len(axes) else [np.ravel(at) for at in key]


def _positions(
    shape: Sequence[int], keys: Sequence[Any]
) -> list[int | npt.NDArray[np.int64]] | None:
    """The indices of each dimension that these keys, the outermost first, select; None if they are
    others than slices, lists and single indices."""
    found: list[int | npt.NDArray[np.int64]] = [np.arange(n) for n in shape]
    for key in reversed(keys):
        kept = [(axis, at) for axis, at in enumerate(found) if not isinstance(at, int)]
        if len(key) != len(kept):
            return None
        for (axis, of), at in zip(kept, key):
            part = of[at]
            found[axis] = int(part) if np.ndim(part) == 0 else part
    return found


def _address(store: Any, name: str) -> str:
    """The address of a store of zarr.

    Raises:
        ValueError: It is not a folder, a Zip archive or in an object store.
    """
    kind = type(store).__name__
    if kind == "LocalStore":
        return str(store.root)
    if kind == "ZipStore":
        return str(store.path)
    if kind == "FsspecStore":
        url = store.fs.unstrip_protocol(store.path)
        scheme, _, rest = str(url).partition("://")
        if scheme in ("file", "local"):
            return rest
        if scheme in _SCHEMES:
            return f"{_SCHEMES[scheme]}://{rest}"
        kind = f"{kind} of {scheme}://"
    raise ValueError(
        f"variable {shown(name)} lies in a {kind}, whose address is not known: give the address of "
        "a folder, a Zip archive or a place in an object store, and select by "
        "Variable(isel=, sel=)"
    )


def opened_anew(store: Any, folder: str, name: str) -> Any:
    """The group with the array of a variable, opened anew: as it is stored.

    Raises:
        ValueError: The variable is in memory, and where it was read is not a store.
    """
    import xarray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return xarray.open_dataset(
                store, engine="zarr", group=folder or None, chunks=None, cache=False, decode_cf=False
            )
        except (OSError, ValueError) as error:
            # What xarray keeps may be a part of the address.
            if isinstance(store, str):
                raise not_in_root(name) from error
            raise


def not_in_root(name: str) -> ValueError:
    return ValueError(
        f"variable {shown(name)} is in memory, loaded or computed, and not an array in the root of "
        f"the store: give what xarray.open_zarr opened, before values were used, {WAY_OUT}"
    )


def decoded_like(given: Any, stored: Any, stored_name: str, name: str) -> Any:
    """The whole array that a variable is a part of, decoded like it.

    Raises:
        ValueError: It has dimensions, coordinates or a type that the store does not have.
    """
    _check_dimensions(given, stored[stored_name], name)
    made = [one for one in given.coords if one not in stored.variables]
    if made:
        raise ValueError(
            f"variable {shown(name)} has coordinates {shown(str(made[0]))} that the store does "
            f"not have: leave them out by .drop_vars({str(made[0])!r})"
        )
    differs = None
    for array in _decoded(stored[[stored_name]]):
        whole = array[stored_name]
        pairs = [(f"variable {name!r}", given, whole)]
        pairs += [
            (f"coordinates {one!r}", given[one], whole[one])
            for one in whole.dims
            if one in given.coords and one in whole.coords
        ]
        other = [one for one in pairs if not _is_same_type(one[1].dtype, one[2].dtype)]
        if not other:
            return whole
        differs = differs or other[0]
    what, ours, theirs = differs or ("", given, given)
    raise ValueError(
        f"xarray has {what} of type {ours.dtype}, and the store {theirs.dtype}: it was converted. "
        f"Convert later, {WAY_OUT}"
    )


def _decoded(stored: Any) -> Iterator[Any]:
    """A data set in the ways in which xarray decodes numbers and times."""
    import xarray

    coder = getattr(getattr(xarray, "coders", None), "CFDatetimeCoder", None)
    of_times = [True, False] if coder is None else [True, False, coder(use_cftime=True)]
    yield stored
    for mask_and_scale, decode_times, decode_timedelta in itertools.product(
        (True, False), of_times, (None, True, False)
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield xarray.decode_cf(
                    stored,
                    mask_and_scale=mask_and_scale,
                    decode_times=decode_times,
                    decode_timedelta=decode_timedelta,
                )
            except (ValueError, ImportError):
                # Numbers that are no times, or cftime is not installed.
                continue


def are_equal(ours: Any, stored: Any) -> bool:
    """Whether arrays are equal. NaN is like NaN."""
    ours, stored = np.asarray(ours), np.asarray(stored)
    return np.array_equal(ours, stored, ours.dtype.kind == stored.dtype.kind == "f")


def _is_same_type(given: Any, stored: Any) -> bool:
    """Whether types are equal, or both of texts or of times, whose lengths and units may differ."""
    kinds = given.kind + stored.kind
    return bool(given == stored) or kinds == "MM" or not set(kinds) - set("USOT")


def check_packing(given: Any, stored: Any, name: str) -> None:
    """Fails if numbers were unpacked by other attributes than those of the store.

    Raises:
        ValueError: They were.
    """
    for key in _PACKING:
        if key in given.encoding:
            if not are_equal(given.encoding[key], stored.attrs.get(key)):
                raise ValueError(
                    f"the encoding {key!r} of variable {shown(name)} is not that of the store: "
                    f"decode by the store's own, {WAY_OUT}"
                )


def _check_dimensions(given: Any, whole: Any, name: str) -> None:
    """Fails if an array has other dimensions than that of the store.

    Raises:
        ValueError: It has.
    """
    stored = list(whole.dims)
    other = [one for one in given.dims if one not in stored]
    if other:
        raise ValueError(
            f"variable {shown(name)} has the dimension {shown(str(other[0]))}, and the store "
            f"{', '.join(map(str, stored))}: it was renamed or made in xarray. Rename later, "
            f"{WAY_OUT}"
        )
