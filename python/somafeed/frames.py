"""obs as pandas frames: what is the same in all batches is made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import ObsMaker, required
from somafeed.sources import JOINID

if TYPE_CHECKING:
    import pandas as pd

ColumnMaker: TypeAlias = Callable[[native.Batch, native.ArrowTable], Any]


def frame_maker(
    columns: Sequence[str], experiment_column: str | None, dataset: native.Dataset
) -> ObsMaker:
    """The function that makes a frame of a native batch, with the same types in all batches.

    Numbers come from the native columns, categories from their codes. Only the other columns, for
    example texts, go through pyarrow.
    """
    frame = required("pandas", "obs_form='pandas'").DataFrame
    makers = {name: _maker(name, dataset) for name in columns}
    if experiment_column is not None:
        makers[experiment_column] = lambda batch, _: experiments_of(batch)
    others = [name for name, maker in makers.items() if maker is None]
    convert = _converter(others, dataset) if others else None

    def made(batch: native.Batch) -> pd.DataFrame:
        table = batch.obs
        converted = {} if convert is None else convert(table)
        values = {
            name: converted[name] if maker is None else maker(batch, table)
            for name, maker in makers.items()
        }
        # Copies each array, which may be read-only.
        return frame(values)

    return made


def _maker(name: str, dataset: native.Dataset) -> ColumnMaker | None:
    """The function that takes one column; None if it takes pyarrow."""
    if name == JOINID:
        return lambda batch, _: batch.joinids
    whole = dataset.obs()
    try:
        whole.column(name)
    except ValueError:
        return _category_maker(name, whole)
    return lambda _, table: table.column(name)


def _category_maker(name: str, whole: native.ArrowTable) -> ColumnMaker | None:
    """The function that takes a column of categories; None if it has none."""
    pandas = required("pandas", "obs_form='pandas'")
    pyarrow = required("pyarrow", f"obs column {name!r} in a frame")
    column = pyarrow.table(whole).column(name)
    if not pyarrow.types.is_dictionary(column.type):
        return None
    # No rows still have all categories.
    dtype = column.slice(0, 0).to_pandas().dtype
    from_codes = pandas.Categorical.from_codes
    return lambda _, table: from_codes(table.dictionary_codes(name), dtype=dtype)


def _converter(
    columns: Sequence[str], dataset: native.Dataset
) -> Callable[[native.ArrowTable], dict[str, Any]]:
    """The function that has pyarrow convert columns, to types that are the same in all batches.

    By itself, it would make integers of a batch without a null, and floats of one with.
    """
    pyarrow = required("pyarrow", "obs_form='pandas'")
    types = pyarrow.types
    whole = pyarrow.table(dataset.obs()).select(columns)
    as_types = {}
    for field in whole.schema:
        if whole.column(field.name).null_count > 0:
            if types.is_integer(field.type):
                as_types[field.name] = "float64"
            elif types.is_boolean(field.type):
                as_types[field.name] = "object"
    # Has pyarrow import what it converts with, before the first batch.
    whole.slice(0, 0).to_pandas()

    def convert(table: native.ArrowTable) -> dict[str, Any]:
        rows: pd.DataFrame = pyarrow.table(table).select(columns).to_pandas()
        rows = rows.astype(as_types) if as_types else rows
        return {name: rows[name].array for name in columns}

    return convert


def experiments_of(batch: native.Batch) -> npt.NDArray[np.int64]:
    """The number of each cell's experiment, in the type that indexes."""
    return batch.experiments.astype(np.int64)
