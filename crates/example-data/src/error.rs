//! What can go wrong when example data is written.

use std::path::PathBuf;

/// An error of this crate: what was tried, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is outside what can be made.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    Size {
        /// Which size.
        what: &'static str,
        /// What it was.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The end was asked for.
    #[error("interrupted: no experiment was written")]
    Interrupted,
    /// A thread did not start.
    #[error("cannot start a thread to make cells: {source}")]
    Thread {
        /// Why not.
        source: std::io::Error,
    },
    /// A 10x folder lacks a file.
    #[error("{} has no {wanted} or {wanted}.gz: it is not a 10x Genomics folder", .folder.display())]
    NoFile {
        /// The folder.
        folder: PathBuf,
        /// The file that was looked for.
        wanted: &'static str,
    },
    /// A 10x folder has the same file twice.
    #[error("{} has both {first} and {second}: remove one", .folder.display())]
    TwoFiles {
        /// The folder.
        folder: PathBuf,
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A file could not be read on, for example because its gzip stream was cut off.
    #[error("{}, after line {line}: {source}{}", .path.display(), hint(.source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The last line that was read whole.
        line: u64,
        /// What happened.
        source: std::io::Error,
    },
    /// A line is not what it should be.
    #[error("{}, line {line}: {problem}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// The values of a matrix do not stand cell by cell, and there are too many to sort.
    #[error(
        "{}, line {line}: values are not sorted by cell, and sorting takes {needed_bytes} bytes of memory where {budget_bytes} are allowed: sort the file by its second column, or allow more",
        .path.display()
    )]
    Unsorted {
        /// The file.
        path: PathBuf,
        /// The first line that goes back.
        line: u64,
        /// What sorting in memory takes.
        needed_bytes: u64,
        /// What is allowed.
        budget_bytes: u64,
    },
    /// The experiment could not be written.
    #[error(transparent)]
    Write(#[from] soma_io::Error),
    /// Arrow refused a column.
    #[error("the columns of {frame} do not make a record batch: {source}")]
    Arrow {
        /// `obs` or `var`.
        frame: &'static str,
        /// Why not.
        source: arrow_schema::ArrowError,
    },
}

fn hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::UnexpectedEof => ": the file is cut off, copy it again",
        _ => "",
    }
}
