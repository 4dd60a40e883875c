//! Errors of results folders and reports.

use std::{io, path::PathBuf};

use arrow_schema::{ArrowError, DataType};
use parquet::errors::ParquetError;

/// An error of this crate. If writing fails, the previous file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message above each variant says what its fields are")]
pub enum Error {
    /// The results folder cannot be created, or is not a folder.
    #[error("cannot create the results folder {}: {source}", folder.display())]
    CreateFolder { folder: PathBuf, source: io::Error },

    /// The lock that keeps two writers apart cannot be acquired.
    #[error("cannot lock {} (does the folder exist, is it writable, and does its file system support locks?): {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },

    /// A file of the results folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadFile { path: PathBuf, source: io::Error },

    /// A file of the results folder cannot be written, for lack of space or permission.
    #[error("cannot write {} (an earlier version is unchanged): {source}", path.display())]
    WriteFile { path: PathBuf, source: io::Error },

    /// The file of epochs is truncated or not Parquet.
    #[error("{} is not a readable Parquet file; move it away or choose another folder, nothing was written to it: {source}", path.display())]
    CorruptEpochs { path: PathBuf, source: ParquetError },

    /// The file of epochs is Parquet but does not have our metadata.
    #[error("{} was not written by this program; choose another folder, nothing was written to it", path.display())]
    ForeignEpochs { path: PathBuf },

    /// The file of epochs is of a later version, whose columns may mean something else.
    #[error("{} has record version {found}, this program reads up to {known}; use a newer version", path.display())]
    NewerEpochs { path: PathBuf, found: String, known: u32 },

    /// A known column has the wrong type.
    #[error("column {column} of {} is {found}, not {expected}; nothing was written to it", path.display())]
    WrongColumn { path: PathBuf, column: String, found: DataType, expected: DataType },

    /// A known column has a value outside its range.
    #[error("column {column} of {} has the value {value:?}, which is not one of {expected}", path.display())]
    WrongValue { path: PathBuf, column: String, value: String, expected: &'static str },

    /// Records cannot be converted to Arrow columns.
    #[error("cannot convert the records for {}: {source}", path.display())]
    LayOut { path: PathBuf, source: ArrowError },

    /// Records cannot be encoded as Parquet.
    #[error("cannot encode the records for {}: {source}", path.display())]
    Encode { path: PathBuf, source: ParquetError },

    /// A file of `/proc` about this process cannot be read.
    #[error("cannot read {path} (peak memory and CPU time are measured on Linux only): {source}")]
    ReadProcess { path: &'static str, source: io::Error },

    /// A file of `/proc` about this process lacks an entry.
    #[error("{path} has no usable entry {entry}")]
    ProcessEntry { path: &'static str, entry: &'static str },

    /// A folder to report on does not exist.
    #[error("no such folder of results: {}; name one with epochs.parquet", folder.display())]
    NoFolder { folder: PathBuf },

    /// A folder to report on has no epochs.
    #[error("{} has no epochs to report on", folder.display())]
    NoEpochs { folder: PathBuf },

    /// The picture cannot be drawn.
    #[error("cannot draw the picture: {message}")]
    Draw { message: String },

    /// The table cannot be written as CSV.
    #[error("cannot write the table: {message}")]
    Table { message: String },

    /// The page's data cannot be written as JSON.
    #[error("cannot write the page's data: {source}")]
    PageData { source: serde_json::Error },
}
