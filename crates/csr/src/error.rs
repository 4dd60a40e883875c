//! What can be wrong with the parts of a matrix, or with the columns that are selected of it.

/// Parts that do not make a matrix in CSR.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are not as many columns as values.
    #[error("there are {n_columns} columns for {n_values} values")]
    Lengths {
        /// Columns given.
        n_columns: usize,
        /// Values given.
        n_values: usize,
    },
    /// Row offsets do not ascend from 0 to the number of values.
    #[error("row offsets must ascend from 0 to {nnz}, the number of values")]
    RowOffsets {
        /// The number of values.
        nnz: usize,
    },
    /// The columns of a row do not ascend.
    #[error("the columns of row {row} do not ascend")]
    Order {
        /// The row.
        row: usize,
    },
    /// A column is past the last.
    #[error("row {row} has column {column}, but there are {n_columns} columns")]
    Column {
        /// The row.
        row: usize,
        /// Its column.
        column: u32,
        /// The number of columns.
        n_columns: usize,
    },
    /// A row is past the last.
    #[error("a value of row {row} came, but there are {n_rows} rows")]
    Row {
        /// The row.
        row: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// The matrix has more columns than packed rows can have.
    #[error("{n_columns} columns do not fit packed rows, which have 65,536 at most")]
    TooManyColumns {
        /// The number of columns.
        n_columns: usize,
    },
    /// A selected column is past the last.
    #[error("column {column} was requested, but there are {n_columns} columns")]
    NoColumn {
        /// The selected column.
        column: u64,
        /// The number of columns of the matrix.
        n_columns: u64,
    },
    /// A column is selected twice, so that it has no unique number in the result.
    #[error("column {column} is selected twice")]
    ColumnTwice {
        /// The column.
        column: u64,
    },
    /// More columns are selected than CSR can number.
    #[error("{n_columns} columns are selected, more than the 4,294,967,295 that a read can have")]
    ManyColumns {
        /// The number of selected columns.
        n_columns: u64,
    },
    /// sprs refused the matrix: it does not take a cell that is there twice.
    #[cfg(feature = "sprs")]
    #[error("sprs does not take this matrix: {problem}")]
    Sprs {
        /// The reason that sprs gave.
        problem: String,
    },
}
