//! What can be wrong with a specification.

/// A specification that no plan, no split and no expectation can be made of.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is zero.
    #[error("{size} is 0: give at least 1")]
    Zero {
        /// Which size.
        size: &'static str,
    },
    /// A block has more rows than can be numbered.
    #[error(
        "blocks of {chunks_per_block} chunks of {chunk_rows} rows are too large: at most {} rows fit, make chunks smaller or \
         fewer",
        u32::MAX
    )]
    BlockTooLarge {
        /// Rows of a chunk.
        chunk_rows: u64,
        /// Chunks of a block.
        chunks_per_block: u64,
    },
    /// There are more chunks than can be put into an order.
    #[error(
        "{n_rows} rows make {n_chunks} chunks of {chunk_rows} rows, at most {} can be shuffled: make chunks larger",
        u32::MAX
    )]
    TooManyChunks {
        /// Rows to plan.
        n_rows: u64,
        /// Rows of a chunk.
        chunk_rows: u64,
        /// The chunks that they make.
        n_chunks: u64,
    },
    /// A split's fraction is not one.
    #[error("the fraction of split {split_idx} is {fraction}: give a number from 0 to 1")]
    Fraction {
        /// Which split, from 0.
        split_idx: usize,
        /// What was given for it.
        fraction: f64,
    },
    /// There are more splits than are made at once.
    #[error("{n_splits} splits are asked for, at most {most} are made: give fewer fractions")]
    TooManySplits {
        /// How many fractions were given.
        n_splits: usize,
        /// How many may be.
        most: usize,
    },
    /// The splits do not share out all rows.
    #[error(
        "the fractions of {n_splits} splits sum to {sum}, but every row goes into one split: give fractions that sum to 1"
    )]
    FractionSum {
        /// How many splits there are.
        n_splits: usize,
        /// What their fractions sum to.
        sum: f64,
    },
    /// No method of making a split has this name.
    #[error(
        "no way to split is called {name:?}: take deterministic, multinomial or stochastic_rounding"
    )]
    UnknownSplitMethod {
        /// The name that was given.
        name: String,
    },
    /// Some split would stay without a group.
    #[error(
        "{n_groups} groups cannot fill {n_splits} splits, as a group is never shared: make fewer splits, or group by \
         something finer"
    )]
    FewerGroupsThanSplits {
        /// Distinct groups.
        n_groups: usize,
        /// Splits with a fraction above 0.
        n_splits: usize,
    },
    /// Groups and labels are not of the same rows.
    #[error(
        "{n_groups} rows have a group, but {n_labels} a label: give one of each for every row, in the same order"
    )]
    LabelsLength {
        /// Rows with a group.
        n_groups: usize,
        /// Rows with a label.
        n_labels: usize,
    },
    /// The rows of a split do not fit into memory.
    #[error("cannot get memory for the numbers of {n_rows} rows of a split: split fewer rows")]
    SplitTooLarge {
        /// Its rows.
        n_rows: u64,
    },
    /// A label's code is not among the classes.
    #[error(
        "a label has the code {code}, but there are {n_classes} classes: give codes below that number"
    )]
    LabelCode {
        /// The code.
        code: u32,
        /// How many classes there are.
        n_classes: usize,
    },
    /// Labels are not of the rows that are planned.
    #[error("{n_rows} rows are planned, but {n_labels} have a label: give one for each row")]
    LabelRows {
        /// Rows of the plan.
        n_rows: u64,
        /// Rows with a label.
        n_labels: u64,
    },
    /// A model of runs that cannot be.
    #[error("runs of {mean_rows} rows on average cannot be: give a number from 1 on")]
    RunLength {
        /// What was given.
        mean_rows: f64,
    },
}
