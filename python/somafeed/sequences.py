"""`SequenceDataset`: DNA, RNA and other sequences in shuffled batches, for PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, Unpack

from somafeed import _somafeed as native
from somafeed.batches import array_maker, required
from somafeed.engine import EngineSettings
from somafeed.kmers import Kmers, OneHot, Vocabulary, Windows
from somafeed.labels import Labels
from somafeed.samples import OpenedDataset, OpenedSamples
from somafeed.sequence_stores import (
    STORE_TYPES,
    SequenceServers,
    Stores,
    import_sequences,
    open_stores,
)
from somafeed.settings import at_least_0, positive, shown
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

FORMS: tuple[SequenceForm, ...] = ("numpy", "torch")
_WORDS = ("input_ids", "sequences", "targets", "contexts", "targets_and_noise")


class Sequences(OpenedSamples[native.Sequences]):
    """Sequences of a store. Pickled as a description: each process opens its own."""

    def __init__(self, stores: Stores, config: Mapping[str, Any] | None) -> None:
        """Opens the stores.

        Raises:
            FileNotFoundError: One is not there.
        """
        names, self._stores = named_stores(stores, STORE_TYPES)
        self._config = dict(config or {})
        self.stores = OfStore.of(names, self.opened.sizes())
        self.labels = Labels({} if self.stores is None else {STORE: self.stores})

    def _open_all(self) -> native.Sequences:
        return open_stores(self._stores, self._config)


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
