"""A sample of a data module's cells as scvi-tools takes them, and statistics of all its cells."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from somafeed.batches import required
from somafeed.scvi_batches import cells_in_order
from somafeed.scvi_registry import class_values
from somafeed.splits import Rows

if TYPE_CHECKING:
    from somafeed.scvi import DataModule

_CELLS_OF_CODE = 3
"""Cells of every category in a sample: scvi-tools warns of categories with fewer."""
_CELLS_WITH_PROTEINS = 100
"""Cells of every batch in a sample with proteins: as many as scvi-tools fits their background to."""

_SPARSE = ("X", "atac")
"""The entries of a sample that are CSR."""

Arrays = dict[str, npt.NDArray[Any]]
"""The tensors of a batch as arrays."""

# Arguments of `setup_anndata`, and those of `DataModule` that they come from.
_KEYS = {
    "batch_key": "batch_column_names",
    "labels_key": "label_keys",
    "sample_key": "sample_key",
    "size_factor_key": "size_factor_key",
    "categorical_covariate_keys": "categorical_covariate_keys",
    "continuous_covariate_keys": "continuous_covariate_keys",
}


class Totals:
    """What one pass over all cells yields, by the code of the batch."""

    def __init__(self, module: DataModule) -> None:
        """Reads all cells in order."""
        n_batch = module.n_batch
        self.n_cells = np.zeros(n_batch, np.int64)
        self._log_sum, self._log_squares = np.zeros(n_batch), np.zeros(n_batch)
        self._genes = np.zeros(module.n_vars)
        self._proteins: npt.NDArray[np.float64] | None = None
        for tensors in cells_in_order(module):
            self._add({key: one.numpy() for key, one in tensors.items()})

    def _add(self, batch: Arrays) -> None:
        codes = batch["batch"][:, 0]
        sums = batch["X"].sum(1, dtype=np.float64)
        # An empty cell counts as 0, as in scvi-tools.
        logs = np.log(np.where(sums > 0, sums, 1))
        self.n_cells += np.bincount(codes, minlength=len(self.n_cells))
        self._log_sum += np.bincount(codes, logs, len(self.n_cells))
        self._log_squares += np.bincount(codes, logs**2, len(self.n_cells))
        self._genes += batch["X"].sum(0, dtype=np.float64)
        if "proteins" in batch:
            if self._proteins is None:
                self._proteins = np.zeros((len(self.n_cells), batch["proteins"].shape[1]))
            np.add.at(self._proteins, codes, batch["proteins"])

    def library(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Mean and variance of the logarithm of the cells' sums, of each batch."""
        n_cells = np.maximum(self.n_cells, 1)
        means = self._log_sum / n_cells
        variances = np.where(self.n_cells > 0, self._log_squares / n_cells - means**2, 1)
        return (
            means.astype(np.float32)[None],
            np.maximum(variances, 0).astype(np.float32)[None],
        )

    def ambient_profile(self) -> npt.NDArray[np.float64]:
        """Each gene's share of all counts."""
        total = self._genes.sum()
        return self._genes / total if total > 0 else np.zeros_like(self._genes)

    def protein_mask(self) -> dict[str, npt.NDArray[np.bool_]] | None:
        """Which proteins were seen in each batch; None if all were in all."""
        if self._proteins is None:
            return None
        mask = self._proteins > 0
        return None if bool(mask.all()) else {str(code): row for code, row in enumerate(mask)}


def sample_rows(module: DataModule) -> Rows:
    """Places of a few cells of every category, the first ones; with proteins, also of a hundred of
    every batch. The same for the same cells."""
    codes = module.dataset.dataset.codes()
    chosen = np.zeros(module.n_obs, bool)
    chosen[:_CELLS_OF_CODE] = True
    for name in codes.column_names:
        column = codes.column(name)
        order = np.argsort(column, kind="stable")
        starts = np.searchsorted(column[order], column[order])
        chosen[order[np.arange(len(order)) - starts < _CELLS_OF_CODE]] = True
    if module.proteins is not None:
        batches = np.zeros(module.n_obs, np.int64)
        if "batch" in codes.column_names:
            batches = codes.column("batch")
        generator = np.random.default_rng(module.n_obs)
        for code in np.unique(batches):
            rows = np.flatnonzero(batches == code)
            n_drawn = min(len(rows), _CELLS_WITH_PROTEINS)
            chosen[generator.choice(rows, n_drawn, replace=False)] = True
    return np.flatnonzero(chosen).astype(np.int64)


