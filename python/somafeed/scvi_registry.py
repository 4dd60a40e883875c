"""The description of data that models of scvi-tools are made with."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from somafeed import _somafeed as native
from somafeed.batches import required

from somafeed.sources import JOINID, Concat, Selection, whole_of

if TYPE_CHECKING:
    from somafeed.dataset import ExperimentDataset
    from somafeed.scvi import DataModule

_SEPARATOR = "//"
_EMPTY: dict[str, Any] = {"data_registry": {}, "state_registry": {}, "summary_stats": {}}


def registry_of(module: DataModule) -> dict[str, Any]:
    """The registry of scvi-tools 1.5 for a data module, in the layout of its `AnnDataManager`."""
    label_key = _key(module.label_keys)
    return {
        "scvi_version": required("scvi", "somafeed.scvi").__version__,
        "model_name": module.model_name,
        "setup_method_name": "setup_datamodule",
        "setup_args": {
            "layer": None,
            "batch_key": _key(module.batch_column_names),
            "labels_key": label_key,
            "sample_key": _key(module.sample_key),
            "size_factor_key": _key(module.size_factor_key),
            "categorical_covariate_keys": _names(module.categorical_covariate_keys),
            "continuous_covariate_keys": _names(module.continuous_covariate_keys),
        },
        "field_registries": {
            "X": {
                "data_registry": {"attr_name": "X", "attr_key": None},
                "state_registry": {
                    "n_obs": module.n_obs,
                    "n_vars": module.n_vars,
                    "column_names": np.array(module.var_names, object),
                },
                "summary_stats": {"n_vars": module.n_vars, "n_cells": module.n_obs},
            },
            "batch": _categories(
                "batch", module.batch_labels, _key(module.batch_column_names), module.n_batch
            ),
            "labels": _labels(module, label_key),
            "ind_x": {**_EMPTY, "data_registry": {"attr_name": "obs", "attr_key": "_indices"}},
            "sample": {
                **_categories("sample", module.samples, _key(module.sample_key), module.n_samples),
                "n_obs_per_sample": {"n_obs_per_sample": module.n_obs_per_sample},
            },
            "size_factor": _size_factor(module),
            "extra_categorical_covs": _covariates(module),
            "extra_continuous_covs": _continuous(module),
        },
    }


def class_names(encoder: native.BatchKeyEncoder) -> list[str]:
    """The name of each code: the values of its columns, joined. No two codes have one name."""
    table = required("pyarrow", "somafeed.scvi").table(encoder.classes())
    columns = [table[name].to_pylist() for name in table.column_names]
    names = [_SEPARATOR.join(map(str, key)) for key in zip(*columns, strict=True)]
    # A null reads like the text "None". Joined keys differ from each other, but look odd.
    keys, counts = encoder.joined_keys(), Counter(names)
    clear = [
        key if counts[name] > 1 else name for name, key in zip(names, keys, strict=True)
    ]
    return clear if len({*clear}) == len(clear) else keys


def class_values(encoder: native.BatchKeyEncoder) -> list[Any]:
    """What each code stands for in obs: the values of one column, or the names of joined ones."""
    names = class_names(encoder)
    table = required("pyarrow", "somafeed.scvi").table(encoder.classes())
    if table.num_columns != 1:
        return names
    values = table.column(0).to_pylist()
    return names if None in values else values


def feature_names(dataset: ExperimentDataset, modality: str | None) -> list[str]:
    """The names of the genes of X, or of a modality's."""
    opened = dataset.dataset
    var = opened.var() if modality is None else opened.modality_var(modality)
    table = required("pyarrow", "somafeed.scvi").table(var)
    if "feature_id" in table.column_names:
        return [str(name) for name in table["feature_id"].to_pylist()]
    source = whole_of(dataset._cells.source)
    if isinstance(source, Concat):
        source = whole_of(source.sources[0])
    chosen = None
    if isinstance(source, Selection):
        of_modality = dict(source.modalities).get(modality or "")
        named = source.genes if of_modality is None else of_modality.genes
        if named is not None:
            return list(named[1])
        chosen = source.names[0]
        if of_modality is not None and of_modality.measurement is not None:
            chosen = of_modality.measurement
        elif of_modality is not None and of_modality.feature_type is None:
            chosen = modality
    if JOINID not in table.column_names:
        return [str(idx) for idx in range(table.num_rows)]
    joinids = table[JOINID].to_pylist()
    if chosen is None or not isinstance(source, Selection):
        return [str(joinid) for joinid in joinids]
    experiment = source.experiment()
    columns = experiment.var_columns(chosen)
    # The index of an AnnData comes first.
    found = [name for name in ("feature_id", *columns) if name in columns and name != JOINID]
    if not found:
        return [str(joinid) for joinid in joinids]
    read = experiment.var(chosen, columns=[JOINID, found[0]])
    rows = required("pyarrow", "somafeed.scvi").table(read)
    names = dict(zip(rows[JOINID].to_pylist(), rows[found[0]].to_pylist(), strict=True))
    return [str(names.get(joinid, joinid)) for joinid in joinids]


def _names(columns: Any) -> list[str] | None:
    return None if columns is None else list(columns)


def _key(columns: Any) -> str | None:
    """The name of a key of several columns."""
    return None if columns is None else _SEPARATOR.join(columns)


def _categories(name: str, categories: Any, key: str | None, n: int) -> dict[str, Any]:
    return {
        "data_registry": {"attr_name": "obs", "attr_key": f"_scvi_{name}"},
        "state_registry": {"categorical_mapping": categories, "original_key": key},
        "summary_stats": {f"n_{name}": n},
    }


def _labels(module: DataModule, key: str | None) -> dict[str, Any]:
    found = _categories("labels", module.labels_mapping, key, module.n_labels)
    found["state_registry"]["unlabeled_category"] = module.unlabeled_category
    return found


def _size_factor(module: DataModule) -> dict[str, Any]:
    if module.size_factor_key is None:
        return _EMPTY
    return {**_EMPTY, "data_registry": {"attr_name": "obs", "attr_key": "_scvi_size_factor"}}


def _continuous(module: DataModule) -> dict[str, Any]:
    keys = module.continuous_covariate_keys or ()
    counts = {"n_extra_continuous_covs": len(keys)}
    if not keys:
        return {**_EMPTY, "summary_stats": counts}
    return {
        "data_registry": {"attr_key": "_scvi_extra_continuous_covs", "attr_name": "obsm"},
        "state_registry": {"columns": np.array(keys, object)},
        "summary_stats": counts,
    }


def _covariates(module: DataModule) -> dict[str, Any]:
    categories = module.covariate_categories
    if not categories:
        return {**_EMPTY, "summary_stats": {"n_extra_categorical_covs": 0}}
    return {
        "data_registry": {"attr_key": "_scvi_extra_categorical_covs", "attr_name": "obsm"},
        "state_registry": {
            "field_keys": list(categories),
            "mapping": categories,
            "n_cats_per_key": module.n_cats_per_cov,
        },
        "summary_stats": {"n_extra_categorical_covs": len(categories)},
    }
