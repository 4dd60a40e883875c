//! Errors between a selection and its batches.

mod matrix;
mod tokens;

use std::ops::Range;

pub use matrix::MatrixError;
pub use tokens::TokenError;

use crate::element_type::ElementType;

/// An error of this crate. Its message names what was tried, on which rows, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the engine: sizes, ranks, memory, a saved state, threads.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),

    /// Sparse batches cannot be made from dense blocks.
    #[error(
        "blocks of form np.array are dense, so sparse batches cannot be made from them: take \
         blocks of form scipy.csr or csr, or dense batches"
    )]
    SparseFromDense,

    /// The requested transform of the values is impossible.
    #[error("cannot transform the values as requested")]
    Transform {
        /// The reason.
        #[source]
        source: densify::Error,
    },

    /// A cell has values, but no positive total to scale them by.
    #[error(
        "cell {joinid} of experiment {experiment} has values, but its total is {total}: totals \
         must be above 0; leave the cell out"
    )]
    Total {
        /// The experiment's index in the data set, from 0.
        experiment: usize,
        /// The cell's joinid.
        joinid: u64,
        /// The cell's total.
        total: String,
    },

    /// The number of totals is not the number of cells.
    #[error("there are {found} totals for {n_cells} cells: give one total for each cell")]
    TotalsLength {
        /// Number of totals.
        found: usize,
        /// Number of selected cells.
        n_cells: u64,
    },

    /// Values should be scaled by the totals in obs, but the data set has no totals.
    #[error(
        "values should be scaled by the totals in obs, but the data set has no totals: name their \
         column in DatasetSpec::totals (raw_sum in the Census), or take Totals::Genes, the sums of \
         the selected genes"
    )]
    NoTotals,

    /// No form of blocks has this name.
    #[error("no form of blocks is called {name:?}: take np.array, scipy.csr or csr")]
    UnknownBlockForm {
        /// The unknown name.
        name: String,
    },

    /// No form of batches has this name.
    #[error("no form of batches is called {name:?}: take dense, f16, csr or coo")]
    UnknownBatchForm {
        /// The unknown name.
        name: String,
    },

    /// An obs column cannot be used as weights.
    #[error("obs column {column:?} cannot be used as weights of cells: {problem}")]
    WeightColumn {
        /// The column.
        column: String,
        /// The reason.
        problem: String,
    },

    /// A part of the experiment could not be opened or read while the data set was made.
    #[error("cannot open or read {what}")]
    Open {
        /// The part.
        what: String,
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

    /// Batches cannot have tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),

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

    /// A list of rows does not ascend, or goes beyond the data set.
    #[error("row {row} {problem}: list rows of the data set in ascending order, each once")]
    Rows {
        /// The row.
        row: u64,
        /// The problem.
        problem: String,
    },

    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error(transparent)]
    Stopped(#[from] shuffle::Stopped),

    /// obs columns could not be encoded.
    #[error(transparent)]
    Encode(#[from] crate::encode::Error),

    /// Columns could not be selected or combined.
    #[error("cannot select or combine the requested columns of {of}")]
    Columns {
        /// The table: obs, var or the codes.
        of: &'static str,
        /// The reason.
        #[source]
        source: arrow_schema::ArrowError,
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

    /// No gene is in all of several experiments.
    #[error(
        "no gene is in all experiments by var column {column}: name another column, or take the \
         union"
    )]
    NoCommonGenes {
        /// The var column.
        column: String,
    },

    /// There are no data sets to concatenate.
    #[error("there are no data sets to concatenate: give at least one")]
    NoDatasets,

    /// Data sets with different numbers of genes cannot be concatenated.
    #[error(
        "data set {idx} has {n_columns} genes, the first has {first}: select the same genes of \
         each, by name"
    )]
    ConcatGenes {
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
    ConcatLayers {
        /// Index of the data set that differs, from 0.
        idx: usize,
        /// Its layer.
        layer: String,
        /// The layer of an earlier data set.
        first: String,
    },

    /// Data sets with different obs columns cannot be concatenated.
    #[error("the obs or var columns of data set {idx} differ from the first data set's: {problem}")]
    ConcatObs {
        /// Index of the data set that differs, from 0.
        idx: usize,
        /// The difference.
        problem: String,
    },

    /// There are more or fewer readers than experiments, or than matrices of one.
    #[error(
        "there are {found} readers instead of {expected}: give a list for each experiment, of one \
         for each matrix"
    )]
    ReaderCount {
        /// Number of readers, or of lists of them.
        found: usize,
        /// Number of matrices of an experiment, or of experiments.
        expected: usize,
    },

    /// A reader is of a matrix of another shape.
    #[error(
        "a reader of experiment {idx} has a matrix of {} x {}, the data set was made of {} x {}: was \
         it written to meanwhile?",
        found.0, found.1, expected.0, expected.1
    )]
    ReaderShape {
        /// Index of the experiment, from 0.
        idx: usize,
        /// Rows and columns of the reader's matrix.
        found: (u64, u64),
        /// Rows and columns of the matrix before.
        expected: (u64, u64),
    },

    /// A joinid column does not hold non-negative 64-bit integers.
    #[error("column soma_joinid breaks SOMA's rules: {problem}")]
    JoinidColumn {
        /// The problem.
        problem: String,
    },

    /// A selected gene is outside X.
    #[error("the gene selection cannot be applied to X, which has {x_columns} columns")]
    GenesOutsideX {
        /// X's number of columns.
        x_columns: u64,
        /// The reason.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// A block or batch is larger than memory can address, or than the system can provide.
    #[error("cannot get {bytes} bytes for {what} of {n_rows} rows x {n_columns} columns: {advice}")]
    OutOfMemory {
        /// The block or batch.
        what: &'static str,
        /// Its size in bytes.
        bytes: u128,
        /// Number of its rows.
        n_rows: u64,
        /// Number of its columns.
        n_columns: u64,
        /// The size to make smaller.
        advice: &'static str,
    },

    /// The [`BatchBuffers`](crate::BatchBuffers) in use could not provide a buffer.
    #[error("cannot get a buffer of {n_values} values for a batch: make the batches smaller")]
    Buffer {
        /// Number of values.
        n_values: usize,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The elements of a buffer have another type than its use in a batch requires.
    #[error(
        "a buffer has elements of type {found}, but {expected} is required: BatchBuffers::take \
         must return buffers of the requested type"
    )]
    ElementType {
        /// The required type.
        expected: ElementType,
        /// The buffer's type.
        found: ElementType,
    },

    /// X could not be read.
    #[error(
        "cannot read block {block_idx} of epoch {epoch} (cells {} to {} of experiment {experiment})",
        joinids.start,
        joinids.end.saturating_sub(1)
    )]
    Read {
        /// The epoch.
        epoch: u64,
        /// The block's index in the epoch's order, from 0.
        block_idx: u64,
        /// The experiment's index in the data set, from 0.
        experiment: usize,
        /// From the first requested joinid to one past the last.
        joinids: Range<u64>,
        /// The reason.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// A block's values could not be converted to the form of blocks or batches.
    #[error("cannot convert the values of block {block_idx} of epoch {epoch}")]
    Densify {
        /// The epoch.
        epoch: u64,
        /// The block's index in the epoch's order, from 0.
        block_idx: u64,
        /// The reason.
        #[source]
        source: densify::Error,
    },

    /// A reader returned CSR of another shape than the requested one.
    #[error(
        "reader {reader:?} returned {found_rows} rows x {found_columns} columns for block \
         {block_idx}, which has {n_rows} x {n_columns}: its read_csr breaks the contract of XReader"
    )]
    BlockShape {
        /// The reader's name.
        reader: &'static str,
        /// The block's index in the epoch's order, from 0.
        block_idx: u64,
        /// Number of returned rows.
        found_rows: usize,
        /// Number of returned columns.
        found_columns: usize,
        /// Number of requested rows.
        n_rows: usize,
        /// Number of requested columns.
        n_columns: usize,
    },

    /// A batch has another form than the conversion requires.
    #[error("a {found} batch cannot be converted to {expected}: ask the loader for that form")]
    OtherForm {
        /// The required form.
        expected: &'static str,
        /// The batch's form.
        found: &'static str,
    },

    /// sprs rejected a matrix.
    #[error("sprs rejects this batch: {problem}")]
    Sprs {
        /// The reason.
        problem: String,
    },

    /// A batch could not be converted to an Arrow record batch.
    #[error("cannot convert batch {batch_idx} to an Arrow record batch")]
    ToArrow {
        /// The batch's index in the epoch, from 0.
        batch_idx: u64,
        /// The reason.
        #[source]
        source: arrow_schema::ArrowError,
    },

    /// The obs rows or codes of a batch could not be gathered.
    #[error("cannot gather the obs rows of batch {batch_idx}")]
    Obs {
        /// The batch's index in the epoch, from 0.
        batch_idx: u64,
        /// The reason.
        #[source]
        source: arrow_schema::ArrowError,
    },
}

/// Makes an [`Error::Open`] of an error of soma-io.
pub(crate) fn open_error(what: String) -> impl FnOnce(soma_io::Error) -> Error {
    move |source| Error::Open { what, source: Box::new(source) }
}
