"""What a data set is made of: plain descriptions, which pickle, and how each is opened."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.joinids import Joinids, NDArrayJoinId
from somafeed.modalities import Modalities
from somafeed.neighbours import Neighbours
from somafeed.settings import shown
from somafeed.splits import Rows, Split

JOINID = "soma_joinid"

Genes: TypeAlias = tuple[str, ...]
"""Names of genes, or the experiment and the measurement whose joinids they have."""

# What is read beside X, however cells are named.
_OF_ALL = (
    "layers", "obsm", "modalities", "neighbours", "presence", "cell_join", "reader", "var_columns",
)
_WAYS = "cells come from {query,layer_name} xor {x_locator,query_ids} xor uri= xor dataset="


class Source(Protocol):
    """Cells and genes, described so that another process can open them."""

    def open(self, columns: Sequence[str], totals: str | None = None) -> native.Dataset:
        """Opens the cells with these obs columns, which do not include `soma_joinid`."""
        ...


@dataclass(frozen=True, kw_only=True)
class XLocator:
    """A layer of X in an experiment, like tiledbsoma_ml's class of this name."""

    uri: str
    measurement_name: str
    layer_name: str
    tiledb_timestamp_ms: int | None = None
    tiledb_config: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return _described(self)

    @classmethod
    def create(cls, experiment: Any, measurement_name: str, layer_name: str) -> XLocator:
        """The layer in an open `tiledbsoma.Experiment`, with its timestamp and configuration."""
        return cls(
            uri=experiment.uri,
            measurement_name=measurement_name,
            layer_name=layer_name,
            tiledb_timestamp_ms=experiment.tiledb_timestamp_ms,
            tiledb_config=config_of(experiment.context),
        )


@dataclass(frozen=True, kw_only=True)
class QueryIDs:
    """Joinids of the selected cells and genes, like tiledbsoma_ml's class of this name."""

    obs_joinids: NDArrayJoinId
    var_joinids: NDArrayJoinId


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Cells and genes of one experiment. None selects all."""

    uri: str
    measurement: str | None = None
    layer: str | None = None
    """None is chosen, as of the measurement: `names`."""
    config: Mapping[str, str] = field(default_factory=dict)
    timestamp: int | None = None
    obs_joinids: Joinids | None = None
    obs_filter: str | None = None
    var_joinids: Joinids | None = None
    var_filter: str | None = None
    genes: tuple[str, tuple[str, ...]] | None = None
    """A var column and names in it, instead of joinids and filter."""
    layers: tuple[str, ...] = ()
    """Further layers, beside X."""
    obsm: tuple[str, ...] = ()
    feature_type: str | None = None
    """The feature type of the genes, instead of joinids, filter and names."""
    modalities: Modalities = ()
    """Further measurements, by their names in a batch."""
    neighbours: Neighbours | None = None
    """The neighbours of each cell, whose rows come beside X."""
    presence: str | None = None
    """The obs column that says which cells X has."""
    cell_join: native.CellJoin = "union"
    reader: native.Reader = "auto"
    var_columns: tuple[str, ...] = ()
    """Columns of var that are needed beside the joinids."""

    def __repr__(self) -> str:
        return _described(self)

    def __getstate__(self) -> dict[str, Any]:
        # A context of tiledbsoma lists all parameters of TileDB: 10 kB as they are.
        packed = zlib.compress(json.dumps(dict(self.config)).encode())
        return {**self.__dict__, "config": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        config = json.loads(zlib.decompress(state["config"]))
        self.__dict__.update({**state, "config": config})

    def experiment(self) -> native.Experiment:
        """Opens the experiment."""
        return native.Experiment(
            self.uri, config=dict(self.config) or None, timestamp=self.timestamp
        )

    @cached_property
    def names(self) -> tuple[str, str]:
        """The names of the measurement and of the layer. Opens the experiment if one is chosen."""
        if self.measurement is not None and self.layer is not None:
            return self.measurement, self.layer
        return self.experiment().names(self.measurement, self.layer)

    def open(self, columns: Sequence[str], totals: str | None = None) -> native.Dataset:
        """Opens the cells with these obs columns."""
        gene_column, gene_names = self.genes or (None, None)
        return native.Dataset.from_experiment(
            self.experiment(),
            measurement=self.measurement,
            layer=self.layer,
            obs_joinids=None if self.obs_joinids is None else self.obs_joinids.selection(),
            obs_filter=self.obs_filter,
            var_joinids=None if self.var_joinids is None else self.var_joinids.selection(),
            var_filter=self.var_filter,
            gene_column=gene_column,
            gene_names=gene_names,
            obs_columns=columns,
            var_columns=(*(() if self.genes else (JOINID,)), *self.var_columns),
            totals=totals,
            layers=self.layers,
            obsm=self.obsm,
            feature_type=self.feature_type,
            modalities={name: one.beside(self.config) for name, one in self.modalities},
            presence=self.presence,
            cell_join=self.cell_join,
            neighbours=self.neighbours,
            reader=self.reader,
        )


def _described(place: XLocator | Selection) -> str:
    """Its fields: addresses without credentials, and of TileDB's parameters only the names."""
    values = {one.name: getattr(place, one.name) for one in fields(place)}
    texts = (
        f"{name}={_field(value)}" for name, value in values.items() if value not in (None, (), {})
    )
    return f"{type(place).__name__}({', '.join(texts)})"


