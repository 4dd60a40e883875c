"""`ExperimentDataset`: an experiment's cells and genes in shuffled batches, for PyTorch."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from somafeed import _somafeed as native
from somafeed.batches import (
    NATIVE_FORMS,
    OBS_FORMS,
    Form,
    MiniBatch,
    ObsForm,
    obs_maker,
    x_maker,
)
from somafeed.iteration import ExperimentIterator, Place, Progress
from somafeed.joinids import Joinids
from somafeed.settings import bytes_of, checked_seed, positive
from somafeed.shared_epoch import SharedEpoch
from somafeed.sources import (
    JOINID,
    Concat,
    Opened,
    Part,
    QueryIDs,
    Selection,
    Source,
    XLocator,
    selection_of_ids,
    selection_of_query,
    split_rows,
)
from somafeed.splits import GroupSplit, LabelSplit, RandomSplit, SamplingMethod, Split
from somafeed.splits import checked_fractions
from somafeed.world import checked_world, current_worker, current_world

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset
else:
    try:
        from torch.utils.data import IterableDataset
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from typing import Generic

        class IterableDataset(Generic[TypeVar("T")]):
            """Stands in for torch's class where torch is not installed."""


Encoder: TypeAlias = native.LabelEncoder | native.BatchKeyEncoder
Remainder: TypeAlias = Literal["keep", "drop", "pad"]

DEFAULT_OBS_COLUMN_NAMES = (JOINID,)
DEFAULT_SHUFFLE_CHUNK_SIZE = 64
DEFAULT_IO_BATCH_SIZE = 65536

_WHICH = (
    "cells come from {query,layer_name} xor {x_locator,query_ids} xor uri= xor dataset="
)


