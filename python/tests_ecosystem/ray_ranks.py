"""Trains with Ray Train: two workers on this machine, with the rank that Ray's context says.

Usage: ray_ranks.py KIND PATH FOLDER
"""

import json
import sys
from pathlib import Path

import ray
import ray.train
import torch
from kinds import KINDS
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model


def train(config):
    """What each worker runs."""
    context = ray.train.get_context()
    rank, world_size = context.get_world_rank(), context.get_world_size()
    kind = KINDS[config["kind"]]
    ds = kind.dataset(config["path"], world=(rank, world_size))
    model = prepare_model(torch.nn.Linear(kind.n_features, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lines = []
    for epoch in range(2):
        ds.set_epoch(epoch)
        for batch in ds:
            optimizer.zero_grad()
            model(kind.features(batch)).square().mean().backward()
            optimizer.step()
            lines.append({"stage": "train", "epoch": epoch, "numbers": kind.numbers(batch)})
        ray.train.report({"epoch": epoch})
    for batch in ds.in_order():
        lines.append({"stage": "predict", "epoch": 0, "numbers": kind.numbers(batch)})
    path = Path(config["folder"]) / f"rank-{rank}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def main(name, path, folder):
    # Workers find this folder's modules and the package as this process does.
    paths = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": paths})
    try:
        trainer = TorchTrainer(
            train, train_loop_config={"kind": name, "path": path, "folder": folder},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=ray.train.RunConfig(storage_path=folder),
        )
        trainer.fit()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
