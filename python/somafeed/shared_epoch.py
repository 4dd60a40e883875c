"""The epoch's number in memory that persistent DataLoader workers share with their parent."""

from __future__ import annotations

import multiprocessing
import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt


class SharedEpoch:
    """The current epoch, and the id of the process that set it. torch shares the memory with processes to
    which it is sent, and with forked ones."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        # Read and written without torch, which aborts a program that ends while a daemon thread
        # is within one of its calls (Python before 3.14).
        self._cells: npt.NDArray[np.int64] = memory.numpy()

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedEpoch, (self._memory,)

    @classmethod
    def make(cls, number: int) -> SharedEpoch | None:
        """New shared memory; None in a process without torch, which has no DataLoader."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        memory = torch.tensor([os.getpid(), number], dtype=torch.int64)
        return cls(memory.share_memory_())

    def is_own(self) -> bool:
        """Whether the number is this process's. Ranks that are started with one data set share its
        memory, and each must have its own."""
        return int(self._cells[0]) == os.getpid()

    def write(self, number: int) -> None:
        """Stores the number."""
        self._cells[1] = number

    def read(self) -> int:
        """The number that the parent of this worker has stored.

        Raises:
            RuntimeError: The memory is that of another process.
        """
        parent = multiprocessing.parent_process()
        owner, number = self._cells.tolist()
        if parent is None or parent.pid != owner:
            raise RuntimeError(
                "this worker cannot learn the next epoch's number: make the DataLoader with "
                "experiment_dataloader, or call set_epoch before its workers start"
            )
        return int(number)
