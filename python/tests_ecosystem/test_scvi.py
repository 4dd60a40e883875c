"""scvi-tools trains its models from `somafeed.scvi.DataModule`, and agrees with AnnData."""

import warnings

import anndata
import numpy as np
import pyarrow as pa
import pytest
import scvi
import torch
from programs import N_CELLS, N_GENES, dataset
from somafeed.scvi import DataModule

pytestmark = pytest.mark.filterwarnings("ignore")
TRAINED = {"max_epochs": 2, "accelerator": "cpu", "enable_progress_bar": False,
           "check_val_every_n_epoch": 1}
KEYS = {"batch_column_names": ["donor_id"], "label_keys": ["cell_type"]}


@pytest.fixture(scope="module")
def obs(uri):
    """obs of all cells by ascending joinid, as texts."""
    columns = ["donor_id", "cell_type", "assay"]
    whole = dataset(uri, obs_column_names=columns, obs_form="arrow", form="numpy", encoders=())
    table = pa.table(whole.dataset.obs())
    return {name: np.array([str(value) for value in table[name].to_pylist()]) for name in columns}


def module_of(uri, cells=None, **options):
    return DataModule(dataset(uri, **(cells or {})), **{"fractions": (0.8, 0.2), **KEYS, **options})


def latent_of(model, module, **options):
    return model.get_latent_representation(dataloader=module.inference_dataloader(**options))


def trained(uri, **options):
    scvi.settings.seed = 3
    module = module_of(uri, **options)
    model = scvi.model.SCVI(registry=module.registry, n_latent=5, n_hidden=16)
    model.train(datamodule=module, **TRAINED)
    return model, module


