"""The forms of a batch: what a native batch becomes for the user, without a copy where one can be
avoided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.neighbours import NEIGHBOURS
from somafeed.settings import shown

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
XOrTokens: TypeAlias = "npt.NDArray[Any] | sparse.csr_matrix | torch.Tensor | dict[str, Any]"
# `Any`, as in batches of all kinds, because a type checker does not know the form of a batch.
MiniBatch: TypeAlias = tuple[Any, ...]
"""Rows of X (`XBatch`), of shape (cells, genes), and the same rows of obs (`ObsBatch`); with
`layers`, `obsm` or `modalities`, also the same rows of those, by name (`Beside`), which has
`neighbours`, too. With `tokens`, the tokens of the
cells (`somafeed.tokens.TokenBatch`) are in the place of X."""

Form: TypeAlias = Literal["numpy", "f16", "torch", "torch_f16", "torch_csr", "torch_coo"]
"""The form of X in a batch, of shape (cells, genes).

| form | type | values |
|---|---|---|
| `"numpy"` | `numpy.ndarray`; `scipy.sparse.csr_matrix` with `return_sparse_X` | see `DType` |
| `"f16"` | `numpy.ndarray` | float16: values above 65,504 become infinite |
| `"torch"` | dense `torch.Tensor` | float32 |
| `"torch_f16"` | dense `torch.Tensor` | float16 |
| `"torch_csr"` | sparse `torch.Tensor` in CSR, int32 indices | float32 |
| `"torch_coo"` | sparse `torch.Tensor` in COO, int64 indices, not coalesced | float32 |

Dense batches have rank 1 if `batch_size` is 1. All but `"torch_coo"` use the loader's memory
without a copy, and may be changed and kept.
"""

DType: TypeAlias = Literal["stored", "float32"]
"""The type of X's values in arrays and scipy's matrices.

| dtype | values |
|---|---|
| `"stored"` | of the type in which they are stored; float32 once they are transformed |
| `"float32"` | the nearest float32 |

Values are read as float32. `"stored"` is exact: a value that float32 does not have (0.1 of float64,
2^24 + 1 of an integer) is a ValueError that names the cell and the gene, when the block with it is
read. Counts stored as float64 come as float64. Several experiments whose types differ give float32,
exact as well.
"""

ObsForm: TypeAlias = Literal["pandas", "arrow", "codes"]
"""The form of obs in a batch.

| form | type |
|---|---|
| `"pandas"` | `pandas.DataFrame` with the columns in order and an index from 0 |
| `"arrow"` | `pyarrow.Table` with the columns in order |
| `"codes"` | a dictionary: an array of int64, one code per cell, for the name of each encoder |

