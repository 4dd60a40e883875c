"""`Doc2Vec`: vectors of sequences and of their words, trained on the processor."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.kmers import Kmers, Vocabulary
from somafeed.sequence_stores import Store
from somafeed.sequences import SequenceDataset
from somafeed.settings import at_least_0, checked_seed, names_of, number, positive, shown

_log = logging.getLogger("somafeed.doc2vec")

Vector = npt.NDArray[np.float32]


class NamedVectors:
    """Vectors with names, with the attributes and methods that gensim's `KeyedVectors` have.

    >>> vectors = NamedVectors(["a", "b", "c"], np.array([[1, 0], [2, 0.5], [0, 1]], np.float32))
    >>> [name for name, _ in vectors.most_similar("a")]
    ['b', 'c']
    """

    def __init__(self, names: Sequence[str], vectors: npt.NDArray[Any]) -> None:
        """Takes the vectors of these names, row by row.

        Raises:
            ValueError: There are not as many vectors as names.
        """
        self.index_to_key = list(names)
        """The names in the order of the rows."""
        self.vectors: Vector = np.ascontiguousarray(vectors, np.float32)
        """The vectors: names x dimension."""
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.index_to_key):
            shape = self.vectors.shape
            raise ValueError(f"{len(self.index_to_key)} names have no vectors of shape {shape}")
        self.key_to_index = {name: row for row, name in enumerate(self.index_to_key)}
        """The row of each name."""
        self._unit: Vector | None = None

    @property
    def vector_size(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.index_to_key)

    def __contains__(self, name: object) -> bool:
        return name in self.key_to_index

    def __getitem__(self, names: str | Sequence[str]) -> Vector:
        """The vector of a name, or those of several as rows.

        Raises:
            KeyError: A name has none.
        """
        if isinstance(names, str):
            vector: Vector = self.vectors[self.key_to_index[names]]
            return vector
        return self.vectors[[self.key_to_index[name] for name in names]]

    def most_similar(
        self, positive: str | npt.NDArray[Any], topn: int = 10
    ) -> list[tuple[str, float]]:
        """The names whose vectors have the largest cosine with that of a name, without itself, or
        with a vector."""
        if self._unit is None:
            self._unit = _at_length_1(self.vectors)
        row = self.key_to_index[positive] if isinstance(positive, str) else None
        vector = self._unit[row] if row is not None else _at_length_1(np.atleast_2d(positive))[0]
        cosines = self._unit @ vector.astype(np.float32)
        order = np.argsort(-cosines, kind="stable")
        nearest = order[order != (-1 if row is None else row)][: at_least_0("topn", topn)]
        return [(self.index_to_key[at], float(cosines[at])) for at in nearest]

    def similarity(self, one: str, other: str) -> float:
        """The cosine of the angle between the vectors of two names."""
        a, b = _at_length_1(self[[one, other]])
        return float(a @ b)

    def save_word2vec_format(self, path: str | os.PathLike[str], binary: bool = False) -> None:
        """Writes word2vec's text or binary form, which gensim's
        `KeyedVectors.load_word2vec_format` reads.

        Raises:
            ValueError: A name has white space, which the form cannot hold.
        """
        native.write_word2vec(os.fspath(path), self._plain(), bool(binary))

    def to_gensim(self) -> Any:
        """The vectors as gensim's `KeyedVectors`.

        Raises:
            ModuleNotFoundError: gensim is not installed.
        """
        from gensim.models import KeyedVectors

        keyed = KeyedVectors(self.vector_size)
        keyed.add_vectors(self.index_to_key, self.vectors)
        return keyed

    def _plain(self) -> tuple[list[str], Vector, int]:
        return self.index_to_key, self.vectors.ravel(), self.vector_size

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_unit": None}

    def __repr__(self) -> str:
        return f"NamedVectors({len(self)} of length {self.vector_size})"


def _at_length_1(vectors: npt.NDArray[Any]) -> Vector:
    """The vectors at length 1. One of zeros has no direction and stays zero."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class TrainedWords:
    """The words of a trained model, by which vectors are inferred."""

    vocabulary: Vocabulary
    inputs: Vector
    outputs: Vector