def test_batches_are_those_of_the_cells(uri, counts, obs):
    module = module_of(
        uri, sample_key=["assay"], categorical_covariate_keys=["assay", "donor_id"]
    )
    batches = list(module.inference_dataloader(batch_size=64))
    assert len(batches) == len(module.inference_dataloader(batch_size=64)) == -(-N_CELLS // 64)

    def together(key):
        return torch.cat([batch[key] for batch in batches]).numpy()

    np.testing.assert_array_equal(together("X"), counts)
    for key, names, column in [
        ("batch", module.batch_labels, "donor_id"),
        ("labels", module.labels_mapping, "cell_type"),
        ("sample", module.samples, "assay"),
    ]:
        codes = together(key)
        assert codes.shape == (N_CELLS, 1) and codes.dtype == np.int64
        assert names[codes[:, 0]].tolist() == obs[column].tolist()
    covariates = together("extra_categorical_covs")
    for idx, (column, names) in enumerate(module.covariate_categories.items()):
        assert names[covariates[:, idx]].tolist() == obs[column].tolist()
    assert module.labels_.tolist() == obs["cell_type"].tolist()
    counted = [int((obs["assay"] == name).sum()) for name in module.samples]
    assert module.n_obs_per_sample.tolist() == counted


def test_a_latent_space_is_that_of_the_cells_in_order(uri, counts, obs):
    """The model sees the same cells through the data module as through AnnData."""
    model, module = trained(uri)
    latent = latent_of(model, module, batch_size=100)
    assert latent.shape == (N_CELLS, 5) and np.isfinite(latent).all()
    adata = anndata.AnnData(counts.astype(np.float32))
    adata.obs["donor_id"] = obs["donor_id"]
    scvi.model.SCVI.setup_anndata(adata, batch_key="donor_id")
    beside = scvi.model.SCVI(adata, n_latent=5, n_hidden=16)
    assert beside.summary_stats.n_batch == module.n_batch
    beside.module.load_state_dict(model.module.state_dict(), strict=False)
    beside.is_trained_ = True
    beside.module.eval()
    np.testing.assert_allclose(latent, beside.get_latent_representation(), rtol=1e-4, atol=1e-5)


def test_training_lowers_the_loss_and_is_repeatable(uri):
    first, _ = trained(uri)
    again, _ = trained(uri)
    losses = first.history["train_loss"].to_numpy().ravel()
    assert losses[-1] < losses[0] and len(first.history["validation_loss"]) == 2
    np.testing.assert_array_equal(losses, again.history["train_loss"].to_numpy().ravel())


def test_sparse_batches_become_dense_on_the_device(uri):
    dense, of_dense = trained(uri)
    sparse, of_sparse = trained(uri, sparse=True)
    batch = next(iter(of_sparse.train_dataloader()))
    assert batch[0].layout == torch.sparse_csr
    for name in ("train_loss", "validation_loss"):
        np.testing.assert_array_equal(*(model.history[name].to_numpy() for model in (dense, sparse)))
    np.testing.assert_array_equal(latent_of(dense, of_dense), latent_of(sparse, of_sparse))


def test_a_saved_model_on_other_cells(uri, tmp_path):
    """Codes of a part of the cells are those of the model."""
    model, module = trained(uri)
    model.save(str(tmp_path / "model"), datamodule=module)
    few = np.arange(3, N_CELLS, 17)
    other = module_of(uri, cells={"obs_joinids": few}, encoders=module.encoders)
    assert other.n_obs == len(few) and other.n_batch == module.n_batch
    loaded = scvi.model.SCVI.load(str(tmp_path / "model"), adata=False, accelerator="cpu")
    np.testing.assert_allclose(
        latent_of(loaded, other), latent_of(model, module)[few], rtol=1e-4, atol=1e-5
    )


def test_scanvi_with_unlabelled_cells(uri, obs):
    """Cells of the unlabelled category have the last code, and teach the classifier nothing."""
    unknown = sorted(set(obs["cell_type"]))[1]
    module = module_of(uri, model_name="SCANVI", unlabeled_category=unknown)
    assert module.labels_mapping[-1] == unknown
    for batch in module.val_dataloader():
        batch = module.on_before_batch_transfer(batch, 0)
        tensors, labelled = module.on_after_batch_transfer(batch, 0)
        codes = tensors["labels"][:, 0]
        assert torch.equal(labelled["X"], tensors["X"][codes != module.n_labels - 1])
    scvi.settings.seed = 3
    model = scvi.model.SCANVI(
        registry=module.registry, datamodule=module, n_latent=5, n_hidden=16
    )
    assert model.n_labels == module.n_labels - 1
    model.train(datamodule=module, **TRAINED)
    assert "train_classification_loss" in model.history
    predicted = model.predict(dataloader=module.inference_dataloader())
    assert len(predicted) == N_CELLS and unknown not in predicted
    assert set(predicted) <= set(obs["cell_type"])


def test_scanvi_from_scvi(uri):
    model, module = trained(uri)
    semisupervised = module_of(uri, model_name="SCANVI")
    of_scvi = scvi.model.SCANVI.from_scvi_model(
        model, unlabeled_category="Unknown", datamodule=semisupervised
    )
    of_scvi.train(datamodule=semisupervised, **TRAINED)
    soft = of_scvi.predict(dataloader=semisupervised.inference_dataloader(), soft=True)
    assert soft.shape[0] == N_CELLS


def test_a_label_that_is_not_known_is_unlabelled(uri, obs):
    kinds = sorted(set(obs["cell_type"]))
    first = dataset(uri, obs_filter=f"cell_type != '{kinds[0]}'")
    learned = DataModule(first, fractions=(1.0,), label_keys=["cell_type"])
    assert kinds[0] not in learned.labels_mapping
    module = DataModule(
        dataset(uri), fractions=(1.0,), label_keys=["cell_type"], encoders=learned.encoders
    )
    expected = np.where(obs["cell_type"] == kinds[0], "Unknown", obs["cell_type"])
    assert module.labels_.tolist() == expected.tolist()


def test_sizes_without_columns(uri):
    module = DataModule(dataset(uri), fractions=(1.0,))
    assert (module.n_obs, module.n_vars, module.n_batch) == (N_CELLS, N_GENES, 1)
    assert (module.n_labels, module.n_samples, module.labels_) == (1, 0, None)
    model = scvi.model.SCVI(registry=module.registry, n_latent=5, n_hidden=16)
    model.train(datamodule=module, batch_size=50, **TRAINED)
    assert module.train_dataset.batch_size == 50
    assert latent_of(model, module).shape == (N_CELLS, 5)


def test_a_short_batch_is_left_out(uri):
    """Batch normalisation cannot train on a batch of one cell."""
    module = DataModule(dataset(uri, batch_size=N_CELLS - 1), fractions=(1.0,))
    assert [len(X) for X, _ in module.train_dataloader()] == [N_CELLS - 1]
    module = DataModule(dataset(uri, batch_size=2 * N_CELLS), fractions=(1.0,))
    assert [len(X) for X, _ in module.train_dataloader()] == [N_CELLS]


def test_wrong_arguments(uri):
    for kind, text, options in [
        (ValueError, "no_such", {"batch_column_names": ["no_such"]}),
        (TypeError, "several names", {"label_keys": "cell_type"}),
        (ValueError, "lack", {"encoders": {}}),
        (ValueError, "counts", {"cells": {"log1p": True}}),
        (ValueError, "above 0", {"inference_batch_size": 0}),
    ]:
        with pytest.raises(kind, match=text):
            module_of(uri, **options).inference_dataloader()
    with pytest.raises(TypeError, match="ExperimentDataset"), warnings.catch_warnings():
        DataModule(uri)
