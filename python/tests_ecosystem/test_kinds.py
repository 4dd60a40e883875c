"""Lightning over samples of other kinds than cells: parts, a checkpoint within an epoch, predictions."""

import lightning.pytorch as lightning
import numpy as np
import pytest
import torch
from somafeed import SourceDataset
from somafeed.lightning import DataModule, PredictionWriter

N_ROWS = 203


class Lines:
    """Points of a line, with the numbers of their rows."""

    n_rows = N_ROWS

    def read(self, rows):
        x = np.sin(rows).astype(np.float32)
        return {"x": x[:, None], "y": 3 * x + 1, "row": rows}


def lines(**options):
    return SourceDataset(
        Lines(), batch_size=8, io_batch_size=32, seed=4, form="torch", **options
    )


class Model(lightning.LightningModule):
    def __init__(self, fails_at=None):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        self.rows, self.fails_at = [], fails_at

    def training_step(self, batch, batch_idx):
        if len(self.rows) == self.fails_at:
            raise RuntimeError("interrupted")
        self.rows.append(batch["row"].tolist())
        return torch.nn.functional.mse_loss(self.line(batch["x"])[:, 0], batch["y"])

    def predict_step(self, batch, batch_idx):
        return {"row": batch["row"], "twice": batch["x"] * 2}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(folder, **options):
    torch.manual_seed(0)
    return lightning.Trainer(
        accelerator="cpu", default_root_dir=folder, logger=False, enable_progress_bar=False, **options
    )


def test_parts_and_epochs(tmp_path):
    module, model = DataModule(lines(), fractions=(0.8, 0.2)), Model()
    trainer(tmp_path, max_epochs=2).fit(model, datamodule=module)
    trained = module.train_dataset.sample_numbers.tolist()
    kept = module.validation_dataset.sample_numbers.tolist()
    assert sorted(trained + kept) == list(range(N_ROWS))
    epochs = np.array_split(np.arange(len(model.rows)), 2)
    rows = [sum((model.rows[step] for step in epoch), []) for epoch in epochs]
    assert rows[0] != rows[1]
    assert [sorted(epoch) for epoch in rows] == [trained, trained]
    assert [batch["row"].tolist() for batch in module.val_dataloader()] == [
        kept[start : start + 8] for start in range(0, len(kept), 8)
    ]


def test_a_checkpoint_within_an_epoch_goes_on(tmp_path):
    whole = Model()
    trainer(tmp_path / "whole", max_epochs=2).fit(whole, datamodule=DataModule(lines()))
    first = Model(fails_at=12)
    saving = lightning.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=5, filename="last")
    with pytest.raises(RuntimeError, match="interrupted"):
        trainer(tmp_path, max_epochs=2, callbacks=[saving]).fit(
            first, datamodule=DataModule(lines())
        )
    rest = Model()
    trainer(tmp_path, max_epochs=2).fit(
        rest, datamodule=DataModule(lines()), ckpt_path=saving.best_model_path
    )
    assert first.rows[:10] + rest.rows == whole.rows


def test_predictions_are_in_the_samples_order(tmp_path):
    writer = PredictionWriter(tmp_path / "predicted")
    module = DataModule(lines(), inference_batch_size=16)
    trainer(tmp_path, callbacks=[writer]).predict(
        Model(), datamodule=module, return_predictions=False
    )
    predicted = {file.stem: np.load(file) for file in (tmp_path / "predicted").glob("*.npy")}
    assert sorted(predicted) == ["row", "sample", "twice"]
    assert predicted["sample"].tolist() == predicted["row"].tolist() == list(range(N_ROWS))
    np.testing.assert_array_equal(predicted["twice"], Lines().read(np.arange(N_ROWS))["x"] * 2)
