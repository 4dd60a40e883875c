//! What can go wrong when a part of an experiment is taken.

/// An error of this crate: what was tried, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No cell is left.
    #[error("no cell of {uri} is chosen, of {n_looked_at} that were looked at: ask for others")]
    NoCells {
        /// obs.
        uri: String,
        /// How many cells have the joinids that were asked for.
        n_looked_at: u64,
    },
    /// No gene is left.
    #[error("no gene of {uri} is chosen: ask for others")]
    NoGenes {
        /// var.
        uri: String,
    },
    /// A slice of the data sets that has none.
    #[error(
        "data sets {start} to {end} were asked for, counted from 0, but {uri} has {n_datasets}"
    )]
    NoDatasets {
        /// obs.
        uri: String,
        /// The first one.
        start: usize,
        /// The one behind the last.
        end: String,
        /// How many there are.
        n_datasets: usize,
    },
    /// A column holds no texts.
    #[error(
        "column {column} of {uri} is of type {data_type}, and names are texts: name another column"
    )]
    NotTexts {
        /// The data frame.
        uri: String,
        /// The column.
        column: String,
        /// What it holds.
        data_type: arrow_schema::DataType,
    },
    /// Genes are not there.
    #[error(
        "{n_absent} of {n_genes} genes are not in column {column} of {uri}, as {}: leave them out, skip what is absent, or name another column",
        .first.join(", ")
    )]
    AbsentGenes {
        /// var.
        uri: String,
        /// The column in which they were looked for.
        column: String,
        /// How many are not there.
        n_absent: usize,
        /// How many were asked for.
        n_genes: usize,
        /// The first of those that are not there.
        first: Vec<String>,
    },
    /// A gene's name is there twice.
    #[error("gene {name:?} is twice in {place}: {todo}")]
    GeneTwice {
        /// The name.
        name: String,
        /// Where.
        place: String,
        /// What to do.
        todo: &'static str,
    },
    /// Values of X that cannot be kept.
    #[error(
        "layer {layer} of X ({uri}) holds values of type {data_type}; only 32-bit floats are written as they are"
    )]
    Values {
        /// The layer.
        layer: String,
        /// Where it is.
        uri: String,
        /// Its type.
        data_type: arrow_schema::DataType,
    },
    /// A layer holds a cell's gene twice.
    #[error("row {joinid} of {uri} has gene {gene} twice, which a new experiment cannot have")]
    ValueTwice {
        /// The layer.
        uri: String,
        /// The cell.
        joinid: u64,
        /// The gene, by its position among those chosen.
        gene: u32,
    },
    /// The memory that is allowed does not do.
    #[error(
        "{memory_bytes} bytes of memory do not do: rows of {n_values} values take {least_bytes} bytes at least"
    )]
    Memory {
        /// What is allowed.
        memory_bytes: u64,
        /// How many values a row has in the mean.
        n_values: u64,
        /// What would do.
        least_bytes: u64,
    },
    /// Whoever watches wanted an end.
    #[error("interrupted: no experiment was written")]
    Interrupted,
    /// Arrow refused.
    #[error("column {column} of {uri} cannot be looked through: {source}")]
    Arrow {
        /// The data frame.
        uri: String,
        /// The column.
        column: String,
        /// Why not.
        source: arrow_schema::ArrowError,
    },
    /// The experiment could not be read or written.
    #[error(transparent)]
    Soma(#[from] soma_io::Error),
}
