#![doc = include_str!("../README.md")]
//!
//! The format is [SOMA](https://github.com/single-cell-data/SOMA) as tiledbsoma writes it on
//! TileDB, encoding versions 1 and 1.1.0. An [`Experiment`] leads to its obs ([`DataFrame`]) and to
//! measurements with a var ([`DataFrame`]) and layers of X ([`Matrix`]).
//!
//! X is read through the trait [`XReader`]. [`ReaderChoice`] selects one of the first two readers:
//!
//! | reader | reads | needs |
//! |---|---|---|
//! | [`NativeReader`] | the array's files; decodes only the part that a request needs | |
//! | [`LibtiledbReader`] | every array that libtiledb supports | feature `libtiledb` |
//! | [`MemoryReader`] | rows in memory | |
//! | [`RowCacheReader`] | rows in a cache on a local disk, and others through another reader | |
//! | [`AlignedReader`] | rows of another reader by the joinids of cells, in another order or not all there | |
//!
//! An [`AxisQuery`] selects rows of obs or var by joinid and by a [`ValueFilter`] in tiledbsoma's
//! syntax. Rows of X are selected by joinid ([`RowRanges`]), and so are genes ([`GeneSelection`]).
//! Rows are returned as CSR ([`CsrBuffers`]) or as Arrow COO.
//!
//! With the feature `anndata`, an AnnData in Zarr or HDF5 is opened as an experiment, too
//! ([`Experiment`]).
//!
//! An experiment is in a folder or in an object store: `s3://`, `gs://` and `azure://` need the
//! features `s3`, `gcs` and `azure`. `census://2025-11-08/homo_sapiens` is short for the CELLxGENE
//! Census's public address ([`Experiment::open`]).
//!
//! An [`ExperimentWriter`] writes a new experiment, which appears at its [`Destination`] once it is
//! complete. [`FrameCopy`] copies obs or var from another experiment.
//!
//! # Without libtiledb
//!
//! Experiments are read natively, and written natively in folders. The feature `libtiledb` adds
//! what only that library reads and writes; it is loaded when it is first needed, and if it is not
//! found, the error names the variable to set. Without the feature such an object is an error that
//! names it ([`Error::NeedsLibtiledb`], [`Error::WriteNeedsLibtiledb`]).
#![cfg_attr(docsrs, feature(doc_cfg))]

mod aligned;
#[cfg(feature = "anndata")]
mod anndata;
mod arrow;
mod axis_query;
mod census;
mod collected;
mod columns;
pub mod contract;
mod coo;
mod dataframe;
mod dataframe_query;
mod dense;
mod error;
mod exact;
mod experiment;
mod file_kind;
mod frame_copy;
mod genes;
#[cfg(feature = "libtiledb")]
mod libtiledb;
mod matrix;
mod memory;
mod native;
mod nd_array;
mod reader;
mod reader_choice;
mod replacement;
mod row_cache;
mod rows;
mod soma_object;
mod soma_table;
mod table;
mod uns;
pub mod value_filter;
mod writer;

pub use self::aligned::AlignedReader;
pub use self::row_cache::{
    ROW_CACHE_DEFAULT_BYTES, ROW_CACHE_FOLDER, ROW_CACHE_LIMIT, RowCacheReader, RowCacheSpec,
    RowCacheStats, RowCacheUse,
};
#[cfg(feature = "anndata")]
pub use ::anndata::Error as AnnDataError;
#[cfg(feature = "anndata")]
pub use ::hdf5::Error as Hdf5Error;
pub use axis_query::{AxisQuery, Joinids};
pub use csr::{ColumnSelection as GeneSelection, CsrBuffers, PackedCsr, PackedValues};
pub use dataframe::DataFrame;
pub use error::{Error, Unnamed};
pub use exact::is_within_f32;
pub use experiment::{Experiment, Measurement, OpenOptions};
pub use frame_copy::{ColumnChoice, FrameCopy};
#[cfg(feature = "libtiledb")]
pub use libtiledb::LibtiledbReader;
pub use matrix::{Bounds, Matrix};
pub use memory::MemoryReader;
pub use native::NativeReader;
pub use nd_array::NdArray;
pub use reader::{ReadForm, WholeRows, XReader};
pub use reader_choice::ReaderChoice;
pub use replacement::REPLACE_EXPERIMENT;
pub use rows::RowRanges;
pub use storage::{
    CacheStats, CacheUse, Config, Destination, DestinationError, Existing, NextReads, ReadLimit,
    ReadLimitUse, check_apart, environment_secrets, local_path,
};
pub use tiledb::{Filter, MetadataValue};
pub use uns::{Uns, UnsValue};
pub use value_filter::ValueFilter;
pub use worktime::{ReadStats, ReadTimes, ThreadTime};
pub use writer::{
    ColumnKind, ColumnSpec, ExperimentSpec, ExperimentWriter, Extent, MeasurementWriter, XLayout,
};