def _field(value: Any) -> str:
    if isinstance(value, str):
        return repr(native._address_without_credentials(value))
    return native._without_credentials(repr(sorted(value) if isinstance(value, Mapping) else value))


@dataclass(frozen=True)
class Part:
    """One part of a split of another source."""

    whole: Source
    split: Split
    index: int
    n_rows: int
    """Rows of the whole when it was split: of another number, the split has other parts."""

    def open(self, columns: Sequence[str], totals: str | None = None) -> native.Dataset:
        """Opens the whole, and selects the part.

        Raises:
            ValueError: The whole has more or fewer rows than when it was split.
        """
        whole = self.whole.open(columns, totals)
        check_unchanged(whole.shape[0], self.n_rows)
        return whole.select(split_rows(self.whole, self.split, whole)[self.index])


@dataclass(frozen=True)
class Concat:
    """Several sources, one after another. All have the same genes as columns."""

    sources: tuple[Source, ...]
    experiment_column: str | None = None
    """The name of a column with the number of each row's source."""

    def open(self, columns: Sequence[str], totals: str | None = None) -> native.Dataset:
        """Opens all."""
        return native.Dataset.concat([source.open(columns, totals) for source in self.sources])


@dataclass(frozen=True)
class Opened:
    """A data set that was opened by other means, for example of rows in memory."""

    dataset: native.Dataset

    def open(self, columns: Sequence[str], totals: str | None = None) -> native.Dataset:
        """The data set itself.

        Raises:
            ValueError: It lacks a column.
        """
        there = self.dataset.obs().column_names
        missing = [column for column in columns if column not in there]
        if missing:
            raise ValueError(f"the data set has no obs column {shown(missing[0])}; it has {there}")
        return self.dataset

    def __reduce__(self) -> Any:
        raise TypeError(
            "an ExperimentDataset of an opened data set cannot be pickled: "
            "make it with uri= or a query, so that another process can open it"
        )


def split_rows(whole: Source, split: Split, opened: native.Dataset) -> list[Rows]:
    """The rows of each part of a source that is `opened`."""
    n_rows = opened.shape[0]
    return split.parts(n_rows, lambda columns: groups_of(whole, columns, n_rows))


def groups_of(source: Source, columns: Sequence[str], n_rows: int) -> npt.NDArray[np.uint32]:
    """A number for each of a source's `n_rows` rows; equal numbers if rows agree in the columns.

    Raises:
        ValueError: A column makes no groups; the source has another number of rows by now.
    """
    wanted = [column for column in columns if column != JOINID]
    if len(wanted) < len(columns):
        raise ValueError(f"{JOINID} is different in every row, so it makes no groups")
    stored = [column for column in wanted if column != experiment_column_of(source)]
    opened = source.open(stored)
    check_unchanged(opened.shape[0], n_rows)
    if len(stored) == len(wanted):
        return opened.groups(stored)
    codes = [opened.experiments(), *([opened.groups(stored)] if stored else [])]
    return np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel().astype(np.uint32)


def experiment_column_of(source: Source) -> str | None:
    """The name of the column with the number of each row's data set, if several were joined."""
    while isinstance(source, Part):
        source = source.whole
    return source.experiment_column if isinstance(source, Concat) else None


