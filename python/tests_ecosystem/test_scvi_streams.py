"""Streams in step: SCANVI's labelled cells, contrastiveVI's background and target."""

import json

import lightning.pytorch as lightning
import numpy as np
import pytest
import scvi
import torch
from scvi.dataloaders import SemiSupervisedDataSplitter
from scvi.external.contrastivevi import ContrastiveDataSplitter
from somafeed import ExperimentDataset
from somafeed.scvi import DataModule
from test_scvi_models import (
    COVARIATES,
    KIND,
    LANE,
    N_CELLS,
    SMALL,
    TRAINED,
    adata_of,
    cells,
    in_memory,
    path,
)

pytestmark = pytest.mark.filterwarnings("ignore")
__all__ = ["path"]
BACKGROUND = np.flatnonzero(np.arange(N_CELLS) % 3 == 0)
TARGET = np.flatnonzero(np.arange(N_CELLS) % 3 != 0)


def pairs_of(module, loader=None):
    """The pairs of an epoch, as the model gets them."""
    for batch in module.train_dataloader() if loader is None else loader:
        yield module.on_after_batch_transfer(module.on_before_batch_transfer(batch, 0), 0)


def numbers(X):
    """The cells of a batch, by their counts."""
    whole = {row.tobytes(): cell for cell, row in enumerate(adata_of().X)}
    return [whole[row.tobytes()] for row in X.numpy()]


def semisupervised(path, **options):
    settings = {"unlabeled_category": "b", "fractions": (0.8, 0.2), "model_name": "SCANVI", **LANE, **KIND}
    return DataModule(cells(path), **{**settings, **options})


@pytest.mark.parametrize("n_samples", [None, 20, 500])
def test_labelled_cells_are_drawn_as_often_as_in_scvi(path, n_samples):
    module = semisupervised(path, n_samples_per_label=n_samples)
    train = module.train_dataset.sample_numbers
    adata = adata_of()
    scvi.model.SCANVI.setup_anndata(adata, labels_key="kind", unlabeled_category="b")
    manager = scvi.model.SCANVI(adata, **SMALL).adata_manager
    splitter = SemiSupervisedDataSplitter(
        manager, external_indexing=[train, np.setdiff1d(np.arange(N_CELLS), train), np.array([])],
        n_samples_per_label=n_samples,
    )
    splitter.setup()
    theirs = adata.obs["kind"].to_numpy()[splitter.train_dataloader().subsample_labels()]
    kinds, expected = np.unique(theirs, return_counts=True)
    loader, drawn = module.train_dataloader(), []
    for epoch in range(2):
        loader.set_epoch(epoch)
        labelled = list(loader.beside)
        loader.beside.set_epoch(epoch)
        seen = [cell for batch in labelled for cell in batch[1]["soma_joinid"].tolist()]
        assert len(seen) == len({*seen}) and {*seen} <= {*train.tolist()}
        found = np.unique(adata.obs["kind"].to_numpy()[seen], return_counts=True)
        assert found[0].tolist() == kinds.tolist() and found[1].tolist() == expected.tolist()
        drawn.append(seen)
    assert drawn[0] != drawn[1]
    assert (n_samples == 20) == ({*drawn[0]} != {*drawn[1]})


def test_labelled_cells_repeat_beside_all(path):
    module = semisupervised(path, n_samples_per_label=30)
    loader = module.train_dataloader()
    assert len(loader) == 264 // 32
    n_labelled, epoch, labelled = len(loader.beside), [], []
    for tensors, of_labelled in pairs_of(module, loader):
        assert (of_labelled["labels"][:, 0] != module.n_labels - 1).all()
        epoch += numbers(tensors["X"])
        labelled.append(numbers(of_labelled["X"]))
    assert len(epoch) == len({*epoch}) == 8 * 32
    # 90 cells are three batches.
    assert n_labelled == 3 and [len(one) for one in labelled[:3]] == [32, 32, 26]
    assert labelled[3:6] == labelled[:3] and labelled[6:] == labelled[:2]
    assert labelled[0] != epoch[:32]


def test_labelled_cells_have_an_order_of_their_own(path):
    """Also if all cells are labelled."""
    pairs = list(pairs_of(semisupervised(path, unlabeled_category="Unknown")))
    assert all(numbers(one["X"]) != numbers(labelled["X"]) for one, labelled in pairs)
    assert len({cell for _, labelled in pairs for cell in numbers(labelled["X"])}) == 8 * 32


def test_without_a_labelled_cell_there_is_no_pair(path, tmp_path):
    module = semisupervised(path, label_keys=["kind"])
    only = DataModule(
        cells(path, obs_filter="kind == 'b'"), unlabeled_category="b", fractions=(1.0,),
        model_name="SCANVI", encoders=module.encoders, **LANE, **KIND,
    )
    for tensors, labelled in pairs_of(only):
        assert labelled is None and len(tensors["X"]) == 32


