//! What can go wrong with a folder of results, and what to do about it.

use std::{io, path::PathBuf};

use arrow_schema::{ArrowError, DataType};
use parquet::errors::ParquetError;

/// An error of this crate. Whenever writing fails, the file from before is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message above each variant says what its fields are")]
pub enum Error {
    /// The results folder cannot be made, or is something else than a folder.
    #[error("cannot make the results folder {}: {source}", folder.display())]
    CreateFolder { folder: PathBuf, source: io::Error },

    /// The lock that keeps two writers apart cannot be taken.
    #[error("cannot lock {} (is the folder there, writable, and its file system one with locks?): {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },

    /// A file of the results folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadFile { path: PathBuf, source: io::Error },

    /// A file of the results folder cannot be written: no space, no permission.
    #[error("cannot write {} (a version from before is left as it was): {source}", path.display())]
    WriteFile { path: PathBuf, source: io::Error },

    /// The file of epochs is cut off or not Parquet at all.
    #[error("{} is not a readable Parquet file; move it away or choose another folder, nothing was written to it: {source}", path.display())]
    CorruptEpochs { path: PathBuf, source: ParquetError },

    /// The file of epochs is Parquet, but nobody's measurements that we know.
    #[error("{} was not written by this program; choose another folder, nothing was written to it", path.display())]
    ForeignEpochs { path: PathBuf },

    /// The file of epochs comes from a later version, which may mean other things by its columns.
    #[error("{} has record version {found}, this program knows up to {known}; use a newer version of it", path.display())]
    NewerEpochs { path: PathBuf, found: String, known: u32 },

    /// A known column holds another type than it should.
    #[error("column {column} of {} is {found}, not {expected}; nothing was written to it", path.display())]
    WrongColumn { path: PathBuf, column: String, found: DataType, expected: DataType },

    /// A known column holds a value outside its range.
    #[error("column {column} of {} holds {value:?}, which is none of {expected}", path.display())]
    WrongValue { path: PathBuf, column: String, value: String, expected: &'static str },

    /// Records cannot be laid out as Arrow columns.
    #[error("cannot lay out the records for {}: {source}", path.display())]
    LayOut { path: PathBuf, source: ArrowError },

    /// Records cannot be encoded as Parquet.
    #[error("cannot encode the records for {}: {source}", path.display())]
    Encode { path: PathBuf, source: ParquetError },

    /// The kernel's account of this process cannot be read.
    #[error("cannot read {path} (peak memory and CPU time are measured on Linux only): {source}")]
    ReadProcess { path: &'static str, source: io::Error },

    /// The kernel's account of this process lacks an entry.
    #[error("{path} has no usable entry {entry}")]
    ProcessEntry { path: &'static str, entry: &'static str },

    /// A folder to report on is not there.
    #[error("no such folder of results: {}; name one that holds epochs.parquet", folder.display())]
    NoFolder { folder: PathBuf },

    /// There is nothing to report on.
    #[error("{} holds no epochs to report on", folder.display())]
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
