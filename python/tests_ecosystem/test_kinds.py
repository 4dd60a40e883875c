"""Lightning over samples of every kind: parts, a checkpoint within an epoch, predictions."""

import lightning.pytorch as lightning
import numpy as np
import pytest
import torch
from kinds import KINDS
from somafeed import SourceDataset
from somafeed.lightning import DataModule, PredictionWriter


class Model(lightning.LightningModule):
    def __init__(self, kind, fails_at=None):
        super().__init__()
        self.kind, self.fails_at, self.numbers = kind, fails_at, []
        self.linear = torch.nn.Linear(kind.n_features, 1)

    def training_step(self, batch, batch_idx):
        if len(self.numbers) == self.fails_at:
            raise RuntimeError("interrupted")
        self.numbers.append(self.kind.numbers(batch))
        return self.linear(self.kind.features(batch)).square().mean()

    def predict_step(self, batch, batch_idx):
        numbers = torch.tensor(self.kind.numbers(batch))
        return {"number": numbers, "twice": self.kind.features(batch) * 2}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trainer(folder, **options):
    torch.manual_seed(0)
    return lightning.Trainer(
        accelerator="cpu", default_root_dir=folder, logger=False, enable_progress_bar=False, **options
    )


def opened(kind, **options):
    """What describes a kind, and a data set of it."""
    name, path = kind
    return KINDS[name], KINDS[name].dataset(path, **options)


def test_parts_and_epochs(kind, tmp_path):
    of_kind, dataset = opened(kind)
    module, model = DataModule(dataset, fractions=(0.8, 0.2)), Model(of_kind)
    trainer(tmp_path, max_epochs=2).fit(model, datamodule=module)
    trained = module.train_dataset.sample_numbers.tolist()
    kept = module.validation_dataset.sample_numbers.tolist()
    assert sorted(trained + kept) == list(range(of_kind.n_samples))
    epochs = np.array_split(np.arange(len(model.numbers)), 2)
    numbers = [sum((model.numbers[step] for step in epoch), []) for epoch in epochs]
    assert numbers[0] != numbers[1]
    assert [sorted(epoch) for epoch in numbers] == [trained, trained]
    assert [of_kind.numbers(batch) for batch in module.val_dataloader()] == [
        kept[start : start + 20] for start in range(0, len(kept), 20)
    ]


def test_a_checkpoint_within_an_epoch_goes_on(kind, tmp_path):
    of_kind, dataset = opened(kind, batch_size=8)
    _, again = opened(kind, batch_size=8)
    whole = Model(of_kind)
    trainer(tmp_path / "whole", max_epochs=2).fit(whole, datamodule=DataModule(dataset))
    first = Model(of_kind, fails_at=12)
    saving = lightning.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=5, filename="last")
    with pytest.raises(RuntimeError, match="interrupted"):
        trainer(tmp_path, max_epochs=2, callbacks=[saving]).fit(first, datamodule=DataModule(again))
    _, last = opened(kind, batch_size=8)
    rest = Model(of_kind)
    trainer(tmp_path, max_epochs=2).fit(
        rest, datamodule=DataModule(last), ckpt_path=saving.best_model_path
    )
    assert first.numbers[:10] + rest.numbers == whole.numbers


def predictions(folder, model, module):
    """The arrays that are written."""
    writer = PredictionWriter(folder / "predicted")
    trainer(folder, callbacks=[writer]).predict(model, datamodule=module, return_predictions=False)
    return {file.stem: np.load(file) for file in (folder / "predicted").glob("*.npy")}


def test_predictions_are_in_the_samples_order(kind, tmp_path):
    of_kind, dataset = opened(kind)
    found = predictions(tmp_path, Model(of_kind), DataModule(dataset, inference_batch_size=16))
    number = "soma_joinid" if kind[0] == "cells" else "sample"
    assert sorted(found) == sorted(["number", number, "twice"])
    assert found[number].tolist() == found["number"].tolist() == list(range(of_kind.n_samples))
    [whole] = opened(kind, shuffle=False, batch_size=of_kind.n_samples, io_batch_size=1_000)[1]
    np.testing.assert_array_equal(found["twice"], of_kind.features(whole) * 2)


class Damaged:
    """Samples of which some cannot be read."""

    n_rows = 60
    damaged = {17, 18, 40, *range(48, 56)}

    def read(self, rows):
        if self.damaged & set(rows.tolist()):
            raise KeyError("this row is damaged")
        return {"x": rows.astype(np.float32)[:, None]}


@pytest.mark.filterwarnings("ignore:.* was skipped:RuntimeWarning")
def test_predictions_lack_the_samples_that_were_skipped(tmp_path):
    dataset = SourceDataset(Damaged(), batch_size=8, seed=1, form="torch", on_error="skip")

    class Twice(lightning.LightningModule):
        def predict_step(self, batch, batch_idx):
            return batch["x"] * 2

    found = predictions(tmp_path, Twice(), DataModule(dataset))
    kept = [row for row in range(60) if row not in Damaged.damaged]
    assert found["sample"].tolist() == kept
    assert found["predictions"].tolist() == [[2.0 * row] for row in kept]
