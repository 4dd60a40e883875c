//! Errors: one enum for the crate, and the simpler [`Fault`] for parsers that do not know the file.

use crate::unsupported::Unsupported;

/// An array could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no array here: no schema was found.
    #[error(
        "{place} is not a TileDB array: it has no schema in `__schema` and no `__array_schema.tdb`"
    )]
    NotAnArray {
        /// The place that was searched.
        place: String,
    },
    /// There is no group here.
    #[error("{place} is not a TileDB group: it has neither `__tiledb_group.tdb` nor `__group`")]
    NotAGroup {
        /// The place that was searched.
        place: String,
    },
    /// A requested column is not a field of the table.
    #[error("{place} has no column `{column}`")]
    NoColumn {
        /// The array.
        place: String,
        /// The requested column.
        column: String,
    },
    /// The array's schema does not name this enumeration.
    #[error("{place} has no enumeration `{name}`")]
    NoEnumeration {
        /// The array.
        place: String,
        /// The requested enumeration.
        name: String,
    },
    /// libtiledb can read this array, but this crate cannot. Nothing was read yet.
    #[error("{place} cannot be read without libtiledb: {reason}")]
    Unsupported {
        /// The array.
        place: String,
        /// The feature that this crate does not support.
        reason: Unsupported,
    },
    /// A storage operation failed.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// A file does not match the format: it was damaged, truncated, or is not TileDB's.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Offset of the damaged structure in the file.
        offset: u64,
        /// The finding.
        what: String,
    },
    /// Requested rows are beyond the array.
    #[error("rows {start}..{end} were requested, but the array has {n_rows}")]
    RowsOutOfBounds {
        /// First requested row.
        start: u64,
        /// End of the requested rows, exclusive.
        end: u64,
        /// Rows of the array.
        n_rows: u64,
    },
    /// A column to write is beyond the array.
    #[error("a value of column {column} came, but the array has {n_columns} columns")]
    ColumnOutOfBounds {
        /// The column.
        column: u64,
        /// Columns of the array.
        n_columns: u64,
    },
    /// Columns cannot be selected: one is beyond the array or named twice, or there are too many.
    #[error(transparent)]
    Selection(#[from] csr::Error),
    /// More columns were requested than packed rows can have.
    #[error(
        "{n_columns} columns were requested, more than the 65,536 of packed rows; read them as CSR"
    )]
    TooManyToPack {
        /// Number of requested columns.
        n_columns: u64,
    },
    /// libtiledb can write to this array, but this crate cannot. Nothing was written yet.
    #[error("{place} cannot be written without libtiledb: {reason}")]
    Unwritable {
        /// The array.
        place: String,
        /// The feature that this crate does not support.
        reason: Unsupported,
    },
    /// Rows to write are invalid: lengths do not match, or columns do not ascend.
    #[error("row {row} of {place} cannot be written: {problem}")]
    NoRow {
        /// The array.
        place: String,
        /// The row.
        row: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An array with this schema cannot be created.
    #[error("an array cannot be created at {place}: {problem}")]
    Schema {
        /// The array.
        place: String,
        /// The rule that the schema breaks.
        problem: String,
    },
    /// A group with these members cannot be created.
    #[error("a group cannot be created at {place}: {problem}")]
    Group {
        /// The group.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// A metadata value cannot be stored.
    #[error("metadata {name:?} of {place} cannot be written: {problem}")]
    Metadata {
        /// The array or the group.
        place: String,
        /// The name of the value.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Cells of a table's column do not fit the array.
    #[error("column {column} of {place} cannot be written: {problem}")]
    Column {
        /// The array.
        place: String,
        /// The attribute or the dimension.
        column: String,
        /// What is wrong with the cells.
        problem: String,
    },
    /// A fragment was continued or finished after a part of it could not be written.
    #[error("a fragment of {place} is incomplete after a failed write: begin another")]
    Unfinished {
        /// The array.
        place: String,
    },
    /// A compressor failed, or the array's filters cannot represent a value.
    #[error("values of {place} could not be encoded: {problem}")]
    Encode {
        /// The array.
        place: String,
        /// The compressor's message.
        problem: String,
    },
    /// There is not enough memory for what is read.
    #[error("{n_bytes} bytes of memory for {file} are not available: read fewer rows at a time")]
    Memory {
        /// The file or the array.
        file: String,
        /// Bytes that were requested.
        n_bytes: usize,
    },
    /// The threads could not be started.
    #[error("could not start {n_threads} decoding threads")]
    Threads {
        /// Number of requested threads.
        n_threads: usize,
        /// The pool's error.
        source: rayon::ThreadPoolBuildError,
    },
}

/// An error in bytes whose file the parser does not know: `at` counts from the start of those
/// bytes.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) what: String,
    /// Bytes of memory that were not available; the file may then be intact.
    missing_memory: Option<usize>,
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { at: 0, what: what.into(), missing_memory: None }
    }

    pub(crate) fn at(at: usize, what: impl Into<String>) -> Self {
        Self::new(what).moved_to(at as u64)
    }

    /// A request for memory that failed.
    pub(crate) fn memory(n_bytes: usize) -> Self {
        let what = format!("{n_bytes} bytes of memory are not available");
        Self { missing_memory: Some(n_bytes), ..Self::new(what) }
    }

    /// The same fault at another place.
    pub(crate) fn moved_to(self, at: u64) -> Self {
        Self { at, ..self }
    }

    /// Makes an error for bytes that begin at `offset` of `file`.
    pub(crate) fn in_file(self, file: impl Into<String>, offset: u64) -> Error {
        if let Some(n_bytes) = self.missing_memory {
            return Error::Memory { file: file.into(), n_bytes };
        }
        Error::Damaged {
            file: file.into(),
            offset: offset.saturating_add(self.at),
            what: self.what,
        }
    }

    /// Makes an error for unfiltered bytes of the structure at `offset` of `file`, in which `at` is
    /// not an offset in the file.
    pub(crate) fn in_unfiltered(self, file: impl Into<String>, offset: u64) -> Error {
        let what = if self.at == 0 {
            self.what
        } else {
            format!("{} (at byte {} once unfiltered)", self.what, self.at)
        };
        Self { at: 0, what, missing_memory: self.missing_memory }.in_file(file, offset)
    }
}
