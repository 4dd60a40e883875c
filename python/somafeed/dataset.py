"""`ExperimentDataset`: an experiment's cells and genes in shuffled batches, for PyTorch."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from somafeed import _somafeed as native
from somafeed.batches import DType, Form, MiniBatch, ObsForm, check_forms, import_packages
from somafeed.cells import Cells, Encoder, Selected
from somafeed.epochs import Epochs
from somafeed.iteration import ExperimentIterator, Place
from somafeed.joinids import Joinids
from somafeed.loaders import Loaders, Remainder, remainder_of
from somafeed.parts import Parts
from somafeed.samplings import Sample, checked_sample
from somafeed.settings import at_least_0, bytes_of, checked_seed, names_of, positive, shown
from somafeed.sources import JOINID, checked_genes, parameters, source_of
from somafeed.tokens import Tokens, checked_tokens
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


DEFAULT_OBS_COLUMN_NAMES = (JOINID,)
DEFAULT_SHUFFLE_CHUNK_SIZE = 64
DEFAULT_IO_BATCH_SIZE = 65536


class ExperimentDataset(Parts, Selected, IterableDataset[MiniBatch]):
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
    ...     dataset=cells, obs_column_names=["soma_joinid", "cell_type"],
    ...     batch_size=2, shuffle=False,
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

    # Settings that the native loader takes as they are, under these names.
    _loader_arguments = ("batch_size", "shuffle", "seed", "ramp_blocks", "dtype", "memory")

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
        measurement_name: str | None = None,
        obs_filter: str | None = None,
        var_filter: str | None = None,
        obs_joinids: Any | None = None,
        var_joinids: Any | None = None,
        genes: tuple[str, Sequence[str]] | None = None,
        config: Mapping[str, Any] | None = None,
        timestamp: int | None = None,
        layers: Sequence[str] = (),
        obsm: Sequence[str] = (),
        reader: native.Reader = "auto",
        dataset: native.Dataset | None = None,
        memory: int | str | None = None,
        world: tuple[int, int] | None = None,
        remainder: Remainder | None = None,
        form: Form = "numpy",
        dtype: DType | None = None,
        obs_form: ObsForm = "pandas",
        encoders: Sequence[Encoder | str] | None = None,
        sampling: Sample | None = None,
        ramp_blocks: int = 0,
        target_sum: float | None = None,
        totals: str | None = None,
        log1p: bool = False,
        clip: tuple[float, float] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Opens the experiment and reads the obs columns of the selected cells.

        Args:
            query: A `tiledbsoma.ExperimentAxisQuery`, or an object with its `experiment` (`uri`,
                `tiledb_timestamp_ms`, `context`), `measurement_name`, `obs_joinids()` and
                `var_joinids()`. tiledbsoma need not be installed.
            layer_name: The layer of X; with `uri`, None means `raw` or `data`, `X` of an AnnData,
                or else the only layer.
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
            uri: A path, an address in an object store or `census://...`, instead of a query; of
                an experiment, of an AnnData in Zarr or HDF5, or of a matrix of 10x Genomics in HDF5.
            measurement_name: The measurement in `uri`; None means `RNA`, or else the only one.
            obs_filter: A value filter of cells in `uri`, like `"tissue == 'lung'"`.
            var_filter: A value filter of genes in `uri`.
            obs_joinids: Cells in `uri`: integers, in any order.
            var_joinids: Genes in `uri`, in the order of the columns of X.
            genes: A var column and names in it, for example `("feature_id", model_genes)`: one
                column of X per name, zeros for a gene that the experiment lacks. Warns if fewer than
                half are there, and fails if none is.
            config: TileDB's parameters for `uri`.
            timestamp: Opens `uri` as of this time, in milliseconds since 1970; None means the time
                at which each process opens it.
            layers: Further layers of X, whose rows come beside X.
            obsm: Arrays of obsm whose rows come beside X, for example `X_pca`. With `layers` or
                `obsm`, a batch is `(X, obs, beside)`: a dictionary of the rows by name. Layers have
                the form of X, arrays of obsm are dense.
            reader: `"native"` or `"libtiledb"` insists on one reader of X.
            dataset: A native data set, instead of all the above. Cannot be pickled.
            memory: Limit for blocks, batches and reading: bytes, or like `"2GiB"`. Each process has
                this much, and so each DataLoader worker.
            world: `(rank, world size)`. None asks torch.distributed, then the launcher's variables.
            remainder: What becomes of cells that do not fill a global batch of `batch_size` times
                world size: `"keep"` delivers a short batch, `"drop"` leaves them out of this epoch,
                `"pad"` repeats others. None means `"keep"` for one rank and `"drop"` for several,
                whose batches must be equally many.
            form: The form of X: see `Form`.
            dtype: The type of X's values: see `DType`. None means `"stored"` for `form="numpy"`,
                like tiledbsoma_ml; the other forms are of the type in their name.
            obs_form: The form of obs: see `ObsForm`.
            encoders: Encoders of obs columns, or names of columns for which one is fitted to all
                selected cells. For `obs_form="codes"`; None means one for each column.
            sampling: Which cells an epoch has, if not each once: `WithReplacement`, `Weighted`,
                `ClassBalanced`, `Stratified`, `AtMostPerClass` or `GroupBatches`.
            ramp_blocks: Number of smaller blocks at the start of an epoch, so that the first batch
                is there sooner: each has half as many cells as the next, and the first full one has
                `io_batch_size`. The first batches are drawn from fewer cells.
            target_sum: Scales the values of each cell to this sum.
            totals: The obs column whose numbers are the cells' sums for `target_sum`, for example
                `raw_sum`; None means the sum over the selected genes.
            log1p: Whether values become log(1 + value), after scaling.
            clip: Limits of values `(low, high)`, applied last.
            tokens: `RankTokens` or `BinTokens`: batches then have the tokens of cells, a
                `TokenBatch`, in place of X. They come as numpy arrays or, with `form="torch"`, as
                tensors, and keep rank 2 if `batch_size` is 1.

        Raises:
            ValueError: Arguments that do not fit together; a measurement, layer, column or joinid
                that is not there, or none of `genes`; a filter that does not parse.
            TypeError: An argument of another type.
            ModuleNotFoundError: A package that batches of this form need is not installed.
            FileNotFoundError: Nothing is at the address.
            OSError: The storage cannot be read.
        """
        super().__init__()
        self.obs_column_names = list(names_of("obs_column_names", obs_column_names))
        if not self.obs_column_names:
            raise ValueError("Must specify at least one value in `obs_column_names`")
        twice = [c for c in self.obs_column_names if self.obs_column_names.count(c) > 1]
        if twice:
            raise ValueError(f"obs column {shown(twice[0])} is named twice in `obs_column_names`")
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
        self.return_sparse_X = bool(return_sparse_X)
        self.use_eager_fetch = bool(use_eager_fetch)
        self.memory = bytes_of(memory)
        if remainder not in (None, "keep", "drop", "pad"):
            raise ValueError(f"unknown remainder {shown(remainder)}; there are keep, drop, pad")
        self.remainder: Remainder | None = remainder
        self._world = None if world is None else checked_world(world)
        self.form: Form = form
        self.tokens = checked_tokens(
            tokens, form=form, dtype=dtype, return_sparse_X=return_sparse_X, layers=layers
        )
        is_stored = form == "numpy" and tokens is None
        default: DType = "stored" if is_stored else "float32"
        self.dtype: DType = default if dtype is None else dtype
        self.obs_form: ObsForm = obs_form
        check_forms(form, self.dtype, obs_form, self.return_sparse_X)
        import_packages(form, obs_form, self.return_sparse_X)
        self.sampling = checked_sample(sampling)
        self.ramp_blocks = at_least_0("ramp_blocks", ramp_blocks, bits=32)
        self.experiment_column: str | None = None
        self.transform = {
            "target_sum": target_sum,
            "log1p": log1p,
            "clip": clip,
            "totals": "genes" if totals is None else "obs",
        }
        source = source_of(
            query,
            layer_name,
            x_locator,
            query_ids,
            dataset,
            uri=uri,
            measurement=measurement_name,
            config=parameters(config or {}),
            timestamp=timestamp,
            obs_joinids=None if obs_joinids is None else Joinids(obs_joinids).ascending(),
            obs_filter=obs_filter,
            var_joinids=None if var_joinids is None else Joinids(var_joinids),
            var_filter=var_filter,
            genes=None if genes is None else checked_genes(genes),
            layers=names_of("layers", layers),
            obsm=names_of("obsm", obsm),
            reader=reader,
            var_columns=() if self.tokens is None else (self.tokens.gene_column,),
        )
        if encoders is None and obs_form == "codes":
            encoders = [name for name in self.obs_column_names if name != JOINID]
        if isinstance(encoders, str):
            encoders = names_of("encoders", encoders)
        columns = () if obs_form == "codes" else self.obs_column_names
        self._cells = Cells(source, columns, encoders or (), totals)
        if self.dtype == "stored" and target_sum is None and not log1p and clip is None:
            self.dataset.stored_dtype()
        self._parent_world: tuple[int, tuple[int, int]] | None = None
        self._loaders = Loaders()
        # Now, so that genes that do not fit are an error here.
        self._tokenizer: native.Tokenizer | None = None
        self.tokenizer()
        # Now, so that the first batch need not wait for imports.
        self._loaders.batch_maker(self)

    # What is selected

    @property
    def dataset(self) -> native.Dataset:
        """The native data set: selected cells and genes, with the obs columns in memory.

        In another process than the one that opened it, it is opened anew.
        """
        return self._cells.opened

    def tokenizer(self) -> native.Tokenizer | None:
        """The native tokenizer of `tokens=`, which says how many genes are known; None without
        tokens.

        Raises:
            ValueError: The tokens do not fit to the genes.
        """
        if self.tokens is not None and self._tokenizer is None:
            self._tokenizer = self.tokens.tokenizer(self.dataset)
        return self._tokenizer

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
    def column_names(self) -> list[str]:
        """The columns of obs in a batch, or the entries of its codes."""
        names = self.obs_column_names
        if self.obs_form == "codes":
            names = [encoder.name for encoder in self.encoders]
            names += [JOINID] if JOINID in self.obs_column_names else []
        return names if self.experiment_column is None else [*names, self.experiment_column]

    @property
    def n_samples(self) -> int:
        """Cells of an epoch on all ranks together: the selected ones, or the draws of `sampling`."""
        sampling = self._cells.sampled(self.sampling)
        return self.dataset.shape[0] if sampling is None else sampling.n_samples

    @property
    def shape(self) -> tuple[int, int]:
        """Batches of an epoch, and selected genes. In a DataLoader worker, the worker's batches."""
        n_cells, n_genes = self.n_samples, self.dataset.shape[1]
        world_size = self.world_size
        global_batch = self.batch_size * world_size
        is_short = n_cells % global_batch > 0 and remainder_of(self, world_size) != "drop"
        n_batches = n_cells // global_batch + is_short
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

    def _with(self, cells: Cells) -> Self:
        """A data set with these settings and other cells, at its first epoch."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.obs_column_names = list(self.obs_column_names)
        other._cells = cells
        other._epochs = self._epochs.another()
        other._loaders = Loaders()
        return other

    def _read_in_order(self) -> None:
        self.shuffle, self.ramp_blocks = False, 0
        self._world, self.remainder = (0, 1), "keep"

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

    def __iter__(self) -> ExperimentIterator:
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
            ValueError: The state is of something else, or of another seed. Whether its cells and
                sizes fit is checked at the next batch.
        """
        self._epochs.load(Place.from_dict(state))

    # Pickling

    def __getstate__(self) -> dict[str, Any]:
        """The description of the data set; another process opens it."""
        return {
            **self.__dict__, "_loaders": None, "_tokenizer": None, "_parent_world": self.world
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._parent_world = os.getpid(), state["_parent_world"]
        self._loaders = Loaders()
