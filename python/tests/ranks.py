"""The program of each rank in `test_torchrun`: all ranks take a step at each batch."""

import os
import sys

import torch
import torch.distributed as dist
from somafeed import ExperimentDataset, experiment_dataloader


def joinids_of_epoch(ds, n_workers):
    """Joinids of this rank's batches; all ranks take a step at each."""
    context = "spawn" if n_workers else None
    loader = experiment_dataloader(ds, num_workers=n_workers, multiprocessing_context=context)
    found = []
    for X, obs in loader:
        step = torch.from_numpy(X).sum().reshape(1)
        dist.all_reduce(step)
        found += obs["soma_joinid"].tolist()
    return found


def gathered(joinids):
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, joinids)
    return every


def main(uri):
    # Before the process group: the data set asks for its rank when it needs it.
    ds = ExperimentDataset(uri=uri, batch_size=5, seed=3, remainder="pad")
    dist.init_process_group("gloo")
    orders = []
    for epoch in range(3):
        ds.set_epoch(epoch)
        # Workers that are not forked do not know of the process group.
        n_workers = 1 if epoch == 1 and dist.get_world_size() == 2 else 0
        every = gathered(joinids_of_epoch(ds, n_workers))
        assert len({len(joinids) for joinids in every}) == 1, every
        assert sorted(sum(every, [])) == list(range(100)), every
        orders.append(every)
    assert orders[0] != orders[1]
    # A rank may leave an epoch early, if all do.
    for _, _ in zip(range(2), ds):
        dist.barrier()
    train, test = ds.random_split(0.6, 0.4, seed=1)
    for part, n in ((train, 60), (test, 40)):
        assert len(set(sum(gathered(joinids_of_epoch(part, 0)), []))) == n
    if dist.get_rank() == 0:
        print(dist.get_world_size(), "ranks agree")
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    assert "RANK" in os.environ
    main(sys.argv[1])
