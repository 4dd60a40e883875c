//! Errors of vocabularies, settings and cells.

/// Tokens cannot be made as requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A vocabulary has a name twice.
    #[error("the vocabulary has {name:?} twice: give each name one token id")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Two names of a vocabulary share a token id.
    #[error(
        "{first:?} and {second:?} of the vocabulary both have token id {id}: give each its own"
    )]
    DuplicateId {
        /// The token id.
        id: u32,
        /// One of the names.
        first: String,
        /// The other name.
        second: String,
    },
    /// A token id does not fit the tensors of models.
    #[error("{name:?} of the vocabulary has token id {id}: ids must be below 2^31")]
    LargeId {
        /// The name.
        name: String,
        /// The token id.
        id: u32,
    },
    /// A special token is not in the vocabulary.
    #[error("the vocabulary has no {name:?}: name the {role} token as the vocabulary does")]
    NoSpecial {
        /// `padding`, `first` or `last`.
        role: &'static str,
        /// The name that was looked for.
        name: String,
    },
    /// Two columns are the same gene of the vocabulary.
    #[error(
        "columns {first} and {second} are both {name:?}, which is one token: leave one of them \
         out, or take names that differ"
    )]
    DuplicateGene {
        /// The gene.
        name: String,
        /// The first column.
        first: usize,
        /// The second column.
        second: usize,
    },
    /// No column is a gene of the vocabulary.
    #[error(
        "none of the {n_genes} genes is known (the first is {gene:?}, and the vocabulary has \
         {known:?}): take the names that the vocabulary has"
    )]
    NoKnownGene {
        /// Number of columns.
        n_genes: usize,
        /// The first column's name.
        gene: String,
        /// A name of the vocabulary.
        known: String,
    },
    /// A gene's median is not a positive number.
    #[error("the median of {name:?} is {median}: medians must be above 0")]
    Median {
        /// The gene.
        name: String,
        /// Its median.
        median: f64,
    },
    /// The target sum is not a positive number.
    #[error("a target sum of {target_sum} is not above 0")]
    TargetSum {
        /// The target sum.
        target_sum: f64,
    },
    /// A sequence has no room for a gene, or room for more than any model takes.
    #[error(
        "a maximal length of {max_length} has no room for a gene beside {n_special} special tokens, or is above 2^20"
    )]
    MaxLength {
        /// The maximal length.
        max_length: usize,
        /// Number of special tokens in each sequence.
        n_special: usize,
    },
    /// There are too few bins, or too many.
    #[error("{n_bins} bins are impossible: take 2 to 65,536, one of which is for zeros")]
    Bins {
        /// The number of bins.
        n_bins: usize,
    },
    /// The value of padding is not a number.
    #[error("a padding value of {pad_value} is not finite")]
    PadValue {
        /// The value.
        pad_value: f32,
    },
    /// A value cannot be ranked or binned.
    #[error(
        "row {row_idx} has the value {value} in column {column}: values must be finite and not below 0"
    )]
    Value {
        /// The row.
        row_idx: usize,
        /// The value's column.
        column: u32,
        /// The value.
        value: f32,
    },
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
    /// A row has values, but no positive total to divide them by.
    #[error("row {row_idx} has values, but its total is {total}: ranks need a total above 0")]
    Total {
        /// The row.
        row_idx: usize,
        /// Its total.
        total: f64,
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
    /// Slices have different lengths, or not the length of the sequences.
    #[error("{what} has {found} elements, {expected} were expected")]
    Length {
        /// The slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The expected length.
        expected: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a thread to make tokens: take fewer threads")]
    Spawn {
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}
