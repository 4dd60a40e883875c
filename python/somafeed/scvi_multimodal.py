"""Models of scvi-tools over several modalities, whose cells are streamed.

TOTALVI and MULTIVI take only objects in memory. They ask these for categories, names and a few
statistics; batches come from a splitter. So a model is made of a small sample of the cells, is given
the statistics of all, and is trained with the data module as its splitter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from somafeed.batches import required

if TYPE_CHECKING:
    from somafeed.scvi import DataModule

_CELLS_OF_BATCH = 100
"""Cells of each batch in the sample: as many as scvi-tools fits the background of proteins to."""


class _Statistics:
    """What one pass over all cells yields, by the code of the batch."""

    def __init__(self, module: DataModule) -> None:
        """Reads all cells in order."""
        n_batch = module.n_batch
        self.n_cells = np.zeros(n_batch, np.int64)
        self._log_sum, self._log_squares = np.zeros(n_batch), np.zeros(n_batch)
        self._proteins: npt.NDArray[np.float64] | None = None
        self.sample: list[dict[str, npt.NDArray[Any]]] = []
        # The sample is the same for the same cells.
        self._generator = np.random.default_rng(module.n_obs)
        self._chances = self._shares(module)
        for tensors in module.inference_dataloader():
            batch = {key: one.numpy() for key, one in tensors.items() if one is not None}
            self._add(batch)

    def _shares(self, module: DataModule) -> npt.NDArray[np.float64]:
        """The chance of a cell of each batch to be in the sample."""
        codes = module.dataset.dataset.codes()
        counts = np.full(1, module.n_obs)
        if "batch" in codes.column_names:
            counts = np.bincount(codes.column("batch"), minlength=module.n_batch)
        # A few more, lest a batch has far fewer by chance.
        shares: npt.NDArray[np.float64] = 1.5 * _CELLS_OF_BATCH / np.maximum(counts, 1)
        return shares

    def _add(self, batch: dict[str, npt.NDArray[Any]]) -> None:
        codes = batch["batch"][:, 0]
        sums = batch["X"].sum(1, dtype=np.float64)
        # An empty cell counts as 0, as in scvi-tools.
        logs = np.log(np.where(sums > 0, sums, 1))
        seen = self.n_cells[codes] > 0
        self.n_cells += np.bincount(codes, minlength=len(self.n_cells))
        self._log_sum += np.bincount(codes, logs, len(self.n_cells))
        self._log_squares += np.bincount(codes, logs**2, len(self.n_cells))
        if "proteins" in batch:
            if self._proteins is None:
                self._proteins = np.zeros((len(self.n_cells), batch["proteins"].shape[1]))
            np.add.at(self._proteins, codes, batch["proteins"])
        chosen = self._generator.random(len(codes)) < self._chances[codes]
        # Each batch has at least its first cell.
        first = np.zeros(len(codes), bool)
        first[np.unique(codes, return_index=True)[1]] = True
        chosen |= first & ~seen
        self.sample.append({key: one[chosen] for key, one in batch.items()})

    def library(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Mean and variance of the logarithm of the cells' sums, of each batch."""
        n_cells = np.maximum(self.n_cells, 1)
        means = self._log_sum / n_cells
        variances = np.where(self.n_cells > 0, self._log_squares / n_cells - means**2, 1)
        return (
            means.astype(np.float32)[None],
            np.maximum(variances, 0).astype(np.float32)[None],
        )

    def protein_mask(self) -> dict[str, npt.NDArray[np.bool_]] | None:
        """Which proteins were seen in each batch; None if all were in all."""
        if self._proteins is None:
            return None
        mask = self._proteins > 0
        return None if bool(mask.all()) else {str(code): row for code, row in enumerate(mask)}


