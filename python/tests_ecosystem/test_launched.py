"""Ray Train and Accelerate: two ranks on this machine train from one experiment."""

import pytest
from programs import N_CELLS, dataset, recorded, run

LAUNCHERS = {
    "ray_ranks.py": (),
    "accelerate_ranks.py": ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
}


@pytest.mark.parametrize("program", LAUNCHERS)
def test_two_ranks(uri, tmp_path, program):
    run(program, uri, tmp_path, launcher=LAUNCHERS[program])
    by_rank = recorded(tmp_path, "train")
    assert len(by_rank) == 2
    for rank, lines in enumerate(by_rank):
        alone = dataset(uri, world=(rank, 2))
        expected = []
        for epoch in range(2):
            alone.set_epoch(epoch)
            expected += [(epoch, obs["soma_joinid"].tolist()) for _, obs in alone]
        assert [(line["epoch"], line["joinids"]) for line in lines] == expected
    for epoch in range(2):
        lines = [line for of_rank in by_rank for line in of_rank if line["epoch"] == epoch]
        joinids = [joinid for line in lines for joinid in line["joinids"]]
        assert len(set(joinids)) == len(joinids) == N_CELLS // 40 * 40
    predicted = [line["joinids"] for of_rank in recorded(tmp_path, "predict") for line in of_rank]
    assert sum(predicted, []) == list(range(N_CELLS))
