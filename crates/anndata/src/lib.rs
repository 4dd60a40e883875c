#![doc = include_str!("../README.md")]
//!
//! [`AnnData`] names the elements; a [`Frame`] is a table and returns Arrow; a [`Matrix`] returns
//! rows of X, of a layer or of obsm as CSR. The crate knows the format and no other model of cells.
//!
//! # Collections
//!
//! A collection as [annbatch](https://annbatch.readthedocs.io) writes it, groups `dataset_0`,
//! `dataset_1` and so on below a root of encoding `annbatch-preshuffled`, is opened like one
//! AnnData: the rows of its data sets follow each other. Tables have the columns that all data sets
//! have with the same type, and of categorical ones the categories of all, as dictionaries with
//! `Int32` keys. Matrices are all CSR or all dense, of the same type; an element that differs is an
//! error.
//!
//! # Matrices
//!
//! The beginnings of rows (`indptr`) are read once, when a matrix is opened. A read turns rows into
//! ranges of `indices` and `data`, fetches the chunks that hold them in few joined reads, and
//! decodes each chunk once, on the threads of a pool, straight into its place if the chunk is
//! wanted whole and the type is that of [`CsrBuffers`](csr::CsrBuffers). A shard is read by its
//! inner chunks.
//!
//! Zarr leaves out chunks that have only the fill value: the index of a shard says so, but without
//! shards a lost file looks the same. In tables and dense matrices a missing file reads as zeros.
//! In the three arrays of a CSR matrix it is an error: otherwise values would silently be zero.
//! Chunks that are all zeros in `data`, or all the first column in `indices`, therefore are an
//! error, too: write such a matrix with its stored zeros removed (`matrix.eliminate_zeros()` of
//! scipy), or in shards.
//!
//! # MuData
//!
//! [`MuData`] has the AnnData of its modalities, and the row of each cell in each of them.
//!
//! # Matrices of 10x Genomics
//!
//! [`TenX`] presents a feature-barcode matrix as Cell Ranger writes it to HDF5 as an AnnData.
//!
//! # Not read
//!
//! Matrices by columns (`csc_matrix`), tables in obsm, varm and varp; of uns, numbers with
//! dimensions, tables and matrices; what only some data sets of a collection have.
//! [`AnnData::unread`], [`Frame::unsupported`] and [`Uns::unread`] name them.
#![forbid(unsafe_code)]

mod categories;
mod column;
mod elements;
mod error;
mod frame;
mod frame_column;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod matrix;
mod mudata;
mod open;
mod parts;
mod ten_x;
mod uns;
mod walk;

pub use arrays::Scalar;
pub use error::Error;
pub use frame::Frame;
pub use matrix::{Matrix, MatrixKind};
pub use mudata::{MuData, rows_by_name};
pub use open::{AnnData, Raw};
pub use ten_x::TenX;
pub use uns::{Uns, UnsValue};
pub use worktime::ReadStats;
