"""`SampleDataset`: samples of any kind in shuffled batches, for PyTorch."""

from __future__ import annotations

import os
import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.device import Device, DeviceCopies, checked_device
from somafeed.epochs import Epochs
from somafeed.iteration import ExperimentIterator, Place
from somafeed.labels import Labels
from somafeed.loaders import Loaders, OnError, Remainder, remainder_of
from somafeed.samplings import Labelled, Sample, checked_sample
from somafeed.settings import (
    at_least_0,
    bytes_of,
    checked_seed,
    names_of,
    positive,
    shown,
)
from somafeed.shares import RankShares, even_batch_size
from somafeed.splits import (
    Between,
    GroupsOf,
    GroupSplit,
    LabelSplit,
    RandomSplit,
    Rows,
    SamplingMethod,
    Split,
    checked_fractions,
)
from somafeed.stores import OfStore
from somafeed.world import checked_world, current_worker, current_world

B = TypeVar("B", covariant=True)
"""A batch as the user gets it."""
N = TypeVar("N", bound=native.Samples)
"""The native class of a kind's samples."""

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset
else:
    try:
        from torch.utils.data import IterableDataset
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        class IterableDataset(Generic[TypeVar("T")]):
            """Stands in for torch's class where torch is not installed."""


NativeLoader: TypeAlias = native.Loader | native.SampleLoader