def check_unchanged(n_rows: int, expected: int) -> None:
    """Fails if a source that was opened again has another number of rows.

    Raises:
        ValueError: It has; rows would be mistaken for others.
    """
    if n_rows != expected:
        raise ValueError(
            f"the experiment has changed: {n_rows} cells are selected now, {expected} were before. "
            "Give timestamp=, so that every process reads the same cells"
        )


def genes_of(source: Source) -> Genes | None:
    """Which gene each column of X is; None if that is not known, for an opened data set."""
    if isinstance(source, Part):
        return genes_of(source.whole)
    if isinstance(source, Concat):
        return genes_of(source.sources[0])
    if not isinstance(source, Selection):
        return None
    if source.genes is not None:
        return source.genes[1]
    return source.uri, source.measurement or source.names[0]


def genes_of_modality(source: Source, name: str) -> Any:
    """Which gene each column of a modality is: equal for equal genes; None if that is not known."""
    if isinstance(source, Part):
        return genes_of_modality(source.whole, name)
    if isinstance(source, Concat):
        return genes_of_modality(source.sources[0], name)
    modality = dict(source.modalities).get(name) if isinstance(source, Selection) else None
    if modality is None or not isinstance(source, Selection):
        return None
    if modality.genes is not None:
        return tuple(modality.genes[1])
    return source.uri, replace(modality, form=None, return_sparse=False)


def whole_of(source: Source) -> Source:
    """The cells that a source was split from."""
    if isinstance(source, Part):
        return whole_of(source.whole)
    if isinstance(source, Concat):
        members = tuple(whole_of(one) for one in source.sources)
        return Concat(members, source.experiment_column)
    return source


def check_same_genes(members: Sequence[tuple[Source, native.Dataset]]) -> None:
    """Fails unless the columns of all sources are certainly the same genes, in one order. For data
    sets that were given opened (`dataset=`) only the number is known, so they are the caller's.

    Raises:
        ValueError: They are others, or only their number says that they are the same.
    """
    for name, _ in members[0][1].modalities:
        of_modality = [genes_of_modality(source, name) for source, _ in members]
        differ = [idx for idx, genes in enumerate(of_modality) if genes not in (None, of_modality[0])]
        if differ and of_modality[0] is not None:
            raise ValueError(
                f"data set {differ[0]} may have other genes of modality {shown(name)} than the "
                "first: select the same ones in all by name, with Modality(genes=(column, names))"
            )
    known = [
        (idx, genes, opened)
        for idx, (source, opened) in enumerate(members)
        if (genes := genes_of(source)) is not None
    ]
    if not known:
        return
    _, of_first, first = known[0]
    for idx, genes, opened in known[1:]:
        if genes != of_first:
            raise ValueError(
                f"data set {idx} may have other genes than those before it: select the same ones "
                "in all by name, with genes=(column, names)"
            )
        # Joinids are the same genes only within one experiment; names are missing from some.
        joinids = [one.var() for one in (first, opened)]
        if all(JOINID in one.column_names for one in joinids):
            of_both = [one.column(JOINID) for one in joinids]
            if not np.array_equal(of_both[0], of_both[1]):
                raise ValueError(f"data set {idx} has other genes of the experiment than one before")