def set_up_sample(module: DataModule, cls: type[Any], rna: str, rows: Rows) -> Any:
    """The cells at these places as an AnnData, or as a MuData for a model of several modalities:
    with the names and categories of all cells, and set up for the model.

    Raises:
        ValueError: The model takes another setting of this module, or needs one more.
    """
    sparse = required("scipy.sparse", "somafeed.scvi")
    parts: list[dict[str, Any]] = []
    for tensors in cells_in_order(module, rows):
        part: dict[str, Any] = {key: one.numpy() for key, one in tensors.items()}
        # Many categories have many cells, which would take much memory as dense rows.
        part.update({key: sparse.csr_matrix(part[key]) for key in _SPARSE if key in part})
        parts.append(part)
    sample = {
        key: (sparse.vstack if key in _SPARSE else np.concatenate)([part[key] for part in parts])
        for key in parts[0]
    }
    data = _data_of(module, cls, sample, rna)
    if cls.__name__ in ("TOTALVI", "MULTIVI"):
        layers = {"rna_layer": rna, "protein_layer": module.proteins}
        if cls.__name__ == "MULTIVI":
            layers["atac_layer"] = module.atac
        layers = {key: name for key, name in layers.items() if name is not None}
        cls.setup_mudata(data, **_setup_of(module, cls, cls.setup_mudata), modalities=layers)
    else:
        cls.setup_anndata(data, **_setup_of(module, cls, cls.setup_anndata))
    return data


def _data_of(module: DataModule, cls: type[Any], sample: dict[str, Any], rna: str) -> Any:
    anndata = required("anndata", "somafeed.scvi")
    pandas = required("pandas", "somafeed.scvi")
    names = [f"cell {row}" for row in range(len(sample["batch"]))]

    def part(values: Any, features: list[str]) -> Any:
        obs, var = pandas.DataFrame(index=names), pandas.DataFrame(index=features)
        return anndata.AnnData(values, obs=obs, var=var)

    data = part(sample["X"], module.var_names)
    if cls.__name__ in ("TOTALVI", "MULTIVI"):
        modalities = {rna: data}
        for key, name in (("atac", module.atac), ("proteins", module.proteins)):
            if name is not None:
                modalities[name] = part(sample[key], module.modality_names(name))
        data = required("mudata", "somafeed.scvi").MuData(modalities)

    def categorical(codes: npt.NDArray[Any], name: str, classes: Any) -> Any:
        encoder = module._encoders[name]
        # Of the type that they have in obs, lest a saved model finds none of them there.
        values = dict(zip(module._classes[name], class_values(encoder), strict=True))
        return pandas.Categorical.from_codes(codes, [values.get(one, one) for one in classes])

    for key, columns, classes in (
        ("batch", module.batch_column_names, module.batch_labels),
        ("labels", module.label_keys, module.labels_mapping),
        ("sample", module.sample_key, module.samples),
    ):
        if classes is not None:
            data.obs[joined(columns)] = categorical(sample[key][:, 0], key, classes)
    for idx, (key, classes) in enumerate(module.covariate_categories.items()):
        codes = sample["extra_categorical_covs"][:, idx]
        data.obs[key] = categorical(codes, f"covariate {key}", classes)
    for keys, entry in (
        (module.continuous_covariate_keys, "extra_continuous_covs"),
        (module.size_factor_key, "size_factor"),
    ):
        for idx, key in enumerate(keys or ()):
            data.obs[key] = sample[entry][:, idx]
    return data


def joined(columns: Any) -> str | None:
    """The name of a column that joins several; None without columns."""
    return "//".join(columns) if columns else None


def _setup_of(module: DataModule, cls: type[Any], method: Any) -> dict[str, Any]:
    """Arguments of `setup_anndata` or `setup_mudata`."""
    parameters = inspect.signature(method).parameters
    is_of_two = cls.__name__ == "MULTIVI"
    found: dict[str, Any] = {}
    for key, name in _KEYS.items():
        columns = getattr(module, name)
        is_list = key.endswith("_keys") or (key == "size_factor_key" and is_of_two)
        value = (list(columns) if is_list else joined(columns)) if columns else None
        if value is not None and key not in parameters:
            raise ValueError(f"{cls.__name__} takes no {name}: leave it out")
        if value is not None:
            found[key] = value
        elif key in parameters and parameters[key].default is inspect.Parameter.empty:
            raise ValueError(f"{cls.__name__} needs DataModule({name}=...)")
    if "unlabeled_category" in parameters:
        found["unlabeled_category"] = module.unlabeled_category
    return found
