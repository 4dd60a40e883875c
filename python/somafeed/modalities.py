"""Modalities: further measurements of the same cells, whose rows come beside X."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from somafeed import _somafeed as native
from somafeed.batches import NATIVE_FORMS, Form
from somafeed.joinids import Joinids
from somafeed.settings import names_of, shown


@dataclass(frozen=True, kw_only=True)
class Modality:
    """A further measurement of the same cells, for example proteins or peaks.

    >>> Modality(feature_type="Antibody Capture", form="torch_csr").measurement
    """

    uri: str | os.PathLike[str] | None = field(default=None, repr=False)
    """Another experiment of the same cells, for example an AnnData in a file of its own. Cells with the
    same name in both are the same; None means that the experiment of X has the modality."""
    names: str | None = None
    """With `uri`, the obs column with the names of cells, in both; None means the first column of each,
    which is the index of an AnnData."""
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    """TileDB's parameters for `uri`; None means those of the cells."""
    measurement: str | None = None
    """The measurement, or the modality of a MuData; None means the one with the modality's name, or
    that of X with `feature_type`, or the usual one of `uri`."""
    layer: str | None = None
    """The layer of its X; None means the usual one, or that of X with `feature_type`."""
    var_joinids: Any | None = None
    """Its genes: joinids, in the order of the columns."""
    var_filter: str | None = None
    """A value filter of its genes."""
    genes: tuple[str, Sequence[str]] | None = None
    """A var column and names in it: one column per name, zeros for one that is not there."""
    feature_type: str | None = None
    """The feature type of its genes, like `"Antibody Capture"`: the text in the var column
    `feature_types`, as files of 10x Genomics have it. Modalities of one matrix are read together."""
    presence: str | None = None
    """The obs column of booleans that says which cells were measured. SOMA stores nothing of a cell
    that was not measured, so without a column its zeros count as measured; a MuData needs none."""
    form: Form | None = None
    """The form of its rows in a batch: see `Form`. None means that of X. Tensors if X is one."""
    return_sparse: bool = False
    """Whether its rows are a `scipy.sparse.csr_matrix`; also if X is one and `form` is None."""
    var_columns: Sequence[str] = ()
    """The columns of `Dataset.modality_var`."""

    def __post_init__(self) -> None:
        """Checks the fields, and copies what could change.

        Raises:
            TypeError: A field is of another type.
            ValueError: A form is unknown, or does not fit.
        """
        if self.genes is not None:
            object.__setattr__(self, "genes", checked_genes(self.genes))
        if self.var_joinids is not None and not isinstance(self.var_joinids, Joinids):
            object.__setattr__(self, "var_joinids", Joinids(self.var_joinids))
        object.__setattr__(self, "var_columns", names_of("var_columns", self.var_columns))
        if self.form is not None and self.form not in NATIVE_FORMS:
            known = ", ".join(NATIVE_FORMS)
            raise ValueError(f"unknown form {shown(self.form)} of a modality; there are {known}")
        if self.return_sparse and self.form not in (None, "numpy"):
            raise ValueError(f"return_sparse=True gives scipy's CSR, but form is {self.form!r}")

    @property
    def opened(self) -> native.Experiment | None:
        """The experiment of `uri`."""
        if self.uri is None:
            return None
        config = {str(key): str(value) for key, value in (self.config or {}).items()}
        return native.Experiment(os.fsdecode(self.uri), config=config or None)

    @property
    def selected(self) -> npt.NDArray[Any] | tuple[int, int] | None:
        """The joinids of its genes for the native module."""
        return None if self.var_joinids is None else self.var_joinids.selection()

    def beside(self, config: Mapping[str, str]) -> Modality:
        """The same, beside cells with these parameters of TileDB. Its var has the joinids of genes,
        unless they are chosen by name."""
        columns = self.var_columns
        if self.genes is None and "soma_joinid" not in columns:
            columns = ("soma_joinid", *columns)
        of_uri = config if self.config is None else self.config
        return replace(self, var_columns=columns, config=of_uri)

    def form_beside(self, form: Form, return_sparse_X: bool) -> tuple[Form, bool]:
        """Its form, and whether it is scipy's CSR, if X has these."""
        if self.form is None:
            return form, self.return_sparse or return_sparse_X
        return self.form, self.return_sparse


Modalities = tuple[tuple[str, Modality], ...]
"""Modalities by their names in a batch."""


def checked_modalities(modalities: Any) -> Modalities:
    """Modalities by name, given as a dictionary, or as names of measurements.

    Raises:
        TypeError: They are something else.
    """
    if not isinstance(modalities, Mapping):
        modalities = {name: Modality() for name in names_of("modalities", modalities)}
    for name, one in modalities.items():
        if not isinstance(name, str) or not isinstance(one, Modality):
            kinds = type(name).__name__, type(one).__name__
            raise TypeError(f"modalities are somafeed.Modality by name, not {kinds[1]} by {kinds[0]}")
    return tuple(modalities.items())


def checked_genes(genes: Any) -> tuple[str, tuple[str, ...]]:
    """A var column, and names in it.

    Raises:
        TypeError: It is not a column and several names.
    """
    if isinstance(genes, str) or not isinstance(genes, Sequence) or len(genes) != 2:
        raise TypeError(f"genes must be a var column and names in it, not {shown(genes)}")
    column, names = genes
    if not isinstance(column, str):
        raise TypeError(f"genes must begin with the name of a var column, not {shown(column)}")
    return column, names_of("genes", names)