@pytest.mark.parametrize("made", ["model", "registry"])
def test_scanvi_trains_on_labelled_cells(path, made):
    scvi.settings.seed = 3
    module = semisupervised(path, n_samples_per_label=25)
    if made == "model":
        model = module.model(scvi.model.SCANVI, **SMALL)
        module.train(model, n_samples_per_label=10, **{**TRAINED, "max_epochs": 8})
        assert module.n_samples_per_label == 25
    else:
        model = scvi.model.SCANVI(registry=module.registry, datamodule=module, **SMALL)
        model.train(datamodule=module, **{**TRAINED, "max_epochs": 8})
    losses = model.history["train_classification_loss"].to_numpy().ravel()
    assert losses[-1] < losses[0]
    predicted = model.predict(dataloader=module.inference_dataloader())
    assert len(predicted) == N_CELLS and "b" not in predicted


def test_a_pair_resumes_where_it_was(path):
    """Also where the shorter stream has begun again."""
    whole = list(pairs_of(semisupervised(path, n_samples_per_label=30)))
    for n_before in (0, 1, 2, 3, 5, 7):
        module = semisupervised(path, n_samples_per_label=30)
        loader = module.train_dataloader()
        batches = iter(loader)
        for _ in range(n_before):
            next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        loader.close()
        loader = semisupervised(path, n_samples_per_label=30).train_dataloader()
        loader.load_state_dict(state)
        rest = list(pairs_of(module, loader))
        assert len(rest) == 8 - n_before
        for (ours, of_ours), (expected, of_expected) in zip(rest, whole[n_before:]):
            assert torch.equal(ours["X"], expected["X"])
            assert torch.equal(of_ours["X"], of_expected["X"])
    with pytest.raises(ValueError, match="one stream"):
        loader.load_state_dict({key: one for key, one in state.items() if key != "beside"})


class Recorder(lightning.LightningModule):
    """Notes the cells of each pair."""

    def __init__(self, fails_at=None):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)
        self.seen, self.fails_at = [], fails_at

    def training_step(self, batch, batch_idx):
        if len(self.seen) == self.fails_at:
            raise RuntimeError("interrupted")
        self.seen.append([numbers(one["X"]) for one in batch])
        return self.linear(torch.ones(1, 1)).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def test_a_checkpoint_within_an_epoch_goes_on_with_both_streams(path, tmp_path):
    def trainer(folder, **options):
        return lightning.Trainer(
            accelerator="cpu", default_root_dir=folder, logger=False, enable_progress_bar=False,
            max_epochs=2, limit_val_batches=0, **options,
        )

    def module():
        return semisupervised(path, n_samples_per_label=30)

    whole, first, rest = Recorder(), Recorder(fails_at=13), Recorder()
    trainer(tmp_path / "whole").fit(whole, datamodule=module())
    saving = lightning.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=6, filename="last")
    with pytest.raises(RuntimeError, match="interrupted"):
        trainer(tmp_path, callbacks=[saving]).fit(first, datamodule=module())
    trainer(tmp_path).fit(rest, datamodule=module(), ckpt_path=saving.best_model_path)
    assert first.seen[:12] + rest.seen == whole.seen and len(whole.seen) == 16
    # Other labelled cells in the second epoch.
    assert {*whole.seen[0][1]} != {*whole.seen[8][1]}


def test_ranks_share_labelled_cells(path):
    seen = []
    for rank in range(2):
        module = DataModule(
            cells(path, world=(rank, 2)), unlabeled_category="b", model_name="SCANVI",
            n_samples_per_label=30, fractions=(1.0,), **KIND,
        )
        loader = module.train_dataloader()
        assert len(loader) == N_CELLS // 64 and len(loader.beside) == 1
        seen.append([cell for batch in loader.beside for cell in batch[1]["soma_joinid"].tolist()])
    assert [len(one) for one in seen] == [32, 32] and not {*seen[0]} & {*seen[1]}


# contrastiveVI


def contrastive(path, **options):
    module = DataModule(cells(path), model_name="ContrastiveVI", fractions=(0.8, 0.2), **LANE, **COVARIATES)
    return module, module.model(scvi.external.ContrastiveVI, **CONTRASTIVE, **options)


CONTRASTIVE = {"n_hidden": 16, "n_background_latent": 4, "n_salient_latent": 3}


def both(module):
    """The module, while it trains contrastiveVI."""
    module._contrast = (BACKGROUND, TARGET)
    return module


