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
    /// There are more lanes than are kept apart.
    #[error("{lanes} lanes are asked for, at most {most} are kept apart: take fewer")]
    TooManyLanes {
        /// Lanes that were asked for.
        lanes: u64,
        /// How many may be.
        most: u64,
    },
    /// Global batches do not divide into equal parts of all lanes.
    #[error(
        "{lanes} lanes cannot give equal parts of global batches of {global_batch_rows} rows: take a number of lanes that \
         divides them"
    )]
    Lanes {
        /// Lanes that were asked for.
        lanes: u64,
        /// Rows of a global batch.
        global_batch_rows: u64,
    },
    /// Rows in their stored order were asked for from several lanes.
    #[error(
        "rows come in the order in which they are stored from one lane only, not from {lanes}: take 1"
    )]
    LanesInOrder {
        /// Lanes that were asked for.
        lanes: u64,
    },
    /// The rank is not one of the world.
    #[error("there is no rank {rank} in a world of {world_size}: ranks count from 0")]
    Rank {
        /// The rank.
        rank: u64,
        /// How many there are.
        world_size: u64,
    },
    /// Several ranks cannot end with batches of unequal length.
    #[error(
        "{world_size} ranks need batches of equal length, so a short last one cannot be shared out: drop the remainder, \
         or pad it"
    )]
    ShortAmongRanks {
        /// How many ranks there are.
        world_size: u64,
    },
    /// Sizes whose product, or sum, is more than can be counted.
    #[error("{what} are more than can be counted: make batches, or the number of ranks, smaller")]
    TooManyRows {
        /// Which rows.
        what: &'static str,
    },
    /// What one rank holds of a block has more rows than can be numbered.
    #[error(
        "a rank would hold {block_rows} rows at once, of {lanes} lanes: at most {} rows fit; make chunks smaller or fewer, \
         take fewer lanes or more ranks",
        u32::MAX
    )]
    RankBlockTooLarge {
        /// Rows that a rank would hold.
        block_rows: u64,
        /// Lanes in all.
        lanes: u64,
    },
    /// A list of sampled rows is not one of this selection.
    #[error("the sampled rows are not of the selection: {problem}")]
    SampledRows {
        /// What is wrong with them.
        problem: String,
    },
    /// A weight is none.
    #[error("the weight of row {row_idx} is {weight}: weights are finite numbers of at least 0")]
    Weight {
        /// The row.
        row_idx: usize,
        /// Its weight.
        weight: f64,
    },
    /// Nothing can be drawn.
    #[error(
        "none of {n_rows} rows has a weight above 0, so none can be drawn: give some row a weight"
    )]
    NoWeights {
        /// The rows.
        n_rows: usize,
    },
    /// More rows are to be drawn than there are, each at most once.
    #[error(
        "{n_samples} rows are to be drawn and none twice, but only {n_rows} can be: draw fewer, or with replacement"
    )]
    TooManySamples {
        /// Rows to draw.
        n_samples: u64,
        /// Rows that can be drawn.
        n_rows: u64,
    },
    /// There are more rows than samples can name, or memory holds.
    #[error(
        "cannot sample {n_samples} rows out of {n_rows}: fewer than 2^32 of each, for which there is memory, can be"
    )]
    SampleTooLarge {
        /// Rows to draw.
        n_samples: u64,
        /// Rows to draw from.
        n_rows: u64,
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
