"""Compares batches on a device with those in the processor's memory, while copies or the model's
work are late, with several iterators at once, and after one that ended early.
"""

import json
from functools import cache
from itertools import islice

import torch


class Busy:
    """Work that makes a GPU late; does nothing on the CPU.

    A batch that is used before its copy has ended shows up behind `copy`, memory that is used again
    too early behind `compute`.
    """

    def __init__(self, device: str):
        self.on_gpu = device != "cpu"
        if self.on_gpu:
            torch.cuda.set_device(device)
            self.host = torch.ones(128 << 20, dtype=torch.uint8).pin_memory()
            self.there = torch.empty_like(self.host, device=device)
            self.stream = torch.cuda.Stream()

    def copy(self) -> None:
        """Queues a copy of 2 ms or more, which the next batch's copies follow."""
        if self.on_gpu:
            with torch.cuda.stream(self.stream):
                self.there.copy_(self.host, non_blocking=True)

    def compute(self, milliseconds: float = 2) -> None:
        """Queues a kernel, which the model's work follows."""
        if self.on_gpu:
            torch.cuda._sleep(int(2e6 * milliseconds))


@cache
def busy_on(device: str) -> Busy:
    return Busy(device)


def nothing() -> None:
    pass


# Comparing


def leaves(batch, name: str = "batch"):
    """The tensors and other entries of a batch, with names that say where they are."""
    if isinstance(batch, dict):
        batch = batch.items()
    elif isinstance(batch, tuple):
        batch = enumerate(batch)
    else:
        yield name, batch
        return
    for key, part in batch:
        yield from leaves(part, f"{name}[{key!r}]")


def cloned(batch):
    if isinstance(batch, dict):
        return {name: cloned(part) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(cloned(part) for part in batch)
    return batch.clone() if isinstance(batch, torch.Tensor) else batch


def parts(tensor) -> list:
    """The dense tensors of a tensor, and what they are together."""
    if tensor.layout is torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values(), tensor.to_dense()]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values(), tensor.to_dense()]
    return [tensor]


def assert_equal(found, wanted, device: str, tolerance: float = 0) -> None:
    """Fails if a batch on the device differs from one in the processor's memory: by anything, or
    in floating point by more than the relative and absolute tolerance."""
    found, wanted = dict(leaves(found)), dict(leaves(wanted))
    assert list(found) == list(wanted), f"{list(found)}, not {list(wanted)}"
    for name, right in wanted.items():
        one = found[name]
        if not isinstance(right, torch.Tensor):
            assert one == right, f"{name}: {one!r:.200}, not {right!r:.200}"
            continue
        kind, expected = ((of.layout, of.dtype, of.shape) for of in (one, right))
        assert kind == expected, f"{name}: {kind}, not {expected}"
        assert one.device == torch.device(device), f"{name} is on {one.device}"
        for part, of_right in zip(parts(one), parts(right)):
            differs = part.cpu() != of_right
            if tolerance and of_right.is_floating_point():
                differs = ~part.cpu().isclose(of_right, tolerance, tolerance)
            assert not differs.any(), (
                f"{name}: {int(differs.sum())} of {differs.numel()} values differ, first at "
                f"{differs.nonzero()[0].tolist()}: {part.cpu()[differs][:3].tolist()}, not "
                f"{of_right[differs][:3].tolist()}"
            )


def assert_all_equal(
    situation: str, found: list, wanted: list, device: str, tolerance: float = 0
) -> int:
    assert len(found) == len(wanted), f"{situation}: {len(found)} batches, not {len(wanted)}"
    for idx, (one, right) in enumerate(zip(found, wanted)):
        try:
            assert_equal(one, right, device, tolerance)
        except AssertionError as error:
            raise AssertionError(f"{situation}, batch {idx} of {len(wanted)}: {error}") from None
    return len(found)


# Situations


class Interruption(Exception):
    """An error of the user's code."""


def compare(name: str, make, device: str) -> None:
    """Compares the batches of `make(device=device)` with those of `make()`."""
    print(f"{name}:", flush=True)
    busy, n_compared = busy_on(device), 0
    plain, sent = make(), make(device=device)

    def of(dataset, epoch: int):
        dataset.set_epoch(epoch)
        return iter(dataset)

    wanted = [list(of(plain, epoch)) for epoch in (0, 1)]

    def check(situation: str, found, epoch: int = 0, n_batches: int | None = None) -> None:
        nonlocal n_compared
        n_compared += assert_all_equal(
            f"{name}, {situation}", list(found), wanted[epoch][:n_batches], device
        )

    for epoch in (0, 1):
        busy.compute(20)
        check("all kept while a kernel holds the stream", of(sent, epoch), epoch)
    # In turn, so that memory which is used again has had other values.
    for epoch, situation, before, after in (
        (0, "late copies", busy.copy, nothing),
        (1, "late kernels", nothing, busy.compute),
        (0, "late copies and kernels", busy.copy, busy.compute),
    ):
        check(situation, used_and_dropped(of(sent, epoch), before, after), epoch)
    # Two data sets, and then two iterators of one.
    for other in (make(device=device), sent):
        busy.compute(20)
        first = of(sent, 0)
        # An iterator takes the epoch that is set when its first batch is asked for.
        of_first, of_second = [next(first)], []
        for batch in of(other, 1):
            of_second.append(batch)
            of_first += islice(first, 1)
        check("two at once, the first", of_first, 0)
        check("two at once, the second", of_second, 1)
    kept = []
    try:
        for batch in of(sent, 0):
            busy.compute()
            kept.append(batch)
            if len(kept) == 2:
                raise Interruption
    except Interruption:
        del batch
    iterator = of(sent, 0)
    kept += islice(iterator, 3)
    busy.compute(20)
    del iterator
    check("behind epochs that ended early", of(sent, 1), 1)
    check("kept from an epoch that failed", kept[:2], 0, 2)
    check("kept from a dropped iterator", kept[2:], 0, 3)
    check("handed over by DLPack", (handed_over(b, busy) for b in islice(of(sent, 0), 3)), 0, 3)
    print(json.dumps({"compared": name, "batches": n_compared}), flush=True)


def used_and_dropped(batches, before, after):
    """Copies of the batches, made on the model's stream; each batch is gone before the next."""
    while True:
        before()
        batch = next(batches, None)
        if batch is None:
            return
        after()
        yield cloned(batch)
        del batch


def handed_over(batch, busy: Busy):
    """A copy of a batch, whose dense tensors another library took over: CuPy, on a stream of its
    own, if it is there and the batch is on a GPU, otherwise torch itself."""
    busy.compute()
    try:
        import cupy
    except ImportError:
        cupy = None

    def taken(tensor):
        if tensor.layout is not torch.strided:
            return tensor
        if not tensor.is_cuda or cupy is None or tensor.dtype is torch.bool:
            return torch.from_dlpack(tensor).clone()
        with cupy.cuda.Stream(non_blocking=True) as stream:
            copy = cupy.from_dlpack(tensor).copy()
            stream.synchronize()
        return torch.from_dlpack(copy)

    def mapped(part):
        if isinstance(part, dict):
            return {name: mapped(one) for name, one in part.items()}
        if isinstance(part, tuple):
            return tuple(map(mapped, part))
        return taken(part) if isinstance(part, torch.Tensor) else part

    return mapped(batch)