class Samples(Labelled):
    """Samples by their description: each process opens its own."""

    _opened: Any | None
    """What is open in this process."""
    _sampled: tuple[Sample, native.Sampling] | None = None

    @property
    @abstractmethod
    def opened(self) -> Any:
        """What is open, opened anew if another process has sent the samples."""

    @abstractmethod
    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each sample, by which a batch numbers it."""

    @abstractmethod
    def _rows_of(self, split: Split) -> list[Rows]:
        """The rows of each part of a split."""

    @abstractmethod
    def _part(self, split: Split, index: int, rows: Rows) -> Self:
        """The part of a split that has these rows."""

    def copy(self) -> Self:
        """The same samples, to be sampled in another way."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._sampled = None
        return other

    def parts(self, split: Split) -> list[Self]:
        """The parts of a split."""
        return [self._part(split, index, rows) for index, rows in enumerate(self._rows_of(split))]

    def part(self, split: Split, index: int) -> Self:
        """One part of a split; the others are not opened."""
        return self._part(split, index, self._rows_of(split)[index])

    def sampled(self, sample: Sample | None) -> native.Sampling | None:
        """The native sampling, made once."""
        if sample is None or isinstance(sample, native.Sampling):
            return sample
        if self._sampled is None or self._sampled[0] != sample:
            self._sampled = sample, sample.of(self)
        return self._sampled[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_sampled": None}


class OpenedSamples(Samples, Generic[N]):
    """Samples that are described by how they are opened, and by the splits whose parts they are."""

    stores: OfStore | None = None
    """Which store each sample is from, if there are several."""
    labels: Labels = Labels({})
    """The columns of labels of all samples there are."""
    _opened: N | None = None
    _parts: tuple[tuple[Split, int, int], ...] = ()
    """Each split, which part of it, and how many samples were split."""

    @abstractmethod
    def _open_all(self) -> N:
        """Opens all samples there are."""

    @property
    def opened(self) -> N:
        """The native samples, opened if another process has sent them."""
        if self._opened is None:
            opened = self._open_all()
            for split, index, n_rows in self._parts:
                if opened.n_samples != n_rows:
                    raise ValueError(
                        f"the store has changed: {opened.n_samples} samples are there now, "
                        f"{n_rows} were before"
                    )
                opened = opened.select(split.parts(n_rows, self._groups_in(opened))[index])
            self._opened = opened
        return self._opened

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return self.opened.n_samples

    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each sample, of all that there are: ascending."""
        return self.opened.numbers().astype(np.int64)

    def _rows_of(self, split: Split) -> list[Rows]:
        return split.parts(self.n_rows, self.groups)

    def _part(self, split: Split, index: int, rows: Rows) -> Self:
        part = self.copy()
        part._parts = (*self._parts, (split, index, self.n_rows))
        part._opened = self.opened.select(rows)
        return part

    def _groups_in(self, opened: N) -> GroupsOf:
        """The numbers of groups of these native samples."""
        return lambda columns: self.labels.groups(columns, opened.numbers().astype(np.int64))

    def groups(self, columns: Sequence[str]) -> npt.NDArray[np.uint32]:
        """A number for each sample; equal numbers if samples agree in all these columns."""
        return self._groups_in(self.opened)(columns)

    def weights(self, column: str) -> npt.NDArray[np.float64]:
        """The numbers of a column."""
        return self.labels.weights(column, self.numbers())

    def equals(self, column: str, label: Any) -> npt.NDArray[np.bool_]:
        """Whether each sample has this label."""
        return self.labels.equals(column, label, self.numbers())


class SampleDataset(IterableDataset[B]):
    """Samples in shuffled batches: what the data sets of all kinds have in common.

    Native threads read, decode and make batches ahead, so a DataLoader needs no workers. A batch
    belongs to the user: it may be changed and kept, nothing overwrites it.
    """

    _noun = "samples"
    """What its samples are called."""
    _number_name = "sample"
    """What their numbers are called."""
    _gives_blocks = False
    """Whether a batch that is a block takes its memory, without a copy."""
    _n_blocks_read = 1
    """Blocks that are read at the same time from a storage that answers at once."""

    def __init__(
        self,
        *,
        batch_size: int,
        io_batch_size: int,
        shuffle: bool,
        shuffle_chunk_size: int,
        seed: int | None,
        use_eager_fetch: bool,
        form: str,
        memory: int | str | None = None,
        world: tuple[int, int] | None = None,
        remainder: Remainder | None = None,
        sampling: Sample | None = None,
        ramp_blocks: int = 0,
        on_error: OnError = "raise",
        device: Device | None = None,
        **unknown: Any,
    ) -> None:
        """Checks the settings, which `EngineSettings` and each kind describe."""
        super().__init__()
        for name in unknown:
            # Python's own message would name this class, which users do not know.
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
        self.batch_size = positive("batch_size", batch_size)
        self.io_batch_size = positive("io_batch_size", io_batch_size)
        self.shuffle = bool(shuffle)
        self.shuffle_chunk_size = positive("shuffle_chunk_size", shuffle_chunk_size)
        if self.shuffle and self.io_batch_size % self.shuffle_chunk_size:
            raise ValueError(
                f"io_batch_size={self.io_batch_size} is not a multiple of "
                f"shuffle_chunk_size={self.shuffle_chunk_size}"
            )
        drawn = random.SystemRandom().randrange(1 << 32)
        self._epochs = Epochs(drawn if seed is None else checked_seed(seed), seed is None)
        self.use_eager_fetch = bool(use_eager_fetch)
        self.memory = bytes_of(memory)
        if remainder not in (None, "keep", "drop", "pad"):
            raise ValueError(f"unknown remainder {shown(remainder)}; there are keep, drop, pad")
        self.remainder: Remainder | None = remainder
        self._world = None if world is None else checked_world(world)
        self.sampling = checked_sample(sampling)
        self.ramp_blocks = at_least_0("ramp_blocks", ramp_blocks, bits=32)
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error is 'raise' or 'skip', not {shown(on_error)}")
        self.on_error: OnError = on_error
        self.device = None if device is None else checked_device(device, form)
        self._parent_world: tuple[int, tuple[int, int]] | None = None
        self._loaders = Loaders()

    # What each kind of samples says

    @property
    @abstractmethod
    def _samples(self) -> Samples:
        """The samples."""

    @abstractmethod
    def _with(self, samples: Any) -> Self:
        """A data set with the same settings and other samples, at its first epoch."""

    @abstractmethod
    def _native_loader(self, options: dict[str, Any]) -> NativeLoader:
        """The native loader of the samples, with the engine's settings and these of its kind."""

    def _own_options(self) -> dict[str, Any]:
        """The native loader's arguments that only this kind has."""
        if not self.use_eager_fetch:
            return {}
        own = {"read_threads": self._n_blocks_read}
        if self._samples.opened.answers_late:
            # Requests for several blocks are under way together. Less is read ahead if memory is
            # short.
            own = {"prefetch_blocks": 3, "read_threads": 4}
        if self._gives_blocks and self._batches_are_blocks:
            # A block that was read ahead is a batch ahead.
            own["prefetch_batches"] = 0
        return own

    @property
    def _batches_are_blocks(self) -> bool:
        """Whether each batch, but the last of an epoch, is a block."""
        has_short_chunk = self.shuffle and self._samples.n_rows % self.shuffle_chunk_size != 0
        is_ragged = has_short_chunk or self.ramp_blocks > 0 or self.on_error == "skip"
        return self.batch_size == self.io_batch_size and not is_ragged

    @property
    def _densifies(self) -> bool:
        """Whether matrices in CSR become dense on the device."""
        return False

    def _placed_batch_maker(self) -> Callable[[Any], B]:
        """The function that makes the user's batch of a native one, where the user wants it."""
        make = self._batch_maker()
        if self.device is None:
            return make
        copy = DeviceCopies(self.device, self._densifies)

        def placed(batch: Any) -> B:
            made: B = copy(make(batch))
            return made

        return placed

    @abstractmethod
    def _batch_key(self) -> tuple[Any, ...]:
        """What the function that makes the user's batch depends on."""

    @abstractmethod
    def _batch_maker(self) -> Callable[[Any], B]:
        """The function that makes the user's batch of a native one."""

    def _another(self) -> Self:
        """A copy with settings of its own, at its first epoch."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._epochs = self._epochs.another()
        other._loaders = Loaders()
        return other

    # Ranks and sizes

    @property
    def world(self) -> tuple[int, int]:
        """Rank and world size: what `world=` says, or what is current now."""
        if self._world is not None:
            return self._world
        # A DataLoader worker that was not forked does not know what torch.distributed says.
        if current_worker() is not None and self._parent_world is not None:
            pid, world = self._parent_world
            if pid == os.getpid():
                return world
        return current_world()

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return self.world[0]

    @property
    def world_size(self) -> int:
        """Number of processes that train together."""
        return self.world[1]

    @property
    def n_samples(self) -> int:
        """Samples of an epoch on all ranks together: all of them, or the draws of `sampling`."""
        sampling = self._samples.sampled(self.sampling)
        return self._samples.n_rows if sampling is None else sampling.n_samples

    @property
    def sample_numbers(self) -> npt.NDArray[np.int64]:
        """The number of each sample in its own order, as batches of `in_order` number them: of
        cells, their joinids."""
        return self._samples.numbers()

    def __len__(self) -> int:
        """Batches of an epoch. In a DataLoader worker, the worker's batches."""
        n_samples, world_size = self.n_samples, self.world_size
        global_batch = self.batch_size * world_size
        is_short = n_samples % global_batch > 0 and remainder_of(self, world_size) != "drop"
        n_batches = n_samples // global_batch + is_short
        worker, n_workers = current_worker() or (0, 1)
        return len(range(worker, n_batches, n_workers))

    def __getitem__(self, index: int) -> B:
        name = type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise NotImplementedError(
            f"{article} {name} can only be iterated: the order is that of an epoch"
        )

    # Parts

    def random_split(
        self,
        *fracs: float,
        seed: int | None = None,
        method: SamplingMethod = "stochastic_rounding",
    ) -> tuple[Self, ...]:
        """Splits the samples at random, one part per fraction. One seed gives the same parts
        always, which are those of tiledbsoma_ml.

        Raises:
            ValueError: The fractions do not sum to 1; the method is unknown; several ranks would
                each draw their own seed.
        """
        return self._parts(RandomSplit(checked_fractions(fracs), self._split_seed(seed), method))

    def split_by_group(
        self,
        columns: str | Sequence[str],
        *fracs: float,
        seed: int | None = None,
        label: str | None = None,
    ) -> tuple[Self, ...]:
        """Splits the samples so that those with equal values in `columns` stay together, for
        example each donor's cells, by columns of obs. With `label`, each part also gets its share
        of that column's labels.

        Raises:
            ValueError: Like `random_split`, or there is no such column.
        """
        names = (columns,) if isinstance(columns, str) else names_of("columns", columns)
        if not names:
            raise ValueError(f"name at least one column by which {self._noun} are grouped")
        split = GroupSplit(names, checked_fractions(fracs), self._split_seed(seed), label)
        return self._parts(split)

    def split_by_label(
        self, column: str, *fracs: float, seed: int | None = None
    ) -> tuple[Self, ...]:
        """Splits the samples so that each part gets its share of every label of a column, of cells
        one of obs.

        Raises:
            ValueError: Like `random_split`, or there is no such column.
        """
        return self._parts(LabelSplit(column, checked_fractions(fracs), self._split_seed(seed)))

    def isel(self, samples: slice) -> Self:
        """The samples from one place to another, in their order: for splits by time.

        >>> train, test = ds.isel(slice(0, -100)), ds.isel(slice(-96, None))  # doctest: +SKIP
        """
        if not isinstance(samples, slice):
            raise TypeError(f"isel takes a slice of samples, not {shown(samples)}")
        return self._with(self._samples.part(Between(samples), 0))

    def with_sampling(self, sampling: Sample | None) -> Self:
        """The same samples, of which each epoch draws some; None for each once.

        For example for the training part of a split alone, since the parts of a data set with a
        sampling draw samples, too.
        """
        other = self._with(self._samples.copy())
        other.sampling = checked_sample(sampling)
        return other

    def in_order(
        self, *, world: tuple[int, int] | None = None, batch_size: int | None = None
    ) -> Self:
        """This rank's share of the samples, each once and in their own order: for validation and
        inference.

        A share is contiguous, so the shares of all ranks, one after another, are the samples in
        order: none is left out and none comes twice. All ranks have equally many batches; if the
        samples do not divide, batches have a few more or fewer than `batch_size`. If there are
        fewer samples than ranks, the last ranks have none. A batch numbers its samples, cells by
        `soma_joinid` in obs.

        Args:
            world: `(rank, world size)`; None means that of this data set.
            batch_size: Samples of a batch; None means that of this data set.

        Raises:
            ValueError: The rank is not below the world size.
        """
        rank, world_size = self.world if world is None else checked_world(world)
        size = self.batch_size if batch_size is None else positive("batch_size", batch_size)
        samples = self._samples
        if world_size == 1:
            share = samples.copy()
        else:
            size = even_batch_size(samples.n_rows, world_size, size)
            share = samples.part(RankShares(world_size), rank)
        other = self._with(share)
        other.batch_size = size
        other.sampling = None
        other.shuffle, other.ramp_blocks = False, 0
        other._world, other.remainder = (0, 1), "keep"
        other._number_samples()
        return other

    def _number_samples(self) -> None:
        """Has batches number their samples, if they do not always."""

    def _numbers_in(self, batch: Any) -> Any:
        """The numbers that a batch of `in_order` has of its samples; None if it was changed since."""
        return batch.get(self._number_name) if isinstance(batch, dict) else None

    def _split_seed(self, seed: int | None) -> int:
        if seed is not None:
            return checked_seed(seed)
        if self.world_size > 1:
            raise ValueError("several ranks need the same split: give a seed")
        return random.SystemRandom().randrange(1 << 32)

    def _parts(self, split: Split) -> tuple[Self, ...]:
        return tuple(self._with(part) for part in self._samples.parts(split))

    # Epochs

    @property
    def seed(self) -> int:
        """The seed of the order: the given one, or one that was drawn."""
        return self._epochs.seed

    @property
    def epoch(self) -> int:
        """Number of the epoch that the next iterator delivers, or that the current one does."""
        return self._epochs.number

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the epoch that the next iterator delivers. Its order depends on it.

        Without this call, an epoch follows each one that was iterated to its end.
        """
        self._epochs.set(at_least_0("epoch", epoch))

    def __iter__(self) -> ExperimentIterator[B]:
        """The batches of an epoch. Nothing is read before the first `next`."""
        return ExperimentIterator(self, self._epochs, self._loaders)

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that was delivered, for a checkpoint: less than 2 KB.

        It is the same on every rank, and says nothing of batches that were only made ahead.
        """
        return self._epochs.place().to_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iterator continue at a saved place, with the same batches as without an
        interruption.

        The number of ranks may have changed, if `batch_size` times world size has not. A seed that
        was drawn becomes that of the state.

        Raises:
            ValueError: The state is of something else, or of another seed. Whether its samples and
                sizes fit is checked at the next batch.
        """
        self._epochs.load(Place.from_dict(state))

    # Pickling

    def __getstate__(self) -> dict[str, Any]:
        """The description of the data set; another process opens it."""
        return {**self.__dict__, "_loaders": None, "_parent_world": self.world}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._parent_world = os.getpid(), state["_parent_world"]
        self._loaders = Loaders()


S = TypeVar("S", bound=OpenedSamples[Any])
"""The class of a kind's samples."""


class OpenedDataset(SampleDataset[B], Generic[B, S]):
    """A data set over samples that are described by how they are opened."""

    _opened_samples: S
    # `Any` because each kind has its own forms.
    form: Any
    """The form of arrays in a batch."""
    number_samples: bool
    """Whether a batch has the numbers of its samples."""

    @property
    def _samples(self) -> S:
        return self._opened_samples

    def _with(self, samples: S) -> Self:
        other = self._another()
        other._opened_samples = samples
        return other

    def _native_loader(self, options: dict[str, Any]) -> native.SampleLoader:
        samples = self._samples
        labels = samples.labels.described(samples.n_rows)
        return native.SampleLoader(self._opened_for(options["seed"]), labels=labels, **options)

    def _opened_for(self, seed: int) -> native.Samples:
        """The native samples, of which batches are random by this seed."""
        opened: native.Samples = self._samples.opened
        return opened

    @property
    def stores(self) -> list[Any]:
        """The names of the stores, if there are several: a batch has the number of each sample's
        store among them as `store`."""
        stores = self._samples.stores
        return [] if stores is None else list(stores.labels)

    @property
    def label_columns(self) -> list[str]:
        """The columns of labels."""
        return self._samples.labels.names

    def labels_of(self, column: str) -> list[Any]:
        """The labels of the samples, in their order.

        Raises:
            ValueError: There is no such column.
        """
        return self._samples.labels.values(column, self._samples.numbers())

    def _number_samples(self) -> None:
        self.number_samples = True

    def _batch_key(self) -> tuple[Any, ...]:
        return (self.form, self.number_samples)
