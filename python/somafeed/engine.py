"""`EngineSettings`: the engine's settings, which samples of every kind have."""

from __future__ import annotations

from typing import TypedDict

from somafeed.device import Device
from somafeed.loaders import OnError, Remainder
from somafeed.samplings import Sample


class EngineSettings(TypedDict, total=False):
    """The engine's settings, which samples of every kind have: keyword arguments of each data set.

    >>> import numpy as np, somafeed
    >>> class Squares:
    ...     n_rows = 1_000
    ...     def read(self, rows):
    ...         return {"y": rows**2}
    >>> settings: EngineSettings = {"memory": "1GiB", "remainder": "drop"}
    >>> ds = somafeed.SourceDataset(Squares(), batch_size=64, **settings)
    >>> len(ds)
    15
    """

    memory: int | str | None
    """Limit for blocks, batches and reading: bytes, or like `"2GiB"`. Each process has this much,
    and so each DataLoader worker. By default there is none."""
    world: tuple[int, int] | None
    """`(rank, world size)`. By default, torch.distributed is asked, then the launcher's
    variables."""
    remainder: Remainder | None
    """What becomes of samples that do not fill a global batch of `batch_size` times world size:
    `"keep"` delivers a short batch, `"drop"` leaves them out of this epoch, `"pad"` repeats others.
    None, the default, means `"keep"` for one rank and `"drop"` for several, whose batches must be
    equally many."""
    sampling: Sample | None
    """Which samples an epoch has, if not each once: `WithReplacement`, and by columns of labels, where
    a kind has them, `Weighted`, `ClassBalanced`, `Stratified`, `AtMostPerClass`, `GroupBatches` or
    `Hierarchical`."""
    ramp_blocks: int
    """Number of smaller blocks at the start of an epoch, so that the first batch is there sooner: each
    has half as many samples as the next, and the first full one has `io_batch_size`. The first
    batches are drawn from fewer samples. By default 0."""
    on_error: OnError
    """What happens if samples cannot be read: `"raise"`, the default, ends the epoch with the error.
    `"skip"` leaves them out, warns, and counts and names them in `stats()`. Their batches are shorter,
    even empty, so that all ranks have equally many batches. It is still an error if the storage cannot
    be reached, if no sample can be read, or if more than a tenth of a rank's samples, and at least
    100, fail one after another. Of images, a batch also lists the names in `"skipped"`, and an image
    that has no file is found only when it is read."""
    device: Device | None
    """The device of a batch's tensors, for example `"cuda"`; None, the default, means the processor's
    memory. They are copied from pinned memory while the model works on the batch before; dense X of
    cells (`form="torch"`) travels as CSR and becomes dense there. Not in a DataLoader's workers."""


__all__ = ["EngineSettings"]
