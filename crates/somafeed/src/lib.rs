#![doc = include_str!("../README.md")]
//!
//! This crate has the types that most programs need; its modules and re-exported crates have the
//! rest.
//!
//! | to | use |
//! |---|---|
//! | open an experiment | [`Experiment::open`] |
//! | select cells, genes and columns | [`DatasetSpec`] with [`AxisQuery`], then [`Dataset::from_experiment`] |
//! | use rows in memory | [`Dataset::in_memory`] |
//! | join several experiments | [`Dataset::concat`] |
//! | choose sizes, order, seed, memory, ranks | [`PipelineSpec`], in a [`LoaderSpec`] |
//! | load batches | [`Loader`], [`Epoch`], [`Batch`] |
//! | encode labels | [`encode`] |
//! | split and sample cells | [`split`], [`sample`] |
//! | save and resume | [`LoaderState`] |
//! | get tensors and train | `torch` (feature `torch`) |
//! | load samples of Zarr arrays | `arrays` (feature `arrays`) |
//! | get tensors of Zarr arrays | `torch::ArrayTensorLoader` (features `torch` and `arrays`) |
//! | load image cubes | `images` (feature `images`); as tensors with `torch`, too |
//! | load DNA, RNA and other sequences | `sequences` (feature `sequences`); as tensors with `torch`, too |
//! | load samples of your own kind | [`pipeline::Source`] |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `libtiledb` | what only libtiledb reads of an experiment; the library is loaded on first use |
//! | `anndata` | AnnData in Zarr, opened like an experiment |
//! | `s3`, `gcs`, `azure` | addresses in these object stores |
//! | `web` | AnnData at addresses `http://` and `https://` |
//! | `torch` | batches as tensors; links libtorch 2.11 |
//! | `ndarray`, `sprs` | batches as matrices of these crates |
//! | `arrays` | samples of Zarr arrays; with `torch`, as tensors |
//! | `images` | samples of image cubes; with `torch`, as tensors |
//! | `sequences` | samples of sequences of letters and their words; with `torch`, as tensors |
//! | `servers` | sequences in a cluster of Redis or Valkey servers |
//!
//! None is on by default. Experiments are read natively. With the feature `libtiledb`, what the
//! native reader does not support (dense arrays, encryption) is read through libtiledb, which is
//! loaded from the file in `SOMAFEED_LIBTILEDB`, otherwise from the user's cache.
//!
//! [tch](https://docs.rs/tch) finds libtorch through `LIBTORCH` when it is built, and programs that
//! `cargo run` and `cargo test` start find it again. A program that is started in another way needs
//! libtorch's folder in `LD_LIBRARY_PATH` or in its own rpath.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "arrays")]
pub use arrays;
// Public signatures use types of these crates; the re-exports spare programs a matching version.
pub use {arrow_array, arrow_schema};
#[cfg(feature = "images")]
pub use {images, slots};

pub use loader::{
    AxisQuery, Batch, BatchForm, BlockForm, Budget, CellMemory, Cells, Dataset, DatasetError,
    DatasetSpec, Epoch, EpochStats, Epochs, GeneJoin, GeneSelection, Genes, Joinids, Loader,
    LoaderError, LoaderSpec, LoaderState, Matrix, Order, PipelineSpec, ReaderChoice, Remainder,
    RowSet, TokenBatch, TokenSpec, Totals, Transform, ValueFilter, World, encode, sample, split,
};
pub use pipeline;
#[cfg(feature = "sequences")]
pub use sequences;
pub use soma_io::{CsrBuffers, Experiment, OpenOptions};
pub use storage;
pub use tokens;
#[cfg(feature = "torch")]
pub use torch_feed as torch;

/// The SOMA model: experiments, data frames, arrays, their readers and writers.
pub mod soma {
    pub use soma_io::*;
}

/// The example of the README, which is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