def multimodal_model(module: DataModule, cls: type[Any], rna: str, options: dict[str, Any]) -> Any:
    """See `DataModule.model`."""
    name = cls.__name__
    if name not in ("TOTALVI", "MULTIVI"):
        raise ValueError(f"model() makes TOTALVI and MULTIVI; {name} takes registry=data.registry")
    needed = {"TOTALVI": ("proteins",), "MULTIVI": ("atac",)}[name]
    missing = [one for one in needed if getattr(module, one) is None]
    if missing:
        raise ValueError(f"{name} needs DataModule({missing[0]}=...), the name of a modality")
    if options.get("modality_weights") == "cell":
        raise ValueError(
            "modality_weights='cell' learns weights of each cell in memory: take 'equal' or 'universal'"
        )
    statistics = _Statistics(module)
    mdata = _sample_mudata(module, statistics, rna)
    _set_up(module, cls, mdata, rna)
    manager = cls._setup_adata_manager_store[mdata.uns["_scvi_uuid"]]
    if module.proteins is not None:
        state = manager.registry["field_registries"]["proteins"]["state_registry"]
        state.pop("protein_batch_mask", None)
        mask = statistics.protein_mask()
        if mask is not None:
            state["protein_batch_mask"] = mask
    model = cls(mdata, **options)
    # Where the library size is a part of the model; otherwise it is that of each cell.
    if hasattr(model.module, "library_log_means"):
        torch = required("torch", "somafeed.scvi")
        means, variances = statistics.library()
        model.module.library_log_means.copy_(torch.from_numpy(means))
        model.module.library_log_vars.copy_(torch.from_numpy(variances))
    return model


def train_multimodal(module: DataModule, model: Any, options: dict[str, Any]) -> None:
    """See `DataModule.train`."""
    batch_size = options.pop("batch_size", None)
    module.set_batch_size(batch_size)
    if type(model).__name__ == "TOTALVI":
        # By the number of all cells, which are more than the model has seen.
        options.setdefault("n_steps_kl_warmup", int(0.75 * module.n_obs))
    if options.get("max_epochs") is None:
        heuristic = required("scvi.model", "somafeed.scvi").get_max_epochs_heuristic
        options["max_epochs"] = heuristic(module.n_obs)
    model._data_splitter_cls = lambda *_, **__: module
    try:
        model.train(**options)
    finally:
        del model._data_splitter_cls


def _sample_mudata(module: DataModule, statistics: _Statistics, rna: str) -> Any:
    """The sample of the cells as a MuData, with all categories and names."""
    anndata = required("anndata", "somafeed.scvi")
    mudata = required("mudata", "somafeed.scvi")
    pandas = required("pandas", "somafeed.scvi")
    keys = statistics.sample[0]
    sample = {key: np.concatenate([part[key] for part in statistics.sample]) for key in keys}
    names = [f"cell {row}" for row in range(len(sample["X"]))]

    def part(values: npt.NDArray[Any], features: list[str]) -> Any:
        var = pandas.DataFrame(index=features)
        return anndata.AnnData(values, obs=pandas.DataFrame(index=names), var=var)

    modalities = {rna: part(sample["X"], module.var_names)}
    for key, name in (("atac", module.atac), ("proteins", module.proteins)):
        if name is not None:
            modalities[name] = part(sample[key], module.modality_names(name))
    mdata = mudata.MuData(modalities)

    def categorical(codes: npt.NDArray[Any], classes: Any) -> Any:
        return pandas.Categorical.from_codes(codes, [str(one) for one in classes])

    if module.batch_labels is not None:
        batch = categorical(sample["batch"][:, 0], module.batch_labels)
        mdata.obs[_joined(module.batch_column_names)] = batch
    for idx, (key, classes) in enumerate(module.covariate_categories.items()):
        mdata.obs[key] = categorical(sample["extra_categorical_covs"][:, idx], classes)
    for idx, key in enumerate(module.continuous_covariate_keys or ()):
        mdata.obs[key] = sample["extra_continuous_covs"][:, idx]
    for idx, key in enumerate(module.size_factor_key or ()):
        mdata.obs[key] = sample["size_factor"][:, idx]
    return mdata


def _joined(columns: Any) -> str | None:
    return None if columns is None else "//".join(columns)


def _set_up(module: DataModule, cls: type[Any], mdata: Any, rna: str) -> None:
    modalities = {"rna_layer": rna, "protein_layer": module.proteins}
    size_factor: Any = module.size_factor_key
    if cls.__name__ == "MULTIVI":
        modalities["atac_layer"] = module.atac
        size_factor = None if size_factor is None else list(size_factor)
    elif size_factor is not None:
        (size_factor,) = size_factor
    covariates = module.categorical_covariate_keys, module.continuous_covariate_keys
    categorical, continuous = (None if keys is None else list(keys) for keys in covariates)
    cls.setup_mudata(
        mdata,
        batch_key=_joined(module.batch_column_names),
        size_factor_key=size_factor,
        categorical_covariate_keys=categorical,
        continuous_covariate_keys=continuous,
        modalities={key: name for key, name in modalities.items() if name is not None},
    )
