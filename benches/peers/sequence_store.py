"""A store of sequences, as `sequences import` writes it, in memory that is mapped.

`letters` has the letters of all sequences one after another, `letter-ends` the end of each as an
unsigned number of 64 bits.
"""

from pathlib import Path
from typing import Any

import numpy as np

Task = dict[str, Any]


class Store:
    """Sequences by their number."""

    def __init__(self, folder: str) -> None:
        path = Path(folder)
        self.letters = np.memmap(path / "letters", dtype=np.uint8, mode="r")
        ends = np.fromfile(path / "letter-ends", dtype="<u8").astype(np.int64)
        self.starts, self.ends = np.concatenate([[0], ends[:-1]]), ends

    def __len__(self) -> int:
        return len(self.ends)

    def text(self, row: int) -> str:
        """The letters of a sequence."""
        return self.letters[self.starts[row] : self.ends[row]].tobytes().decode("ascii")

    def n_letters(self, rows: list[int]) -> int:
        """The letters of all these sequences."""
        return int((self.ends[rows] - self.starts[rows]).sum())


def require_words(task: Task) -> None:
    """Fails if X or Y, which stand for padding in the text of words, may be letters, too."""
    counted = (word for word, count in zip(task["words"], task["counts"], strict=True) if 0 < count)
    if 0 < task["padding"] and set("".join(counted)) & set("XY"):
        raise ValueError("sequences have the letters X or Y, which stand for padding here: take padding 0")