With `"codes"`, `soma_joinid` is an entry too if it is one of the columns. The arrays are tensors
if X is a tensor. In every form, `experiment_column` adds a column of int64 with the number of each
cell's experiment.
"""

NATIVE_FORMS: dict[str, native.Form] = {
    "numpy": "dense",
    "f16": "f16",
    "torch": "dense",
    "torch_f16": "f16",
    "torch_csr": "csr",
    "torch_coo": "coo",
}
HOST_FORMS: dict[str, native.Form] = {**NATIVE_FORMS, "packed": "packed"}
"""Forms of batches in the processor's memory: with `"packed"`, `PackedRows` that become
`"torch_csr"` on a device."""
NEIGHBOUR_PARTS = ("positions", "values", "present", "joinids")
"""Arrays of neighbours, by the ends of their names in a batch."""
OBS_FORMS = ("pandas", "arrow", "codes")
DTYPES = ("stored", "float32")


def check_forms(form: str, dtype: str, obs_form: str, return_sparse_X: bool) -> None:
    """Checks the arguments that say what batches are.

    Raises:
        ValueError: One is unknown, or they do not fit together.
    """
    for name, value, known in (
        ("form", form, NATIVE_FORMS), ("dtype", dtype, DTYPES), ("obs_form", obs_form, OBS_FORMS)
    ):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"unknown {name} {shown(value)}; there are {', '.join(known)}")
    if dtype == "stored" and form != "numpy":
        raise ValueError(f"dtype='stored' is for form='numpy', but form is {form!r}")
    if return_sparse_X and form != "numpy":
        raise ValueError(f"return_sparse_X=True gives scipy's CSR, but form is {form!r}")


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
            f"{needed_for} needs {package}, which is not installed: pip install {package}",
            name=package,
        ) from error


def array_maker(form: str) -> Callable[[npt.NDArray[Any]], Any]:
    """The function that takes an array of numpy as it is, or as a tensor over the same memory if
    the form is one of torch. Imports what it needs."""
    if not form.startswith("torch"):
        return np.asarray
    from_numpy: Callable[[npt.NDArray[Any]], Any] = required("torch", f"form={form!r}").from_numpy
    return from_numpy


def import_packages(form: str, obs_form: str, return_sparse_X: bool) -> None:
    """Imports what batches are made of, so that the first batch need not wait for it.

    Raises:
        ModuleNotFoundError: A package is not installed; the message says what needs it.
    """
    if return_sparse_X:
        required("scipy.sparse", "return_sparse_X=True")
    if form.startswith("torch"):
        required("torch", f"form={form!r}")
    if obs_form == "pandas":
        required("pandas", "obs_form='pandas'")
    if obs_form == "arrow":
        required("pyarrow", "obs_form='arrow'")


Values: TypeAlias = native.Batch | native.Matrix
XMaker: TypeAlias = Callable[[Values, tuple[int, int]], Any]
"""Makes an `XBatch`, or `PackedRows`."""
ObsMaker: TypeAlias = Callable[[native.Batch], ObsBatch]


class PackedRows:
    """Rows in CSR with narrow numbers, which a device widens: the offsets as int32, the columns and
    the values. 16 bits without a sign are in int16, since torch computes with no such type."""

    def __init__(self, parts: tuple[torch.Tensor, ...], shape: tuple[int, int]) -> None:
        """Takes tensors of one dimension each."""
        self.parts, self.shape = parts, shape


def x_maker(form: str, return_sparse_X: bool, batch_size: int) -> XMaker:
    """The function that takes a matrix of a shape from a native batch, in one of `HOST_FORMS`.
    Imports what it needs."""
    if return_sparse_X:
        return _scipy_maker()
    if form in ("torch_csr", "torch_coo", "packed"):
        return _sparse_tensor_maker(form)
    squeezed = batch_size == 1
    if form in ("torch", "torch_f16"):
        from_numpy = required("torch", f"form={form!r}").from_numpy

        def tensor(values: Values, _: tuple[int, int]) -> XBatch:
            x = values.dense()
            # It has no cell if that was skipped.
            made: torch.Tensor = from_numpy(x[0] if squeezed and len(x) else x)
            return made

        return tensor

    def array(values: Values, _: tuple[int, int]) -> XBatch:
        x = values.dense()
        row: npt.NDArray[Any] = x[0] if squeezed and len(x) else x
        return row

    return array


def _scipy_maker() -> XMaker:
    csr_matrix = required("scipy.sparse", "return_sparse_X=True").csr_matrix

    def matrix(values: Values, shape: tuple[int, int]) -> XBatch:
        indptr, indices, data = values.csr()
        made: sparse.csr_matrix = csr_matrix((data, indices, indptr), shape=shape, copy=False)
        return made

    return matrix


def _sparse_tensor_maker(form: str) -> XMaker:
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

    def packed(values: Values, shape: tuple[int, int]) -> PackedRows:
        parts = (
            part.view(np.int16) if part.dtype == np.uint16 else part for part in values.csr()
        )
        return PackedRows(tuple(package.from_numpy(part) for part in parts), shape)

    return {"torch_csr": csr, "torch_coo": coo, "packed": packed}[form]


def beside_maker(
    make_x: XMaker,
    dataset: native.Dataset,
    form: Form,
    batch_size: int,
    modality_makers: Mapping[str, XMaker],
    make_table: XMaker,
) -> Callable[[native.Batch], Beside] | None:
    """The function that takes further layers, arrays of obsm, modalities and neighbours; None if
    there are none.

    Raises:
        ValueError: Two of them have one name.
    """
    layers, obsm = dataset.layers, [name for name, _ in dataset.obsm]
    modalities = [(name, f"{name}_present", modality_makers[name]) for name in modality_makers]
    n_genes = dict(dataset.modalities)
    masks = ["present", *(mask for _, mask, _ in modalities)] if modalities else []
    names = [*layers, *obsm, *modality_makers, *masks]
    if dataset.neighbours is not None:
        names += [NEIGHBOURS, *(f"{NEIGHBOURS}_{part}" for part in NEIGHBOUR_PARTS)]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f"{min(twice)!r} is the name of two of these: a layer, an array of obsm, a modality, the "
            "mask of one, neighbours"
        )
    if not names:
        return None
    is_tensor, squeezed = form.startswith("torch"), batch_size == 1
    # Arrays of obsm are dense in batches of every form.
    as_form = required("torch", f"form={form!r}").from_numpy if is_tensor else np.asarray

    def beside(batch: native.Batch) -> Beside:
        shape = (batch.n_rows, batch.n_columns)
        made = {name: make_x(batch.layer(name), shape) for name in layers}
        for name in obsm:
            rows = batch.obsm(name)
            made[name] = as_form(rows[0] if squeezed and len(rows) else rows)
        for name, mask, make in modalities:
            made[name] = make(batch.modality(name), (batch.n_rows, n_genes[name]))
            made[mask] = as_form(batch.present(name))
        if modalities:
            made["present"] = as_form(batch.present())
        if batch.neighbours is not None:
            table = batch.neighbours.table
            made[NEIGHBOURS] = make_table(table, table.shape)
            for part in NEIGHBOUR_PARTS:
                made[f"{NEIGHBOURS}_{part}"] = as_form(getattr(batch.neighbours, part))
        return made

    return beside
