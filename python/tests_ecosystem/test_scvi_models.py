"""Models of scvi-tools that `DataModule.model` makes agree with those of an AnnData in memory."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scvi
import torch
from scipy import sparse
from somafeed import ExperimentDataset
from somafeed.scvi import DataModule

pytestmark = pytest.mark.filterwarnings("ignore")
N_CELLS, N_GENES = 330, 30
TRAINED = {"max_epochs": 6, "accelerator": "cpu", "enable_progress_bar": False}
SMALL = {"n_latent": 4, "n_hidden": 16}
LANE, KIND, DONOR = ({key: [column]} for key, column in [
    ("batch_column_names", "lane"), ("label_keys", "kind"), ("sample_key", "donor")
])
COVARIATES = {
    "categorical_covariate_keys": ["assay", "site"], "continuous_covariate_keys": ["age", "mito"]
}
SIZE = {"size_factor_key": "size"}
# The class, the settings of the data module, and the options of the model.
MODELS = {
    "SCVI": (scvi.model.SCVI, {**LANE, **KIND, **COVARIATES, **SIZE}, SMALL),
    "SCVI, latent library": (
        scvi.model.SCVI, {**LANE, **COVARIATES}, {**SMALL, "use_observed_lib_size": False}
    ),
    "SCVI, dispersion by label": (
        scvi.model.SCVI, {**LANE, **KIND}, {**SMALL, "dispersion": "gene-label"}
    ),
    "LinearSCVI": (scvi.model.LinearSCVI, {**LANE, **KIND}, SMALL),
    "AUTOZI": (scvi.model.AUTOZI, {**LANE, **KIND}, {**SMALL, "zero_inflation": "gene-label"}),
    "AUTOZI, latent library": (
        scvi.model.AUTOZI, {**LANE, **KIND}, {**SMALL, "use_observed_lib_size": False}
    ),
    "SCANVI": (
        scvi.model.SCANVI, {**LANE, **KIND, **COVARIATES, "unlabeled_category": "b"}, SMALL
    ),
    "SCANVI, all labelled": (scvi.model.SCANVI, {**LANE, **KIND}, SMALL),
    "MRVI": (
        scvi.external.MRVI, {**LANE, **KIND, **DONOR},
        {"n_latent": 4, "n_latent_u": 3, "encoder_n_hidden": 16, "scale_observations": True},
    ),
    "SysVI": (
        scvi.external.SysVI, {**LANE, **COVARIATES}, {**SMALL, "n_prior_components": 7}
    ),
    "SysVI, standard normal": (
        scvi.external.SysVI, {**LANE, **COVARIATES}, {**SMALL, "prior": "standard_normal"}
    ),
    "SysVI, no covariates": (scvi.external.SysVI, LANE, {**SMALL, "out_var_mode": "sample_feature"}),
    "DRVI": (scvi.external.DRVI, {**LANE, **KIND, **COVARIATES, **SIZE}, SMALL),
    "DRVI, no columns": (scvi.external.DRVI, {}, SMALL),
    "SCAR": (scvi.external.SCAR, {**LANE, **KIND}, SMALL),
    "SCAR, size factor": (
        scvi.external.SCAR, {**LANE, **SIZE}, {**SMALL, "gene_likelihood": "nb"}
    ),
    "JointEmbeddingSCVI": (
        scvi.external.JointEmbeddingSCVI, {**LANE, **KIND, **COVARIATES}, SMALL
    ),
}
# Arguments of `setup_anndata` for settings of the data module.
SETUP = {"batch_column_names": "batch_key", "label_keys": "labels_key", "sample_key": "sample_key"}


def adata_of():
    """All cells in memory: counts of three kinds, and columns of every sort."""
    generator = np.random.default_rng(4)
    cells = np.arange(N_CELLS)
    kinds = generator.integers(0, 4, N_CELLS)
    rates = generator.gamma(1.0, 3.0, (4, N_GENES)) + 0.2
    depths = generator.uniform(0.3, 2.0, (N_CELLS, 1)) * np.where(cells % 3 == 0, 2, 1)[:, None]
    obs = pd.DataFrame(
        {
            "lane": np.where(cells % 3 == 0, "y", "x"), "kind": np.array(list("cabd"))[kinds],
            "donor": np.array([f"d{one}" for one in generator.integers(0, 5, N_CELLS)]),
            "assay": generator.choice(["p", "q"], N_CELLS),
            "site": generator.choice([10, 9, -3], N_CELLS),
            "age": generator.normal(size=N_CELLS), "mito": generator.random(N_CELLS),
            "size": 0.5 + generator.random(N_CELLS),
        },
        index=[f"cell{cell}" for cell in cells],
    ).astype({"age": np.float32, "mito": np.float32, "size": np.float32})
    X = generator.poisson(rates[kinds] * depths).astype(np.float32)
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"g{gene}" for gene in range(N_GENES)]))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("anndata") / "cells.h5ad"
    adata = adata_of()
    adata.X = sparse.csr_matrix(adata.X)
    adata.write(path)
    return path


def cells(path, **options):
    settings = {"batch_size": 32, "seed": 7, "shuffle_chunk_size": 4, "io_batch_size": 128}
    return ExperimentDataset(uri=path, **{**settings, **options})


def normalised(name):
    """How the cells are transformed for a model, and the same in memory."""
    adata = adata_of()
    if name != "SysVI":
        return {}, adata
    adata.X = np.log1p(adata.X * (1_000 / adata.X.sum(1, keepdims=True)))
    return {"target_sum": 1_000, "log1p": True}, adata


def in_memory(cls, settings, adata, options):
    """The model of all cells."""
    setup = {SETUP.get(key, key): value for key, value in settings.items()}
    setup = {key: value[0] if key in SETUP.values() else value for key, value in setup.items()}
    if cls is scvi.model.SCANVI:
        setup.setdefault("unlabeled_category", "Unknown")
    cls.setup_anndata(adata, **setup)
    scvi.settings.seed = 5
    return cls(adata, **options)


def loss_of(model, tensors):
    model.module.eval()
    torch.manual_seed(3)
    options = {}
    if type(model) is scvi.model.SCANVI:
        rows = tensors["labels"][:, 0] < model.n_labels
        labelled = {key: one[rows] for key, one in tensors.items()}
        options = {"labelled_tensors": labelled, "classification_ratio": 50}
    *_, loss = model.module(tensors, loss_kwargs=options)
    return float(loss.loss)


def compared(module, model, beside, adata):
    """The batches and losses of both models, of which each batch and its loss are compared."""
    ours = list(module.inference_dataloader(batch_size=50))
    theirs = list(beside._make_data_loader(adata=adata, batch_size=50))
    assert len(ours) == len(theirs) == -(-N_CELLS // 50)
    for our, their in zip(ours, theirs):
        for key, tensor in their.items():
            found = our[key].numpy()
            np.testing.assert_allclose(found, tensor.numpy().astype(found.dtype), rtol=1e-6)
            assert our[key].shape == tensor.shape, key
        assert loss_of(model, our) == pytest.approx(loss_of(beside, their), rel=1e-5)


@pytest.mark.parametrize("case", MODELS)
def test_a_model_is_that_of_the_cells_in_memory(case, path, tmp_path):
    cls, settings, options = MODELS[case]
    name = cls.__name__
    transform, adata = normalised(name)
    beside = in_memory(cls, settings, adata, options)
    module = DataModule(
        cells(path, **transform), model_name=name, fractions=(0.8, 0.2), sparse=name == "DRVI", **settings
    )
    scvi.settings.seed = 5
    model = module.model(cls, **options)
    # The same weights, priors and pseudoinputs as drawn in memory.
    expected = beside.module.state_dict()
    for key, value in model.module.state_dict().items():
        np.testing.assert_allclose(value.numpy(), expected[key].numpy(), rtol=2e-5, err_msg=key)
    stats = {key: value for key, value in beside.summary_stats.items()}
    assert {key: value for key, value in model.summary_stats.items()} == stats
    compared(module, model, beside, adata)
    module.train(model, **TRAINED)
    losses = model.history["reconstruction_loss_train"].to_numpy().ravel()
    assert losses[-1] < losses[0]
    assert model.trainer.lightning_module.n_obs_training == module.n_train == round(0.8 * N_CELLS)
    latent = model.get_latent_representation(dataloader=module.inference_dataloader())
    beside.module.load_state_dict(model.module.state_dict())
    beside.is_trained_ = True
    beside.module.eval()
    np.testing.assert_allclose(beside.get_latent_representation(), latent, rtol=1e-4, atol=1e-5)
    model.save(str(tmp_path / "model"))
    fresh = normalised(name)[1]
    loaded = cls.load(str(tmp_path / "model"), adata=fresh, accelerator="cpu")
    np.testing.assert_allclose(loaded.get_latent_representation(), latent, rtol=1e-4, atol=1e-5)
    if name == "SCANVI":
        assert list(loaded.labels_) == list(beside.labels_)


def test_what_mrvi_knows_of_samples(path):
    cls, settings, options = MODELS["MRVI"]
    adata = adata_of()
    beside = in_memory(cls, settings, adata, options)
    model = DataModule(cells(path), model_name="MRVI", fractions=(1.0,), **settings).model(cls, **options)
    for ours, theirs in [
        (model.n_obs_per_sample, beside.n_obs_per_sample),
        (model.module.n_obs_per_sample, beside.module.n_obs_per_sample),
    ]:
        assert ours.tolist() == theirs.tolist()
    columns = ["donor", "lane", "kind"]
    assert model.sample_info[columns].astype(str).equals(beside.sample_info[columns].astype(str))


def test_chosen_pseudoinputs(path):
    cls, settings, _ = MODELS["SysVI"]
    options = {**SMALL, "n_prior_components": 3, "pseudoinputs_data_indices": np.array([300, 7, 7])}
    transform, adata = normalised("SysVI")
    beside = in_memory(cls, settings, adata, options)
    module = DataModule(cells(path, **transform), model_name="SysVI", fractions=(1.0,), **settings)
    model = module.model(cls, **options)
    np.testing.assert_allclose(
        model.module.prior.u.detach(), beside.module.prior.u.detach(), rtol=1e-6
    )
    found = model.init_params_["non_kwargs"]["pseudoinputs_data_indices"]
    assert found.tolist() == [300, 7, 7]
    for wrong in ([1, 2], [1, 2, N_CELLS], [-1, 2, 3]):
        with pytest.raises(ValueError, match="3 places of cells from 0 to 329"):
            module.model(cls, **{**options, "pseudoinputs_data_indices": np.array(wrong)})


@pytest.mark.parametrize(
    "case", ["SCVI", "DRVI", "MRVI", "JointEmbeddingSCVI", "SysVI, standard normal", "AUTOZI"]
)
def test_a_model_of_the_registry(case, path):
    """It has the same sizes as in memory, and trains."""
    cls, settings, options = MODELS[case]
    name = cls.__name__
    transform, adata = normalised(name)
    beside = in_memory(cls, settings, adata, options)
    module = DataModule(cells(path, **transform), model_name=name, fractions=(0.8, 0.2), **settings)
    model = cls(registry=module.registry, **options)
    model.module.load_state_dict(beside.module.state_dict())
    compared(module, model, beside, adata)
    model.train(datamodule=module, **TRAINED)
    losses = model.history["reconstruction_loss_train"].to_numpy().ravel()
    assert losses[-1] < losses[0]
    with pytest.raises(ValueError, match="dataloader"):
        model.get_latent_representation()


def test_scanvi_of_the_registry_has_the_labels_of_memory(path):
    for unlabeled in ("b", "Unknown"):
        beside = in_memory(
            scvi.model.SCANVI, {**LANE, **KIND, "unlabeled_category": unlabeled}, adata_of(), SMALL
        )
        module = DataModule(
            cells(path), model_name="SCANVI", unlabeled_category=unlabeled, fractions=(1.0,), **LANE, **KIND
        )
        model = scvi.model.SCANVI(registry=module.registry, datamodule=module, **SMALL)
        assert model.n_labels == beside.n_labels
        expected = beside.registry["field_registries"]["labels"]["state_registry"]["categorical_mapping"]
        assert module.labels_mapping.tolist()[: model.n_labels] == expected[: model.n_labels].tolist()


def test_a_model_of_a_sample_gives_no_answers_for_it(path):
    module = DataModule(cells(path), fractions=(1.0,), **LANE)
    model = module.model(scvi.model.SCVI, **SMALL)
    assert model.adata is None
    model.is_trained_ = True
    with pytest.raises(ValueError, match="cells are not in memory"):
        model.get_latent_representation()
    assert len(model.get_latent_representation(adata_of()[:9].copy())) == 9


def test_what_a_model_cannot_be_made_of(path):
    for cls, settings, options, text in [
        (scvi.external.SCAR, {**LANE, **COVARIATES}, {}, "SCAR takes no categorical_covariate_keys"),
        (scvi.external.SysVI, {}, {}, "SysVI needs DataModule\\(batch_column_names"),
        (scvi.external.SCAR, LANE, {"ambient_profile": "ambient"}, "must be an array"),
        (scvi.external.RESOLVI, LANE, {}, "model\\(\\) makes SCVI.* not RESOLVI"),
        (scvi.external.MRVI, {**KIND, "unlabeled_category": "b"}, {}, "MRVI has no unlabelled cells"),
        (scvi.model.SCANVI, KIND, {}, "model_name='SCANVI'"),
    ]:
        module = DataModule(cells(path), fractions=(1.0,), **settings)
        with pytest.raises(ValueError, match=text):
            module.model(cls, **options)
    module = DataModule(cells(path, log1p=True), fractions=(1.0,), model_name="SysVI", **LANE)
    with pytest.raises(ValueError, match="SCVI takes counts"):
        module.model(scvi.model.SCVI)


def test_a_registry_without_what_a_model_needs_is_refused(path):
    module = DataModule(cells(path), fractions=(0.8, 0.2), **LANE)
    model = scvi.model.LinearSCVI(registry=module.registry, **SMALL)
    with pytest.raises(ValueError, match="make it with data.model"):
        model.train(datamodule=module, **TRAINED)
    module = DataModule(
        cells(path), fractions=(0.8, 0.2), unlabeled_category="b", model_name="MRVI", **KIND, **DONOR
    )
    model = scvi.external.MRVI(registry=module.registry)
    with pytest.raises(ValueError, match="unlabeled_category=None"):
        model.train(datamodule=module, **TRAINED)
