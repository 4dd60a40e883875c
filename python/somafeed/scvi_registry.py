"""The description of data that models of scvi-tools are made with."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from somafeed import _somafeed as native
from somafeed.batches import required

if TYPE_CHECKING:
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
            "size_factor_key": None,
            "categorical_covariate_keys": _names(module.categorical_covariate_keys),
            "continuous_covariate_keys": None,
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
            "size_factor": _EMPTY,
            "extra_categorical_covs": _covariates(module),
            "extra_continuous_covs": {**_EMPTY, "summary_stats": {"n_extra_continuous_covs": 0}},
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
