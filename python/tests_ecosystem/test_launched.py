"""Ray Train and Accelerate: two ranks on this machine train from one data set of each kind."""

import pytest
from kinds import KINDS
from programs import recorded, run

LAUNCHERS = {
    "ray_ranks.py": (),
    "accelerate_ranks.py": ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
}


@pytest.mark.parametrize("program", LAUNCHERS)
def test_two_ranks(kind, tmp_path, program):
    name, path = kind
    of_kind = KINDS[name]
    run(program, name, path, tmp_path, launcher=LAUNCHERS[program])
    by_rank = recorded(tmp_path, "train")
    assert len(by_rank) == 2
    for rank, lines in enumerate(by_rank):
        alone = of_kind.dataset(path, world=(rank, 2))
        expected = []
        for epoch in range(2):
            alone.set_epoch(epoch)
            expected += [(epoch, of_kind.numbers(batch)) for batch in alone]
        assert [(line["epoch"], line["numbers"]) for line in lines] == expected
    for epoch in range(2):
        lines = [line for of_rank in by_rank for line in of_rank if line["epoch"] == epoch]
        numbers = [number for line in lines for number in line["numbers"]]
        assert len(set(numbers)) == len(numbers) == of_kind.n_samples // 40 * 40
    predicted = [line["numbers"] for of_rank in recorded(tmp_path, "predict") for line in of_rank]
    assert sum(predicted, []) == list(range(of_kind.n_samples))
