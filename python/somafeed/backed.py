"""An AnnData that is backed by a file, as a selection of the file's cells and genes.

X is in the file; obs, var, layers and obsm are in memory, where they may have been changed. Cells
are read from the file alone, so a view becomes joinids, and what was changed is an error if it is
needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from somafeed.joinids import Joinids
from somafeed.settings import shown
from somafeed.sources import JOINID, checked_address

if TYPE_CHECKING:
    import pandas as pd

_WRITE = (
    "was changed in memory, but is read from the file: write the AnnData by adata.write_h5ad(path) "
    "and open that file"
)

_PART = 'write the one you need, like mdata.mod["rna"].write_h5ad(path), and open that file'

_PIECE_BYTES = 16 << 20
"""Bytes of a matrix in the file that are compared at once."""

Places = npt.NDArray[np.int64]
"""Positions of cells or genes in the file."""


def selection(anndata: Any, raw: bool, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The address of an AnnData, and the options of `Dataset.from_experiment` that select what it
    has of the file.

    Raises:
        TypeError: It is neither a path nor an AnnData.
        ValueError: It is in memory; something that is needed was changed in memory; its cells or
            genes cannot be selected.
    """
    if isinstance(anndata, str | bytes | os.PathLike):
        return checked_address(anndata), dict(options)
    if not all(hasattr(anndata, name) for name in ("obs_names", "is_view", "filename")):
        raise TypeError(
            "from_anndata() takes a path, or an AnnData that is backed by a file (raw=True reads "
            f"its raw), not {shown(anndata)}"
        )
    if hasattr(anndata, "mod"):
        raise TypeError(f"a MuData has several AnnData: {_PART}")
    if anndata.filename is None:
        raise ValueError(
            "this AnnData is in memory: give the path of what write_zarr or write_h5ad wrote"
        )
    backed = _Backed(anndata, raw)
    backed.check_unchanged(options)
    return checked_address(anndata.filename), {**options, **backed.selected(options)}


