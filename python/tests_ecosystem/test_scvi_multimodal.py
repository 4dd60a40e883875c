"""TOTALVI, MULTIVI and PEAKVI of scvi-tools from a MuData on disk agree with one in memory."""

import anndata
import mudata
import numpy as np
import pandas as pd
import pytest
import scvi
import torch
from scipy import sparse
from somafeed import ExperimentDataset
from somafeed.scvi import DataModule

pytestmark = pytest.mark.filterwarnings("ignore")
N_CELLS, N_GENES, N_PROTEINS, N_PEAKS = 420, 30, 12, 50
TRAINED = {"max_epochs": 6, "accelerator": "cpu", "enable_progress_bar": False}
COVARIATES = {
    "batch_column_names": ["lane"], "categorical_covariate_keys": ["assay", "site"],
    "continuous_covariate_keys": ["age", "mito"],
}


def has(modality):
    """Which cells were measured."""
    cells = np.arange(N_CELLS)
    return {"rna": cells >= 0, "prot": cells % 7 != 3, "atac": cells % 5 != 2}[modality]


def obs():
    generator = np.random.default_rng(1)
    cells = np.arange(N_CELLS)
    columns = {
        "lane": np.where(cells % 3 == 0, "b", "a"), "assay": generator.choice(["x", "y"], N_CELLS),
        "site": generator.choice(["s", "t", "u"], N_CELLS), "age": generator.normal(size=N_CELLS),
        "mito": generator.random(N_CELLS), "size": 0.5 + generator.random(N_CELLS),
    }
    names = [f"cell{cell}" for cell in cells]
    return pd.DataFrame(columns, index=names).astype({"age": np.float32, "mito": np.float32})


def counts():
    """The counts of all cells by modality; zeros of cells that were not measured."""
    generator = np.random.default_rng(2)
    kinds = generator.integers(0, 3, N_CELLS)

    def drawn(n_features, least):
        rates = generator.gamma(1.0, 3.0, (3, n_features)) + least
        return generator.poisson(rates[kinds]).astype(np.float32)

    made = {"rna": drawn(N_GENES, 1), "prot": drawn(N_PROTEINS, 2), "atac": drawn(N_PEAKS, 0) % 3}
    # One protein was not measured in lane b.
    made["prot"][np.arange(N_CELLS) % 3 == 0, 3] = 0
    return {name: values * has(name)[:, None] for name, values in made.items()}


def mudata_of(masked):
    """A MuData whose modalities have the measured cells, or zeros for the others."""
    whole, made = obs(), {}
    for name, values in counts().items():
        rows = has(name) if masked else np.ones(N_CELLS, bool)
        # Modalities have orders of their own.
        order = np.flatnonzero(rows)[:: -1 if masked and name == "prot" else 1]
        var = pd.DataFrame(index=[f"{name}{idx}" for idx in range(values.shape[1])])
        X = sparse.csr_matrix(values[order]) if masked else values
        made[name] = anndata.AnnData(X, obs=pd.DataFrame(index=whole.index[order]), var=var)
    mdata = mudata.MuData(made)
    mdata.obs = whole.loc[mdata.obs_names]
    return mdata


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("mudata") / "cells.h5mu"
    mudata_of(masked=True).write(path)
    return path


@pytest.fixture
def whole():
    """All cells in memory."""
    return mudata_of(masked=False)


def cells(path, **options):
    settings = {
        "modalities": ["prot", "atac"], "batch_size": 64, "seed": 7, "shuffle_chunk_size": 4,
        "io_batch_size": 128, **options,
    }
    return ExperimentDataset(uri=path, **settings)


