"""The forms of obs in a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import Form, ObsBatch, ObsForm, ObsMaker, required
from somafeed.frames import experiments_of, frame_maker
from somafeed.sources import JOINID


def obs_maker(
    obs_form: ObsForm,
    columns: Sequence[str],
    experiment_column: str | None,
    dataset: native.Dataset,
    form: Form,
    numbers: Sequence[str] = (),
) -> ObsMaker:
    """The function that takes the obs columns from a native batch. Imports what it needs.

    With codes, `numbers` are columns that come beside them, as float32.
    """
    if obs_form == "codes":
        return _codes_maker(columns, experiment_column, dataset, form, numbers)
    if obs_form == "arrow":
        return _table_maker(columns, experiment_column)
    return frame_maker(columns, experiment_column, dataset)


def _codes_maker(
    columns: Sequence[str],
    experiment_column: str | None,
    dataset: native.Dataset,
    form: Form,
    numbers: Sequence[str],
) -> ObsMaker:
    names = dataset.codes().column_names
    is_tensor = form.startswith("torch")
    from_numpy = required("torch", f"form={form!r}").from_numpy if is_tensor else np.asarray

    def codes(batch: native.Batch) -> ObsBatch:
        table = batch.codes
        # Copied: the native column is read-only, and a batch belongs to the user.
        entries = {name: from_numpy(table.column(name).copy()) for name in names}
        if numbers:
            obs = batch.obs
            for name in numbers:
                entries[name] = from_numpy(obs.column(name).astype(np.float32))
        if JOINID in columns:
            entries[JOINID] = from_numpy(batch.joinids)
        if experiment_column is not None:
            entries[experiment_column] = from_numpy(experiments_of(batch))
        return entries

    return codes


def _table_maker(
    columns: Sequence[str], experiment_column: str | None
) -> Callable[[native.Batch], Any]:
    pyarrow = required("pyarrow", "obs_form='arrow'")
    own = [name for name in columns if name != JOINID]
    int64 = pyarrow.int64()
    # pyarrow.table and pyarrow.array would import pandas, to ask whether these are its objects.
    read = pyarrow.RecordBatchReader.from_stream

    def integers(values: npt.NDArray[np.int64]) -> Any:
        return pyarrow.Array.from_buffers(int64, len(values), [None, pyarrow.py_buffer(values)])

    def table(batch: native.Batch) -> Any:
        # Its columns may be more: encoders and samplings need some, too.
        rows = read(batch.obs).read_all().select(own) if own else None
        arrays = {name: None if rows is None or name == JOINID else rows[name] for name in columns}
        if JOINID in arrays:
            arrays[JOINID] = integers(batch.joinids)
        if experiment_column is not None:
            arrays[experiment_column] = integers(experiments_of(batch))
        return pyarrow.table(arrays)

    return table
