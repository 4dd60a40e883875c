"""Words of sequences: how they are cut, their vocabulary, and what batches have of letters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.sequence_stores import STORE_TYPES, Stores, open_stores
from somafeed.settings import at_least_0, number, positive, shown
from somafeed.stores import named_stores

Unknown: TypeAlias = Literal["fail", "skip", "word"]
"""What becomes of a word that the vocabulary lacks: an error, left out, or one word for all."""


@dataclass(frozen=True)
class Kmers:
    """How a sequence is cut into words of `k` letters.

    The sequence is first padded with `padding` words at each end. Frame `f` has the words that begin
    at the letters `f`, `f + stride`, `f + 2 * stride` and so on. The default has words that do not
    overlap, in all frames.

    >>> Kmers(6, stride=1, padding=0).frames
    1
    """

    k: int = 4
    stride: int | None = None
    """Letters from a word to the next of its frame; None means `k`."""
    frames: int | None = None
    """Number of frames, which begin one letter after the other; None means as many as the stride
    has letters."""
    padding: int = 3
    """Words of padding at each end of a sequence: context for the first and the last words."""
    unknown: Unknown = "fail"
    alphabet: str | None = None
    """The letters of words; None means all that occur in the store."""
    fold_case: bool = False
    """Whether both cases of a letter are the same one."""

    def __post_init__(self) -> None:
        stride = positive("stride", self.k if self.stride is None else self.stride)
        object.__setattr__(self, "k", positive("k", self.k))
        object.__setattr__(self, "stride", stride)
        frames = stride if self.frames is None else self.frames
        object.__setattr__(self, "frames", positive("frames", frames))
        object.__setattr__(self, "padding", at_least_0("padding", self.padding))
        if self.alphabet is not None and not isinstance(self.alphabet, str):
            raise TypeError(f"alphabet must be a text, not {shown(self.alphabet)}")


@dataclass(frozen=True)
class Windows:
    """Each word with the words around it, and with words of noise, as Doc2Vec learns from them.

    Noise depends on the data set's seed, the epoch and the sequence, not on batches, ranks or
    workers.
    """

    context: int = 3
    """Words at each side. A word with fewer neighbours in its frame is no target."""
    n_noise: int = 5
    """Words of noise for each target."""
    exponent: float = 0.75
    """Noise is drawn in proportion to the counts of words to this power."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", positive("context", self.context))
        object.__setattr__(self, "n_noise", at_least_0("n_noise", self.n_noise))
        object.__setattr__(self, "exponent", number("exponent", self.exponent))


@dataclass(frozen=True)
class OneHot:
    """A one among zeros for each letter. Other letters, such as N, have zeros alone."""

    alphabet: str | None = None
    """The letters in the order of the columns; None means all of the store, ascending."""
    fold_case: bool = False
    """Whether both cases of a letter are the same one."""


class Vocabulary:
    """Words of `k` letters, numbered from 0: the most frequent first, then words with padding, then
    the unknown word, if there is one."""

    def __init__(self, kmers: Kmers, words: Sequence[str], counts: Sequence[int]) -> None:
        """The vocabulary of words with these counts, which may come in any order.

        Raises:
            ValueError: A word has other letters than the alphabet, or another number of them.
        """
        if kmers.alphabet is None:
            kmers = replace(kmers, alphabet="".join(sorted(set("".join(words)))))
        self.kmers = kmers
        self._native = native.KmerVocabulary(asdict(kmers), list(words), counts)

    @classmethod
    def count(
        cls,
        store: Stores,
        kmers: Kmers | None = None,
        *,
        threads: int = 2,
        config: Mapping[str, Any] | None = None,
    ) -> Self:
        """Counts the words of a store, or of several together.

        Raises:
            ValueError: A sequence has a letter that the alphabet lacks, and `unknown` is `"fail"`.
        """
        _, listed = named_stores(store, STORE_TYPES)
        return cls._count(open_stores(listed, config), kmers or Kmers(), threads)

    @classmethod
    def _count(cls, sequences: native.Sequences, kmers: Kmers, threads: int) -> Self:
        counted = sequences.count_words(asdict(kmers), threads=positive("threads", threads))
        self = cls.__new__(cls)
        self.kmers, self._native = replace(kmers, alphabet=counted.alphabet), counted
        return self

    @property
    def words(self) -> list[str]:
        """The words in the order of their numbers. Padding is `X` before a sequence and `Y` after
        it, the unknown word is `<unk>`."""
        return self._native.texts()

    @property
    def counts(self) -> npt.NDArray[np.uint64]:
        """How often each word occurs; 0 for those with padding and the unknown word."""
        return self._native.counts()

    def encode(self, sequence: str) -> list[npt.NDArray[np.int64]]:
        """The numbers of a sequence's words, an array for each frame.

        Raises:
            ValueError: A word is unknown, and `unknown` is `"fail"`.
        """
        return [np.array(frame, np.int64) for frame in self._native.encode(sequence)]

    def to_json(self) -> str:
        """The vocabulary as a text, to be saved with a model."""
        n = self._native.n_counted
        return json.dumps(
            {
                "format": "somafeed k-mer vocabulary",
                "version": 1,
                "kmers": asdict(self.kmers),
                "words": self.words[:n],
                "counts": self.counts[:n].tolist(),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` made.

        Raises:
            ValueError: It is something else.
        """
        try:
            saved = json.loads(text)
            if (saved["format"], saved["version"]) != ("somafeed k-mer vocabulary", 1):
                raise ValueError(f"its version is {shown(saved['version'])}")
            return cls(Kmers(**saved["kmers"]), saved["words"], saved["counts"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not a saved vocabulary: {error}") from error

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words of {self.kmers.k} letters {self.kmers.alphabet})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)
