"""`ExperimentDataset`: an experiment's cells and genes in shuffled batches, for PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, Unpack

from somafeed import _somafeed as native
from somafeed.batches import (
    HOST_FORMS,
    DType,
    Form,
    MiniBatch,
    ObsForm,
    XOrTokens,
    beside_maker,
    check_forms,
    import_packages,
    x_maker,
)
from somafeed.cells import Cells, Encoder, Selected
from somafeed.engine import EngineSettings
from somafeed.joinids import Joinids
from somafeed.modalities import Modalities, Modality, checked_genes, checked_modalities
from somafeed.neighbours import Neighbours, checked_neighbours
from somafeed.obs_forms import obs_maker
from somafeed.parts import Parts
from somafeed.settings import names_of, shown
from somafeed.sources import JOINID, parameters, source_of
from somafeed.tokens import Tokens, checked_tokens, token_maker
from somafeed.world import current_worker


DEFAULT_OBS_COLUMN_NAMES = (JOINID,)
DEFAULT_SHUFFLE_CHUNK_SIZE = 64
DEFAULT_IO_BATCH_SIZE = 65536


class ExperimentDataset(Parts, Selected):
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

    _noun = "cells"
    _number_name = "soma_joinid"

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
        feature_type: str | None = None,
        modalities: Mapping[str, Modality] | Sequence[str] = (),
        presence: str | None = None,
        cell_join: native.CellJoin = "union",
        neighbours: Neighbours | None = None,
        reader: native.Reader = "auto",
        dataset: native.Dataset | None = None,
        form: Form = "numpy",
        dtype: DType | None = None,
        obs_form: ObsForm = "pandas",
        encoders: Sequence[Encoder | str] | None = None,
        target_sum: float | None = None,
        totals: str | None = None,
        log1p: bool = False,
        clip: tuple[float, float] | None = None,
        tokens: Tokens | None = None,
        **engine: Unpack[EngineSettings],
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
            obsm: Arrays of obsm whose rows come beside X, for example `X_pca`. With `layers`,
                `obsm`, `modalities` or `neighbours`, a batch is `(X, obs, beside)`: a dictionary of the rows by
                name. Layers have the form of X, arrays of obsm are dense.
            feature_type: The feature type of the genes of X in `uri`, like `"Gene Expression"`, by
                the var column `feature_types`.
            modalities: Further measurements of the same cells, whose rows come beside X: a
                dictionary of `somafeed.Modality` by name, or names of measurements. `beside` has
                the rows of each under its name, and under the name and `_present` an array of
                booleans: whether each cell was measured. One that was not has zeros.
            presence: The obs column of booleans that says which cells X has; None means all, or
                those that a MuData says. `beside["present"]` has it for each cell, if there are
                modalities.
            cell_join: Which cells come if X or a modality lacks some: `"union"`, those that any of
                them has, or `"intersection"`, those that all have.
            neighbours: A `somafeed.Neighbours`, for example `Neighbours("distances", k=10)`: the
                nearest cells of each cell by a graph of obsp. `beside["neighbours"]` has rows of X in
                its form: first those of the batch, of which X is then a view, then those of all
                neighbours, each cell once; `beside["neighbours_positions"]` has the row of each
                neighbour in it.
            reader: `"native"` or `"libtiledb"` insists on one reader of X.
            dataset: A native data set, instead of all the above. Cannot be pickled.
            form: The form of X: see `Form`.
            dtype: The type of X's values: see `DType`. None means `"stored"` for `form="numpy"`,
                like tiledbsoma_ml; the other forms are of the type in their name.
            obs_form: The form of obs: see `ObsForm`.
            encoders: Encoders of obs columns, or names of columns for which one is fitted to all
                selected cells. For `obs_form="codes"`; None means one for each column.
            target_sum: Scales the values of each cell to this sum.
            totals: The obs column whose numbers are the cells' sums for `target_sum`, for example
                `raw_sum`; None means the sum over the selected genes.
            log1p: Whether values become log(1 + value), after scaling.
            clip: Limits of values `(low, high)`, applied last.
            tokens: `RankTokens` or `BinTokens`: batches then have the tokens of cells, a
                `TokenBatch`, in place of X. They come as numpy arrays or, with `form="torch"`, as
                tensors, and keep rank 2 if `batch_size` is 1.
            **engine: The engine's settings: see `EngineSettings`.

        Raises:
            ValueError: Arguments that do not fit together; a measurement, layer, column or joinid
                that is not there, or none of `genes`; a filter that does not parse.
            TypeError: An argument of another type.
            ModuleNotFoundError: A package that batches of this form need is not installed.
            FileNotFoundError: Nothing is at the address.
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
        self.obs_column_names = list(names_of("obs_column_names", obs_column_names))
        if not self.obs_column_names:
            raise ValueError("Must specify at least one value in `obs_column_names`")
        twice = [c for c in self.obs_column_names if self.obs_column_names.count(c) > 1]
        if twice:
            raise ValueError(f"obs column {shown(twice[0])} is named twice in `obs_column_names`")
        self.return_sparse_X = bool(return_sparse_X)
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
            feature_type=feature_type,
            modalities=checked_modalities(modalities),
            presence=presence,
            cell_join=cell_join,
            neighbours=checked_neighbours(neighbours),
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
        self._modalities: Modalities = checked_modalities(modalities)
        # Columns of obs that come as float32 beside codes.
        self._numbers: tuple[str, ...] = ()
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
    def column_names(self) -> list[str]:
        """The columns of obs in a batch, or the entries of its codes."""
        names = self.obs_column_names
        if self.obs_form == "codes":
            names = [encoder.name for encoder in self.encoders]
            names += [JOINID] if JOINID in self.obs_column_names else []
        return names if self.experiment_column is None else [*names, self.experiment_column]

    @property
    def shape(self) -> tuple[int, int]:
        """Batches of an epoch, and selected genes. In a DataLoader worker, the worker's batches."""
        return len(self), self.dataset.shape[1]

    def __repr__(self) -> str:
        cells, genes = self.dataset.shape
        return f"ExperimentDataset({cells} cells x {genes} genes in batches of {self.batch_size})"

    # What it says of its kind of samples

    @property
    def _samples(self) -> Cells:
        return self._cells

    def _with(self, samples: Cells) -> Self:
        other = self._another()
        other.obs_column_names = list(self.obs_column_names)
        other._cells = samples
        return other

    def _numbers_in(self, batch: Any) -> Any:
        try:
            return batch[1][JOINID]
        except (IndexError, KeyError, TypeError):
            # A transform may have changed it.
            return None

    def _number_samples(self) -> None:
        if JOINID not in self.obs_column_names:
            self.obs_column_names.append(JOINID)

    @property
    def _densifies(self) -> bool:
        # A batch of one cell is a row, which is sent as it is.
        is_dense = self.form == "torch" and self.tokens is None and self.batch_size > 1
        # All CSR of a batch becomes dense there, so none may be wanted.
        is_dense = is_dense and all(form != "torch_csr" for form, _ in self._modality_forms().values())
        return is_dense and self._travels

    @property
    def _travels(self) -> bool:
        """Whether batches go from the processor's memory to another device."""
        return self.device is not None and self.device.type != "cpu"

    @property
    def _form_of_x(self) -> Form:
        """The form of X before a device makes it dense."""
        return "torch_csr" if self._densifies else self.form

    def _host_form(self, form: Form) -> str:
        """The form in the processor's memory: CSR on its way to a device is packed."""
        return "packed" if form == "torch_csr" and self._travels else form

    def _own_options(self) -> dict[str, Any]:
        tokens = self.tokens
        is_csr = self.return_sparse_X or tokens is not None
        return {
            "dtype": self.dtype,
            "form": "csr" if is_csr else HOST_FORMS[self._host_form(self._form_of_x)],
            "modality_forms": tuple(
                (name, "csr" if is_sparse else HOST_FORMS[self._host_form(form)])
                for name, (form, is_sparse) in self._modality_forms().items()
            ),
            "tokens": self.tokenizer(),
            "token_layout": "padded" if tokens is None else tokens.layout,
            **self.transform,
        }

    def _modality_forms(self) -> dict[str, tuple[Form, bool]]:
        """The form of each modality, and whether it is scipy's CSR."""
        known = dict(self._modalities)
        of_x = self.form, self.return_sparse_X
        return {
            name: known[name].form_beside(*of_x) if name in known else of_x
            for name, _ in self.dataset.modalities
        }

    def _native_loader(self, options: dict[str, Any]) -> native.Loader:
        # Workers share the processors, which one process may use half of.
        threads = None if current_worker() is None else 2
        forms = dict(options.pop("modality_forms"))
        return native.Loader(
            self.dataset, batch_threads=threads, modality_forms=forms, **options
        )

    def _batch_key(self) -> tuple[Any, ...]:
        of_obs = (self.obs_form, *self.obs_column_names, self.experiment_column, *self._numbers)
        return (self.form, self.return_sparse_X, self.batch_size, self.tokens, of_obs)

    def _batch_maker(self) -> Callable[[native.Batch], MiniBatch]:
        form, batch_size = self._form_of_x, self.batch_size
        of_x = self._host_form(form), self.return_sparse_X
        make_x = x_maker(*of_x, batch_size)
        make_tokens = None if self.tokens is None else token_maker(self.tokens, form)
        make_obs = obs_maker(
            self.obs_form, self.obs_column_names, self.experiment_column, self.dataset, form,
            self._numbers,
        )
        forms = {
            name: x_maker(self._host_form(form), is_sparse, batch_size)
            for name, (form, is_sparse) in self._modality_forms().items()
        }
        # A table has several rows, also if the batch has one.
        make_table = x_maker(*of_x, 0)
        make_beside = beside_maker(make_x, self.dataset, form, batch_size, forms, make_table)

        def make(batch: native.Batch) -> MiniBatch:
            x: XOrTokens
            if make_tokens is None:
                x = make_x(batch, (batch.n_rows, batch.n_columns))
            else:
                x = make_tokens(batch)
            obs = make_obs(batch)
            return (x, obs) if make_beside is None else (x, obs, make_beside(batch))

        return make

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_tokenizer": None}
