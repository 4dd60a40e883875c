//! Samples that cannot be drawn.

use crate::stop::Stopped;

/// A sample that cannot be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is zero.
    #[error("{size} is 0: give at least 1")]
    Zero {
        /// Name of the size.
        size: &'static str,
    },
    /// The sampled rows do not ascend, or are not in the selection.
    #[error("the sampled rows do not fit the selection: {problem}")]
    SampledRows {
        /// Description of the first such row.
        problem: String,
    },
    /// A weight is negative, infinite or not a number.
    #[error("the weight of row {row_idx} is {weight}: weights are finite numbers of at least 0")]
    Weight {
        /// Position of the weight.
        row_idx: usize,
        /// The weight.
        weight: f64,
    },
    /// No row has a weight above 0.
    #[error(
        "none of {n_rows} rows has a weight above 0, so none can be drawn: give at least one row a weight"
    )]
    NoWeights {
        /// Number of rows.
        n_rows: usize,
    },
    /// There are no rows to draw from.
    #[error("cannot draw {n_samples} rows from none: select at least one row")]
    NoRows {
        /// Rows to draw.
        n_samples: u64,
    },
    /// A group's share is negative, infinite or not a number.
    #[error("the share of group {group} is {share}: shares are finite numbers of at least 0")]
    GroupShare {
        /// Code of the group.
        group: usize,
        /// The share.
        share: f64,
    },
    /// A group has a share and no rows.
    #[error("group {group} has a share of {share} but no rows: give it a share of 0")]
    EmptyGroup {
        /// Code of the group.
        group: usize,
        /// The share.
        share: f64,
    },
    /// A label's code is not below the number of classes.
    #[error(
        "a label has the code {code}, but there are {n_classes} classes: codes must be below that number"
    )]
    LabelCode {
        /// The code.
        code: u32,
        /// Number of classes.
        n_classes: usize,
    },
    /// Rows have more classes than 32 bits can number.
    #[error("the first {n_rows} rows have 2^32 or more classes in all: give fewer per row")]
    TooManyClasses {
        /// Number of rows at which the number is reached.
        n_rows: usize,
    },
    /// Two lists with an entry per row differ in length.
    #[error("{n_rows} rows have {first}, but {n_found} have {what}: give one for each row")]
    UnequalLists {
        /// Name of the first list's entries.
        first: &'static str,
        /// Entries of the first list.
        n_rows: usize,
        /// Name of the other list's entries.
        what: &'static str,
        /// Entries of the other list.
        n_found: usize,
    },
    /// Controls fill batches of one group.
    #[error(
        "batches of {batch_rows} rows with {n_controls} controls have no room for other rows: make them larger, or take \
         fewer controls"
    )]
    OnlyControls {
        /// Rows of a batch.
        batch_rows: u64,
        /// Controls of a batch.
        n_controls: u64,
    },
    /// A group has no control in its context.
    #[error(
        "rows of group {group} in context {context} have no control in their context: leave them out, or match by \
         another context"
    )]
    NoControls {
        /// Code of the group.
        group: u32,
        /// Code of the context.
        context: u32,
    },
    /// A batch has fewer rows than there are domains.
    #[error(
        "batches of {batch_rows} rows cannot have a row of each of {n_domains} domains: make them larger"
    )]
    FewerRowsThanDomains {
        /// Rows of a batch.
        batch_rows: u64,
        /// Number of domains.
        n_domains: u64,
    },
    /// No row has a class.
    #[error(
        "none of {n_rows} rows has a class, so no class can be drawn: give at least one row a class"
    )]
    NoClasses {
        /// Number of rows.
        n_rows: usize,
    },
    /// No row of a domain has a class that rows of other domains have.
    #[error(
        "no row of domain {domain} has class {class}, but a class is drawn for all domains: leave the class out, or \
         merge domains"
    )]
    ClassNotInDomain {
        /// Code of the class.
        class: u32,
        /// Code of the domain.
        domain: u32,
    },
    /// A sample without replacement is larger than the number of rows to draw from.
    #[error(
        "cannot draw {n_samples} rows without replacement from {n_rows}: draw fewer, or with replacement"
    )]
    TooManySamples {
        /// Rows to draw.
        n_samples: u64,
        /// Rows that can be drawn.
        n_rows: u64,
    },
    /// A sample or its selection has more rows than 32 bits can number, or does not fit into
    /// memory.
    #[error(
        "cannot sample {n_samples} rows out of {n_rows}: each must be below 2^32 and fit into memory"
    )]
    TooLarge {
        /// Rows to draw.
        n_samples: u64,
        /// Rows to draw from.
        n_rows: u64,
    },
    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
