//! Invalid specifications of plans, samples, splits and expectations.

/// An invalid specification of a plan, a sample, a split or an expectation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is zero.
    #[error("{size} is 0: give at least 1")]
    Zero {
        /// Name of the size.
        size: &'static str,
    },
    /// A block has more rows than 32 bits can number.
    #[error(
        "blocks of {chunks_per_block} chunks of {chunk_rows} rows are too large: at most {} rows fit; use smaller or fewer \
         chunks",
        u32::MAX
    )]
    BlockTooLarge {
        /// Rows of a chunk.
        chunk_rows: u64,
        /// Chunks of a block.
        chunks_per_block: u64,
    },
    /// There are more chunks than 32 bits can number.
    #[error(
        "{n_rows} rows make {n_chunks} chunks of {chunk_rows} rows, at most {} can be shuffled: make chunks larger",
        u32::MAX
    )]
    TooManyChunks {
        /// Rows to plan.
        n_rows: u64,
        /// Rows of a chunk.
        chunk_rows: u64,
        /// Chunks that these rows make.
        n_chunks: u64,
    },
    /// There are more lanes than the random generator distinguishes.
    #[error("{lanes} lanes are requested, at most {most} are supported: use fewer")]
    TooManyLanes {
        /// Requested lanes.
        lanes: u64,
        /// Largest number of lanes.
        most: u64,
    },
    /// The lanes do not divide a global batch into equal parts.
    #[error(
        "{lanes} lanes cannot give equal parts of global batches of {global_batch_rows} rows: use a number of lanes that \
         divides them"
    )]
    Lanes {
        /// Requested lanes.
        lanes: u64,
        /// Rows of a global batch.
        global_batch_rows: u64,
    },
    /// Several lanes were requested for rows in stored or listed order.
    #[error("rows in stored or listed order need a single lane, not {lanes}: use 1")]
    LanesInOrder {
        /// Requested lanes.
        lanes: u64,
    },
    /// The rank is not below the world size.
    #[error("there is no rank {rank} in a world of {world_size}: ranks count from 0")]
    Rank {
        /// The rank.
        rank: u64,
        /// Number of ranks.
        world_size: u64,
    },
    /// Several ranks were asked to end with batches of unequal length.
    #[error(
        "{world_size} ranks need batches of equal length, so they cannot share a short last one: drop the remainder \
         or pad it"
    )]
    ShortAmongRanks {
        /// Number of ranks.
        world_size: u64,
    },
    /// A product or sum of sizes does not fit into 64 bits.
    #[error("{what} exceed 64 bits: use smaller batches or fewer ranks")]
    TooManyRows {
        /// The rows that were counted.
        what: &'static str,
    },
    /// A rank's part of a block has more rows than 32 bits can number.
    #[error(
        "a rank would have {block_rows} rows in memory at once, of {lanes} lanes: at most {} rows fit; use smaller or \
         fewer chunks, fewer lanes or more ranks",
        u32::MAX
    )]
    RankBlockTooLarge {
        /// Rows of the rank's part.
        block_rows: u64,
        /// Number of lanes.
        lanes: u64,
    },
    /// The order is that of a list, and there is no list.
    #[error(
        "rows in listed order need a sampling that lists them: give Sampling::listed, Sampling::hierarchical or \
         Sampling::group_batches, or another order"
    )]
    NoList,
    /// A sampling lists the rows in the order of delivery, and another order was requested.
    #[error(
        "the sampling lists the rows in the order in which they come, which another order would change: use Order::Listed"
    )]
    ListReordered,
    /// Chunks of several rows were requested for rows in listed order.
    #[error(
        "chunks of {chunk_rows} rows are requested for rows in listed order, whose neighbours are not stored together: use \
         chunks of 1 row and more chunks per block"
    )]
    ListedChunks {
        /// Rows of a chunk.
        chunk_rows: u64,
    },
    /// The batches that a sampling composes do not divide the global batches.
    #[error(
        "the sampling composes batches of {sampled_rows} rows, which do not divide global batches (batch size x world \
         size) of {global_batch_rows}: compose batches of a size that divides them"
    )]
    SamplingBatch {
        /// Rows of the sampling's batches.
        sampled_rows: u64,
        /// Rows of a global batch.
        global_batch_rows: u64,
    },
    /// A rank's batches are not those that a sampling composes of one group each.
    #[error(
        "the sampling composes batches of {sampled_rows} rows of one group, and batches have {batch_rows} rows: give \
         both the same number"
    )]
    GroupBatchSize {
        /// Rows of the sampling's batches.
        sampled_rows: u64,
        /// Rows of a rank's batch.
        batch_rows: u64,
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
    /// Rows have more classes than 32 bits can number.
    #[error("the first {n_rows} rows have 2^32 or more classes in all: give fewer per row")]
    TooManyClasses {
        /// Number of rows at which the number is reached.
        n_rows: usize,
    },
    /// Two lists with an entry per row differ in length.
    #[error("{n_rows} rows have a domain, but {n_found} have {what}: give one for each row")]
    HierarchyRows {
        /// Name of the other list.
        what: &'static str,
        /// Rows with a domain.
        n_rows: usize,
        /// Entries of the other list.
        n_found: usize,
    },
    /// Two lists with an entry per row differ in length.
    #[error("{n_rows} rows have a group, but {n_found} have {what}: give one for each row")]
    GroupRows {
        /// Name of the other list.
        what: &'static str,
        /// Rows with a group.
        n_rows: usize,
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
    SampleTooLarge {
        /// Rows to draw.
        n_samples: u64,
        /// Rows to draw from.
        n_rows: u64,
    },
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
    /// No split method has this name.
    #[error(
        "no split method is named {name:?}: use deterministic, multinomial or stochastic_rounding"
    )]
    UnknownSplitMethod {
        /// The name.
        name: String,
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
    SplitTooLarge {
        /// Rows of all splits together.
        n_rows: u64,
    },
    /// A row was added to a set of rows out of order.
    #[error(
        "row {row} cannot be added: rows of a set ascend, and the next must be {least} or more, below 2^64 - 1"
    )]
    RowOrder {
        /// The row.
        row: u64,
        /// The least row that could have been added.
        least: u64,
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
    /// All counts are 0, so that no number can be drawn.
    #[error("none of {n_counts} counts is above 0: nothing can be drawn")]
    NothingToDraw {
        /// Number of counts.
        n_counts: usize,
    },
    /// There are more numbers to draw than 32 bits can number.
    #[error("{n_counts} counts are more than 32 bits can number: leave out rare ones")]
    TooManyToDraw {
        /// Number of counts.
        n_counts: usize,
    },
    /// The exponent of weights is not a finite number.
    #[error("the exponent of the counts is {exponent}: it must be a finite number")]
    Exponent {
        /// The exponent.
        exponent: f64,
    },
    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error("stopped on request")]
    Stopped,
    /// A mean run length is below 1, infinite or not a number.
    #[error("the mean run length is {mean_rows}: it must be finite and at least 1")]
    RunLength {
        /// The mean run length.
        mean_rows: f64,
    },
}
