"""Hugging Face's tokenizers as a way to feed sequences: its threads cut frames into words and number them."""

import os
from collections.abc import Iterator

import numpy as np
import torch

from sequence_store import Store, Task, require_words


class Threads:
    """Tokenises the frames of a batch at once."""

    def __init__(self, task: Task) -> None:
        if task["form"] != "tokens" or task["stride"] != task["k"]:
            raise ValueError("tokenizers makes tokens of words that do not overlap, no windows")
        require_words(task)
        # Read when its threads start.
        os.environ["RAYON_NUM_THREADS"] = str(task["workers"])
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers

        self.store, self.task = Store(task["store"]), task
        numbers = {word: number for number, word in enumerate(task["words"])}
        self.tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
        pattern = Regex(f".{{{task['k']}}}")
        self.tokenizer.pre_tokenizer = pre_tokenizers.Split(pattern, behavior="isolated")

    def epoch(self, rows: list[int]) -> Iterator[dict[str, torch.Tensor]]:
        batch = self.task["batch"]
        return (self.batch(rows[at : at + batch]) for at in range(0, len(rows), batch))

    def batch(self, rows: list[int]) -> dict[str, torch.Tensor]:
        frames = [frame for row in rows for frame in self.frames(self.store.text(row))]
        encoded = self.tokenizer.encode_batch_fast(frames, add_special_tokens=False)
        words = [of_frame.ids for of_frame in encoded]
        lengths = np.array([len(of_frame) for of_frame in words]).reshape(len(rows), -1)
        return {
            "rows": torch.tensor(rows),
            "lengths": torch.from_numpy(lengths),
            "words": torch.from_numpy(np.concatenate([np.array(of_frame, dtype=np.int64) for of_frame in words])),
        }

    def frames(self, text: str) -> list[str]:
        """The padded sequence from each frame's first letter on, without letters that fill no word."""
        k = self.task["k"]
        padding = k * self.task["padding"]
        padded = "X" * padding + text + "Y" * padding if k <= len(text) else ""
        starts = range(self.task["n_frames"])
        return [padded[first : first + (max(len(padded) - first, 0) // k) * k] for first in starts]
