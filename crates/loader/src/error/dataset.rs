//! Errors of data sets: making, concatenating and reopening them.

use super::{ColumnsError, MatrixError, OpenError};
use crate::subset::SubsetError;

/// A data set that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A part of the experiment could not be opened or read.
    #[error(transparent)]
    Open(#[from] OpenError),

    /// A selected gene is outside X.
    #[error("the gene selection cannot be applied to X, which has {x_columns} columns")]
    GenesOutsideX {
        /// X's number of columns.
        x_columns: u64,
        /// The reason.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// A selected cell is outside X.
    #[error(
        "obs has a cell with joinid {joinid}, but X has {x_rows} rows: select cells with joinids \
         below {x_rows}"
    )]
    CellOutsideX {
        /// The first such joinid.
        joinid: u64,
        /// X's number of rows.
        x_rows: u64,
    },

    /// A matrix cannot come beside X.
    #[error(transparent)]
    Matrix(#[from] MatrixError),

    /// The selected rows' joinids are not strictly ascending.
    #[error(
        "the joinids of the selected cells must ascend: row {row_idx} has {joinid}, the row before \
         it {before}; sort them and remove repetitions"
    )]
    CellsNotAscending {
        /// The first row whose joinid is not above the one before.
        row_idx: usize,
        /// The row's joinid.
        joinid: u64,
        /// The joinid of the row before it.
        before: u64,
    },

    /// A joinid column does not hold non-negative 64-bit integers.
    #[error("column soma_joinid breaks SOMA's rules: {problem}")]
    JoinidColumn {
        /// The problem.
        problem: String,
    },

    /// obs and the list of cells differ in length.
    #[error(
        "{n_cells} cells are selected, but obs has {n_obs} rows: give one obs row for each cell, \
         in the same order"
    )]
    ObsLength {
        /// Number of selected cells.
        n_cells: u64,
        /// Number of obs rows.
        n_obs: usize,
    },

    /// var and the columns of a matrix differ in number.
    #[error(
        "the matrix has {n_genes} columns, but var has {n_var} rows: give one var row for each column, in the same order"
    )]
    VarLength {
        /// Columns of the matrix.
        n_genes: usize,
        /// Rows of var.
        n_var: usize,
    },

    /// The number of totals is not the number of cells.
    #[error("there are {found} totals for {n_cells} cells: give one total for each cell")]
    TotalsLength {
        /// Number of totals.
        found: usize,
        /// Number of selected cells.
        n_cells: u64,
    },

    /// Two genes have one name, or a name is listed twice.
    #[error(
        "gene {name:?} comes twice, in the list or in var column {column}: each column of a batch \
         needs one gene"
    )]
    GeneTwice {
        /// The var column.
        column: String,
        /// The name.
        name: String,
    },

    /// No gene of a list is there.
    #[error("none of the {n_names} named genes is in var column {column:?}: {advice}")]
    NoNamedGene {
        /// The var column.
        column: String,
        /// Number of names in the list.
        n_names: usize,
        /// What the names look like, and in which way more of them would be found.
        advice: String,
    },

    /// The cells of a modality in another experiment cannot be joined by their names.
    #[error(
        "modality {modality:?} of another experiment cannot be joined to the cells by their names: \
         {problem}; name the obs column that both have (ModalitySpec::names, in Python names=)"
    )]
    NoCommonCells {
        /// The modality.
        modality: String,
        /// The problem.
        problem: String,
    },

    /// No gene has a feature type.
    #[error(
        "no gene of {uri} has the feature type {name:?}: {}",
        if existing.is_empty() {
            "there is no var column feature_types; select genes by another column".to_owned()
        } else {
            format!("there are {}", existing.join(", "))
        }
    )]
    NoFeatureType {
        /// The var.
        uri: String,
        /// The feature type.
        name: String,
        /// Those that there are; none without such a column.
        existing: Vec<String>,
    },

    /// No gene is in all of several experiments.
    #[error(
        "no gene is in all experiments by var column {column}: name another column, or take the \
         union"
    )]
    NoCommonGenes {
        /// The var column.
        column: String,
    },

    /// Columns could not be selected or combined.
    #[error(transparent)]
    Columns(#[from] ColumnsError),

    /// The cells that measurements have could not be selected.
    #[error(transparent)]
    Cells(#[from] SubsetError),

    /// The data sets of several experiments cannot be concatenated.
    #[error(transparent)]
    Concat(#[from] ConcatError),
}

/// Data sets that cannot be concatenated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConcatError {
    /// There are no data sets to concatenate.
    #[error("there are no data sets to concatenate: give at least one")]
    NoDatasets,

    /// Data sets with different numbers of genes cannot be concatenated.
    #[error(
        "data set {idx} has {n_columns} genes, the first has {first}: select the same genes of \
         each, by name"
    )]
    Genes {
        /// Index of the data set that differs, from 0.
        idx: usize,
        /// Number of its genes.
        n_columns: usize,
        /// Number of genes of the first data set.
        first: usize,
    },

    /// No layer was named, and data sets have different ones.
    #[error(
        "no layer of X was named, and data set {idx} has {layer:?} where an earlier one has \
         {first:?}: name the layer of each (DatasetSpec::layer, in Python layer_name= or layer=)"
    )]
    Layers {
        /// Index of the data set that differs, from 0.
        idx: usize,
        /// Its layer.
        layer: String,
        /// The layer of an earlier data set.
        first: String,
    },

    /// Data sets with different obs columns cannot be concatenated.
    #[error("the obs or var columns of data set {idx} differ from the first data set's: {problem}")]
    Obs {
        /// Index of the data set that differs, from 0.
        idx: usize,
        /// The difference.
        problem: String,
    },

    /// Data sets with different matrices beside X cannot be concatenated.
    #[error(
        "beside X, data set {idx} has {found}; the first has {first}: request the same layers, \
         arrays of obsm and modalities of each, in the same order and with equally many columns"
    )]
    Matrices {
        /// Index of the data set that differs, from 0.
        idx: usize,
        /// Its matrices beside X.
        found: String,
        /// The matrices of the first data set.
        first: String,
    },

    /// Columns could not be selected or combined.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
}

/// Readers that cannot take the place of a data set's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// There are more or fewer readers than experiments, or than matrices of one.
    #[error(
        "there are {found} readers instead of {expected}: give a list for each experiment, of one \
         for each matrix"
    )]
    Count {
        /// Number of readers, or of lists of them.
        found: usize,
        /// Number of matrices of an experiment, or of experiments.
        expected: usize,
    },

    /// A reader's rows cannot be those of the cells.
    #[error(transparent)]
    Matrix(#[from] MatrixError),

    /// A reader is of a matrix of another shape.
    #[error(
        "a reader of experiment {idx} has a matrix of {} x {}, the data set was made of {} x {}: was \
         it written to meanwhile?",
        found.0, found.1, expected.0, expected.1
    )]
    Shape {
        /// Index of the experiment, from 0.
        idx: usize,
        /// Rows and columns of the reader's matrix.
        found: (u64, u64),
        /// Rows and columns of the matrix before.
        expected: (u64, u64),
    },
}
