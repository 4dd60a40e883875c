//! Errors in the parts of a matrix.

/// Parts of a matrix do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A joinid is not among the requested ones.
    #[error("{axis} {joinid} was read, but not requested")]
    UnknownJoinid {
        /// `cell` or `gene`.
        axis: &'static str,
        /// The joinid.
        joinid: i64,
    },
    /// Values do not fit the shape of a CSR matrix.
    #[error(transparent)]
    Csr(#[from] csr::Error),
    /// A column is out of range.
    #[error("row {row_idx} has column {column}, but there are {n_columns} columns")]
    Column {
        /// The row.
        row_idx: usize,
        /// Its column.
        column: u32,
        /// The number of columns.
        n_columns: usize,
    },
    /// A row is out of range.
    #[error("row {row_idx} was requested, but there are {n_rows} rows")]
    Row {
        /// The row.
        row_idx: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// Row offsets do not match the columns and values.
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
    /// Slices have different lengths, or not the length of the shape.
    #[error("{what} has {found} elements, {expected} were expected")]
    Length {
        /// The slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The expected length.
        expected: usize,
    },
    /// A list of joinids has a negative one, or one that occurs twice.
    #[error("joinid {joinid} is negative, or occurs twice")]
    Joinids {
        /// The joinid.
        joinid: i64,
    },
    /// An Arrow array has nulls.
    #[error("{what} has {n_nulls} nulls, and a cell cannot be null")]
    Nulls {
        /// The array.
        what: &'static str,
        /// Number of nulls.
        n_nulls: usize,
    },
    /// An Arrow array has another type than expected.
    #[error("{what} is of type {found}, {expected} was expected")]
    ArrowType {
        /// The array.
        what: &'static str,
        /// Its type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The target sum is not above 0.
    #[error("a target sum of {target} is not above 0")]
    TargetSum {
        /// The target.
        target: String,
    },
    /// Clipping would change zeros, which are not stored.
    #[error(
        "clipping to {least} to {most} would change zeros, which are not stored: choose bounds that include 0"
    )]
    Clip {
        /// The smallest value allowed.
        least: String,
        /// The largest value allowed.
        most: String,
    },
    /// Values cannot be scaled by their row's total.
    #[error("row {row_idx} has values, but its total is {total}: scaling needs a total above 0")]
    Total {
        /// The row.
        row_idx: usize,
        /// Its total.
        total: String,
    },
}
