"""Tokens of cells for foundation models, which batches have in place of X.

>>> import numpy as np
>>> import pyarrow as pa
>>> import somafeed
>>> cells = somafeed.Dataset.in_memory(
...     np.array([0, 3, 4]), np.array([0, 1, 2, 1]), np.array([3, 8, 1, 5], np.float32),
...     n_columns=3, obs=pa.table({"cell_type": ["B cell", "T cell"]}),
...     var=pa.table({"feature_id": ["CD3D", "NKG7", "XIST"]}),
... )
>>> tokens = somafeed.RankTokens(
...     {"<pad>": 0, "CD3D": 10, "NKG7": 11}, {"CD3D": 1.0, "NKG7": 4.0}, max_length=4
... )
>>> ds = somafeed.ExperimentDataset(
...     dataset=cells, obs_column_names=["cell_type"], batch_size=2, shuffle=False, tokens=tokens
... )
>>> batch, obs = next(iter(ds))
>>> batch["input_ids"]
array([[10, 11,  0,  0],
       [11,  0,  0,  0]])
>>> batch["length"].tolist()
[2, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from somafeed import _somafeed as native
from somafeed.batches import required
from somafeed.settings import shown

TokenBatch: TypeAlias = dict[str, Any]
"""The tokens of a batch: arrays, or tensors, one row per cell.

| entry | shape | values |
|---|---|---|
| `input_ids` | (cells, width) | token ids, `integers` |
| `attention_mask` | (cells, width) | bool: True for a token, False for padding |
| `length` | (cells,) | int64: number of tokens without padding |
| `values` | (cells, width) | float32: bins of `BinTokens` |

Ragged sequences follow one another: `input_ids` and `values` have rank 1, `offsets` (cells + 1,
int64) says where each begins, and there is no mask.
"""

Layout: TypeAlias = Literal["padded", "longest", "ragged"]
"""Whether sequences are padded to `max_length`, to the longest of the batch, or not at all."""

Integers: TypeAlias = Literal["int64", "int32"]
"""The type of token ids. int32 needs no copy and half the memory; torch's embeddings take both, its
losses take int64 alone."""


@dataclass(frozen=True, eq=False)
class RankTokens:
    """Genes by descending value, as Geneformer reads cells.

    The value of a gene is `value / total * target_sum / median`. The total is that of the obs
    column `totals=` of the data set, otherwise the sum over the selected genes. Genes that are
    equal come in the order of columns.

    X must be counts, so `target_sum=`, `log1p=` and `clip=` of the data set are errors.
    """

    vocabulary: Mapping[str, int] = field(repr=False)
    """Token ids of gene names and of special tokens. Other genes are left out."""
    medians: Mapping[str, float] = field(repr=False)
    """The median of each gene over many cells. Genes without one are left out, too."""
    max_length: int = 2_048
    """Longest sequence in tokens, special tokens included. Geneformer's second model has 4,096."""
    gene_column: str = "feature_id"
    """The var column with the names of the vocabulary."""
    pad: str = "<pad>"
    cls: str | None = None
    """Name of the token that begins each sequence. Geneformer's second model has `<cls>`."""
    eos: str | None = None
    """Name of the token that ends each sequence. Geneformer's second model has `<eos>`."""
    target_sum: float = 1e4
    layout: Layout = "padded"
    integers: Integers = "int64"

    def tokenizer(self, dataset: native.Dataset) -> native.Tokenizer:
        """The native tokenizer for the genes of a data set.

        Raises:
            ValueError: The settings do not fit together, or not to the genes.
        """
        return native.Tokenizer.ranks(
            dataset, dict(self.vocabulary), dict(self.medians), gene_column=self.gene_column,
            pad=self.pad, cls=self.cls, eos=self.eos, target_sum=self.target_sum,
            max_length=self.max_length,
        )


