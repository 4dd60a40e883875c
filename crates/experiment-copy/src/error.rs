//! Errors of copying a part of an experiment.

/// An error of this crate: the failed step, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No cell is chosen.
    #[error("none of {n_scanned} scanned cells of {uri} matches: change the selection")]
    NoCells {
        /// URI of obs.
        uri: String,
        /// Number of cells that have the requested joinids.
        n_scanned: u64,
    },
    /// No gene is chosen.
    #[error("no gene of {uri} matches: change the selection")]
    NoGenes {
        /// URI of var.
        uri: String,
    },
    /// A range of data sets is empty.
    #[error(
        "the range of data sets {start} to {end} (counted from 0) is empty: {uri} has {n_datasets}"
    )]
    NoDatasets {
        /// URI of obs.
        uri: String,
        /// Start of the range.
        start: usize,
        /// End of the range.
        end: String,
        /// Number of data sets.
        n_datasets: usize,
    },
    /// A column does not have strings.
    #[error(
        "column {column} of {uri} has type {data_type}, but names must be strings: choose another column"
    )]
    NotTexts {
        /// URI of the data frame.
        uri: String,
        /// The column.
        column: String,
        /// Type of the column.
        data_type: arrow_schema::DataType,
    },
    /// Requested genes are missing.
    #[error(
        "{n_absent} of {n_genes} genes are not in column {column} of {uri}, for instance {}: leave them out, skip missing genes, or choose another column",
        .first.join(", ")
    )]
    AbsentGenes {
        /// URI of var.
        uri: String,
        /// The searched column.
        column: String,
        /// Number of missing genes.
        n_absent: usize,
        /// Number of requested genes.
        n_genes: usize,
        /// The first missing genes.
        first: Vec<String>,
    },
    /// A gene's name occurs twice.
    #[error("gene {name:?} occurs twice in {place}: {todo}")]
    GeneTwice {
        /// The name.
        name: String,
        /// The list or column with the duplicate.
        place: String,
        /// The remedy.
        todo: &'static str,
    },
    /// A layer has the same gene of a cell twice.
    #[error("row {joinid} of {uri} has gene {gene} twice, which a new experiment cannot have")]
    ValueTwice {
        /// URI of the layer.
        uri: String,
        /// Joinid of the cell.
        joinid: u64,
        /// Position of the gene among the chosen ones.
        gene: u32,
    },
    /// The memory limit is too small.
    #[error(
        "{memory_bytes} bytes of memory are too few: rows of {uri} with {n_values} values need at least {least_bytes} bytes, other matrices no more; nothing was written"
    )]
    Memory {
        /// The limit in bytes.
        memory_bytes: u64,
        /// URI of the matrix that needs most.
        uri: String,
        /// Its mean number of values per row.
        n_values: u64,
        /// The smallest limit that would be enough for all matrices.
        least_bytes: u64,
    },
    /// `watch` ended the copy.
    #[error("interrupted: no experiment was written")]
    Interrupted,
    /// Arrow rejected a column.
    #[error("column {column} of {uri} cannot be scanned: {source}")]
    Arrow {
        /// URI of the data frame.
        uri: String,
        /// The column.
        column: String,
        /// Arrow's error.
        source: arrow_schema::ArrowError,
    },
    /// The destination cannot be written to.
    #[error(transparent)]
    Destination(#[from] soma_io::DestinationError),
    /// The experiment could not be read or written.
    #[error(transparent)]
    Soma(#[from] soma_io::Error),
}
