"""The native module: the loader of the Rust crates, as Python sees it.

Arrays are numpy arrays over the memory of the native side, without a copy. They may be written to,
and they keep that memory alive. Tables are `ArrowTable`, which `pyarrow.table(...)`,
`polars.DataFrame(...)` and others take without a copy.

Every call that can take long lets other Python threads run, and Ctrl-C ends it within a second.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack, final

import numpy as np
import numpy.typing as npt

from somafeed.modalities import Modality
from somafeed.neighbours import Neighbours as NeighbourSpec

version: str
"""Version of the native module, equal to that of the package."""

class SomafeedError(RuntimeError):
    """An error that no built-in exception fits. Its message names the place and what to do."""

IntegerArray: TypeAlias = Any
"""A one-dimensional buffer of integers (numpy, array.array, torch's `.numpy()`) in either byte order,
or a sequence of `int`. Negative numbers raise ValueError."""

Rows: TypeAlias = IntegerArray | tuple[int, int]
"""Numbers, or a range `(start, stop)` without its end. A tuple of two is always a range."""

Form: TypeAlias = Literal["dense", "f16", "csr", "coo", "packed"]
Reader: TypeAlias = Literal["auto", "native", "libtiledb"]
CellJoin: TypeAlias = Literal["union", "intersection"]

@final
class ArrowTable:
    """Rows of named columns. Implements Arrow's PyCapsule interface."""

    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    @staticmethod
    def from_arrow(table: Any) -> ArrowTable:
        """The table of an object with `__arrow_c_stream__`, without a copy if it has one chunk."""
    def column(self, name: str) -> npt.NDArray[Any]:
        """A column of numbers or booleans without nulls. Numbers are a read-only array without a
        copy, booleans an array of its own.

        Raises ValueError if there is no such column, or if it has other values or nulls.
        """
    def dictionary_codes(self, name: str) -> npt.NDArray[np.int32]:
        """The codes of a dictionary column, -1 for a null, as an array of its own.

        Raises ValueError if there is no such column, or if it is not a dictionary.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Experiment:
    """A SOMA experiment, or an AnnData, that is open for reading."""

    def __init__(
        self,
        uri: str,
        *,
        config: dict[str, str] | None = None,
        timestamp: int | None = None,
        reader: Reader = "auto",
    ) -> None:
        """Opens the experiment at a path, an address in an object store, or `census://...`.

        An address that ends with `.zip` is that of a Zip archive with its files; one with `.h5`, of
        a matrix of 10x Genomics. `config` has TileDB's parameters. `timestamp` is in milliseconds since 1970; None means now.
        `reader` reads groups, obs and var: with "auto", libtiledb is loaded only for what the
        native reader declines. It is looked for in the file that SOMAFEED_LIBTILEDB names, in the
        installed packages tiledb and tiledbsoma (which are not imported), and in the user's cache.

        Raises FileNotFoundError if nothing is there, ValueError if something else is there or the
        address is invalid, OSError if the store cannot be read.
        """
    @property
    def uri(self) -> str: ...
    @property
    def config(self) -> dict[str, str]: ...
    @property
    def timestamp(self) -> int | None: ...
    def names(
        self, measurement: str | None = None, layer: str | None = None
    ) -> tuple[str, str]:
        """The names of a measurement and of a layer of its X. One that is None is chosen.

        The measurement is `RNA`, the layer `raw` or `data`, or `X` of an AnnData; or else the only
        one. Raises ValueError, with the names that exist, if there are several others.
        """
    def measurements(self) -> list[str]: ...
    def layers(self, measurement: str) -> list[str]: ...
    def obsm_names(self, measurement: str) -> list[str]: ...
    def obsp_names(self, measurement: str) -> list[str]: ...
    def obs(
        self,
        *,
        columns: Sequence[str] | None = None,
        joinids: Rows | None = None,
        value_filter: str | None = None,
    ) -> ArrowTable:
        """The selected rows of obs by ascending joinid, with these columns; None means all.

        Raises ValueError for a column that is not there, a filter that does not parse or fit, and a
        listed joinid that no row has.
        """
    def var(
        self,
        measurement: str,
        *,
        columns: Sequence[str] | None = None,
        joinids: Rows | None = None,
        value_filter: str | None = None,
    ) -> ArrowTable: ...
    def obs_columns(self) -> list[str]: ...
    def var_columns(self, measurement: str) -> list[str]: ...
    def why_not_native(self, measurement: str | None = None) -> str | None:
        """Why libtiledb reads obs, or var of a measurement; None if it is read natively."""
    def shape(self, measurement: str, layer: str) -> tuple[int, int]:
        """Rows and columns of X: joinids of cells and genes are below them."""

@final
class Dataset:
    """Selected cells and genes, with the cells' obs columns in memory. Immutable."""

    @staticmethod
    def from_experiment(
        experiment: Experiment,
        *,
        measurement: str | None = None,
        layer: str | None = None,
        obs_joinids: Rows | None = None,
        obs_filter: str | None = None,
        var_joinids: Rows | None = None,
        var_filter: str | None = None,
        gene_column: str | None = None,
        gene_names: Sequence[str] | None = None,
        obs_columns: Sequence[str] = (),
        var_columns: Sequence[str] = (),
        totals: str | None = None,
        layers: Sequence[str] = (),
        obsm: Sequence[str] = (),
        reader: Reader = "auto",
        feature_type: str | None = None,
        modalities: Mapping[str, Modality] | None = None,
        presence: str | None = None,
        cell_join: CellJoin = "union",
        neighbours: NeighbourSpec | None = None,
    ) -> Dataset:
        """Opens X and reads the requested columns of obs and var.

        Cells come by ascending joinid, whatever the order of `obs_joinids`. Genes come in the
        order of `var_joinids`, or by ascending joinid. `gene_names` with `gene_column` selects one
        gene per name instead, in this order; genes that the experiment lacks are columns of zeros
        (`n_unknown`). It warns if fewer than half are there, and raises ValueError if none is.
        `totals` is the obs column that `Loader(totals="obs")` scales by. `layers` are further
        layers, of the same genes, and `obsm` arrays of obsm, for example `X_pca`: each batch has
        their rows beside X. `measurement` and `layer` that are None are chosen
        (`Experiment.names`).

        `feature_type` selects the genes with this text in the var column `feature_types`.
        `modalities` are further measurements of the same cells, by their names in a batch; their
        order is that of the dictionary. `presence` is the obs column of booleans that says which
        cells X has. If X or a modality lacks cells, those that any of them has come, or with
        `cell_join="intersection"` those that all have. `neighbours` is a `somafeed.Neighbours`.
        """
    @staticmethod
    def from_anndata(
        anndata: Any,
        *,
        raw: bool = False,
        config: dict[str, str] | None = None,
        **options: Any,
    ) -> Dataset:
        """Opens an AnnData in Zarr or HDF5, which is read in place.

        `anndata` is a path, an address in an object store, or an AnnData that is backed by such a
        file, of which a view has only its cells (by ascending position, each once) and its genes
        (in its order). `raw` takes the element `raw`, otherwise X and the layers. `options` are
        those of `from_experiment`: a row's joinid is its position in the file, and `layer` None
        means X.

        Raises FileNotFoundError if nothing is there, ValueError if something else is there, if the
        AnnData is in memory, or if a column, layer or array of obsm that is needed was changed in
        memory since it was read from the file.
        """
    @staticmethod
    def in_memory(
        indptr: IntegerArray,
        indices: IntegerArray,
        data: npt.NDArray[np.float32],
        *,
        n_columns: int,
        obs: Any,
        var: Any | None = None,
    ) -> Dataset:
        """A data set of a CSR matrix; obs and var are Arrow tables. Numbers of `data` are float32, in
        either byte order.

        Copies the matrix once. The memory of the tables is used as it is: do not change it.
        """
    @staticmethod
    def concat(datasets: Sequence[Dataset]) -> Dataset:
        """The rows of all, one data set after another. All need the same genes and obs columns."""
    @property
    def shape(self) -> tuple[int, int]:
        """Number of selected cells, number of selected genes."""
    @property
    def n_unknown(self) -> int:
        """Number of genes that no experiment has: their columns are zeros."""
    @property
    def n_experiments(self) -> int: ...
    @property
    def layers(self) -> list[str]:
        """The further layers that batches have beside X."""
    @property
    def obsm(self) -> list[tuple[str, int]]:
        """The arrays of obsm that batches have beside X, each with its number of columns."""
    @property
    def modalities(self) -> list[tuple[str, int]]:
        """The modalities that batches have beside X, each with its number of genes."""
    @property
    def neighbours(self) -> tuple[str, int] | None:
        """The graph of neighbours that batches have, and the number of each cell's."""
    def modality_var(self, name: str) -> ArrowTable:
        """The requested var columns of a modality: one row per gene. ValueError if there is none."""
    @property
    def reader(self) -> str:
        """The reader of X: `native`, `libtiledb`, or both joined by `+`."""
    @property
    def why_not_native(self) -> str | None: ...
    def stored_dtype(self) -> str:
        """numpy's name of the type that `Loader(dtype="stored")` gives X's values.

        Experiments that differ give float32.
        """
    def obs(self) -> ArrowTable:
        """The requested obs columns: one row per selected cell."""
    def var(self) -> ArrowTable:
        """The requested var columns: one row per selected gene; nulls for absent genes."""
    def codes(self) -> ArrowTable:
        """The codes of the encoders: one int64 column per encoder, one row per selected cell."""
    def joinids(self) -> npt.NDArray[np.int64]:
        """The joinid of each selected cell in its experiment."""
    def experiments(self) -> npt.NDArray[np.uint32]:
        """The experiment of each selected cell: its index in `concat`, from 0."""
    def select(self, rows: Rows) -> Dataset:
        """A data set of only these rows (positions, not joinids), in ascending order."""
    def with_encoders(self, encoders: Sequence[LabelEncoder | BatchKeyEncoder]) -> Dataset:
        """A data set whose batches have `codes`. It needs the obs columns of the encoders."""
    def groups(self, columns: Sequence[str]) -> npt.NDArray[np.uint32]:
        """A number for each row; equal numbers if rows agree in all these obs columns."""
    def weights(self, column: str) -> npt.NDArray[np.float64]:
        """The numbers of an obs column, as weights for `Sampling.weighted`."""
    def find(self, column: str, label: str) -> int | None:
        """The first row with this string in an obs column; None if there is none."""

@final
class LabelEncoder:
    """Codes of the labels of one obs column: the index among the sorted labels."""

    @staticmethod
    def fit(
        column: str,
        table: ArrowTable | Dataset | Any,
        *,
        name: str | None = None,
        unseen: Literal["error", "code"] = "error",
        nulls: Literal["unseen", "class"] = "unseen",
        enumeration: bool = False,
    ) -> LabelEncoder:
        """Learns the labels. With `unseen="code"` an unknown label becomes -1, otherwise encoding
        raises ValueError. With `enumeration` the codes are those of the column's dictionary."""
    @staticmethod
    def from_json(text: str) -> LabelEncoder: ...
    def to_json(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def n_classes(self) -> int: ...
    def classes(self) -> ArrowTable:
        """One column, named like the encoder's column: the label of each code."""
    def encode(self, table: ArrowTable | Dataset | Any) -> npt.NDArray[np.int64]: ...
    def inverse(self, codes: IntegerArray) -> ArrowTable: ...
    def with_unseen(self, unseen: Literal["error", "code"]) -> LabelEncoder: ...
    def extend(self, table: ArrowTable | Dataset | Any) -> LabelEncoder:
        """The encoder with further labels, which get the next codes."""

@final
class BatchKeyEncoder:
    """Codes of the tuples of labels of several obs columns."""

    @staticmethod
    def fit(
        name: str,
        columns: Sequence[str],
        table: ArrowTable | Dataset | Any,
        *,
        unseen: Literal["error", "code"] = "error",
        nulls: Literal["unseen", "class"] = "unseen",
    ) -> BatchKeyEncoder: ...
    @staticmethod
    def from_json(text: str) -> BatchKeyEncoder: ...
    def to_json(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def n_classes(self) -> int: ...
    def classes(self) -> ArrowTable:
        """The columns of the key: one row per code."""
    def joined_keys(self) -> list[str]: ...
    def encode(self, table: ArrowTable | Dataset | Any) -> npt.NDArray[np.int64]: ...
    def inverse(self, codes: IntegerArray) -> ArrowTable: ...
    def with_unseen(self, unseen: Literal["error", "code"]) -> BatchKeyEncoder: ...
    def extend(self, table: ArrowTable | Dataset | Any) -> BatchKeyEncoder: ...

@final
class Tokenizer:
    """Makes tokens of the cells of data sets with the genes of one data set. Its arguments are the
    fields of `somafeed.RankTokens` and `somafeed.BinTokens`."""

    @staticmethod
    def ranks(
        dataset: Dataset,
        vocabulary: dict[str, int],
        medians: dict[str, float],
        *,
        gene_column: str = "feature_id",
        pad: str = "<pad>",
        cls: str | None = None,
        eos: str | None = None,
        target_sum: float = 1e4,
        max_length: int = 2048,
    ) -> Tokenizer:
        """Genes by descending `value / total * target_sum / median`. The loader's `totals` says
        which total.

        Raises ValueError if the settings do not fit together, or not to the genes.
        """
    @staticmethod
    def bins(
        dataset: Dataset,
        vocabulary: dict[str, int],
        *,
        gene_column: str = "feature_id",
        pad: str = "<pad>",
        cls: str | None = None,
        eos: str | None = None,
        n_bins: int = 51,
        ties: Literal["spread", "highest"] = "spread",
        cut: Literal["random", "highest"] = "random",
        include_zeros: bool = False,
        max_length: int = 1200,
        pad_value: float = -2.0,
        seed: int = 0,
    ) -> Tokenizer:
        """Genes by ascending column, with the bins of their values beside them.

        Raises ValueError if the settings do not fit together, or not to the genes.
        """
    @property
    def n_known(self) -> int:
        """Number of genes with a token."""
    @property
    def n_unknown(self) -> int:
        """Number of genes that are left out."""
    @property
    def max_length(self) -> int: ...

@final
class Sampling:
    """Which rows an epoch has, and how often. Labels and groups are codes, one per row."""

    @staticmethod
    def with_replacement(n_rows: int, n_samples: int) -> Sampling: ...
    @staticmethod
    def listed(n_rows: int, rows: IntegerArray) -> Sampling:
        """These rows in this order. Needs `Loader(order="listed", chunk_rows=1)`."""
    @staticmethod
    def weighted(
        weights: npt.NDArray[np.float64], n_samples: int, *, replacement: bool = True
    ) -> Sampling: ...
    @staticmethod
    def class_balanced(
        labels: IntegerArray, n_samples: int, *, replacement: bool = True
    ) -> Sampling: ...
    @staticmethod
    def by_group(
        groups: IntegerArray, shares: Sequence[float], n_samples: int, *, replacement: bool = True
    ) -> Sampling: ...
    @staticmethod
    def stratified(labels: IntegerArray, n_samples: int) -> Sampling: ...
    @staticmethod
    def at_most_per_class(labels: IntegerArray, most: int) -> Sampling: ...
    @staticmethod
    def group_batches(
        groups: IntegerArray,
        batch_size: int,
        *,
        is_control: IntegerArray | None = None,
        contexts: IntegerArray | None = None,
        n_controls: int = 0,
        fill: bool = False,
        chunk_rows: int = 64,
        window_rows: int = 65536,
    ) -> Sampling:
        """Batches of one group each, with `n_controls` control rows of the same context.

        `is_control` is not 0 for rows that are controls; they are in batches as such only. Rows of a group that do not fill a batch are left out
        of the epoch; `fill` adds further rows of the group instead. Rows come by chunks of
        `chunk_rows`, shuffled in windows of `window_rows`: larger windows mix more and read more.
        Needs `Loader(order="listed", chunk_rows=1)`.
        """
    @staticmethod
    def hierarchical(
        domains: IntegerArray,
        subjects: IntegerArray,
        batch_size: int,
        n_batches: int,
        *,
        labels: IntegerArray | None = None,
        least_drawn: bool = False,
    ) -> Sampling:
        """Batches that have every domain, and few rows of one subject: in rounds, one row of each
        domain, first a subject of the domain, then a row of it. With `labels`, each round takes rows
        of one label, drawn uniformly, or with `least_drawn` that which the fewest rows have so far.
        Needs `Loader(order="listed", chunk_rows=1)`.
        """
    @property
    def is_listed(self) -> bool:
        """Whether it says which rows are in a batch together: needs `Loader(order="listed")`."""
    @property
    def n_rows(self) -> int: ...
    @property
    def n_samples(self) -> int: ...

def _stop_at_row(at_row: int) -> int:
    """Stops each later call over rows within this many, for tests; 0 ends that. Returns the number
    of rows that the last call began to handle."""

def _without_credentials(text: str) -> str:
    """A text without the credentials of the addresses in it."""

def _address_without_credentials(address: str) -> str:
    """Like `_without_credentials`, of one address: its credentials may have blanks and quotes."""

def split_by_fraction(
    n_rows: int,
    fractions: Sequence[float],
    *,
    seed: int,
    method: Literal["deterministic", "multinomial", "stochastic_rounding"] = "stochastic_rounding",
) -> list[npt.NDArray[np.uint64]]:
    """The rows of each split, ascending. Fractions must sum to 1."""

def split_by_group(
    groups: IntegerArray,
    fractions: Sequence[float],
    *,
    seed: int,
    labels: IntegerArray | None = None,
) -> list[npt.NDArray[np.uint64]]:
    """Keeps the rows of a group together; with `labels`, each split gets its share of each."""

def split_by_label(
    labels: IntegerArray, fractions: Sequence[float], *, seed: int
) -> list[npt.NDArray[np.uint64]]:
    """Gives each split its share of the rows of each label."""

@final
class Budget:
    """Memory that several loaders share, in bytes."""

    def __init__(self, bytes: int) -> None: ...
    @property
    def limit(self) -> int: ...
    @property
    def leased(self) -> int: ...
    @property
    def available(self) -> int: ...

class EngineSettings(TypedDict, total=False):
    """Settings of the engine, which loaders of all kinds of samples take."""

    batch_size: int
    """Samples of a batch; 1024 if it is not given."""
    shuffle: bool
    order: Literal["shuffled", "in order", "listed"] | None
    """Replaces `shuffle`."""
    seed: int
    chunk_rows: int
    """Neighbouring samples that are read together: 64."""
    chunks_per_block: int
    """Chunks that are shuffled together: 1024."""
    ramp_blocks: int
    """Blocks at the start of an epoch that grow to the full size, so that the first batch is there
    sooner."""
    rank: int
    world_size: int
    lanes: int | None
    remainder: Literal["keep", "drop", "pad"]
    sampling: Sampling | None
    on_error: Literal["raise", "skip"]
    """Whether samples that cannot be read end the epoch or are left out."""
    keep_decoded: int | None
    """The cache for decoded values across blocks and epochs, in bytes; None means the rest of
    `memory`, or nothing without a limit."""
    prefetch_blocks: int
    prefetch_batches: int
    read_threads: int
    """At least 1."""

@final
class Loader:
    """Delivers the cells of a data set in batches, epoch by epoch. Starts no thread yet."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        form: Form = "dense",
        block_form: Literal["csr", "scipy.csr", "np.array"] = "csr",
        target_sum: float | None = None,
        log1p: bool = False,
        clip: tuple[float, float] | None = None,
        totals: Literal["genes", "obs"] = "genes",
        dtype: Literal["float32", "stored"] = "float32",
        memory: int | Budget | None = None,
        gpu: int | None = None,
        batch_threads: int | None = None,
        tokens: Tokenizer | None = None,
        token_layout: Literal["padded", "longest", "ragged"] = "padded",
        modality_forms: Mapping[str, Form] | None = None,
        **engine: Unpack[EngineSettings],
    ) -> None:
        """Checks the settings.

        `memory` is in bytes, without the data set itself; None means no limit. `gpu` is the index
        of a GPU for which batches' memory is pinned, as far as CUDA is loaded. `batch_threads`
        write one large dense batch together; None means half of the processors, from 2 to 8.

        `dtype="stored"` gives X's values the type in which they are stored, unless a transform
        makes others of them. The loader itself has float32, so a value that float32 does not have
        (for example 0.1 of float64, or 2^24 + 1) is a ValueError that names its cell and gene,
        when the block with it is read. `dtype="float32"` takes the nearest.

        `tokens` makes the tokens of each batch's cells (`Batch.tokens`), which needs `form="csr"`.
        `token_layout` says whether sequences are padded to the tokenizer's maximal length, to the
        longest of the batch, or not at all. `modality_forms` are the forms of modalities; one that is
        not listed has `form`.

        Raises ValueError for settings that do not fit together, MemoryError if `memory` is too
        small for one block and its batches.
        """
    @property
    def dataset(self) -> Dataset: ...
    @property
    def n_batches(self) -> int:
        """Batches of each epoch, the same on every rank."""
    def epoch(self, number: int) -> Epoch:
        """Starts an epoch. The same number gives the same batches again."""
    def resume(self, state: str) -> Epoch:
        """Continues an epoch after the batches that `state` counts, on as many ranks as there are
        now if batch size times world size is the same.

        Raises ValueError if the state is that of other cells or settings.
        """

class Samples:
    """Samples of some kind, open in this process."""

    @property
    def n_samples(self) -> int: ...
    @property
    def answers_late(self) -> bool:
        """Whether they come from an object store, so that several blocks are better read at once."""
    def numbers(self) -> npt.NDArray[np.uint64]:
        """The number of each sample, of all that there are: ascending."""
    def select(self, places: IntegerArray) -> Self:
        """The samples at these places, ascending. Raises ValueError for others."""

class PlacedBatch:
    """A batch's place in its epoch, and the numbers of its samples."""

    @property
    def batch_idx(self) -> int:
        """Index in the epoch, from 0."""
    @property
    def n_padding(self) -> int:
        """Samples at the end that repeat others."""
    @property
    def samples(self) -> npt.NDArray[np.int64]:
        """The numbers of the samples, of all that were opened."""
    def __len__(self) -> int: ...

@final
class SampleLoader:
    """Delivers samples in batches, epoch by epoch. Starts no thread yet."""

    def __init__(
        self,
        samples: Samples,
        *,
        memory: int | Budget | None = None,
        gpu: int | None = None,
        labels: Sequence[Mapping[str, Any]] = (),
        **engine: Unpack[EngineSettings],
    ) -> None:
        """Checks the settings. `memory` and `gpu` are as of `Loader`. `labels` are columns whose entropy is measured: `name`, `n_classes`, and
        `codes` of all samples or, if samples of one label follow each other, the `ends` of labels. Raises ValueError for those that do not fit together, MemoryError if
        `memory` is too small for one block and its batches."""
    @property
    def n_batches(self) -> int:
        """Batches of each epoch, the same on every rank."""
    def epoch(self, number: int) -> Epoch:
        """Starts an epoch. The same number gives the same batches again."""
    def resume(self, state: str) -> Epoch:
        """Continues an epoch after the batches that `state` counts: see `Loader.resume`."""

@final
class Fields(Samples):
    """Samples of the arrays of Zarr stores. Reads their metadata, and their coordinates."""

    def __init__(
        self,
        uris: Sequence[str],
        variables: Sequence[Mapping[str, Any]],
        *,
        config: Mapping[str, str] | None = None,
        dim: str | int | None = None,
        lead: str | None = None,
        start: int | None = None,
        end: int | None = None,
        stride: int = 1,
        periods: Sequence[tuple[str | None, str | None]] = (),
        frequency: int | None = None,
        patches: Mapping[str, Any] | None = None,
        dims: Sequence[str] = (),
        orient: Sequence[tuple[str, bool]] = (),
        missing: Sequence[tuple[str, str]] = (),
        counted: Any = None,
        threads: int = 1,
        coordinates: bool = True,
    ) -> None:
        """Opens the arrays. `somafeed.FieldDataset` describes the arguments.

        Raises ValueError for what is not there, OSError if the store cannot be read.
        """
    def steps(self) -> npt.NDArray[np.uint64]:
        """The step that each sample is about: its index in the dimension of the samples."""
    def lead_times(self) -> npt.NDArray[np.int64]:
        """The lead time of each sample in microseconds; empty if samples have none."""
    def stores(self) -> npt.NDArray[np.uint64]:
        """The number of the store of each sample."""
    def missing(self) -> Any:
        """What is missing of the samples: see `somafeed.missing.Missing`."""
    def counted(self) -> Any:
        """What was counted to open the samples, or None."""
    def left_out(self) -> list[tuple[str, int]]:
        """How many samples were left out, by the reason."""
    def patches(self) -> list[tuple[str | int, int, int, int, int]]:
        """The dimensions that are cut into patches: name or position, selected indices, indices of a
        patch, number of patches, indices that are left out."""
    def patch_starts(self, epoch: int) -> npt.NDArray[np.int64]:
        """The first index of each sample's patch in each of these, in C order."""
    def variables(self) -> list[tuple[str, str, list[str], list[int], bool]]:
        """Name, type, dimensions and shape of one sample of each variable, and whether it has
        steps."""
    def grid(self) -> tuple[str, str, str] | None:
        """The first variable that has latitudes and longitudes, and the names of these dimensions."""
    def coordinates(self, variable: str, dimension: str) -> npt.NDArray[Any] | list[str] | None:
        """The coordinates of a variable's dimension, which is not that of the samples; None if
        there are none."""

@final
class FieldBatch(PlacedBatch):
    """Samples of each variable. Its arrays may be changed and kept."""

    @property
    def variables(self) -> list[str]: ...
    def values(self, name: str) -> npt.NDArray[Any]:
        """The values of a variable: samples, then steps if there are several, then the selected
        part of the array's other dimensions."""
    def dimensions(self, name: str) -> list[str]:
        """The names of the dimensions of `values`: `sample`, `step` if there are several, then
        those of the array."""
    def sample_coordinates(self, name: str) -> tuple[str, npt.NDArray[Any] | list[str], str] | None:
        """Name, values and attributes (as JSON) of the coordinates of the array's first dimension,
        in C order of samples and steps."""
    def lead_coordinates(self, name: str) -> tuple[str, npt.NDArray[Any] | list[str], str] | None:
        """The lead times of forecasts, alike."""
    def lead_times(self) -> npt.NDArray[np.int64]:
        """The lead time of each sample in microseconds; empty if samples have none."""
    def coordinates(self, name: str) -> list[tuple[str, npt.NDArray[Any] | list[str], str]]:
        """Those of the other dimensions that have some, and are not cut."""
    def cut_dimensions(self, name: str) -> list[str]:
        """The dimensions of a variable that are cut into patches."""
    def patch_coordinates(self, name: str) -> list[tuple[str, npt.NDArray[Any] | list[str], str]]:
        """Those of these dimensions that have some, in C order of samples and indices of a
        patch."""
    def patch_starts(self) -> npt.NDArray[np.int64]:
        """The first index of each sample's patch in each dimension that is cut, in C order."""

def draw_maps(
    augmentation: Mapping[str, Any],
    epoch: int,
    samples: IntegerArray,
    height: int,
    width: int,
) -> tuple[npt.NDArray[np.float64], list[bool]]:
    """The maps of samples in an epoch: six numbers for each, rows of `[[xx, xy, x], [yx, yy, y]]`,
    and whether it interpolates. The pixel in column `c` and row `r` of the result is the source at
    column `xx * c + xy * r + x` and row `yx * c + yy * r + y`.

    Raises ValueError for ranges and probabilities that cannot be."""

@final
class Images(Samples):
    """Image cubes with their masks. Pickle the arguments, not the object."""

    def __init__(
        self,
        uris: Sequence[str],
        keys: Sequence[Mapping[str, Any]],
        *,
        config: Mapping[str, str] | None = None,
        images: Sequence[str] | None = None,
        stored: str | None = None,
        dtype: str | None = None,
        normalization: str | None = None,
        augmentation: Mapping[str, Any] | None = None,
        threads: int = 1,
        checks_files: bool = True,
    ) -> None:
        """Opens the images. `somafeed.ImageDataset` describes the arguments.

        Raises ValueError for settings that do not fit, OSError for files that are missing."""
    def images(self) -> list[tuple[str, str, str]]:
        """Name, domain and subject of each image that was opened, selected or not."""
    def sizes(self) -> list[int]:
        """The number of images of each folder."""
    def classes(self) -> list[str]:
        """The names of the labels' classes, in the order of their numbers."""
    def keys(self) -> list[tuple[str, str, list[int]]]:
        """Name, type and shape of one image's array of each key."""

@final
class ImageBatch(PlacedBatch):
    """Images, an array of each key. Its arrays may be changed and kept."""

    @property
    def names(self) -> list[str]:
        """The names of the images."""
    @property
    def skipped(self) -> list[str]:
        """The names of images that could not be read."""
    @property
    def keys(self) -> list[str]: ...
    def values(self, name: str) -> npt.NDArray[Any]:
        """The array of a key: images, then the shape of one."""

@final
class OwnSamples(Samples):
    """Samples that Python code reads: see `somafeed.SourceDataset`."""

    def __init__(self, start: Callable[[Any], None]) -> None:
        """Has `start` begin a thread that answers requests, and reads sample 0."""
    def arrays(self) -> list[tuple[str, str, list[int]]]:
        """Name, type and shape of one sample of each array."""

@final
class SampleBatch(PlacedBatch):
    """An array of each name, whose first dimension is the samples'. They may be changed and kept."""

    def arrays(self) -> list[tuple[str, npt.NDArray[Any]]]:
        """The arrays by their names."""

@final
class KmerVocabulary:
    """Words of `k` letters with their numbers. `somafeed.kmers.Vocabulary` describes it."""

    def __init__(self, kmers: Mapping[str, Any], words: Sequence[str], counts: IntegerArray) -> None:
        """The vocabulary of these words. `kmers` has the fields of `somafeed.kmers.Kmers`, with
        an alphabet.

        Raises ValueError if a word has other letters, or another number of them.
        """
    @property
    def alphabet(self) -> str: ...
    @property
    def n_counted(self) -> int:
        """Number of words without those of padding and the unknown one: the first ones."""
    def texts(self) -> list[str]: ...
    def counts(self) -> npt.NDArray[np.uint64]: ...
    def encode(self, sequence: str) -> list[list[int]]:
        """The words of a sequence, frame by frame. Raises ValueError for unknown words, unless they
        are left out or have a word of their own."""
    def __len__(self) -> int: ...

@final
class Sequences(Samples):
    """Sequences of stores in files or on servers."""

    def __init__(
        self,
        stores: Sequence[str | Mapping[str, Any]],
        *,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Opens stores by their addresses, or on servers (the entries `addresses`, `namespace`,
        `retry_secs` and `root_certificates`).

        Raises FileNotFoundError if one is not there, ConnectionError if servers cannot be reached.
        """
    def sizes(self) -> list[int]:
        """The number of sequences of each store."""
    def with_entries(
        self,
        entries: Mapping[str, Any],
        *,
        vocabulary: KmerVocabulary | None = None,
        seed: int = 0,
    ) -> Sequences:
        """The same sequences, of which batches have these entries: `letters`, `names`, `one_hot`,
        `windows`, `layout`, `max_length` and `pad`. `seed` is that of noise.

        Raises ValueError for settings that do not fit together.
        """
    def summary(self) -> dict[str, Any]:
        """Numbers that describe the whole store."""
    def names(self) -> list[str]:
        """The names of the selected sequences."""
    def count_words(self, kmers: Mapping[str, Any], *, threads: int = 1) -> KmerVocabulary:
        """Counts the words of the whole store. Raises ValueError for a letter that the alphabet
        lacks, unless such words are left out or have a word of their own."""

@final
class SequenceBatch(PlacedBatch):
    """Sequences of a batch. Its arrays may be changed and kept."""

    @property
    def names(self) -> list[str] | None: ...
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of `somafeed.sequences.SequenceBatch`; words are int32."""

@final
class Doc2VecTrainer:
    """Trains vectors of sequences and of their words, epoch by epoch."""

    def __init__(
        self, sequences: Sequences, vocabulary: KmerVocabulary, settings: Mapping[str, Any]
    ) -> None:
        """Makes the first vectors. `settings` has the arguments of `somafeed.Doc2Vec`.

        Raises ValueError for a setting that is out of range.
        """
    def epoch(self, number: int) -> tuple[int, int, float]:
        """Trains for an epoch; number of sequences, number of words, and the mean loss of a word.
        After Ctrl-C or an error, the trainer cannot go on."""
    def vectors(self) -> list[npt.NDArray[np.float32]]:
        """The vectors of sequences, those of words that make up a context (none with `dm=0`), and
        those that score words, each row by row in one dimension."""

@final
class Doc2VecInference:
    """Infers vectors of sequences by the words of a model, which stay as they are."""

    def __init__(
        self,
        vocabulary: KmerVocabulary,
        settings: Mapping[str, Any],
        inputs: npt.NDArray[np.float32],
        outputs: npt.NDArray[np.float32],
    ) -> None:
        """Takes the vectors of words that `Doc2VecTrainer.vectors` returned. Raises ValueError if
        they do not fit the vocabulary."""
    def infer(
        self, sequences: Sequence[str], epochs: int, alpha: float, min_alpha: float, workers: int
    ) -> npt.NDArray[np.float32]:
        """The vectors of sequences, row by row in one dimension."""

NamedVectors: TypeAlias = tuple[list[str], npt.NDArray[np.float32], int]
"""Names, all numbers row by row, and the length of a vector."""

def write_word2vec(path: str, vectors: NamedVectors, binary: bool) -> None:
    """Writes word2vec's text or binary form. Raises ValueError for a name with white space."""

def write_embeddings(path: str, documents: NamedVectors, words: NamedVectors) -> None:
    """Writes the vectors of sequences and words to a safetensors file."""

def read_embeddings(path: str) -> dict[str, NamedVectors]:
    """The entries `documents` and `words` of a file that `write_embeddings` wrote."""

def import_sequences(
    files: Sequence[str], store: str, *, skip_empty: bool = False, skip_doubled: bool = False
) -> dict[str, Any]:
    """Writes records of files to a new store: see `somafeed.import_sequences`. Ctrl-C leaves no
    store behind."""

def fill_sequence_servers(
    uri: str,
    servers: Mapping[str, Any],
    *,
    config: Mapping[str, str] | None = None,
    sequences_per_key: int = 1,
) -> int:
    """Copies a store to servers, as far as they do not have it; the number of sequences."""

@final
class Epoch:
    """Iterates the batches of one epoch. Threads make them ahead; `close` or the end stops them.

    Threads may share it: each batch goes to one of them. After an error it has ended. In a process
    forked from the one that started it, every method raises RuntimeError.
    """

    @property
    def n_batches(self) -> int:
        """Batches of the whole epoch, those before a resumed place included."""
    @property
    def number(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any:
        """A `Batch` of cells, or a batch of another kind, such as a `FieldBatch`."""
    def __enter__(self) -> Epoch: ...
    def __exit__(self, *exception: object) -> None: ...
    def close(self) -> None:
        """Stops and joins the threads. Batches that were delivered stay valid."""
    def state(self) -> str:
        """The place after the last delivered batch, as JSON below 1 KB, for `Loader.resume`. A
        batch that could not be made is not delivered."""
    def stats(self) -> dict[str, Any]:
        """Counts and times so far: `n_rows`, `nnz`, `bytes_read`, `read_secs`, `wait_secs` (sum
        over batches), `waits` (of each batch), `kept_bytes` (delivered batches that are still
        alive) and others. `n_skipped` is the number of samples that could not be read and are
        missing in the batches; `skipped` has the reasons for the first 100 of them, by name.

        With neighbours, `neighbour_rows` is the number of rows that were read only for them, and
        `read_amplification` that of all rows read, for each row of the epoch; None before the first.

        `accelerator_utilization` is the AU of MLPerf Storage: the share of the time after the first
        batch in which the loader was not waited for, None before the second. `entropy` has, for
        each encoder and each categorical obs column of at most 65,534 categories, of samples of
        other kinds for each of the loader's `labels`, the bits of Shannon's entropy: `batch` and `spread`, the mean and the standard deviation over the full
        batches (None before the first), and `cells`, that of all cells that were delivered. As
        `batch` comes near `cells`, batches are as mixed as the cells."""
    def utilization(self) -> tuple[int, float | None]:
        """Number of batches so far, and the `accelerator_utilization` of `stats()`: for a progress
        bar, since it makes no lists."""

@final
class Matrix:
    """A matrix of a batch, in the form that the loader makes. Owns its memory."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def form(self) -> Form: ...
    @property
    def nnz(self) -> int | None:
        """Stored values; None for a dense matrix."""
    def dense(self) -> npt.NDArray[Any]:
        """Like `Batch.dense`."""
    def csr(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any], npt.NDArray[Any]]:
        """Like `Batch.csr`."""
    def coo(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[Any]]:
        """Like `Batch.coo`."""

@final
class Neighbours:
    """The neighbours of a batch's cells, as rows of a table."""

    @property
    def table(self) -> Matrix:
        """Rows of X: those of the batch, then those of neighbours that are not among them, each once,
        by their first occurrence. The batch's own X is a view of its first rows."""
    @property
    def positions(self) -> npt.NDArray[np.int64]:
        """The row of each neighbour in the table, (n_rows, k); of a missing one that of the cell."""
    @property
    def values(self) -> npt.NDArray[np.float32]:
        """The values of the graph, (n_rows, k); 0 of a missing neighbour."""
    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Whether the cell has this neighbour, (n_rows, k)."""
    @property
    def joinids(self) -> npt.NDArray[np.int64]:
        """The joinid of each row of the table."""
    @property
    def experiments(self) -> npt.NDArray[np.uint32]:
        """The experiment of each row of the table."""

@final
class Batch:
    """Rows of X with the obs row and joinid of each, in the epoch's order. Owns its memory."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def batch_idx(self) -> int:
        """Index in the epoch, from 0."""
    @property
    def n_padding(self) -> int:
        """Rows at the end that also come elsewhere (`remainder="pad"`)."""
    @property
    def form(self) -> Form:
        """The form of X; `"csr"` also of packed rows."""
    @property
    def nnz(self) -> int | None:
        """Stored values; None for a dense batch."""
    def dense(self) -> npt.NDArray[Any]:
        """(n_rows, n_columns), float32, or the stored type for `dtype="stored"`, or float16 for
        `form="f16"`. ValueError for other forms."""
    def csr(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any], npt.NDArray[Any]]:
        """indptr (n_rows + 1), indices (nnz) of int32, and data (nnz) of the type of `dense`. With
        `form="packed"`, indices of uint16 if there are at most 65,536 columns, and data of uint8 or
        uint16 if all of the batch, and of those before it, are such counts. ValueError for other
        forms."""
    def coo(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[Any]]:
        """rows, columns, and data of the type of `dense` (nnz each), row by row. ValueError for
        other forms."""
    def layer(self, name: str) -> Matrix:
        """A further layer: rows, columns and form are those of X, values float32 (float16 for
        `form="f16"`). ValueError if there is none."""
    def obsm(self, name: str) -> npt.NDArray[Any]:
        """(n_rows, its columns), float32, or float16 for `form="f16"`: the rows of X."""
    def modality(self, name: str) -> Matrix:
        """The rows of a modality, in its own form. ValueError if there is none."""
    def present(self, modality: str | None = None) -> npt.NDArray[np.bool_]:
        """Whether X, or a modality, has each cell; one that was not measured has a row of zeros."""
    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbours of the cells; None if none were asked for."""
    def tokens(self) -> dict[str, npt.NDArray[Any]]:
        """The tokens of the cells. ValueError unless the loader has a tokenizer.

        - `input_ids`: token ids, int32, of shape (n_rows, width); of rank 1 if ragged
        - `values`: float32, of the shape of `input_ids`; only of a tokenizer of bins
        - `length`: number of tokens of each cell without padding, int64
        - `offsets`: where each cell's tokens begin, and the number of tokens, int64; only if ragged
        """
    @property
    def obs(self) -> ArrowTable: ...
    @property
    def codes(self) -> ArrowTable: ...
    @property
    def joinids(self) -> npt.NDArray[np.int64]: ...
    @property
    def experiments(self) -> npt.NDArray[np.uint32]: ...

def generate_example(
    uri: str, *, n_cells: int = 20_000, n_genes: int = 20_000, seed: int = 0
) -> int:
    """Writes a Census-shaped experiment, the same for the same numbers, to a place where nothing is
    yet. Returns its number of values; Ctrl-C leaves no experiment behind.

    Raises FileExistsError or OSError if it cannot be written there.
    """

def libtiledb() -> tuple[str, str] | None:
    """Version and file of the libtiledb that this process uses; None if it has loaded none."""

def world_from_environment() -> tuple[int, int]:
    """Rank and world size from the launcher's variables: `RANK` and `WORLD_SIZE`, or those of
    Slurm and MPI; `(0, 1)` without a launcher.

    Raises ValueError if a variable is missing beside another, or they contradict each other.
    """

def run_program(arguments: list[str], start: list[str], code: str) -> int:
    """Runs a command of the command line and returns its exit code: 0, 1 after a failure, 2 if the
    command line is invalid, 130 after Ctrl-C.

    Args:
        arguments: The command and its arguments.
        start: The words that start the program again, for the processes that it measures.
        code: The file of the native module, which identifies the measured program.
    """
