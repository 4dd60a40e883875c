//! Splits that cannot be made.

use crate::stop::Stopped;

/// A split that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A split's fraction is not a number from 0 to 1.
    #[error("the fraction of split {split_idx} is {fraction}: give a number from 0 to 1")]
    Fraction {
        /// Number of the split, from 0.
        split_idx: usize,
        /// The fraction.
        fraction: f64,
    },
    /// There are too many splits.
    #[error("{n_splits} splits are requested, at most {most} are supported: give fewer fractions")]
    TooManySplits {
        /// Number of fractions.
        n_splits: usize,
        /// Largest number of splits.
        most: usize,
    },
    /// The fractions do not sum to 1.
    #[error(
        "the fractions of {n_splits} splits sum to {sum}, but every row goes into one split: give fractions that sum to 1"
    )]
    FractionSum {
        /// Number of splits.
        n_splits: usize,
        /// Sum of the fractions.
        sum: f64,
    },
    /// There are fewer groups than splits that need one.
    #[error(
        "{n_groups} groups cannot fill {n_splits} splits, because a group is never divided: use fewer splits or smaller \
         groups"
    )]
    FewerGroupsThanSplits {
        /// Number of distinct groups.
        n_groups: usize,
        /// Number of splits with a fraction above 0.
        n_splits: usize,
    },
    /// Groups and labels differ in length.
    #[error(
        "{n_groups} rows have a group, but {n_labels} have a label: give every row one of each, in the same order"
    )]
    LabelsLength {
        /// Rows with a group.
        n_groups: usize,
        /// Rows with a label.
        n_labels: usize,
    },
    /// The rows of a split do not fit into memory.
    #[error("no memory for the {n_rows} rows of a split: split fewer rows")]
    TooLarge {
        /// Rows of all splits together.
        n_rows: u64,
    },
    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
