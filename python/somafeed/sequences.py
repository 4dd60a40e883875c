"""`SequenceDataset`: DNA, RNA and other sequences in shuffled batches, for PyTorch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import array_maker, required
from somafeed.engine import EngineSettings
from somafeed.labels import Labels
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.settings import at_least_0, names_of, number, positive, shown
from somafeed.sources import parameters
from somafeed.stores import STORE, OfStore, named_stores
from somafeed.tokens import Integers, Layout

SequenceForm: TypeAlias = Literal["numpy", "torch"]
"""The form of arrays in a batch: `numpy.ndarray`, or `torch.Tensor` over the same memory."""

SequenceBatch: TypeAlias = dict[str, Any]
"""What a batch has of its sequences: arrays or tensors.

| entry | shape | values |
|---|---|---|
| `input_ids` | (words,), or (sequences, width) | numbers of words, `integers` |
| `offsets` | (sequences x frames + 1,) | int64: where each frame begins in ragged `input_ids` |
| `attention_mask` | (sequences, width) | bool: False where rows are filled up |
| `length` | (sequences,) | int64: words of each row |
| `letters` | (letters,), or (sequences, width) | uint8: ASCII, 0 where rows are filled up |
| `one_hot` | like `letters`, then the alphabet | float32: a one for the letter |
| `letter_offsets`, `letter_length` | | int64: like `offsets` (of sequences) and `length` |
| `sequences`, `targets` | (targets,) | of windows: the number of the sequence, and the word |
| `contexts` | (targets, 2 x context) | the words around the target |
| `targets_and_noise` | (targets, 1 + n_noise) | the target, then noise |
| `name` | | a list of the sequences' names |
| `sample` | (sequences,) | int64: the numbers of the sequences in the store, or in all of them |
| `store` | (sequences,) | int64: the numbers of the sequences' stores, if there are several |
"""

Unknown: TypeAlias = Literal["fail", "skip", "word"]
"""What becomes of a word that the vocabulary lacks: an error, left out, or one word for all."""

FORMS: tuple[SequenceForm, ...] = ("numpy", "torch")
_WORDS = ("input_ids", "sequences", "targets", "contexts", "targets_and_noise")


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


@dataclass(frozen=True)
class SequenceServers:
    """Redis or Valkey servers with a store of sequences."""

    addresses: Sequence[str] = field(repr=False)
    """Addresses like `redis://host:7000`, or `rediss://user:password@host` with TLS. One node of a
    cluster is enough. Characters of a password that mean something in an address are written as `%`
    and two digits (`%40` for `@`)."""
    namespace: str = "sequences"
    """The name of the data set among the keys of the servers."""
    retry_for: float = 60.0
    """Seconds for which a key may fail, for example while a replica takes over."""
    root_certificates: bytes | None = field(default=None, repr=False)
    """Certificates that sign those of the servers, in PEM; None means those of the system."""

    def __post_init__(self) -> None:
        addresses = [self.addresses] if isinstance(self.addresses, str) else self.addresses
        object.__setattr__(self, "addresses", names_of("addresses", addresses))
        object.__setattr__(self, "retry_for", number("retry_for", self.retry_for))

    def fill(
        self,
        store: str | os.PathLike[str],
        *,
        sequences_per_key: int = 1,
        config: Mapping[str, Any] | None = None,
    ) -> int:
        """Copies a store to the servers, as far as they do not have it, and returns its number of
        sequences. Each value of the servers has `sequences_per_key` of them.

        Raises:
            FileExistsError: The namespace has another data set.
            ConnectionError: The servers cannot be reached.
        """
        per_key = positive("sequences_per_key", sequences_per_key)
        return native.fill_sequence_servers(
            os.fspath(store), self._plain(), config=parameters(config or {}),
            sequences_per_key=per_key,
        )

    def _plain(self) -> dict[str, Any]:
        return {
            "addresses": list(self.addresses),
            "namespace": self.namespace,
            "retry_secs": self.retry_for,
            "root_certificates": self.root_certificates,
        }


Store: TypeAlias = "str | os.PathLike[str] | SequenceServers"
"""A folder or an address of a store, the address of a server (`redis://`), or servers."""


Stores: TypeAlias = "Store | Sequence[Store] | Mapping[str, Store]"
"""A store, a list of several, or several by their names."""

_STORE_TYPES = (str, os.PathLike, SequenceServers)


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
        _, listed = named_stores(store, _STORE_TYPES)
        return cls._count(_opened(listed, config), kmers or Kmers(), threads)

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


def import_sequences(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    store: str | os.PathLike[str],
    *,
    skip_empty: bool = False,
    skip_doubled: bool = False,
) -> dict[str, Any]:
    """Writes the sequences of files to a new store, a folder that appears when it is complete.

    Args:
        files: FASTA, FASTQ, or lines of letters, a comma and a name; plain, or compressed by gzip,
            bgzip, bzip2 or zstd.
        store: The folder, which must not exist.
        skip_empty: Whether records without letters are left out.
        skip_doubled: Whether all but the first of several records with one name are left out.

    Returns:
        `n_sequences`, `n_letters`, `n_bytes` of the store, `n_empty` and `n_doubled` that were left
        out, and the `formats` of the files.

    Raises:
        ValueError: A record cannot be used; the message names the line.
        FileExistsError: The folder exists.
        OSError: A file cannot be read or written.
    """
    listed = [files] if isinstance(files, str | os.PathLike) else list(files)
    return native.import_sequences(
        [os.fspath(one) for one in listed], os.fspath(store), skip_empty=bool(skip_empty),
        skip_doubled=bool(skip_doubled),
    )


def _opened(stores: list[Store], config: Mapping[str, Any] | None) -> native.Sequences:
    return native.Sequences([_described(one) for one in stores], config=parameters(config or {}))


def _described(store: Store) -> str | dict[str, Any]:
    if isinstance(store, str) and store.startswith(("redis://", "rediss://", "valkey://")):
        store = SequenceServers([store])
    return store._plain() if isinstance(store, SequenceServers) else os.fspath(store)


class Sequences(OpenedSamples[native.Sequences]):
    """Sequences of a store. Pickled as a description: each process opens its own."""

    def __init__(self, stores: Stores, config: Mapping[str, Any] | None) -> None:
        """Opens the stores.

        Raises:
            FileNotFoundError: One is not there.
        """
        names, self._stores = named_stores(stores, _STORE_TYPES)
        self._config = dict(config or {})
        self.stores = OfStore.of(names, self.opened.sizes())
        self.labels = Labels({} if self.stores is None else {STORE: self.stores})

    def _open_all(self) -> native.Sequences:
        return _opened(self._stores, self._config)


class SequenceDataset(OpenedDataset[SequenceBatch, Sequences]):
    """Sequences of a store in shuffled batches: a dictionary of arrays (see `SequenceBatch`).

    Native threads read sequences, cut them into words and make batches ahead, so a DataLoader needs
    no workers. A batch belongs to the user: it may be changed and kept, nothing overwrites it.
    """

    _noun = "sequences"

    def __init__(
        self,
        store: Stores,
        kmers: Kmers | Vocabulary | None = None,
        batch_size: int = 64,
        io_batch_size: int = 4096,
        shuffle: bool = True,
        shuffle_chunk_size: int = 16,
        seed: int | None = None,
        use_eager_fetch: bool = True,
        *,
        windows: Windows | None = None,
        one_hot: OneHot | None = None,
        letters: bool | None = None,
        names: bool = False,
        layout: Layout = "ragged",
        max_length: int | None = None,
        pad: int | None = None,
        integers: Integers = "int32",
        form: SequenceForm = "numpy",
        number_samples: bool = False,
        threads: int = 2,
        config: Mapping[str, Any] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        """Opens the store, and counts its words if there is no vocabulary.

        Args:
            store: A folder or an address in an object store, as `import_sequences` writes it, or
                servers (`redis://host:7000`, `SequenceServers`). A list of several, or a dictionary
                of them by names, gives the sequences of the first, then those of the second and so
                on. A batch then has the entry `"store"`, the number of each sequence's store, and
                the column `store`, for splits and `sampling`, has its name.
            kmers: How sequences are cut into words, whose vocabulary is counted over all
                stores; or a vocabulary, for example that of a trained model.
            batch_size: Sequences of a batch; the last may have fewer.
            io_batch_size: Sequences that are read, and shuffled, together; a multiple of
                `shuffle_chunk_size` if shuffled.
            shuffle: Whether sequences come in an order drawn from `seed` and the epoch's number;
                otherwise they come in the order of the store.
            shuffle_chunk_size: Neighbouring sequences that are read together.
            seed: From 0 to 2^64 - 1. None draws one, which several ranks may not do.
            use_eager_fetch: Whether blocks and batches are made ahead, in threads.
            windows: Gives each word with its context and noise in place of `input_ids`.
            one_hot: Gives `one_hot`.
            letters: Whether batches have letters. None means only if they have neither words nor
                `one_hot`.
            names: Whether batches have the names of sequences.
            layout: `"ragged"`: sequences follow one another, and offsets say where each begins.
                `"longest"`: rows as long as the batch's longest sequence. `"padded"`: rows of
                `max_length` words or letters; longer sequences are cut.
            max_length: Length of the rows of `layout="padded"`.
            pad: The number that fills up rows of words. None means that after the last word.
            integers: The type of words' numbers. int32 needs no copy; torch's losses take int64.
            form: The form of arrays in a batch.
            number_samples: Whether a batch has the entry `"sample"`, the numbers of its sequences.
            threads: Threads that read sequences and cut them into words.
            config: Settings of an object store, by TileDB's names.
            **engine: The engine's settings: see `EngineSettings`.

        Raises:
            ValueError: Arguments that do not fit together; a letter that the alphabet lacks.
            TypeError: An argument of another type.
            FileNotFoundError: There is no store.
            ConnectionError: Servers cannot be reached.
            OSError: The storage cannot be read.
        """
        super().__init__(
            batch_size=batch_size,
            io_batch_size=io_batch_size,
            shuffle=shuffle,
            shuffle_chunk_size=shuffle_chunk_size,
            seed=seed,
            use_eager_fetch=use_eager_fetch,
            form=form,
            **engine,
        )
        for name, value, choices in (
            ("form", form, FORMS),
            ("integers", integers, ("int32", "int64")),
            ("layout", layout, ("padded", "longest", "ragged")),
        ):
            if value not in choices:
                raise ValueError(f"unknown {name} {shown(value)}; there are {', '.join(choices)}")
        if not isinstance(kmers, Kmers | Vocabulary | None):
            raise TypeError(f"kmers must be Kmers or a Vocabulary, not {shown(kmers)}")
        if not isinstance(windows, Windows | None):
            raise TypeError(f"windows must be Windows, not {shown(windows)}")
        if not isinstance(one_hot, OneHot | None):
            raise TypeError(f"one_hot must be OneHot, not {shown(one_hot)}")
        if (layout == "padded") != (max_length is not None):
            raise ValueError("layout='padded' and max_length need each other")
        if pad is not None and (kmers is None or layout == "ragged"):
            raise ValueError("pad fills up rows of words: give kmers, and a layout with rows")
        if windows is not None and kmers is None:
            raise ValueError("windows are made of words: give kmers, too")
        if form == "torch":
            required("torch", "form='torch'")
        self.form: SequenceForm = form
        self.integers: Integers = integers
        self.number_samples = bool(number_samples)
        self.threads = positive("threads", threads)
        self._letters = kmers is None and one_hot is None if letters is None else bool(letters)
        self._entries: dict[str, Any] = {
            "letters": self._letters,
            "names": bool(names),
            "one_hot": one_hot and (one_hot.alphabet, one_hot.fold_case),
            "windows": windows and (windows.context, windows.n_noise, windows.exponent),
            "layout": layout,
            "max_length": None if max_length is None else positive("max_length", max_length),
            "pad": None if pad is None else at_least_0("pad", pad, bits=31),
        }
        self._opened_samples = Sequences(store, config)
        self._vocabulary = kmers if isinstance(kmers, Vocabulary) else None
        self._is_counted = isinstance(kmers, Kmers)
        if isinstance(kmers, Kmers):
            self._vocabulary = Vocabulary._count(self._samples.opened, kmers, self.threads)
        # Now, so that settings that do not fit are an error here.
        self._with_entries(self.seed)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of `kmers`.

        Raises:
            AttributeError: Sequences are not cut into words.
        """
        if self._vocabulary is None:
            raise AttributeError("there is no vocabulary: give kmers")
        return self._vocabulary

    @property
    def names(self) -> list[str]:
        """The names of the sequences, in their order."""
        return self._samples.opened.names()

    @property
    def summary(self) -> dict[str, Any]:
        """Numbers of the whole store: `n_sequences`, `n_letters`, `longest`, `letters` with the
        count of each, and a `fingerprint`."""
        return self._samples.opened.summary()

    def __repr__(self) -> str:
        n = self._samples.n_rows
        return f"SequenceDataset({n} sequences in batches of {self.batch_size})"

    # What it says of its kind of samples

    def _own_options(self) -> dict[str, Any]:
        return {"read_threads": self.threads}

    def _opened_for(self, seed: int) -> native.Samples:
        # Noise has the seed of the order, which a loaded state may have changed.
        return self._with_entries(seed)

    def _with_entries(self, seed: int) -> native.Sequences:
        """The sequences with what batches have of them."""
        vocabulary = None if self._vocabulary is None else self._vocabulary._native
        opened = self._samples.opened
        return opened.with_entries(self._entries, vocabulary=vocabulary, seed=seed)

    def _batch_key(self) -> tuple[Any, ...]:
        return (*super()._batch_key(), self.integers)

    def _batch_maker(self) -> Callable[[native.SequenceBatch], SequenceBatch]:
        as_form = array_maker(self.form)
        integers, number_samples, has_letters = self.integers, self.number_samples, self._letters
        stores = self._samples.stores

        def make(batch: native.SequenceBatch) -> SequenceBatch:
            arrays = batch.arrays()
            if not has_letters:
                arrays.pop("letters", None)
            for name in _WORDS:
                if name in arrays:
                    arrays[name] = arrays[name].astype(integers, copy=False)
            if number_samples:
                arrays["sample"] = batch.samples
            if stores is not None:
                arrays[STORE] = stores.codes_of(batch.samples)
            made: SequenceBatch = {name: as_form(array) for name, array in arrays.items()}
            if batch.names is not None:
                made["name"] = batch.names
            return made

        return make


__all__ = [
    "Kmers",
    "OneHot",
    "SequenceBatch",
    "SequenceDataset",
    "SequenceForm",
    "SequenceServers",
    "Vocabulary",
    "Windows",
    "import_sequences",
]