class _Backed:
    """An AnnData with its file."""

    def __init__(self, anndata: Any, raw: bool) -> None:
        self._anndata, self._raw = anndata, raw
        if not anndata.file.is_open:
            anndata.file.open()
        obs = anndata.file["obs"]
        if obs.name != "/obs":
            raise ValueError(f"this AnnData is a part of {shown(str(anndata.filename))}: {_PART}")
        # What was written to X may still be on its way.
        obs.file.flush()
        self._cells, self._genes = _places(anndata)
        if raw:
            # A view has all genes of raw.
            self._genes = None

    def selected(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options for the cells and genes of a view. Those that select no part stay.

        Raises:
            ValueError: A cell or gene is there twice, or the options select others.
        """
        chosen = {}
        for axis, names, places in [
            ("obs", ("obs_joinids",), self._cells),
            ("var", ("var_joinids", "gene_names", "feature_type"), self._genes),
        ]:
            if places is None:
                continue
            given = [name for name in names if options.get(name) is not None]
            if given:
                raise ValueError(
                    f"{given[0]}= cannot be combined with a view of the AnnData: take the whole "
                    "AnnData, or the view of the wanted part"
                )
            joinids = Joinids(places)
            ascending = joinids.ascending()
            # Genes keep their order.
            chosen[f"{axis}_joinids"] = (ascending if axis == "obs" else joinids).selection()
        return chosen

    def check_unchanged(self, options: Mapping[str, Any]) -> None:
        """Fails if what the options need is not in memory as it is in the file.

        Raises:
            ValueError: It is not.
        """
        whole = self._anndata.raw if self._raw else self._anndata
        if whole is None:
            raise ValueError("raw=True, but this AnnData has no raw")
        cells = _used(options, "obs_columns", "totals", "obs_filter")
        genes = _used(options, "var_columns", "gene_column", "var_filter")
        self._check_table("obs", self._anndata.obs, cells, self._cells)
        self._check_table("raw/var" if self._raw else "var", whole.var, genes, self._genes)
        layers = [options.get("layer") or self._only_layer(), *(options.get("layers") or ())]
        for name in dict.fromkeys(layers):
            if name not in (None, "X"):
                self._check_matrix("layers", name, self._genes)
        for name in options.get("obsm") or ():
            self._check_matrix("obsm", name, None)

    def _only_layer(self) -> str | None:
        """The layer that is read if none is named, and the file has no X."""
        file = self._anndata.file
        names = list(file["layers"]) if "layers" in file and "X" not in file else []
        return names[0] if len(names) == 1 and not self._raw else None

    def _check_table(
        self, path: str, rows: Any, used: tuple[tuple[str, ...], str], places: Places | None
    ) -> None:
        """Compares the used columns: those with these names, and those that a filter may name."""
        if path not in self._anndata.file:
            return
        stored = self._anndata.file[path]
        index = stored.attrs.get("_index")
        names, text = used
        for name in {*rows.columns, *stored} - {JOINID}:
            is_index = name == index
            # An index without a name is read as this column.
            called = f"{path[-3:]}_id" if name == "_index" else str(name)
            if called not in names and not re.search(rf"(?<!\w){re.escape(called)}(?!\w)", text):
                continue
            if not is_index and (name not in rows.columns or name not in stored):
                raise ValueError(f"column {called!r} of {path} {_WRITE}")
            column = _subset(_read(stored[name]), places)
            if not _is_same_column(rows.index if is_index else rows[name], column):
                raise ValueError(f"column {called!r} of {path} {_WRITE}")

    def _check_matrix(self, kind: str, name: str, genes: Places | None) -> None:
        ours = getattr(self._anndata, kind)
        path = f"{kind}/{name}"
        if name not in ours and path not in self._anndata.file:
            # Reading says what there is.
            return
        is_same = name in ours and path in self._anndata.file
        if not (is_same and self._has_rows(kind, name, self._anndata.file[path], genes)):
            raise ValueError(f"{kind}[{name!r}] {_WRITE}")

    def _has_rows(self, kind: str, name: str, stored: Any, genes: Places | None) -> bool:
        """Whether a matrix in memory is that of the file, of which a piece is read at a time."""
        blocks = _row_blocks(stored)
        if blocks is None:
            whole = _subset(_read(stored), self._cells)
            whole = whole if genes is None else whole[:, genes]
            return _is_same_matrix(getattr(self._anndata, kind)[name], whole)
        # All of a view's matrix would be copied.
        whole = self._anndata._adata_ref if self._anndata.is_view else self._anndata
        ours, cells = getattr(whole, kind)[name], None
        if ours.shape[0] != (blocks[-1][1] if blocks else 0):
            return False
        for start, end in blocks:
            if self._cells is not None:
                cells = self._cells[(start <= self._cells) & (self._cells < end)]
                if not len(cells):
                    continue
                start, end = int(cells.min()), int(cells.max()) + 1
                cells -= start
            pair = [_subset(of, cells) for of in (ours[start:end], _rows(stored, start, end))]
            if genes is not None:
                pair = [of[:, genes] for of in pair]
            if not _is_same_matrix(*pair):
                return False
        return True


def _used(options: Mapping[str, Any], columns: str, column: str, text: str) -> tuple[Any, str]:
    """The names of columns in options, and a filter in which names may occur."""
    return (*(options.get(columns) or ()), options.get(column)), options.get(text) or ""


def _places(anndata: Any) -> tuple[Places | None, Places | None]:
    """The positions of a view's cells and genes; None for all in their order.

    Raises:
        ValueError: They are not where this version of anndata has them.
    """
    if not anndata.is_view:
        return None, None
    # Names may be there several times, and may have been changed. Only these say which is which.
    whole, found = getattr(anndata, "_adata_ref", None), []
    for names, n, attribute in [("obs_names", "n_obs", "_oidx"), ("var_names", "n_vars", "_vidx")]:
        index = getattr(anndata, attribute, None)
        if whole is None or index is None:
            raise ValueError(
                "this version of anndata does not say which cells a view has: give the path, and "
                "the positions as obs_joinids= and var_joinids="
            )
        places = np.arange(getattr(whole, n))[index]
        if len(places) != getattr(anndata, n):
            raise ValueError(f"{names} of the view are not those of the AnnData: make it anew")
        is_all = len(places) == getattr(whole, n) and bool(np.all(np.diff(places) == 1))
        found.append(None if is_all else places)
    return found[0], found[1]


def _read(stored: Any) -> Any:
    """An element of the file, as anndata has it in memory."""
    try:
        from anndata.io import read_elem
    except ImportError:
        from anndata.experimental import read_elem
    return read_elem(stored)


def _row_blocks(stored: Any) -> list[tuple[int, int]] | None:
    """Rows of a dense or CSR matrix in the file that are read at once; None of another element."""
    encoding = stored.attrs.get("encoding-type")
    if encoding == "array" and stored.ndim == 2:
        row_bytes = max(1, stored.dtype.itemsize * stored.shape[1])
        step = max(1, _PIECE_BYTES // row_bytes)
        n_rows = stored.shape[0]
        return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    if encoding != "csr_matrix":
        return None
    value_bytes = stored["data"].dtype.itemsize + stored["indices"].dtype.itemsize
    indptr, blocks, start = stored["indptr"][:], [], 0
    while start < len(indptr) - 1:
        most = indptr[start] + _PIECE_BYTES // value_bytes
        end = max(start + 1, int(np.searchsorted(indptr, most, side="right")) - 1)
        blocks.append((start, end))
        start = end
    return blocks


def _rows(stored: Any, start: int, end: int) -> Any:
    """Rows of a dense or CSR matrix in the file."""
    if hasattr(stored, "dtype"):
        return stored[start:end]
    import scipy.sparse

    indptr = stored["indptr"][start : end + 1]
    values = slice(indptr[0], indptr[-1])
    parts = stored["data"][values], stored["indices"][values], indptr - indptr[0]
    return scipy.sparse.csr_matrix(parts, shape=(end - start, int(stored.attrs["shape"][1])))


def _subset(values: Any, places: Places | None) -> Any:
    if places is None:
        return values
    return (values.iloc if hasattr(values, "iloc") else values)[places]


def _is_same_column(ours: Any, stored: Any) -> bool:
    """Whether two columns have the same values, and categories in the same order."""
    import pandas as pd

    dtypes = [getattr(one, "dtype", None) for one in (ours, stored)]
    if all(isinstance(dtype, pd.CategoricalDtype) for dtype in dtypes):
        return _is_same_categorical(pd.Categorical(ours), pd.Categorical(stored))
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
        return _is_equal(ours, stored)
    left, right = (_objects(one) for one in (ours, stored))
    nulls = left.isna()
    if not nulls.equals(right.isna()):
        return False
    return bool((left[~nulls].to_numpy() == right[~nulls].to_numpy()).all())


def _objects(column: Any) -> Any:
    """A column as a `pandas.Series` of objects."""
    import pandas as pd

    return pd.Series(np.asarray(column, object))


def _is_same_categorical(ours: pd.Categorical, stored: pd.Categorical) -> bool:
    places = ours.categories.get_indexer(stored.categories)
    # A view has only the categories that are in use, in their order.
    if not np.array_equal(places[places >= 0], np.arange(len(ours.categories))):
        return False
    # -1 is the code of a null, which the last place is for.
    codes = np.append(np.where(places < 0, -2, places), -1)[stored.codes]
    return np.array_equal(codes, ours.codes)


def _is_same_matrix(ours: Any, stored: Any) -> bool:
    """Whether two matrices have the same values. NaN is like NaN."""
    left, right = _coordinates(ours), _coordinates(stored)
    return len(left) == len(right) and all(map(_is_equal, left, right))


def _coordinates(matrix: Any) -> list[Any]:
    """The shape and values of a matrix; of a sparse one also the places of values."""
    if not hasattr(matrix, "tocsr"):
        matrix = np.asarray(matrix)
        return [matrix.shape, matrix]
    rows = matrix.tocsr().copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return [rows.shape, rows.indptr, rows.indices, rows.data]


def _is_equal(left: Any, right: Any) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    if left.shape != right.shape:
        return False
    is_float = left.dtype.kind in "fc" and right.dtype.kind in "fc"
    return np.array_equal(left, right, equal_nan=is_float)
