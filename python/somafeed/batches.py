"""The forms of a batch: what a native batch becomes for the user, without a copy where one can be
avoided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.sources import JOINID

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import torch
    from scipy import sparse

XBatch: TypeAlias = "npt.NDArray[Any] | sparse.csr_matrix | torch.Tensor"
ObsBatch: TypeAlias = (
    "pd.DataFrame | pa.Table | dict[str, npt.NDArray[np.int64]] | dict[str, torch.Tensor]"
)
Beside: TypeAlias = dict[str, XBatch]
MiniBatch: TypeAlias = tuple[XBatch, ObsBatch] | tuple[XBatch, ObsBatch, Beside]
"""Rows of X, of shape (cells, genes), and the same rows of obs; with `layers` or `obsm`, also the
same rows of those, by name."""

Form: TypeAlias = Literal["numpy", "f16", "torch", "torch_f16", "torch_csr", "torch_coo"]
"""The form of X in a batch, of shape (cells, genes).

| form | type | values |
|---|---|---|
| `"numpy"` | `numpy.ndarray`; `scipy.sparse.csr_matrix` with `return_sparse_X` | float32 |
| `"f16"` | `numpy.ndarray` | float16 |
| `"torch"` | dense `torch.Tensor` | float32 |
| `"torch_f16"` | dense `torch.Tensor` | float16 |
| `"torch_csr"` | sparse `torch.Tensor` in CSR, int32 indices | float32 |
| `"torch_coo"` | sparse `torch.Tensor` in COO, int64 indices, not coalesced | float32 |

Dense batches have rank 1 if `batch_size` is 1. All but `"torch_coo"` use the loader's memory
without a copy, and may be changed and kept.
"""

ObsForm: TypeAlias = Literal["pandas", "arrow", "codes"]
"""The form of obs in a batch.

| form | type |
|---|---|
| `"pandas"` | `pandas.DataFrame` with the columns in order and an index from 0 |
| `"arrow"` | `pyarrow.Table` with the columns in order |
| `"codes"` | a dictionary: an array of int64, one code per cell, for the name of each encoder |

With `"codes"`, `soma_joinid` is an entry too if it is one of the columns. The arrays are tensors
if X is a tensor.
"""

NATIVE_FORMS: dict[str, native.Form] = {
    "numpy": "dense",
    "f16": "f16",
    "torch": "dense",
    "torch_f16": "f16",
    "torch_csr": "csr",
    "torch_coo": "coo",
}
OBS_FORMS = ("pandas", "arrow", "codes")


def required(module: str, needed_for: str) -> Any:
    """Imports an optional package.

    Raises:
        ModuleNotFoundError: It is not installed; the message says what needs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"{needed_for} needs {package}, which is not installed", name=package
        ) from error


Values: TypeAlias = native.Batch | native.Matrix
XMaker: TypeAlias = Callable[[Values, tuple[int, int]], XBatch]
ObsMaker: TypeAlias = Callable[[native.Batch], ObsBatch]


def x_maker(form: Form, return_sparse_X: bool, batch_size: int) -> XMaker:
    """The function that takes a matrix of a shape from a native batch. Imports what it needs."""
    if return_sparse_X:
        return _scipy_maker()
    if form in ("torch_csr", "torch_coo"):
        return _sparse_tensor_maker(form)
    squeezed = batch_size == 1
    if form in ("torch", "torch_f16"):
        from_numpy = required("torch", f"form={form!r}").from_numpy

        def tensor(values: Values, _: tuple[int, int]) -> XBatch:
            x = values.dense()
            made: torch.Tensor = from_numpy(x[0] if squeezed else x)
            return made

        return tensor

    def array(values: Values, _: tuple[int, int]) -> XBatch:
        x = values.dense()
        row: npt.NDArray[Any] = x[0] if squeezed else x
        return row

    return array


def _scipy_maker() -> XMaker:
    csr_matrix = required("scipy.sparse", "return_sparse_X=True").csr_matrix

    def matrix(values: Values, shape: tuple[int, int]) -> XBatch:
        indptr, indices, data = values.csr()
        made: sparse.csr_matrix = csr_matrix((data, indices, indptr), shape=shape, copy=False)
        return made

    return matrix


