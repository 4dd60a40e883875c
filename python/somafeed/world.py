"""The place of this process among those that train together, and among a DataLoader's workers."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from somafeed import _somafeed as native
from somafeed.settings import integer, positive, shown


def current_world() -> tuple[int, int]:
    """Rank and world size: those of torch.distributed if it is initialised, otherwise the
    launcher's (`RANK` and `WORLD_SIZE`, or the variables of Slurm and MPI), otherwise `(0, 1)`.

    Raises:
        ValueError: Only one of a launcher's variables is set, or they contradict each other.
    """
    # Not imported for this: a process that has not imported torch has not initialised it.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return native.world_from_environment()


def current_worker() -> tuple[int, int] | None:
    """Number of this DataLoader worker and how many there are; None outside of a worker."""
    data = sys.modules.get("torch.utils.data")
    info = None if data is None else data.get_worker_info()
    return None if info is None else (info.id, info.num_workers)


def checked_world(world: tuple[int, int]) -> tuple[int, int]:
    """Rank and world size, if they fit together.

    Raises:
        TypeError: They are not two integers.
        ValueError: The rank is not below the world size.
    """
    if isinstance(world, str) or not isinstance(world, Sequence) or len(world) != 2:
        raise TypeError(f"world must be (rank, world size), not {shown(world)}")
    rank, size = integer("the rank", world[0]), positive("the world size", world[1])
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is not one of {size}: world is (rank, world size)")
    return rank, size
