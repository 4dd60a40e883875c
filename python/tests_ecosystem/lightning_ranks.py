"""Trains a small model with Lightning and records the cells of each step.

Usage: lightning_ranks.py URI FOLDER JSON, where JSON has the options of `main`.
"""

import json
import os
import signal
import sys
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint, OnExceptionCheckpoint
from programs import N_GENES, dataset
from somafeed.lightning import DataModule, PredictionWriter


class Model(LightningModule):
    """A linear model with a layer whose buffers ranks exchange."""

    def __init__(self, folder, killed_at=None, fails_at=None):
        super().__init__()
        self.folder = Path(folder)
        self.killed_at, self.fails_at = killed_at, fails_at
        self.norm = torch.nn.BatchNorm1d(N_GENES)
        self.linear = torch.nn.Linear(N_GENES, 2)

    def record(self, stage, obs, batch_idx):
        line = {
            "stage": stage, "epoch": self.current_epoch, "step": self.global_step,
            "batch_idx": batch_idx, "joinids": obs["soma_joinid"].tolist(),
        }
        with open(self.folder / f"rank-{self.global_rank}.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    def loss(self, X):
        return self.linear(self.norm(torch.log1p(X))).square().mean()

    def training_step(self, batch, batch_idx):
        X, obs = batch
        if self.global_step == self.killed_at and self.global_rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.global_step == self.fails_at:
            raise RuntimeError("failed in the middle of a step")
        self.record("train", obs, batch_idx)
        return self.loss(X)

    def validation_step(self, batch, batch_idx):
        X, obs = batch
        self.record("validate", obs, batch_idx)
        self.log("loss", self.loss(X), sync_dist=True)

    def test_step(self, batch, batch_idx):
        self.record("test", batch[1], batch_idx)

    def predict_step(self, batch, batch_idx):
        X, obs = batch
        self.record("predict", obs, batch_idx)
        return {"sum": X.sum(1), "pair": torch.stack([X[:, 0], X[:, 1]], 1)}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main(
    uri, folder, *, devices=1, epochs=3, resume=None, every_n_steps=None, killed_at=None,
    fails_at=None, stage="fit", cells=None, module=None, predict_fewer=None, **of_trainer,
):
    warnings.filterwarnings("ignore")
    seed_everything(1, verbose=False)
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    callbacks = [PredictionWriter(folder / "predictions")]
    if every_n_steps is not None:
        callbacks.append(
            ModelCheckpoint(
                folder, filename="{step}", every_n_train_steps=every_n_steps, save_top_k=-1,
                save_on_train_epoch_end=False,
            )
        )
    if fails_at is not None:
        callbacks.append(OnExceptionCheckpoint(folder, "failed"))
    trainer = Trainer(
        accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto",
        max_epochs=epochs, logger=False, callbacks=callbacks, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0,
        enable_checkpointing=every_n_steps is not None or fails_at is not None, **of_trainer,
    )
    model = Model(folder, killed_at, fails_at)
    predict = None
    if predict_fewer is not None:
        predict = dataset(uri, obs_joinids=predict_fewer, form="torch")
    data = DataModule(dataset(uri, **(cells or {})), predict=predict, **(module or {}))
    if stage == "fit":
        trainer.fit(model, data, ckpt_path=resume, weights_only=True if resume else None)
        if trainer.is_global_zero:
            torch.save(model.state_dict(), folder / "weights.pt")
    elif stage == "test":
        trainer.test(model, data, verbose=False)
    else:
        trainer.predict(model, data, return_predictions=False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    main(sys.argv[1], sys.argv[2], **json.loads(sys.argv[3]))