def parameters(config: Any) -> dict[str, str]:
    """TileDB's parameters as texts.

    Raises:
        TypeError: It is not a dictionary.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config must be a dictionary of TileDB's parameters, not {shown(config)}")
    return {str(key): str(value) for key, value in config.items()}


def checked_address(uri: Any) -> str:
    """An address as text.

    Raises:
        TypeError: It is neither a text nor a path.
        ValueError: It is not UTF-8, as addresses of TileDB are.
    """
    _refuse_anndata(uri)
    if not isinstance(uri, str | bytes | os.PathLike):
        raise TypeError(f"an address is a path or a text like 's3://...', not {shown(uri)}")
    address = os.fsdecode(uri)
    try:
        address.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"the address {shown(address)} is not UTF-8, which addresses of TileDB must be: give "
            "the folder another name, or a link to it"
        ) from None
    return address


def _refuse_anndata(thing: Any) -> None:
    """Fails if an AnnData stands where an address or a query is expected.

    Raises:
        TypeError: It does.
    """
    if hasattr(thing, "obs_names") and hasattr(thing, "var_names"):
        raise TypeError(
            "an AnnData is given as dataset=somafeed.Dataset.from_anndata(adata, "
            "obs_columns=[...]) if it is backed by a file; one in memory is written first, and its "
            "path given as uri="
        )


def config_of(context: Any) -> dict[str, str]:
    """TileDB's parameters in a context of tiledbsoma, whose attribute is `tiledb_config` in a
    `SOMATileDBContext` and may be `config` in a `SOMAContext`.

    Raises:
        TypeError: The context has neither.
    """
    if context is None:
        return {}
    for name in ("tiledb_config", "config"):
        config = getattr(context, name, None)
        config = config() if callable(config) else config
        if isinstance(config, Mapping):
            return _texts(config)
    raise TypeError(
        f"a context of type {type(context).__name__} has neither tiledb_config nor config"
    )


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that are set. A context lists all parameters, most of them empty."""
    return {str(key): str(value) for key, value in config.items() if value not in (None, "")}


def selection_of_query(query: Any, layer_name: str) -> Selection:
    """The cells and genes of a `tiledbsoma.ExperimentAxisQuery`, or of an object like it.

    Raises:
        TypeError: It is something else.
    """
    for name in ("experiment", "measurement_name", "obs_joinids", "var_joinids"):
        if not hasattr(query, name):
            raise TypeError(
                "a query is a tiledbsoma.ExperimentAxisQuery, like experiment.axis_query('RNA'), "
                f"not {shown(query)}, which has no {name}"
            )
    locator = XLocator.create(query.experiment, query.measurement_name, layer_name)
    ids = QueryIDs(obs_joinids=query.obs_joinids(), var_joinids=query.var_joinids())
    return selection_of_ids(locator, ids)


def selection_of_ids(locator: Any, ids: Any) -> Selection:
    """The cells and genes of an `XLocator` and `QueryIDs`, ours or tiledbsoma_ml's."""
    return Selection(
        uri=str(locator.uri),
        measurement=locator.measurement_name,
        layer=locator.layer_name,
        config=_texts(locator.tiledb_config or {}),
        timestamp=locator.tiledb_timestamp_ms,
        obs_joinids=Joinids(ids.obs_joinids).ascending(),
        var_joinids=Joinids(ids.var_joinids),
    )


def source_of(
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
    if isinstance(query, str | os.PathLike):
        raise TypeError(f"an address is given as uri=, not as a query: {shown(query)}")
    _refuse_anndata(query)
    _refuse_anndata(dataset)
    ways = [query is not None, x_locator is not None or query_ids is not None]
    ways += [dataset is not None, uri is not None]
    if sum(ways) != 1:
        raise ValueError(_WAYS)
    if uri is not None:
        return Selection(uri=checked_address(uri), layer=layer_name, **selected)
    of_all = {name: selected.pop(name) for name in _OF_ALL}
    measurement = selected.pop("measurement", None)
    of_cells = getattr(x_locator if query is None else query, "measurement_name", None)
    # An opened data set is of any measurement; `RNA` was the default once.
    if measurement not in (None, of_cells) and (of_cells or measurement != "RNA"):
        raise ValueError(
            f"measurement_name= is for uri=; the cells are of the measurement {of_cells!r}"
            if of_cells
            else f"measurement_name= is for uri=, and there is none; {_WAYS}"
        )
    given = [name for name, value in selected.items() if value not in (None, {})]
    if given:
        raise ValueError(f"{given[0]}= is for uri=, and there is none; {_WAYS}")
    if dataset is not None:
        if not isinstance(dataset, native.Dataset):
            raise TypeError(f"dataset must be a somafeed.Dataset, not {shown(dataset)}")
        own = ("layers", "obsm", "modalities", "neighbours", "presence")
        if any(of_all[name] for name in own):
            raise ValueError(
                "an opened data set has its layers, arrays of obsm, modalities and neighbours already"
            )
        return Opened(dataset)
    if query is not None and layer_name is not None:
        return replace(selection_of_query(query, layer_name), **of_all)
    if x_locator is not None and query_ids is not None and layer_name is None:
        return replace(selection_of_ids(x_locator, query_ids), **of_all)
    raise ValueError(_WAYS)