def _sparse_tensor_maker(form: Form) -> XMaker:
    package = required("torch", f"form={form!r}")

    # The loader's own invariants hold, so torch need not look at every index again.
    def csr(values: Values, shape: tuple[int, int]) -> XBatch:
        indptr, indices, data = (package.from_numpy(part) for part in values.csr())
        made: torch.Tensor = package.sparse_csr_tensor(
            indptr, indices, data, shape, check_invariants=False
        )
        return made

    def coo(values: Values, shape: tuple[int, int]) -> XBatch:
        rows, columns, data = values.coo()
        places = package.from_numpy(np.stack((rows, columns), dtype=np.int64))
        made: torch.Tensor = package.sparse_coo_tensor(
            places, package.from_numpy(data), shape, check_invariants=False
        )
        return made

    return csr if form == "torch_csr" else coo


def beside_maker(
    make_x: XMaker, dataset: native.Dataset, form: Form, batch_size: int
) -> Callable[[native.Batch], Beside] | None:
    """The function that takes further layers and arrays of obsm; None if there are none."""
    layers, obsm = dataset.layers, [name for name, _ in dataset.obsm]
    twice = set(layers) & set(obsm)
    if twice:
        raise ValueError(f"{min(twice)!r} is the name of a layer and of an array of obsm")
    if not layers and not obsm:
        return None
    is_tensor, squeezed = form.startswith("torch"), batch_size == 1
    # Arrays of obsm are dense in batches of every form.
    as_form = required("torch", f"form={form!r}").from_numpy if is_tensor else np.asarray

    def beside(batch: native.Batch) -> Beside:
        shape = (batch.n_rows, batch.n_columns)
        made = {name: make_x(batch.layer(name), shape) for name in layers}
        for name in obsm:
            rows = batch.obsm(name)
            made[name] = as_form(rows[0] if squeezed else rows)
        return made

    return beside


def obs_maker(
    obs_form: ObsForm, columns: Sequence[str], dataset: native.Dataset, form: Form
) -> ObsMaker:
    """The function that takes the obs columns from a native batch. Imports what it needs."""
    if obs_form == "codes":
        return _codes_maker(columns, dataset, form)
    if obs_form == "arrow":
        return _table_maker(columns)
    if list(columns) == [JOINID]:
        frame = required("pandas", "obs_form='pandas'").DataFrame
        return lambda batch: frame({JOINID: batch.joinids})
    return _frame_maker(columns, dataset)


def _codes_maker(
    columns: Sequence[str], dataset: native.Dataset, form: Form
) -> ObsMaker:
    names = dataset.codes().column_names
    is_tensor = form.startswith("torch")
    from_numpy = required("torch", f"form={form!r}").from_numpy if is_tensor else np.asarray

    def codes(batch: native.Batch) -> ObsBatch:
        table = batch.codes
        # Copied: the native column is read-only, and a batch belongs to the user.
        entries = {name: from_numpy(table.column(name).copy()) for name in names}
        if JOINID in columns:
            entries[JOINID] = from_numpy(batch.joinids)
        return entries

    return codes


def _table_maker(columns: Sequence[str]) -> Callable[[native.Batch], Any]:
    pyarrow = required("pyarrow", "obs in a form other than codes")

    def table(batch: native.Batch) -> Any:
        if list(columns) == [JOINID]:
            return pyarrow.table({JOINID: batch.joinids})
        rows = pyarrow.table(batch.obs)
        if JOINID in columns:
            rows = rows.append_column(JOINID, pyarrow.array(batch.joinids))
        return rows.select(columns)

    return table


def _frame_maker(
    columns: Sequence[str], dataset: native.Dataset
) -> ObsMaker:
    """Frames whose types are the same in all batches: those of the whole data set's frame.

    By itself, pandas would make integers of a batch without a null, and floats of one with.
    """
    required("pandas", "obs_form='pandas'")
    table = _table_maker(columns)
    pyarrow = required("pyarrow", "obs_form='pandas'")
    types = pyarrow.types
    whole = pyarrow.table(dataset.obs())
    as_float, as_object = [], []
    for name in columns:
        if name == JOINID or whole.column(name).null_count == 0:
            continue
        if types.is_integer(whole.schema.field(name).type):
            as_float.append(name)
        elif types.is_boolean(whole.schema.field(name).type):
            as_object.append(name)
    as_types = {**dict.fromkeys(as_float, "float64"), **dict.fromkeys(as_object, "object")}

    def frame(batch: native.Batch) -> ObsBatch:
        rows: pd.DataFrame = table(batch).to_pandas()
        return rows.astype(as_types) if as_types else rows

    return frame
