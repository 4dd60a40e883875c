//! Entropy that cannot be measured or expected.

use crate::PlanError;

/// An invalid argument of a measured or expected entropy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is zero.
    #[error("{size} is 0: give at least 1")]
    Zero {
        /// Name of the size.
        size: &'static str,
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
    /// The labels do not have one entry per row of the plan.
    #[error("{n_rows} rows are planned, but {n_labels} have a label: give one for each row")]
    LabelRows {
        /// Rows of the plan.
        n_rows: u64,
        /// Rows with a label.
        n_labels: u64,
    },
    /// A mean run length is below 1, infinite or not a number.
    #[error("the mean run length is {mean_rows}: it must be finite and at least 1")]
    RunLength {
        /// The mean run length.
        mean_rows: f64,
    },
    /// The plan to be simulated cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
}
