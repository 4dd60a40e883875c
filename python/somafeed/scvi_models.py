"""Models of scvi-tools as if made of all cells in memory, whose cells are streamed.

A model asks its data for categories, names and a few statistics; batches come from a splitter. So a
model is made of a small sample of the cells, is given the statistics of all, and is trained with the
data module as its splitter.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from somafeed.batches import required
from somafeed.scvi_sample import Totals, sample_rows, set_up_sample
from somafeed.scvi_streams import contrast_of
from somafeed.settings import positive, shown
from somafeed.splits import Rows

if TYPE_CHECKING:
    from somafeed.scvi import DataModule

_NEEDED = {"TOTALVI": ("proteins",), "MULTIVI": ("atac",)}
_MODELS = (
    "SCVI", "LinearSCVI", "AUTOZI", "SCANVI", "PEAKVI", "MRVI", "SysVI", "DRVI", "SCAR",
    "JointEmbeddingSCVI", "ContrastiveVI", *_NEEDED,
)


def model_of(module: DataModule, cls: type[Any], rna: str, options: dict[str, Any]) -> Any:
    """See `DataModule.model`."""
    name = cls.__name__
    if name not in _MODELS:
        raise ValueError(f"model() makes {', '.join(_MODELS)}, not {name}")
    missing = [one for one in _NEEDED.get(name, ()) if getattr(module, one) is None]
    if missing:
        raise ValueError(f"{name} needs DataModule({missing[0]}=...), the name of a modality")
    _check(module, name, options)
    rows, options = sample_rows(module), dict(options)
    totals = cache(lambda: Totals(module))
    if name == "SCAR" and options.get("ambient_profile") is None:
        options["ambient_profile"] = totals().ambient_profile()
    pseudoinputs = _pseudoinputs(module, options) if name == "SysVI" else None
    if pseudoinputs is not None:
        rows = np.union1d(rows, pseudoinputs)
        options["pseudoinputs_data_indices"] = np.searchsorted(rows, pseudoinputs)
    data = set_up_sample(module, cls, rna, rows)
    manager = cls._setup_adata_manager_store[data.uns["_scvi_uuid"]]
    fields = manager.registry["field_registries"]
    if name in _NEEDED and module.proteins is not None:
        state = fields["proteins"]["state_registry"]
        state.pop("protein_batch_mask", None)
        mask = totals().protein_mask()
        if mask is not None:
            state["protein_batch_mask"] = mask
    for field in fields.values():
        if "n_obs" in field["state_registry"]:
            field["state_registry"]["n_obs"] = module.n_obs
        if "n_cells" in field["summary_stats"]:
            field["summary_stats"]["n_cells"] = module.n_obs
    model = cls(data, **options)
    if pseudoinputs is not None:
        # A saved model names the cells among all.
        model.init_params_["non_kwargs"]["pseudoinputs_data_indices"] = pseudoinputs
    _complete(module, model, totals)
    _detach(model)
    return model


def _check(module: DataModule, name: str, options: dict[str, Any]) -> None:
    """Fails for options that need all cells in memory, and labels that differ from theirs."""
    if name == "MULTIVI" and options.get("modality_weights") == "cell":
        raise ValueError(
            "modality_weights='cell' learns weights of each cell in memory: take 'equal' or 'universal'"
        )
    if isinstance(options.get("ambient_profile"), str):
        raise ValueError("ambient_profile must be an array with a number for each gene, or None")
    if name != "SysVI" and module.is_transformed:
        raise ValueError(f"{name} takes counts: leave X as it is stored")
    if name == "SCANVI":
        if module.model_name != name:
            raise ValueError("SCANVI needs DataModule(model_name='SCANVI')")
        if module.unlabeled_category is None:
            raise ValueError("SCANVI needs DataModule(unlabeled_category=...)")
    elif module.has_unlabeled:
        raise ValueError(
            f"{name} has no unlabelled cells, but some have {shown(module.unlabeled_category)} or "
            "no label: give unlabeled_category=None, or leave them out"
        )


def _pseudoinputs(module: DataModule, options: dict[str, Any]) -> Rows | None:
    """The cells that SysVI's prior begins with, drawn as SysVI draws them; None without any."""
    if options.get("prior", "vamp") != "vamp":
        return None
    n_components, n_obs = options.get("n_prior_components", 5), module.n_obs
    given = options.get("pseudoinputs_data_indices")
    # NumPy's global generator, which `scvi.settings.seed` seeds.
    rows = np.random.randint(0, n_obs, n_components) if given is None else np.asarray(given)
    if rows.shape != (n_components,) or rows.min(initial=0) < 0 or rows.max(initial=0) >= n_obs:
        raise ValueError(
            f"pseudoinputs_data_indices must be {n_components} places of cells from 0 to "
            f"{n_obs - 1}, not {shown(given)}"
        )
    return rows.astype(np.int64)


