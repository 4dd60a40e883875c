"""Trains with Accelerate, started by torchrun.

Usage: accelerate_ranks.py KIND PATH FOLDER
"""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from kinds import KINDS


def main(name, path, folder):
    kind = KINDS[name]
    accelerator = Accelerator(cpu=True)
    # Rank and world size are the launcher's, so the data set itself is not prepared.
    ds = kind.dataset(path)
    model = torch.nn.Linear(kind.n_features, 2)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
    lines = []
    for epoch in range(2):
        ds.set_epoch(epoch)
        for batch in ds:
            optimizer.zero_grad()
            accelerator.backward(model(kind.features(batch)).square().mean())
            optimizer.step()
            lines.append({"stage": "train", "epoch": epoch, "numbers": kind.numbers(batch)})
    for batch in ds.in_order():
        lines.append({"stage": "predict", "epoch": 0, "numbers": kind.numbers(batch)})
    path = Path(folder) / f"rank-{accelerator.process_index}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