def test_background_and_target_are_those_of_scvi(path):
    module = both(contrastive(path)[0])
    adata = adata_of()
    model = in_memory(scvi.external.ContrastiveVI, {**LANE, **COVARIATES}, adata, CONTRASTIVE)
    train, kept = (
        np.intersect1d(part.sample_numbers, np.arange(N_CELLS))
        for part in (module.train_dataset, module.validation_dataset)
    )
    splitter = ContrastiveDataSplitter(
        model.adata_manager, BACKGROUND, TARGET, batch_size=32, drop_last=True,
        external_indexing=[train, kept, np.array([], int)],
    )
    splitter.setup()
    ours, theirs = list(pairs_of(module)), list(splitter.train_dataloader())
    assert len(ours) == len(theirs)
    for pairs in (ours, theirs):
        for name, cells_of in (("background", BACKGROUND), ("target", TARGET)):
            batches = [numbers(pair[name]["X"]) for pair in pairs]
            n_distinct = len(np.intersect1d(train, cells_of)) // 32
            assert all(len(batch) == 32 and {*batch} <= {*cells_of} for batch in batches)
            # The shorter one repeats.
            assert batches == [batches[at % n_distinct] for at in range(len(batches))]
            assert len({cell for batch in batches for cell in batch}) == 32 * n_distinct
    validated = [pair for pair in pairs_of(module, module.val_dataloader())]
    expected = list(splitter.val_dataloader())
    assert len(validated) == len(expected)
    for our, their in zip(validated, expected):
        for name in ("background", "target"):
            for key, tensor in their[name].items():
                assert torch.equal(our[name][key], tensor.to(our[name][key].dtype)), key


def test_places_are_those_among_all_experiments(path):
    lanes = adata_of().obs["lane"].to_numpy()
    parts = [cells(path, obs_filter=f"lane == '{lane}'") for lane in ("y", "x")]
    module = DataModule(ExperimentDataset.concat(parts), fractions=(0.8, 0.2), model_name="ContrastiveVI")
    n_first = int((lanes == "y").sum())
    places = np.arange(N_CELLS)
    module._contrast = (places[:n_first], places[n_first:])
    for pair in pairs_of(module):
        assert {*lanes[numbers(pair["background"]["X"])]} == {"y"}
        assert {*lanes[numbers(pair["target"]["X"])]} == {"x"}


@pytest.mark.parametrize("observed", [True, False])
def test_contrastivevi(path, tmp_path, observed):
    options = {**CONTRASTIVE, "use_observed_lib_size": observed, "wasserstein_penalty": 1.0}
    adata = adata_of()
    beside = in_memory(scvi.external.ContrastiveVI, {**LANE, **COVARIATES}, adata, options)
    scvi.settings.seed = 5
    module, model = contrastive(path, use_observed_lib_size=observed, wasserstein_penalty=1.0)
    expected = beside.module.state_dict()
    for key, value in model.module.state_dict().items():
        np.testing.assert_allclose(value.numpy(), expected[key].numpy(), rtol=2e-5, err_msg=key)
    pairs = list(pairs_of(both(module)))
    for pair in pairs:
        loaders = [
            beside._make_data_loader(adata=adata, indices=numbers(pair[name]["X"]), batch_size=32)
            for name in ("background", "target")
        ]
        their = dict(zip(("background", "target"), (next(iter(one)) for one in loaders)))
        losses = []
        for one, tensors in ((model, pair), (beside, their)):
            one.module.eval()
            torch.manual_seed(3)
            losses.append(float(one.module(tensors)[-1].loss))
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    module._contrast = None
    module.train(
        model, background_indices=BACKGROUND, target_indices=TARGET, check_val_every_n_epoch=1, **TRAINED
    )
    assert module._contrast is None
    losses = model.history["train_loss"].to_numpy().ravel()
    assert losses[-1] < losses[0] and len(model.history["validation_loss"]) > 0
    model.save(str(tmp_path / "model"))
    loaded = type(model).load(str(tmp_path / "model"), adata=adata_of(), accelerator="cpu")
    latent = [
        model.module._generic_inference(x=tensors["X"], batch_index=tensors["batch"])["qs_m"]
        for tensors in module.inference_dataloader()
    ]
    np.testing.assert_allclose(
        loaded.get_latent_representation(), torch.cat(latent).detach(), rtol=1e-4, atol=1e-5
    )


def test_what_contrastivevi_cannot_be(path):
    module, model = contrastive(path)
    for background, target, text in [
        ([], TARGET, "background_indices must be places"),
        (BACKGROUND, [N_CELLS], "target_indices must be places of cells from 0 to 329"),
        ([-1], TARGET, "background_indices"),
        (["cell1"], TARGET, "background_indices"),
        (np.setdiff1d(BACKGROUND, module.train_dataset.sample_numbers), TARGET, "no background"),
    ]:
        with pytest.raises(ValueError, match=text):
            module.train(model, background_indices=background, target_indices=target, **TRAINED)


def test_wrong_numbers_of_labelled_cells(path):
    for wrong in (0, -3):
        with pytest.raises(ValueError, match="n_samples_per_label"):
            semisupervised(path, n_samples_per_label=wrong)
