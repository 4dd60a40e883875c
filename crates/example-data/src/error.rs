//! Errors of writing example data.

use std::path::PathBuf;

/// An error of this crate: the failed step, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is out of range.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    Size {
        /// Name of the size.
        what: &'static str,
        /// The given value.
        value: u64,
        /// Smallest valid value.
        least: u64,
        /// Largest valid value.
        most: u64,
    },
    /// An operation on a file or folder failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The caller interrupted the run.
    #[error("interrupted: no experiment was written")]
    Interrupted,
    /// A thread did not start.
    #[error("cannot start a thread to make cells: {source}")]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
    /// A 10x folder lacks a file.
    #[error("{} has no {wanted} or {wanted}.gz: it is not a 10x Genomics folder", .folder.display())]
    NoFile {
        /// The folder.
        folder: PathBuf,
        /// The missing file.
        wanted: &'static str,
    },
    /// A 10x folder has the same file twice.
    #[error("{} has both {first} and {second}: remove one", .folder.display())]
    TwoFiles {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        first: String,
        /// The other file.
        second: String,
    },
    /// A file could not be read to its end, for example because its gzip stream is truncated.
    #[error("{}, after line {line}: {source}{}", .path.display(), hint(.source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The last line that was read completely.
        line: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line is malformed.
    #[error("{}, line {line}: {problem}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Description of the problem.
        problem: String,
    },
    /// The entries of a matrix are not ordered by cell, and there are too many to sort in memory.
    #[error(
        "{}, line {line}: values are not sorted by cell, and sorting needs {needed_bytes} bytes of memory, but only {budget_bytes} are allowed: sort the file by its second column, or allow more",
        .path.display()
    )]
    Unsorted {
        /// The file.
        path: PathBuf,
        /// The first line that is out of order.
        line: u64,
        /// Bytes that sorting needs.
        needed_bytes: u64,
        /// Bytes that are allowed.
        budget_bytes: u64,
    },
    /// The destination cannot be written to.
    #[error(transparent)]
    Destination(#[from] soma_io::DestinationError),
    /// The experiment could not be written.
    #[error(transparent)]
    Write(#[from] soma_io::Error),
    /// Arrow rejected a column.
    #[error("the columns of {frame} do not make a record batch: {source}")]
    Arrow {
        /// `obs` or `var`.
        frame: &'static str,
        /// Arrow's error.
        source: arrow_schema::ArrowError,
    },
}

fn hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::UnexpectedEof => ": the file is truncated, copy it again",
        _ => "",
    }
}
