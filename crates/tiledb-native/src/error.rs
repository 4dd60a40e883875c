//! What can go wrong: one enum for the crate, and the lighter [`Fault`] that parsers use before they know which file they read.

use crate::unsupported::Unsupported;

/// An array could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no array at this place: no schema was found.
    #[error(
        "{place} is not a TileDB array: it has no schema in `__schema` and no `__array_schema.tdb`"
    )]
    NotAnArray {
        /// Where the array was looked for.
        place: String,
    },
    /// The array is one that libtiledb can read and this crate cannot. Nothing was read yet.
    #[error("{place} cannot be read without libtiledb: {reason}")]
    Unsupported {
        /// Where the array is.
        place: String,
        /// What about it is beyond this crate.
        reason: Unsupported,
    },
    /// A file or folder could not be listed, read or written.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// A file does not hold what the format promises: it was damaged, cut short, or is not TileDB's.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where in the file the damaged structure begins.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// Rows were asked for that the array does not have.
    #[error("rows {start}..{end} were asked for, and the array has {n_rows}")]
    RowsOutOfBounds {
        /// First row asked for.
        start: u64,
        /// One past the last row asked for.
        end: u64,
        /// Rows of the array.
        n_rows: u64,
    },
    /// A column was asked for that the array does not have.
    #[error("column {column} was asked for, and the array has {n_columns}")]
    ColumnOutOfBounds {
        /// The column asked for.
        column: u64,
        /// Columns of the array.
        n_columns: u64,
    },
    /// The list of columns names one of them twice, so that it has no single position.
    #[error("column {column} is named twice in the list of columns")]
    DuplicateColumn {
        /// The column.
        column: u64,
    },
    /// More columns were asked for than a CSR's u32 can number.
    #[error(
        "{n_columns} columns were asked for, more than the 4,294,967,296 that a u32 can number; ask for fewer"
    )]
    TooManyColumns {
        /// Columns asked for.
        n_columns: u64,
    },
    /// More columns were asked for than packed rows can have.
    #[error(
        "{n_columns} columns were asked for, more than the 65,536 of packed rows; read them as CSR"
    )]
    TooManyToPack {
        /// Columns asked for.
        n_columns: u64,
    },
    /// The array is one that libtiledb can write to and this crate cannot. Nothing was written yet.
    #[error("{place} cannot be written without libtiledb: {reason}")]
    Unwritable {
        /// Where the array is.
        place: String,
        /// What about it is beyond this crate.
        reason: Unsupported,
    },
    /// What is to be written are no rows of the array: lengths that do not fit together, or columns that do not ascend.
    #[error("row {row} of {place} cannot be written: {problem}")]
    NoRow {
        /// Where the array is.
        place: String,
        /// The row.
        row: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A fragment was to be gone on with, or finished, after a part of it could not be written.
    #[error("a fragment of {place} lacks what could not be written before: begin another")]
    Unfinished {
        /// Where the array is.
        place: String,
    },
    /// A compressor refused, or a value is none that the array's filters hold.
    #[error("values of {place} could not be encoded: {problem}")]
    Encode {
        /// Where the array is.
        place: String,
        /// What it said.
        problem: String,
    },
    /// The threads could not be started.
    #[error("could not start {n_threads} decoding threads")]
    Threads {
        /// How many were asked for.
        n_threads: usize,
        /// What the pool said.
        source: rayon::ThreadPoolBuildError,
    },
}

/// Something wrong in bytes whose origin the parser does not know: `at` counts from the start of those bytes.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) what: String,
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { at: 0, what: what.into() }
    }

    pub(crate) fn at(at: usize, what: impl Into<String>) -> Self {
        Self { at: at as u64, what: what.into() }
    }

    /// The fault of bytes that begin at `offset` of `file`.
    pub(crate) fn in_file(self, file: impl Into<String>, offset: u64) -> Error {
        Error::Damaged {
            file: file.into(),
            offset: offset.saturating_add(self.at),
            what: self.what,
        }
    }

    /// The fault of bytes that were unfiltered from a structure at `offset` of `file`, where `at` is no place in the file.
    pub(crate) fn in_unfiltered(self, file: impl Into<String>, offset: u64) -> Error {
        let what = if self.at == 0 {
            self.what
        } else {
            format!("{} (at byte {} once unfiltered)", self.what, self.at)
        };
        Error::Damaged { file: file.into(), offset, what }
    }
}
