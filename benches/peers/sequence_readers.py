"""Python's ways to feed sequences as words: lists of strings, and arrays of numpy, both in torch's DataLoader.

A batch of tokens has `rows` [B], `lengths` [B, frames] and `words` of all sequences one after
another; a batch of windows has `rows` [B], `n_targets` [B], `targets` [T], `contexts` [T, 2 * context]
and `with_noise` [T, 1 + noise], the target first.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import DataLoader, Dataset

from feeding import SomafeedEpochs
from sequence_store import Store, Task, require_words

Batch = dict[str, torch.Tensor]


class Order:
    """What the current epoch asks for, as a sampler."""

    def __init__(self) -> None:
        self.items: list = []

    def __iter__(self) -> Iterator:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def worker_settings(task: Task) -> dict:
    """Workers stay from epoch to epoch."""
    return {"num_workers": task["workers"], "persistent_workers": True, "worker_init_fn": seed_numpy}


def seed_numpy(_: int) -> None:
    """Gives numpy's generator the seed that torch gave to this worker, so that workers draw different noise."""
    np.random.seed(torch.initial_seed() % 2**32)


class Lists:
    """Each worker makes single sequences of lists of strings."""

    def __init__(self, task: Task) -> None:
        require_words(task)
        self.store = Store(task["store"])
        self.order = Order()
        sequences = ListSequences(self.store, task)
        settings = worker_settings(task) | {"collate_fn": put_together}
        self.loader = DataLoader(sequences, batch_size=task["batch"], sampler=self.order, **settings)

    def epoch(self, rows: list[int]) -> Iterator[Batch]:
        self.order.items = rows
        return iter(self.loader)


class ListSequences(Dataset):
    """Sequences whose words are strings until they are numbered by a dictionary."""

    def __init__(self, store: Store, task: Task) -> None:
        self.store, self.task = store, task
        self.numbers = {word: number for number, word in enumerate(task["words"])}
        weights = np.power(np.array(task["counts"], dtype=np.float64), 0.75)
        self.probabilities = weights / weights.sum()

    def __len__(self) -> int:
        return len(self.store)

    def noise(self) -> list[int]:
        """The noise of one target."""
        return np.random.choice(len(self.probabilities), self.task["n_noise"], p=self.probabilities).tolist()

    def frames(self, text: str) -> list[list[str]]:
        k, stride = self.task["k"], self.task["stride"]
        if len(text) < k:
            return [[] for _ in range(self.task["n_frames"])]
        padding = k * self.task["padding"]
        text = "X" * padding + text + "Y" * padding
        starts = (range(first, len(text) - k + 1, stride) for first in range(self.task["n_frames"]))
        return [[text[start : start + k] for start in of_frame] for of_frame in starts]

    def __getitem__(self, row: int) -> Batch:
        frames = self.frames(self.store.text(row))
        if self.task["form"] == "tokens":
            words = [self.numbers[word] for frame in frames for word in frame]
            return {
                "rows": torch.tensor([row]),
                "lengths": torch.tensor([[len(frame) for frame in frames]]),
                "words": torch.tensor(words, dtype=torch.int64),
            }
        context = self.task["context"]
        targets, contexts, with_noise = [], [], []
        for frame in frames:
            for place in range(context, len(frame) - context):
                around = frame[place - context : place] + frame[place + 1 : place + context + 1]
                target = self.numbers[frame[place]]
                targets.append(target)
                contexts.append([self.numbers[word] for word in around])
                with_noise.append([target, *self.noise()])
        return {
            "rows": torch.tensor([row]),
            "n_targets": torch.tensor([len(targets)]),
            "targets": torch.tensor(targets, dtype=torch.int64),
            "contexts": torch.tensor(contexts, dtype=torch.int64).reshape(-1, 2 * context),
            "with_noise": torch.tensor(with_noise, dtype=torch.int64).reshape(-1, 1 + self.task["n_noise"]),
        }


def put_together(samples: list[Batch]) -> Batch:
    """Puts sequences of any lengths together, end to end."""
    return {key: torch.cat([sample[key] for sample in samples]) for key in samples[0]}


class Arrays:
    """Each worker makes a whole batch by numpy."""

    def __init__(self, task: Task) -> None:
        require_words(task)
        self.store, self.batch = Store(task["store"]), task["batch"]
        self.order = Order()
        batches = ArrayBatches(self.store, task)
        self.loader = DataLoader(batches, batch_size=None, sampler=self.order, **worker_settings(task))

    def epoch(self, rows: list[int]) -> Iterator[Batch]:
        self.order.items = [rows[at : at + self.batch] for at in range(0, len(rows), self.batch)]
        return iter(self.loader)