def assert_same_batches(module, model, beside, whole):
    """The batches are those that scvi-tools makes, and so are the losses."""
    model.module.eval()
    beside.module.eval()
    ours = list(module.inference_dataloader(batch_size=100))
    theirs = list(beside._make_data_loader(adata=whole, batch_size=100))
    assert len(ours) == len(theirs) == -(-N_CELLS // 100)
    for our, their in zip(ours, theirs):
        for key, tensor in their.items():
            np.testing.assert_array_equal(our[key].numpy(), tensor.numpy().astype(our[key].numpy().dtype), key)
            assert our[key].shape == tensor.shape, key
        losses = []
        for one, tensors in ((model, our), (beside, their)):
            torch.manual_seed(3)
            *_, loss = one.module(tensors)
            losses.append(float(loss.loss))
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def assert_trains_and_loads(module, model, whole, folder):
    scvi.settings.seed = 3
    module.train(model, batch_size=64, **TRAINED)
    # The whole loss rises while the weight of its divergence does.
    losses = model.history["reconstruction_loss_train"].to_numpy().ravel()
    assert losses[-1] < losses[0]
    latent = model.get_latent_representation(dataloader=module.inference_dataloader())
    model.save(str(folder / "model"))
    loaded = type(model).load(str(folder / "model"), adata=whole, accelerator="cpu")
    np.testing.assert_allclose(
        loaded.get_latent_representation(), latent, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("size_factor", "observed"), [(None, True), (None, False), ("size", True)])
def test_totalvi(path, whole, tmp_path, size_factor, observed):
    module = DataModule(
        cells(path), proteins="prot", model_name="TOTALVI", size_factor_key=size_factor,
        fractions=(0.8, 0.2), **COVARIATES,
    )
    options = {"n_latent": 5, "empirical_protein_background_prior": False,
               "use_observed_lib_size": observed}
    model = module.model(scvi.model.TOTALVI, **options)
    scvi.model.TOTALVI.setup_mudata(
        whole, batch_key="lane", size_factor_key=size_factor,
        categorical_covariate_keys=["assay", "site"], continuous_covariate_keys=["age", "mito"],
        modalities={"rna_layer": "rna", "protein_layer": "prot"},
    )
    beside = scvi.model.TOTALVI(whole, **options)
    mask, expected = (
        one.protein_state_registry["protein_batch_mask"] for one in (model, beside)
    )
    assert {key: row.tolist() for key, row in mask.items()} == {
        key: row.tolist() for key, row in expected.items()
    }
    assert [not row.all() for row in mask.values()] == [False, True]
    if not observed and size_factor is None:
        for name in ("library_log_means", "library_log_vars"):
            ours, theirs = (getattr(one.module, name) for one in (model, beside))
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    beside.module.load_state_dict(model.module.state_dict())
    assert_same_batches(module, model, beside, whole)
    assert_trains_and_loads(module, model, whole, tmp_path)


def test_the_background_of_proteins_is_fitted_to_a_sample(path):
    module = DataModule(cells(path), proteins="prot", batch_column_names=["lane"],
                        fractions=(1.0,))
    model = module.model(scvi.model.TOTALVI, empirical_protein_background_prior=True)
    assert torch.isfinite(model.module.background_pro_alpha).all()


@pytest.mark.parametrize("proteins", [None, "prot"])
def test_multivi(path, whole, tmp_path, proteins):
    module = DataModule(
        cells(path), atac="atac", proteins=proteins, model_name="MULTIVI", sparse=proteins is None,
        fractions=(0.8, 0.2), **COVARIATES,
    )
    options = {"n_latent": 5, "n_hidden": 16}
    model = module.model(scvi.model.MULTIVI, **options)
    modalities = {"rna_layer": "rna", "atac_layer": "atac"}
    if proteins is not None:
        modalities["protein_layer"] = proteins
    scvi.model.MULTIVI.setup_mudata(
        whole, batch_key="lane", categorical_covariate_keys=["assay", "site"],
        continuous_covariate_keys=["age", "mito"], modalities=modalities,
    )
    beside = scvi.model.MULTIVI(whole, **options)
    beside.module.load_state_dict(model.module.state_dict())
    assert_same_batches(module, model, beside, whole)
    # `ind_x` is the row among all cells, in whatever batch the cell is.
    X = counts()["rna"]
    for batch in module.train_dataloader():
        tensors = module.on_after_batch_transfer(module.on_before_batch_transfer(batch, 0), 0)
        np.testing.assert_array_equal(X[tensors["ind_x"][:, 0]], tensors["X"].numpy())
    assert_trains_and_loads(module, model, whole, tmp_path)


@pytest.mark.parametrize("made", ["model", "registry"])
def test_peakvi(path, whole, tmp_path, made):
    peaks = cells(path, measurement_name="atac", modalities=())
    module = DataModule(peaks, model_name="PEAKVI", fractions=(0.8, 0.2), **COVARIATES)
    assert module.n_obs == has("atac").sum()
    assert module.var_names == whole.mod["atac"].var_names.tolist()
    options = {"n_latent": 5, "n_hidden": 16}
    if made == "model":
        model = module.model(scvi.model.PEAKVI, **options)
    else:
        model = scvi.model.PEAKVI(registry=module.registry, **options)
    adata = whole.mod["atac"][has("atac")].copy()
    adata.obs = obs()[has("atac")]
    scvi.model.PEAKVI.setup_anndata(
        adata, batch_key="lane", categorical_covariate_keys=["assay", "site"],
        continuous_covariate_keys=["age", "mito"],
    )
    beside = scvi.model.PEAKVI(adata, **options)
    beside.module.load_state_dict(model.module.state_dict())
    for our, their in zip(module.inference_dataloader(batch_size=50),
                          beside._make_data_loader(adata=adata, batch_size=50)):
        losses = []
        for one, tensors in ((model, our), (beside, their)):
            torch.manual_seed(3)
            one.module.eval()
            losses.append(float(one.module(tensors)[-1].loss))
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    if made == "model":
        assert_trains_and_loads(module, model, adata, tmp_path)
        return
    model.train(datamodule=module, batch_size=64, **TRAINED)
    losses = model.history["train_loss"].to_numpy().ravel()
    assert losses[-1] < losses[0]


def test_what_cannot_be(path):
    for options, text in [
        ({"proteins": "none"}, "no modality \"none\"|no modality 'none'"),
        ({"continuous_covariate_keys": ["lane"]}, "must be numbers"),
        ({"size_factor_key": "mito_less"}, "mito_less"),
    ]:
        with pytest.raises(ValueError, match=text):
            DataModule(cells(path), fractions=(1.0,), **options)
    with pytest.raises(ValueError, match="size factors must be above 0"):
        DataModule(cells(path), fractions=(1.0,), size_factor_key="age")
    module = DataModule(cells(path), fractions=(1.0,), proteins="prot")
    with pytest.raises(ValueError, match="DataModule\\(atac=...\\)"):
        module.model(scvi.model.MULTIVI)
    peaks = DataModule(cells(path), fractions=(1.0,), atac="atac")
    with pytest.raises(ValueError, match="modality_weights='cell'"):
        peaks.model(scvi.model.MULTIVI, modality_weights="cell")
