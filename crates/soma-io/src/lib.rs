//! SOMA experiments on TileDB: opening them, reading obs, var and X, and writing new ones.
//!
//! The format is [SOMA](https://github.com/single-cell-data/SOMA) as tiledbsoma writes it on TileDB, encoding versions 1 and 1.1.0:
//! an [`Experiment`] leads to its obs ([`DataFrame`]) and to measurements with a var ([`DataFrame`]) and layers of X
//! ([`SparseNdArray`]). Whoever reads X does it through the [`XReader`] trait: from the array's files ([`NativeReader`]),
//! through libtiledb ([`LibtiledbReader`]) or from memory ([`MemoryReader`]). [`ReaderChoice`] says which.
//!
//! An experiment is in a folder, or in an object store (`s3://`, `gs://`, `azure://`); `census://2025-11-08/homo_sapiens` is short for
//! the CELLxGENE Census's public address ([`Experiment::open`]). [`OpenOptions::config`] says how a store is asked.
//!
//! A new experiment is written by an [`ExperimentWriter`] at a [`Destination`], where it appears when it is whole; [`FrameCopy`] takes
//! obs or var over from another.
//!
//! Which rows of obs or var are wanted, an [`AxisQuery`] says: by joinid and by a [`ValueFilter`] in tiledbsoma's words.
//!
//! This crate knows nothing of shuffling or of batches. Rows are named by joinid ([`RowRanges`]), genes by joinid
//! ([`GeneSelection`]), and rows come as CSR ([`CsrBuffers`]) or as Arrow COO.

mod arrow;
mod axis_query;
mod census;
pub mod contract;
mod dataframe;
mod destination;
mod error;
mod experiment;
mod frame_copy;
mod genes;
mod libtiledb;
mod memory;
mod native;
mod reader;
mod reader_choice;
mod rows;
mod soma_object;
mod sparse_array;
pub mod value_filter;
mod writer;

pub use axis_query::{AxisQuery, Joinids};
pub use csr::{CsrBuffers, PackedCsr, PackedValues};
pub use dataframe::DataFrame;
pub use destination::{Destination, Existing, check_apart};
pub use error::Error;
pub use experiment::{Experiment, Measurement, OpenOptions};
pub use frame_copy::{ColumnChoice, FrameCopy};
pub use genes::GeneSelection;
pub use libtiledb::LibtiledbReader;
pub use memory::MemoryReader;
pub use native::NativeReader;
pub use reader::{ReadForm, ReadStats, XReader};
pub use reader_choice::ReaderChoice;
pub use rows::RowRanges;
pub use sparse_array::SparseNdArray;
pub use storage::{
    CacheStats, CacheUse, Config, ReadLimit, ReadLimitUse, environment_secrets, local_path,
};
pub use tiledb::Filter;
pub use value_filter::ValueFilter;
pub use worktime::{ReadTimes, ThreadTime};
pub use writer::{ColumnKind, ColumnSpec, ExperimentSpec, ExperimentWriter, Extent, XLayout};