@dataclass(frozen=True, eq=False)
class BinTokens:
    """Genes by column, each with the bin of its value, as scGPT reads cells.

    Borders of bins are quantiles of the cell's own values above 0. Bin 0 is for zeros and special
    tokens. Random choices depend on `seed`, the epoch and the cell alone.
    """

    vocabulary: Mapping[str, int] = field(repr=False)
    """Token ids of gene names and of special tokens. Other genes are left out."""
    max_length: int = 1_200
    """Longest sequence in tokens, special tokens included."""
    gene_column: str = "feature_name"
    """The var column with the names of the vocabulary."""
    pad: str = "<pad>"
    cls: str | None = "<cls>"
    """Name of the token that begins each sequence."""
    eos: str | None = None
    """Name of the token that ends each sequence."""
    n_bins: int = 51
    """Number of bins, that of zeros included."""
    ties: Literal["spread", "highest"] = "spread"
    """The bin of a value that equals several borders: a random one of those between them, like
    scGPT's `side="both"`, or the highest, like `side="one"`."""
    cut: Literal["random", "highest"] = "random"
    """Which genes stay if there are more than fit: random ones, or those of the highest values."""
    include_zeros: bool = False
    """Whether known genes without a value have tokens, too."""
    pad_value: float = -2.0
    """The value of padding."""
    seed: int = 0
    layout: Layout = "padded"
    integers: Integers = "int64"

    def tokenizer(self, dataset: native.Dataset) -> native.Tokenizer:
        """The native tokenizer for the genes of a data set.

        Raises:
            ValueError: The settings do not fit together, or not to the genes.
        """
        return native.Tokenizer.bins(
            dataset, dict(self.vocabulary), gene_column=self.gene_column, pad=self.pad,
            cls=self.cls, eos=self.eos, n_bins=self.n_bins, ties=self.ties, cut=self.cut,
            include_zeros=self.include_zeros, max_length=self.max_length,
            pad_value=self.pad_value, seed=self.seed,
        )


Tokens: TypeAlias = RankTokens | BinTokens


def checked_tokens(
    tokens: Any, *, form: str, dtype: str | None, return_sparse_X: bool, layers: Any
) -> Tokens | None:
    """Checks tokens, and that no other argument says what X is.

    Raises:
        TypeError: They are something else.
        ValueError: An argument is about X, which tokens replace.
    """
    if tokens is None:
        return None
    if not isinstance(tokens, RankTokens | BinTokens):
        raise TypeError(f"tokens must be RankTokens or BinTokens, not {shown(tokens)}")
    if tokens.layout not in ("padded", "longest", "ragged"):
        found = shown(tokens.layout)
        raise ValueError(f"unknown layout {found}; there are padded, longest, ragged")
    if tokens.integers not in ("int64", "int32"):
        raise ValueError(f"unknown integers {shown(tokens.integers)}; there are int64, int32")
    if form not in ("numpy", "torch"):
        raise ValueError(f"tokens come in form numpy or torch, not in form {shown(form)}")
    about_x = {"return_sparse_X": return_sparse_X, "layers": layers, "dtype": dtype == "stored"}
    given = [name for name, value in about_x.items() if value]
    if given:
        raise ValueError(f"{given[0]}= is about X, which tokens replace: leave one of them out")
    return tokens


def token_maker(tokens: Tokens, form: str) -> Callable[[native.Batch], TokenBatch]:
    """The function that takes the tokens of a native batch. Imports what it needs."""
    from_numpy = required("torch", f"form={form!r}").from_numpy if form == "torch" else None

    def make(batch: native.Batch) -> TokenBatch:
        made: TokenBatch = batch.tokens()
        ids = made["input_ids"]
        made["input_ids"] = ids.astype(tokens.integers, copy=False)
        if ids.ndim == 2:
            made["attention_mask"] = np.arange(ids.shape[1]) < made["length"][:, None]
        if from_numpy is None:
            return made
        return {name: from_numpy(array) for name, array in made.items()}

    return make
