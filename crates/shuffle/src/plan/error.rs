//! Invalid specifications of plans.

/// A plan that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
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
}
