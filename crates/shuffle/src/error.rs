//! What can be wrong with a specification.

/// A specification that no plan can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
}