class ArrayBatches(Dataset):
    """Whole batches: sequences of the same length are a matrix, whose words are numbered by a table of all codes.

    Sequences of a batch come in the order of their lengths.
    """

    def __init__(self, store: Store, task: Task) -> None:
        self.store, self.task = store, task
        letters = sorted(set("".join(task["words"])) | set("XY"))
        # All other letters have one code more, which no word has.
        self.bits = len(letters).bit_length()
        self.codes = np.full(256, len(letters), dtype=np.int32)
        self.codes[[ord(letter) for letter in letters]] = range(len(letters))
        words = np.array([[ord(letter) for letter in word] for word in task["words"]], dtype=np.intp)
        self.words = np.full(1 << (self.bits * task["k"]), -1, dtype=np.int32)
        self.words[self.word_codes(self.codes[words])[:, 0]] = range(len(words))
        self.columns = alias_table(np.power(np.array(task["counts"], dtype=np.float64), 0.75))
        self.random: np.random.Generator | None = None

    def __len__(self) -> int:
        return len(self.store)

    def word_codes(self, codes: np.ndarray) -> np.ndarray:
        """The code of the word that begins at each column of the letters' codes [n, length]."""
        k = self.task["k"]
        n_words = codes.shape[1] - k + 1
        of_words = codes[:, :n_words].copy()
        for at in range(1, k):
            of_words <<= self.bits
            of_words |= codes[:, at : at + n_words]
        return of_words

    def __getitem__(self, rows: list[int]) -> Batch:
        rows = np.array(rows)
        lengths = self.store.ends[rows] - self.store.starts[rows]
        parts = [self.of_length(rows[lengths == length], int(length)) for length in np.unique(lengths)]
        return {key: torch.from_numpy(np.concatenate([part[key] for part in parts])) for key in parts[0]}

    def of_length(self, rows: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """The words of sequences of one length."""
        frames = self.frames(rows, length)
        if self.task["form"] == "tokens":
            lengths = np.array([frame.shape[1] for frame in frames], dtype=np.int64)
            words = np.concatenate(frames, axis=1)
            return {"rows": rows, "lengths": np.tile(lengths, (len(rows), 1)), "words": words.ravel()}
        context = self.task["context"]
        width = 2 * context + 1
        windows = [sliding_window_view(frame, width, axis=1) for frame in frames if width <= frame.shape[1]]
        empty = np.empty((len(rows), 0, width), dtype=np.int32)
        together = np.concatenate([empty, *windows], axis=1)
        n_targets = np.full(len(rows), together.shape[1])
        together = together.reshape(-1, width)
        targets = together[:, context]
        around = np.concatenate([together[:, :context], together[:, context + 1 :]], axis=1)
        with_noise = np.concatenate([targets[:, None], self.noise(len(targets))], axis=1)
        return {
            "rows": rows,
            "n_targets": n_targets,
            "targets": np.ascontiguousarray(targets),
            "contexts": around,
            "with_noise": with_noise,
        }

    def frames(self, rows: np.ndarray, length: int) -> list[np.ndarray]:
        """The words of each frame: [rows, words]."""
        k, stride, n_frames = self.task["k"], self.task["stride"], self.task["n_frames"]
        if length < k:
            return [np.empty((len(rows), 0), dtype=np.int32) for _ in range(n_frames)]
        padding = k * self.task["padding"]
        padded = np.empty((len(rows), length + 2 * padding), dtype=np.int32)
        padded[:, :padding] = self.codes[ord("X")]
        padded[:, padding + length :] = self.codes[ord("Y")]
        places = self.store.starts[rows][:, None] + np.arange(length)
        padded[:, padding : padding + length] = self.codes[self.store.letters[places]]
        words = self.words[self.word_codes(padded)]
        if words.min() < 0:
            row, place = np.argwhere(words < 0)[0]
            raise ValueError(f"sequence {rows[row]} has a word that is not in the vocabulary at {place - padding}")
        return [words[:, first::stride] for first in range(n_frames)]

    def noise(self, n_targets: int) -> np.ndarray:
        """Words drawn by the alias method: [targets, noise]."""
        if self.random is None:
            self.random = np.random.default_rng(torch.initial_seed())
        own, other = self.columns
        shape = (n_targets, self.task["n_noise"])
        columns = self.random.integers(len(own), size=shape, dtype=np.int32)
        return np.where(self.random.random(shape, dtype=np.float32) < own[columns], columns, other[columns])


class Somafeed(SomafeedEpochs):
    """somafeed's own package, whose threads cut and number words.

    In place of `lengths` and `words` a batch has `offsets`, where each frame begins, and `input_ids`;
    in place of `n_targets` and `with_noise`, `sequences`, the sequence of each target, and
    `targets_and_noise`.
    """

    def __init__(self, task: Task) -> None:
        from somafeed import Kmers, SequenceDataset, Windows

        self.store, self.is_check = Store(task["store"]), task["check"]
        self.has_windows = task["form"] == "windows"
        dataset = SequenceDataset(
            task["store"],
            Kmers(task["k"], stride=task["stride"], frames=task["n_frames"], padding=task["padding"]),
            batch_size=task["batch"],
            io_batch_size=task["chunk"] * task["chunks_per_block"],
            shuffle=task["shuffled"],
            shuffle_chunk_size=task["chunk"],
            seed=task["seed"],
            windows=Windows(task["context"], task["n_noise"]) if self.has_windows else None,
            form="torch",
            number_samples=True,
            threads=task["workers"],
        )
        super().__init__(dataset, "rows")

    def numbered(self, asked: list[int], batch: Batch) -> Batch:
        batch = super().numbered(asked, batch)
        return batch | self.checked(batch) if self.is_check else batch

    def checked(self, batch: Batch) -> Batch:
        """What the other ways name and count otherwise."""
        if self.has_windows:
            return {"n_targets": (batch["sequences"] == batch["rows"][:, None]).sum(dim=1)}
        lengths = batch["offsets"].diff().reshape(-1, self.dataset.vocabulary.kmers.frames)
        return {"lengths": lengths, "words": batch["input_ids"]}


def alias_table(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of each column that is its own word's, and the word that has the rest (Vose 1991)."""
    shares = weights / weights.sum() * len(weights)
    own, other = np.ones(len(shares), dtype=np.float32), np.arange(len(shares), dtype=np.int32)
    small = [word for word, share in enumerate(shares) if share < 1]
    large = [word for word, share in enumerate(shares) if 1 <= share]
    while small and large:
        less, more = small.pop(), large[-1]
        own[less], other[less] = shares[less], more
        shares[more] -= 1 - shares[less]
        if shares[more] < 1:
            small.append(large.pop())
    return own, other
