//! What can be wrong with the parts of a matrix.

/// Parts that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A joinid is not among those that were asked for.
    #[error("{axis} {joinid} came, but was not asked for")]
    UnknownJoinid {
        /// `cell` or `gene`.
        axis: &'static str,
        /// The joinid.
        joinid: i64,
    },
    /// Cells do not fit the shape of a matrix in CSR.
    #[error(transparent)]
    Csr(#[from] csr::Error),
    /// A column is past the last.
    #[error("row {row_idx} has column {column}, but there are {n_columns} columns")]
    Column {
        /// The row.
        row_idx: usize,
        /// Its column.
        column: u32,
        /// The number of columns.
        n_columns: usize,
    },
    /// A row is past the last.
    #[error("row {row_idx} was asked for, but there are {n_rows} rows")]
    Row {
        /// The row.
        row_idx: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// Row offsets that do not describe the columns and values.
    #[error("row {row_idx} goes from {start} to {end}, but there are {nnz} values")]
    RowOffsets {
        /// The row.
        row_idx: usize,
        /// Where it begins.
        start: usize,
        /// Where it ends.
        end: usize,
        /// The number of values.
        nnz: usize,
    },
    /// Slices that should be equally long, or as long as a shape says.
    #[error("{what} has {found} elements, {expected} were expected")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What was expected.
        expected: usize,
    },
    /// A list of joinids in which one comes twice, or is negative.
    #[error("joinid {joinid} is negative, or comes twice")]
    Joinids {
        /// The joinid.
        joinid: i64,
    },
    /// An Arrow array with values that are missing.
    #[error("{what} has {n_nulls} nulls, and a cell cannot be null")]
    Nulls {
        /// Which part.
        what: &'static str,
        /// How many.
        n_nulls: usize,
    },
    /// An Arrow array that holds something else than a part of COO.
    #[error("{what} is of type {found}, {expected} was expected")]
    ArrowType {
        /// Which part.
        what: &'static str,
        /// Its type.
        found: String,
        /// The type that was expected.
        expected: &'static str,
    },
    /// A total that rows cannot be scaled to.
    #[error("a target sum of {target} is not above 0")]
    TargetSum {
        /// The target.
        target: String,
    },
    /// Clipping that would change the values that are not stored.
    #[error(
        "clipping to {least} to {most} would change zeros, of which only the others are stored: let it contain 0"
    )]
    Clip {
        /// The least that a value may be.
        least: String,
        /// The most.
        most: String,
    },
    /// A row with values has a total by which it cannot be scaled.
    #[error("row {row_idx} has values, but its total is {total}: scaling needs a total above 0")]
    Total {
        /// The row.
        row_idx: usize,
        /// Its total.
        total: String,
    },
}