def _complete(module: DataModule, model: Any, totals: Any) -> None:
    """Gives a model of a sample what it would know of all cells."""
    torch = required("torch", "somafeed.scvi")
    # Where the library size is a part of the model; otherwise it is that of each cell.
    if hasattr(model.module, "library_log_means"):
        means, variances = totals().library()
        model.module.library_log_means.copy_(torch.from_numpy(means))
        model.module.library_log_vars.copy_(torch.from_numpy(variances))
    if hasattr(model, "n_obs_per_sample"):
        counts = module.n_obs_per_sample if module.n_samples else torch.tensor([float(module.n_obs)])
        model.n_obs_per_sample = model.module.n_obs_per_sample = counts
    if hasattr(model, "_labeled_indices"):
        model.labels_ = module.labels_
        is_unlabeled = model.labels_ == module.unlabeled_category
        model._unlabeled_indices = np.flatnonzero(is_unlabeled)
        model._labeled_indices = np.flatnonzero(~is_unlabeled)


def _detach(model: Any) -> None:
    """Leaves a model without the sample, as one that was loaded without data: its methods would
    otherwise answer for the sample where no cells are given."""
    names = {form: model.get_var_names(legacy_mudata_format=form) for form in (False, True)}
    validate = model._validate_anndata

    def validate_given(adata: Any = None, copy_if_view: bool = True) -> Any:
        if adata is None and model.adata is None:
            raise ValueError(
                "the cells are not in memory: give dataloader=data.inference_dataloader() to methods "
                "that take it, and an AnnData or MuData to others"
            )
        return validate(adata, copy_if_view)

    model.get_var_names = lambda legacy_mudata_format=False: names[legacy_mudata_format]
    model._validate_anndata = validate_given
    model._adata = model._adata_manager = None


def train_model(module: DataModule, model: Any, options: dict[str, Any]) -> None:
    """See `DataModule.train`."""
    module.set_batch_size(options.pop("batch_size", None))
    if type(model).__name__ == "TOTALVI":
        # By the number of all cells, which are more than the model has seen.
        options.setdefault("n_steps_kl_warmup", int(0.75 * module.n_obs))
    parameter = inspect.signature(model.train).parameters.get("max_epochs")
    if options.get("max_epochs") is None and (parameter is None or parameter.default is None):
        heuristic = required("scvi.model", "somafeed.scvi").get_max_epochs_heuristic
        options["max_epochs"] = heuristic(module.n_obs)
    contrast, n_samples_per_label = module._contrast, module.n_samples_per_label

    def splitter(*_: Any, **given: Any) -> DataModule:
        if "background_indices" in given:
            module._contrast = contrast_of(
                given["background_indices"], given["target_indices"], module.n_obs
            )
        if given.get("n_samples_per_label") is not None:
            n_samples = positive("n_samples_per_label", given["n_samples_per_label"])
            module.n_samples_per_label = n_samples
        return module

    model._data_splitter_cls = splitter
    labeled = getattr(model, "_labeled_indices", None)
    if labeled is not None:
        # Otherwise SCANVI asks a loader of its own to draw labelled cells.
        model._labeled_indices = labeled[:0]
    try:
        model.train(**options)
    finally:
        del model._data_splitter_cls
        if labeled is not None:
            model._labeled_indices = labeled
        module._contrast, module.n_samples_per_label = contrast, n_samples_per_label


def check_trained(module: DataModule, trained: Any) -> None:
    """Fails if a model that was made of a registry lacks what it would know of all cells.

    Raises:
        ValueError: It does; trained on, it would differ from one in memory.
    """
    name = type(trained).__name__
    means = getattr(trained, "library_log_means", None)
    is_unknown = means is not None and not means.any() and (trained.library_log_vars == 1).all()
    if is_unknown and not trained.use_observed_lib_size:
        raise ValueError(
            "the model does not know the library sizes of batches, which a registry lacks: make it "
            "with data.model(...), which reads all cells once"
        )
    if name in ("MRVAE", "AutoZIVAE") and module.has_unlabeled:
        raise ValueError("this model has no unlabelled cells: give unlabeled_category=None")
