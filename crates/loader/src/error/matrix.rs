//! Errors of matrices beside X: layers, arrays of obsm and modalities.

use super::ColumnsError;

/// The reason why a matrix cannot come beside X.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// A selected cell is outside a matrix beside X.
    #[error(
        "obs has a cell with joinid {joinid}, but {matrix} has {n_rows} rows: select cells with \
         joinids below {n_rows}, or leave the matrix out"
    )]
    CellOutside {
        /// The matrix.
        matrix: String,
        /// The first such joinid.
        joinid: u64,
        /// The matrix's number of rows.
        n_rows: u64,
    },

    /// A column is outside a matrix beside X.
    #[error("the columns cannot be read from {matrix}, which has {n_columns} columns")]
    ColumnsOutside {
        /// The matrix.
        matrix: String,
        /// The matrix's number of columns.
        n_columns: u64,
        /// The reason.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// The rows of a modality cannot be those of the cells.
    #[error("the rows of {matrix} cannot be those of the cells")]
    Rows {
        /// The matrix.
        matrix: String,
        /// The reason.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// Columns of var or obs could not be selected or combined.
    #[error(transparent)]
    Columns(#[from] ColumnsError),

    /// Cells cannot have neighbours by a graph of obsp.
    #[error("cells cannot have neighbours by the {graph}: {problem}")]
    Neighbours {
        /// The graph.
        graph: String,
        /// The reason, with the remedy.
        problem: String,
    },

    /// A layer has another number of columns than X.
    #[error("{layer} has {found} columns, X has {of_x}: layers have the genes of X as columns")]
    LayerColumns {
        /// The layer.
        layer: String,
        /// The layer's number of columns.
        found: u64,
        /// X's number of columns.
        of_x: u64,
    },

    /// A matrix was added beside X twice.
    #[error("{matrix} is already beside X: list each layer, array of obsm and modality once")]
    Twice {
        /// The matrix.
        matrix: String,
    },

    /// A matrix was added to a data set of several experiments, or of none.
    #[error(
        "{matrix} has the cells of one experiment, but the data set has {n_experiments}: add it to \
         the data set of each experiment, then concatenate them"
    )]
    SeveralExperiments {
        /// The matrix.
        matrix: String,
        /// Number of experiments of the data set.
        n_experiments: usize,
    },
}
