"""The epoch's number in memory that persistent DataLoader workers share with their parent."""

from __future__ import annotations

import sys
from typing import Any


class SharedEpoch:
    """An epoch's number, and how often it was set. torch shares it when it pickles for a worker."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    @classmethod
    def make(cls) -> SharedEpoch | None:
        """New shared memory; None in a process without torch, which has no DataLoader."""
        torch = sys.modules.get("torch")
        return None if torch is None else cls(torch.zeros(2, dtype=torch.int64).share_memory_())

    def write(self, generation: int, epoch: int) -> None:
        """Stores the epoch, after its number of changes."""
        self._cells[1] = epoch
        self._cells[0] = generation

    def read(self) -> tuple[int, int]:
        """Number of changes, and the epoch."""
        generation, epoch = self._cells.tolist()
        return generation, epoch
