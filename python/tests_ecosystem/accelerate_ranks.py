"""Trains with Accelerate, started by torchrun.

Usage: accelerate_ranks.py URI FOLDER
"""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from programs import N_GENES, dataset


def main(uri, folder):
    accelerator = Accelerator(cpu=True)
    # Rank and world size are the launcher's, so the data set itself is not prepared.
    ds = dataset(uri)
    model = torch.nn.Linear(N_GENES, 2)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
    lines = []
    for epoch in range(2):
        ds.set_epoch(epoch)
        for X, obs in ds:
            optimizer.zero_grad()
            accelerator.backward(model(torch.log1p(X)).square().mean())
            optimizer.step()
            joinids = obs["soma_joinid"].tolist()
            lines.append({"stage": "train", "epoch": epoch, "joinids": joinids})
    for _, obs in ds.in_order():
        lines.append({"stage": "predict", "epoch": 0, "joinids": obs["soma_joinid"].tolist()})
    path = Path(folder) / f"rank-{accelerator.process_index}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