class ExperimentDataset(IterableDataset[MiniBatch]):
    """Cells of TileDB-SOMA experiments in shuffled batches `(X, obs)`.

    Has the signature, the defaults and the output of tiledbsoma_ml's class of this name; what
    comes after `use_eager_fetch` is new. Native threads read, decode and make batches ahead, so a
    DataLoader needs no workers.

    A batch belongs to the user: it may be changed and kept, nothing overwrites it.

    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import somafeed
    >>> cells = somafeed.Dataset.in_memory(
    ...     np.array([0, 1, 1, 2]), np.array([1, 0]), np.array([5, 7], np.float32),
    ...     n_columns=2, obs=pa.table({"cell_type": ["B cell", "T cell", "B cell"]}),
    ... )
    >>> ds = somafeed.ExperimentDataset(
    ...     dataset=cells, obs_column_names=["soma_joinid", "cell_type"], batch_size=2, shuffle=False
    ... )
    >>> len(ds), ds.shape
    (2, (2, 2))
    >>> X, obs = next(iter(ds))
    >>> X
    array([[0., 5.],
           [0., 0.]], dtype=float32)
    >>> obs
       soma_joinid cell_type
    0            0    B cell
    1            1    T cell
    """

    def __init__(
        self,
        query: Any | None = None,
        layer_name: str | None = None,
        x_locator: Any | None = None,
        query_ids: Any | None = None,
        obs_column_names: Sequence[str] = DEFAULT_OBS_COLUMN_NAMES,
        batch_size: int = 1,
        io_batch_size: int = DEFAULT_IO_BATCH_SIZE,
        shuffle: bool = True,
        shuffle_chunk_size: int = DEFAULT_SHUFFLE_CHUNK_SIZE,
        seed: int | None = None,
        return_sparse_X: bool = False,
        use_eager_fetch: bool = True,
        *,
        uri: str | os.PathLike[str] | None = None,
        measurement_name: str = "RNA",
        obs_filter: str | None = None,
        var_filter: str | None = None,
        obs_joinids: Any | None = None,
        var_joinids: Any | None = None,
        genes: tuple[str, Sequence[str]] | None = None,
        config: Mapping[str, Any] | None = None,
        timestamp: int | None = None,
        reader: native.Reader = "auto",
        dataset: native.Dataset | None = None,
        memory: int | str | None = None,
        world: tuple[int, int] | None = None,
        remainder: Remainder | None = None,
        form: Form = "numpy",
        obs_form: ObsForm = "pandas",
        encoders: Sequence[Encoder | str] | None = None,
        target_sum: float | None = None,
        totals: str | None = None,
        log1p: bool = False,
        clip: tuple[float, float] | None = None,
    ) -> None:
        """Opens the experiment and reads the obs columns of the selected cells.

        Args:
            query: A `tiledbsoma.ExperimentAxisQuery`, or an object with its `experiment` (`uri`,
                `tiledb_timestamp_ms`, `context`), `measurement_name`, `obs_joinids()` and
                `var_joinids()`. tiledbsoma need not be installed.
            layer_name: The layer of X; with `uri`, None means `raw`.
            x_locator: With `query_ids`, an alternative to query and layer: an `XLocator`.
            query_ids: Its `obs_joinids` and `var_joinids`.
            obs_column_names: The columns of obs in each batch, in this order; at least one.
            batch_size: Cells of a batch; the last may have fewer. Dense batches of 1 have rank 1.
            io_batch_size: Cells that are read, and shuffled, together; a multiple of
                `shuffle_chunk_size` if shuffled.
            shuffle: Whether cells come in an order drawn from `seed` and the epoch's number;
                otherwise they come by ascending joinid.
            shuffle_chunk_size: Neighbouring cells that are read together.
            seed: From 0 to 2^64 - 1. None draws one, which several ranks may not do.
            return_sparse_X: Whether X is a `scipy.sparse.csr_matrix`.
            use_eager_fetch: Whether blocks and batches are made ahead, in threads.
            uri: A path, an address in an object store or `census://...`, instead of a query.
            measurement_name: The measurement in `uri`.
            obs_filter: A value filter of cells in `uri`, like `"tissue == 'lung'"`.
            var_filter: A value filter of genes in `uri`.
            obs_joinids: Cells in `uri`: integers, in any order.
            var_joinids: Genes in `uri`, in the order of the columns of X.
            genes: A var column and names in it, for example `("feature_id", model_genes)`: one
                column of X per name, zeros for a gene that the experiment lacks.
            config: TileDB's parameters for `uri`.
            timestamp: Opens `uri` as of this time, in milliseconds since 1970.
            reader: `"native"` or `"libtiledb"` insists on one reader of X.
            dataset: A native data set, instead of all the above. Cannot be pickled.
            memory: Limit for blocks, batches and reading: bytes, or like `"2GiB"`.
            world: `(rank, world size)`. None asks torch.distributed, then the launcher's variables.
            remainder: What becomes of cells that do not fill a global batch of `batch_size` times
                world size: `"keep"` delivers a short batch, `"drop"` leaves them out of this epoch,
                `"pad"` repeats others. None means `"keep"` for one rank and `"drop"` for several,
                whose batches must be equally many.
            form: The form of X: see `Form`.
            obs_form: The form of obs: see `ObsForm`.
            encoders: Encoders of obs columns, or names of columns for which one is fitted to all
                selected cells. For `obs_form="codes"`; None means one for each column.
            target_sum: Scales the values of each cell to this sum.
            totals: The obs column whose numbers are the cells' sums for `target_sum`, for example
                `raw_sum`; None means the sum over the selected genes.
            log1p: Whether values become log(1 + value), after scaling.
            clip: Limits of values `(low, high)`, applied last.

        Raises:
            ValueError: Arguments that do not fit together; a measurement, layer, column or joinid
                that is not there; a filter that does not parse.
            FileNotFoundError: Nothing is at the address.
            OSError: The storage cannot be read.
        """
        super().__init__()
        self.obs_column_names = list(obs_column_names)
        if not self.obs_column_names:
            raise ValueError("Must specify at least one value in `obs_column_names`")
        twice = [c for c in self.obs_column_names if self.obs_column_names.count(c) > 1]
        if twice:
            raise ValueError(f"obs column {twice[0]!r} is named twice in `obs_column_names`")
        self.batch_size = positive("batch_size", batch_size)
        self.io_batch_size = positive("io_batch_size", io_batch_size)
        self.shuffle = bool(shuffle)
        self.shuffle_chunk_size = positive("shuffle_chunk_size", shuffle_chunk_size)
        if self.shuffle and self.io_batch_size % self.shuffle_chunk_size:
            raise ValueError(
                f"io_batch_size={self.io_batch_size} is not a multiple of "
                f"shuffle_chunk_size={self.shuffle_chunk_size}"
            )
        self._is_seed_drawn = seed is None
        self.seed = random.SystemRandom().randrange(1 << 32) if seed is None else checked_seed(seed)
        self.return_sparse_X = bool(return_sparse_X)
        self.use_eager_fetch = bool(use_eager_fetch)
        self.memory = bytes_of(memory)
        if remainder not in (None, "keep", "drop", "pad"):
            raise ValueError(f"unknown remainder {remainder!r}; there are keep, drop, pad")
        self.remainder: Remainder | None = remainder
        self._world = None if world is None else checked_world(world)
        self.form: Form = form
        self.obs_form: ObsForm = obs_form
        self._check_forms()
        self._transform = {"target_sum": target_sum, "log1p": log1p, "clip": clip}
        self._totals = totals
        self._source = _source_of(
            query,
            layer_name,
            x_locator,
            query_ids,
            dataset,
            uri=uri,
            measurement=measurement_name,
            config={str(key): str(value) for key, value in (config or {}).items()},
            timestamp=timestamp,
            obs_joinids=None if obs_joinids is None else Joinids(obs_joinids).ascending(),
            obs_filter=obs_filter,
            var_joinids=None if var_joinids is None else Joinids(var_joinids),
            var_filter=var_filter,
            genes=None if genes is None else (genes[0], tuple(genes[1])),
            reader=reader,
        )
        if encoders is None and obs_form == "codes":
            encoders = [name for name in self.obs_column_names if name != JOINID]
        self._encoders: tuple[Encoder, ...] = ()
        self._opened: tuple[int, native.Dataset] | None = None
        self._parent_world: tuple[int, tuple[int, int]] | None = None
        self._open_first(encoders or ())
        self._reset()

    def _check_forms(self) -> None:
        if self.form not in NATIVE_FORMS:
            raise ValueError(f"unknown form {self.form!r}; there are {', '.join(NATIVE_FORMS)}")
        if self.obs_form not in OBS_FORMS:
            raise ValueError(f"unknown obs_form {self.obs_form!r}; there are {', '.join(OBS_FORMS)}")
        if self.return_sparse_X and self.form != "numpy":
            raise ValueError(
                f"return_sparse_X=True gives scipy's CSR; form={self.form!r} asks for something else"
            )

    def _open_first(self, encoders: Sequence[Encoder | str]) -> None:
        """Opens the data set, and fits the encoders that are given as columns."""
        named = [encoder for encoder in encoders if isinstance(encoder, str)]
        opened = self._source.open(self._columns((*self._encoders, *encoders)), self._totals)
        fitted = {name: native.LabelEncoder.fit(name, opened) for name in named}
        self._encoders = tuple(
            fitted[encoder] if isinstance(encoder, str) else encoder for encoder in encoders
        )
        if self._encoders:
            opened = opened.with_encoders(self._encoders)
        self._opened = os.getpid(), opened

    def _columns(self, encoders: Sequence[Encoder | str]) -> list[str]:
        """The obs columns that are needed in memory, each once."""
        columns = [] if self.obs_form == "codes" else list(self.obs_column_names)
        for encoder in encoders:
            columns += [encoder] if isinstance(encoder, str) else encoder.columns
        return [column for column in dict.fromkeys(columns) if column != JOINID]

    def _reset(self) -> None:
        """Forgets every epoch."""
        self.epoch = 0
        self._generation = 0
        self._shared = SharedEpoch.make()
        self._last_start: tuple[int, int, int] | None = None
        self._lanes: int | None = None
        self._pending: Place | None = None
        self._progress: Progress | None = None
        self._made: tuple[Any, native.Loader, Callable[[native.Batch], MiniBatch]] | None = None

    # What is selected

    @property
    def dataset(self) -> native.Dataset:
        """The native data set: selected cells and genes, with the obs columns in memory.

        In another process than the one that opened it, it is opened anew.
        """
        if self._opened is None or self._opened[0] != os.getpid():
            opened = self._source.open(self._columns(self._encoders), self._totals)
            if self._encoders:
                opened = opened.with_encoders(self._encoders)
            self._opened = os.getpid(), opened
        return self._opened[1]

    @property
    def query_ids(self) -> QueryIDs:
        """Joinids of the selected cells (ascending in each experiment) and genes."""
        genes = self.dataset.var().column(JOINID)
        return QueryIDs(obs_joinids=self.dataset.joinids(), var_joinids=genes)

    @property
    def x_locator(self) -> XLocator:
        """The layer of X.

        Raises:
            AttributeError: Cells are of several experiments, or of none.
        """
        source = self._source
        while isinstance(source, Part):
            source = source.whole
        if not isinstance(source, Selection):
            raise AttributeError("this data set is not of one experiment, so it has no x_locator")
        return XLocator(
            uri=source.uri,
            measurement_name=source.measurement,
            layer_name=source.layer,
            tiledb_timestamp_ms=source.timestamp,
            tiledb_config=dict(source.config),
        )

    @property
    def measurement_name(self) -> str:
        """The measurement."""
        return self.x_locator.measurement_name

    @property
    def layer_name(self) -> str:
        """The layer of X."""
        return self.x_locator.layer_name

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoders of `obs_form="codes"`, to save with a model: `encoder.to_json()`."""
        return self._encoders

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
    def shape(self) -> tuple[int, int]:
        """Batches of an epoch, and selected genes. In a DataLoader worker, the worker's batches."""
        n_cells, n_genes = self.dataset.shape
        world_size = self.world_size
        global_batch = self.batch_size * world_size
        if self._remainder(world_size) == "drop":
            n_batches = n_cells // global_batch
        else:
            n_batches = -(-n_cells // global_batch)
        worker, n_workers = current_worker() or (0, 1)
        return len(range(worker, n_batches, n_workers)), n_genes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> MiniBatch:
        raise NotImplementedError(
            "an ExperimentDataset can only be iterated: the order is that of an epoch"
        )

    def __repr__(self) -> str:
        cells, genes = self.dataset.shape
        return f"ExperimentDataset({cells} cells x {genes} genes in batches of {self.batch_size})"

    # Parts

    def random_split(
        self,
        *fracs: float,
        seed: int | None = None,
        method: SamplingMethod = "stochastic_rounding",
    ) -> tuple[ExperimentDataset, ...]:
        """Splits the cells at random, one part per fraction. One seed gives the same parts always,
        which are those of tiledbsoma_ml.

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
    ) -> tuple[ExperimentDataset, ...]:
        """Splits the cells so that those with equal values in obs `columns` stay together, for
        example each donor's. With `label`, each part also gets its share of that column's labels.

        Raises:
            ValueError: Like `random_split`, or there is no such column.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        split = GroupSplit(names, checked_fractions(fracs), self._split_seed(seed), label)
        return self._parts(split)

    def split_by_label(
        self, column: str, *fracs: float, seed: int | None = None
    ) -> tuple[ExperimentDataset, ...]:
        """Splits the cells so that each part gets its share of every label of an obs column.

        Raises:
            ValueError: Like `random_split`, or there is no such column.
        """
        return self._parts(LabelSplit(column, checked_fractions(fracs), self._split_seed(seed)))

    @classmethod
    def concat(cls, datasets: Sequence[ExperimentDataset]) -> ExperimentDataset:
        """The cells of several data sets, shuffled as one, with the settings and encoders of the
        first. All need equally many genes: select them by `genes=`.

        Raises:
            ValueError: There is none; their genes or obs columns differ.
        """
        if not datasets:
            raise ValueError("there is no data set to concatenate")
        first = datasets[0]
        combined = first._copy(Concat(tuple(one._source for one in datasets)))
        combined._open_first(first._encoders)
        return combined

    def _split_seed(self, seed: int | None) -> int:
        if seed is not None:
            return checked_seed(seed)
        if self.world_size > 1:
            raise ValueError("several ranks need the same split: give a seed")
        return random.SystemRandom().randrange(1 << 32)

    def _parts(self, split: Split) -> tuple[ExperimentDataset, ...]:
        whole = self.dataset
        parts = []
        for index, rows in enumerate(split_rows(self._source, split, whole)):
            part = self._copy(Part(self._source, split, index))
            part._opened = os.getpid(), whole.select(rows)
            parts.append(part)
        return tuple(parts)

    def _copy(self, source: Source) -> ExperimentDataset:
        """A data set with these settings and other cells, at its first epoch."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.obs_column_names = list(self.obs_column_names)
        other._source = source
        other._opened = None
        other._reset()
        return other

    # Epochs

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the epoch that the next iterator delivers. Its order depends on it.

        Without this call, an epoch follows each one that was iterated to its end.
        """
        epoch = checked_seed(epoch)
        if self._pending is not None and self._pending.epoch != epoch:
            self._pending = None
        self._progress = None
        self.epoch = epoch
        self._generation += 1
        if self._shared is not None:
            self._shared.write(self._generation, epoch)

    def __iter__(self) -> ExperimentIterator:
        """The batches of an epoch. Nothing is read before the first `next`."""
        return ExperimentIterator(self)

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that was delivered, for a checkpoint: less than 2 KB.

        It is the same on every rank, and says nothing of batches that were only made ahead.
        """
        if self._pending is None and self._progress is not None:
            return self._progress.place().to_dict()
        return self._upcoming().to_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iterator continue at a saved place, with the same batches as without an
        interruption.

        The number of ranks may have changed, if `batch_size` times world size has not. A seed that
        was drawn becomes that of the state.

        Raises:
            ValueError: The state is of something else, or of another seed. Whether its cells and
                sizes fit is checked at the next batch.
        """
        place = Place.from_dict(state)
        self._adopt_seed(place)
        self._pending = place
        self._progress = None
        self.epoch = place.epoch

    def _adopt_seed(self, place: Place) -> None:
        if place.seed != self.seed and not self._is_seed_drawn:
            raise ValueError(f"the state has seed {place.seed}, this data set has {self.seed}")
        self.seed = place.seed

    def _upcoming(self) -> Place:
        """Where the next iterator begins."""
        return self._pending or Place(self._next_epoch(), self.seed, self._lanes)

    def _next_epoch(self) -> int:
        """The number of the next epoch.

        All workers of a DataLoader must agree on it, whatever batches each has delivered. So a
        worker counts the times that it was told to start; those that persist learn of `set_epoch`
        through shared memory.
        """
        if current_worker() is None or self._last_start is None:
            return self.epoch
        pid, generation, last = self._last_start
        if pid != os.getpid():
            return self.epoch
        now, epoch = (generation, 0) if self._shared is None else self._shared.read()
        return last + 1 if now == generation else epoch

    def _begin(self, place: Place, progress: Progress) -> None:
        """An iterator delivers its first batch."""
        is_first = self._last_start is None or self._last_start[0] != os.getpid()
        generation = self._generation
        if not is_first and self._shared is not None and current_worker() is not None:
            generation = self._shared.read()[0]
        self._last_start = os.getpid(), generation, place.epoch
        self._pending = None
        self._progress = progress
        self._lanes = progress.place().lanes
        self.epoch = place.epoch
        if self._made is not None:
            (pid, options, _), loader, make = self._made
            self._made = (pid, options, self._lanes), loader, make

    def _end(self, next_epoch: int) -> None:
        """An iterator has come to its end."""
        if self.epoch == next_epoch - 1:
            self.epoch = next_epoch

    # The native loader

    def _remainder(self, world_size: int) -> Remainder:
        return self.remainder or ("keep" if world_size == 1 else "drop")

    def _loader(
        self, place: Place
    ) -> tuple[native.Loader, Callable[[native.Batch], MiniBatch]]:
        """A loader with the current settings, and the function that makes the user's batch."""
        dataset = self.dataset
        options = self._options(dataset.shape[0])
        lanes = place.lanes or self._lanes
        if self._made is not None:
            made, loader, make = self._made
            if made == (os.getpid(), options, lanes):
                return loader, make
        loader = native.Loader(dataset, lanes=lanes, **options)
        self._check_forms()
        make_x = x_maker(self.form, self.return_sparse_X, self.batch_size)
        make_obs = obs_maker(self.obs_form, self.obs_column_names, dataset, self.form)

        def make(batch: native.Batch) -> MiniBatch:
            return make_x(batch), make_obs(batch)

        self._made = (os.getpid(), options, lanes), loader, make
        return loader, make

    def _options(self, n_cells: int) -> dict[str, Any]:
        rank, world_size = self.world
        if world_size > 1 and self.shuffle and self._is_seed_drawn:
            raise ValueError("several ranks need one order: give a seed")
        remainder = self._remainder(world_size)
        global_batch = self.batch_size * world_size
        if remainder == "drop" and 0 < n_cells < global_batch:
            raise ValueError(
                f"{n_cells} cells do not fill one batch of {self.batch_size} on each of "
                f"{world_size} ranks: take a smaller batch_size, or remainder='pad'"
            )
        if self.shuffle:
            chunk_rows = self.shuffle_chunk_size
            chunks_per_block = self.io_batch_size // chunk_rows
        else:
            chunk_rows, chunks_per_block = self.io_batch_size, 1
        ahead = 1 if self.use_eager_fetch else 0
        return {
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "seed": self.seed,
            "chunk_rows": chunk_rows,
            "chunks_per_block": chunks_per_block,
            "form": "csr" if self.return_sparse_X else NATIVE_FORMS[self.form],
            "rank": rank,
            "world_size": world_size,
            "remainder": remainder,
            "totals": "genes" if self._totals is None else "obs",
            "memory": self.memory,
            "prefetch_blocks": ahead,
            "prefetch_batches": ahead,
            **self._transform,
        }

    # Pickling

    def __getstate__(self) -> dict[str, Any]:
        """The description of the data set; another process opens it."""
        state = dict(self.__dict__)
        for transient in ("_opened", "_made", "_progress", "_last_start"):
            state[transient] = None
        state["_parent_world"] = self.world
        state["_encoders"] = [(type(one).__name__, one.to_json()) for one in self._encoders]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        kinds = {"LabelEncoder": native.LabelEncoder, "BatchKeyEncoder": native.BatchKeyEncoder}
        self._encoders = tuple(kinds[name].from_json(text) for name, text in state["_encoders"])
        self._parent_world = os.getpid(), state["_parent_world"]


def _source_of(
    query: Any | None,
    layer_name: str | None,
    x_locator: Any | None,
    query_ids: Any | None,
    dataset: native.Dataset | None,
    *,
    uri: str | os.PathLike[str] | None,
    **selected: Any,
) -> Source:
    """The one way in which cells are named.

    Raises:
        ValueError: They are named in no way or in several, or what selects cells in `uri` stands
            beside another.
    """
    ways = [query is not None, x_locator is not None or query_ids is not None]
    ways += [dataset is not None, uri is not None]
    if sum(ways) != 1:
        raise ValueError(_WHICH)
    if uri is not None:
        return Selection(uri=os.fspath(uri), layer=layer_name or "raw", **selected)
    reader = selected.pop("reader")
    given = [name for name, value in selected.items() if value not in (None, {}, "RNA")]
    if given:
        raise ValueError(f"{given[0]}= is for uri=, and there is none; {_WHICH}")
    if dataset is not None:
        return Opened(dataset)
    if query is not None and layer_name is not None:
        return selection_of_query(query, layer_name, reader)
    if x_locator is not None and query_ids is not None and layer_name is None:
        return selection_of_ids(x_locator, query_ids, reader)
    raise ValueError(_WHICH)