class Doc2Vec:
    """Learns a vector for each sequence and for each word, so that similar sequences have similar
    vectors (Le and Mikolov 2014), on the processor.

    Arguments have gensim's names. Two defaults differ, because k-mers are few and frequent:
    `min_count=1` and `sample=0`.

    The result is the same for the same seed and number of workers.
    """

    def __init__(
        self,
        documents: SequenceDataset | Store | None = None,
        *,
        kmers: Kmers | Vocabulary | None = None,
        vector_size: int = 100,
        window: int = 5,
        negative: int = 5,
        epochs: int = 10,
        dm: int = 1,
        dm_mean: int = 1,
        alpha: float = 0.025,
        min_alpha: float = 0.0001,
        min_count: int = 1,
        sample: float = 0.0,
        ns_exponent: float = 0.75,
        shrink_windows: bool = True,
        workers: int = 3,
        seed: int = 1,
    ) -> None:
        """Trains on documents, if they are given; otherwise `train` does.

        Args:
            documents: A data set with words, of which all sequences are trained on; or a store.
            kmers: The words of a store; None means `Kmers()`.
            vector_size: Length of a vector, 1 to 512.
            window: Words at each side that predict a word, with `dm=1`. With `kmers` that have less
                padding, words at the ends of a sequence have fewer.
            negative: Words of noise for each word.
            epochs: Passes over all sequences.
            dm: 1 predicts a word from its sequence and the words around it (PV-DM), 0 from the
                sequence alone (PV-DBOW).
            dm_mean: 1 takes the mean of their vectors, 0 the sum.
            alpha: Learning rate at the beginning, which falls linearly.
            min_alpha: Learning rate at the end.
            min_count: Words that occur less often are left out.
            sample: Threshold above which frequent words are left out at random; 0 leaves none out.
            ns_exponent: Noise is drawn in proportion to the counts of words to this power.
            shrink_windows: Whether each word draws its window, from 1 to `window`.
            workers: Threads that train.
            seed: Seed of the order, the first vectors and the noise.

        Raises:
            ValueError: A setting is out of range, or the loss is not a number any more.
        """
        self._settings: dict[str, Any] = {
            "vector_size": positive("vector_size", vector_size),
            "window": positive("window", window),
            "negative": positive("negative", negative),
            "epochs": positive("epochs", epochs),
            "dm": bool(dm),
            "dm_mean": bool(dm_mean),
            "shrink_windows": bool(shrink_windows),
            "alpha": number("alpha", alpha),
            "min_alpha": number("min_alpha", min_alpha),
            "sample": number("sample", sample),
            "ns_exponent": number("ns_exponent", ns_exponent),
            "workers": positive("workers", workers),
            "seed": checked_seed(seed),
        }
        self.min_count = at_least_0("min_count", min_count)
        self.losses: list[float] = []
        """The mean loss of a word in each epoch."""
        self._vectors: tuple[NamedVectors, NamedVectors] | None = None
        self._words: TrainedWords | None = None
        self._inference: native.Doc2VecInference | None = None
        if documents is not None:
            self.train(documents, kmers=kmers)

    @property
    def vector_size(self) -> int:
        """Length of a vector."""
        return int(self._settings["vector_size"])

    @property
    def epochs(self) -> int:
        """Passes over all sequences."""
        return int(self._settings["epochs"])

    @property
    def dv(self) -> NamedVectors:
        """The vectors of the sequences, by their names."""
        return self._trained()[0]

    @property
    def wv(self) -> NamedVectors:
        """The vectors of the words."""
        return self._trained()[1]

    def _trained(self) -> tuple[NamedVectors, NamedVectors]:
        if self._vectors is None:
            raise ValueError("the model was not trained: call train")
        return self._vectors

    def train(
        self, documents: SequenceDataset | Store, *, kmers: Kmers | Vocabulary | None = None
    ) -> Self:
        """Trains anew, on all sequences of a data set with words, or of a store.

        Ctrl-C ends it within a second; the model then is as before.

        Raises:
            ValueError: The data set has no words.
        """
        if not isinstance(documents, SequenceDataset):
            documents = SequenceDataset(documents, kmers or Kmers())
        elif kmers is not None:
            raise ValueError("the data set has its words: leave kmers out")
        vocabulary = self._frequent(documents.vocabulary)
        sequences = documents._samples.opened
        names = sequences.names()
        # The counts of another store's words would let the learning rate fall too soon or too late.
        n_words = int(vocabulary.counts.sum()) if documents._is_counted else None
        settings = {**self._settings, "n_words": n_words}
        trainer = native.Doc2VecTrainer(sequences, vocabulary._native, settings)
        losses = []
        for epoch in range(self.epochs):
            begun = time.monotonic()
            n_sequences, n_words, loss = trainer.epoch(epoch)
            losses.append(loss)
            secs = max(time.monotonic() - begun, 1e-9)
            _log.info(
                "epoch %d of %d: loss %.4f a word, %.0f words/s, %.0f sequences/s",
                epoch + 1, self.epochs, loss, n_words / secs, n_sequences / secs,
            )
        of_documents, inputs, outputs = trainer.vectors()
        of_words = inputs if self._settings["dm"] else outputs
        self.losses = losses
        self._vectors = (
            NamedVectors(names, of_documents.reshape(-1, self.vector_size)),
            NamedVectors(vocabulary.words, of_words.reshape(-1, self.vector_size)),
        )
        self._words = TrainedWords(vocabulary, inputs, outputs)
        self._inference = None
        return self

    def infer_vector(
        self,
        sequence: str,
        alpha: float | None = None,
        min_alpha: float | None = None,
        epochs: int | None = None,
    ) -> Vector:
        """The vector of a sequence, of training or another, like gensim's `infer_vector`: it begins
        with small random numbers and is trained on the sequence's words, whose own vectors stay as
        they are. It depends on the seed and the sequence alone.

        Args:
            sequence: Its letters, cut into words like those of training.
            alpha: Learning rate of the first epoch; None means that of training.
            min_alpha: Learning rate of the last epoch; None means that of training.
            epochs: Passes over the sequence; None means as many as in training. A sequence alone has
                few words, so more give a vector that is less random.

        Raises:
            ValueError: A setting is out of range, a word is unknown (see `Kmers`), or the model was
                not trained by this class.
        """
        vector: Vector = self.infer_vectors([sequence], alpha, min_alpha, epochs)[0]
        return vector

    def infer_vectors(
        self,
        sequences: Sequence[str],
        alpha: float | None = None,
        min_alpha: float | None = None,
        epochs: int | None = None,
    ) -> Vector:
        """The vectors of sequences, a row for each, by as many threads as `workers`: each is that of
        `infer_vector`.

        Raises:
            TypeError: It is one text in place of several.
            ValueError: Like `infer_vector`.
        """
        settings = self._settings
        rows = self._inferring().infer(
            names_of("sequences", sequences),
            positive("epochs", settings["epochs"] if epochs is None else epochs),
            number("alpha", settings["alpha"] if alpha is None else alpha),
            number("min_alpha", settings["min_alpha"] if min_alpha is None else min_alpha),
            settings["workers"],
        )
        return rows.reshape(-1, self.vector_size)

    def _inferring(self) -> native.Doc2VecInference:
        self._trained()
        if self._words is None:
            raise ValueError(
                "a file has only the vectors of this model, not what scores words: infer with the "
                "model that was trained, which can be pickled"
            )
        if self._inference is None:
            settings = {**self._settings, "n_words": None}
            words = self._words
            self._inference = native.Doc2VecInference(
                words.vocabulary._native, settings, words.inputs, words.outputs
            )
        return self._inference

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inference": None}

    def _frequent(self, vocabulary: Vocabulary) -> Vocabulary:
        """The words that occur `min_count` times."""
        n = vocabulary._native.n_counted
        words, counts = vocabulary.words[:n], vocabulary.counts[:n]
        kept = counts >= self.min_count
        if kept.all():
            return vocabulary
        if not kept.any():
            raise ValueError(f"no word occurs min_count={self.min_count} times")
        kmers = vocabulary.kmers
        if kmers.unknown == "fail":
            kmers = replace(kmers, unknown="skip")
        return Vocabulary(kmers, [words[at] for at in np.flatnonzero(kept)], counts[kept].tolist())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vectors to a safetensors file, which the command `sequences train` writes,
        too."""
        of_documents, of_words = self._trained()
        native.write_embeddings(os.fspath(path), of_documents._plain(), of_words._plain())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote: a model with these vectors, and otherwise default settings.

        Raises:
            ValueError: It is another file.
        """
        read = native.read_embeddings(os.fspath(path))
        loaded = [
            NamedVectors(names, vectors.reshape(len(names), size))
            for names, vectors, size in (read["documents"], read["words"])
        ]
        model = cls(vector_size=loaded[0].vector_size)
        model._vectors = loaded[0], loaded[1]
        return model

    def __repr__(self) -> str:
        of = "not trained" if self._vectors is None else f"{len(self.dv)} sequences"
        return f"Doc2Vec({of}, vectors of length {shown(self.vector_size)})"


__all__ = ["Doc2Vec", "NamedVectors"]
