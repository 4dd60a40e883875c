//! Errors between a selection and its batches.

use std::ops::Range;

/// An error of this crate: what was tried, on which rows, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine cannot do what was asked for: sizes, ranks, memory, a saved state, threads.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),

    /// Sparse batches were asked for from dense blocks.
    #[error(
        "method np.array holds each block as a dense array, so it cannot give sparse batches: take scipy.csr or native, or \
         dense batches"
    )]
    SparseFromDense,

    /// The values of a batch cannot be transformed so.
    #[error("these values cannot be transformed as wanted")]
    Transform {
        /// Why not.
        #[source]
        source: densify::Error,
    },

    /// A cell has values and no total to scale them by.
    #[error(
        "cell {joinid} of experiment {experiment} has values, but its total is {total}: totals must be above 0; leave the cell out"
    )]
    Total {
        /// The experiment of the data set, counted from 0.
        experiment: usize,
        /// The cell's joinid.
        joinid: u64,
        /// Its total.
        total: String,
    },

    /// The totals are not one for each cell.
    #[error("there are {found} totals for {n_cells} cells")]
    TotalsLength {
        /// Totals that were given.
        found: usize,
        /// Selected cells.
        n_cells: u64,
    },

    /// Values were to be scaled by totals that the data set does not have.
    #[error(
        "values are to be scaled by the totals in obs, and the data set has none: name their column when it is made (the \
         Census has raw_sum), or take the sums of the selected genes"
    )]
    NoTotals,

    /// No form of blocks has this name.
    #[error("no form of blocks is called {name:?}: take np.array, scipy.csr or native")]
    UnknownBlockForm {
        /// The name that was given.
        name: String,
    },

    /// No batch form has this name.
    #[error("no form of batches is called {name:?}: take dense, f16, csr or coo")]
    UnknownBatchForm {
        /// The name that was given.
        name: String,
    },

    /// An obs column does not hold weights.
    #[error("obs column {column:?} does not say the weights of cells: {problem}")]
    WeightColumn {
        /// The column.
        column: String,
        /// Why not.
        problem: String,
    },

    /// A part of the experiment could not be opened or read while the data set was put together.
    #[error("cannot take {what} from the experiment")]
    Open {
        /// What was wanted.
        what: String,
        /// Why not.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// A selected cell lies outside X.
    #[error(
        "obs has a cell with joinid {joinid}, but X has {x_rows} rows: select cells with joinids below {x_rows}"
    )]
    CellOutsideX {
        /// The first such joinid.
        joinid: u64,
        /// X's number of rows.
        x_rows: u64,
    },

    /// The selected rows' joinids are not strictly ascending.
    #[error(
        "the joinids of the selected cells must ascend: row {row_idx} has {joinid}, the row before it {before}; sort \
         them, each once"
    )]
    CellsNotAscending {
        /// The first row that breaks the rule.
        row_idx: usize,
        /// Its joinid.
        joinid: u64,
        /// The joinid of the row before it.
        before: u64,
    },

    /// obs and the list of cells differ in length.
    #[error(
        "{n_cells} cells are selected, but obs has {n_obs} rows: give one obs row for each cell, in the same order"
    )]
    ObsLength {
        /// Selected cells.
        n_cells: u64,
        /// Rows of obs.
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

    /// Rows of a data set that are not there, or do not ascend.
    #[error("row {row} {problem}: give rows of the data set in ascending order, each once")]
    Rows {
        /// The row.
        row: u64,
        /// What is wrong with it.
        problem: String,
    },

    /// obs columns could not be encoded.
    #[error(transparent)]
    Encode(#[from] crate::encode::Error),

    /// Columns could not be put together.
    #[error("cannot take the wanted columns of {of}")]
    Columns {
        /// obs or var.
        of: &'static str,
        /// Why not.
        #[source]
        source: arrow_schema::ArrowError,
    },

    /// A gene's name does not say which gene is meant.
    #[error(
        "gene {name:?} comes twice, in the list or in var column {column}: each column needs one gene"
    )]
    GeneTwice {
        /// The var column.
        column: String,
        /// The name.
        name: String,
    },

    /// No gene is in all of several experiments.
    #[error(
        "no gene is in all of the experiments by var column {column}: name another column, or take the union"
    )]
    NoCommonGenes {
        /// The var column.
        column: String,
    },

    /// No data sets were given to be made one.
    #[error("there are no data sets to make one of: give at least one")]
    NoDatasets,

    /// Data sets that were to be one have different genes.
    #[error(
        "data set {idx} has {n_columns} genes and the first {first}: select the same genes of each, by name"
    )]
    ConcatGenes {
        /// The one that differs, counted from 0.
        idx: usize,
        /// Its genes.
        n_columns: usize,
        /// Those of the first.
        first: usize,
    },

    /// Data sets that were to be one have different obs columns.
    #[error("the obs or var columns of data set {idx} do not fit the first's: {problem}")]
    ConcatObs {
        /// The one that differs, counted from 0.
        idx: usize,
        /// How.
        problem: String,
    },

    /// A joinid column holds something else than non-negative 64-bit integers.
    #[error("column soma_joinid is not what SOMA says: {problem}")]
    JoinidColumn {
        /// What is wrong with it.
        problem: String,
    },

    /// A selected gene lies outside X.
    #[error("the gene selection cannot be applied to X, which has {x_columns} columns")]
    GenesOutsideX {
        /// X's number of columns.
        x_columns: u64,
        /// Which gene, or why not.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// A block or batch is larger than memory can address or the system would give.
    #[error("cannot get {bytes} bytes for {what} of {n_rows} rows x {n_columns} genes: {advice}")]
    OutOfMemory {
        /// A block, or a batch.
        what: &'static str,
        /// What it would take.
        bytes: u128,
        /// Its rows.
        n_rows: u64,
        /// Its columns.
        n_columns: u64,
        /// Which size to make smaller.
        advice: &'static str,
    },

    /// A buffer for a batch could not be had from the [`BatchBuffers`](crate::BatchBuffers) in use.
    #[error("cannot get a buffer of {n_values} values for a batch: make the batches smaller")]
    Buffer {
        /// Its length, in values.
        n_values: usize,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
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
        /// The block, counted from 0 in the epoch's order.
        block_idx: u64,
        /// The experiment of the data set, counted from 0.
        experiment: usize,
        /// From the first joinid that was asked for to behind the last.
        joinids: Range<u64>,
        /// Why not.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// What was read could not be put into a block or batch.
    #[error("cannot put block {block_idx} of epoch {epoch} into rows")]
    Densify {
        /// The epoch.
        epoch: u64,
        /// The block, counted from 0 in the epoch's order.
        block_idx: u64,
        /// Why not.
        #[source]
        source: densify::Error,
    },

    /// What a reader gave does not have the shape that was asked for.
    #[error(
        "reader {reader:?} gave {found_rows} rows x {found_columns} columns for block {block_idx}, which has {n_rows} x \
         {n_columns}: its read_csr does not keep to what XReader asks for"
    )]
    BlockShape {
        /// The reader's name.
        reader: &'static str,
        /// The block, counted from 0 in the epoch's order.
        block_idx: u64,
        /// Rows that came.
        found_rows: usize,
        /// Columns that came.
        found_columns: usize,
        /// Rows that were asked for.
        n_rows: usize,
        /// Columns that were asked for.
        n_columns: usize,
    },

    /// A batch is of another form than it is to be taken as.
    #[error("a {found} batch cannot be taken as {wanted}: ask the loader for that form")]
    OtherForm {
        /// The form that was wanted.
        wanted: &'static str,
        /// The form it has.
        found: &'static str,
    },

    /// A buffer holds elements of another type than was asked for.
    #[error(
        "a buffer holds elements of type {found}, {wanted} was asked for: `BatchBuffers::take` must give the type that it is asked for"
    )]
    ElementType {
        /// The [name](crate::ElementType::name) of the type that it holds.
        found: &'static str,
        /// The name of the type that was asked for.
        wanted: &'static str,
    },

    /// sprs refused a matrix.
    #[error("sprs does not take this batch: {problem}")]
    Sprs {
        /// Why not.
        problem: String,
    },

    /// A batch does not make an Arrow record batch.
    #[error("batch {batch_idx} does not make an Arrow record batch")]
    ToArrow {
        /// The batch, counted from 0.
        batch_idx: u64,
        /// Why not.
        #[source]
        source: arrow_schema::ArrowError,
    },

    /// The obs rows of a batch could not be taken.
    #[error("cannot take the obs rows of batch {batch_idx}")]
    Obs {
        /// The batch, counted from 0.
        batch_idx: u64,
        /// Why not.
        #[source]
        source: arrow_schema::ArrowError,
    },
}

/// Makes an [`Error::Open`] of an error of soma-io.
pub(crate) fn open(what: String) -> impl FnOnce(soma_io::Error) -> Error {
    move |source| Error::Open { what, source: Box::new(source) }
}
