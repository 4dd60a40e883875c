//! The specification of an epoch's plan.

mod error;

use std::sync::Arc;

pub use error::PlanError;

use crate::batch_spec::Deal;
use crate::random::{Decision, generator, permute};
use crate::sample::Sampling;
use crate::sequence::Sequence;
use crate::{BatchSpec, EpochPlan};

/// The order in which rows are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Order {
    /// Random chunks per block, and the rows of each block in random order.
    Shuffled,
    /// The order in which rows are stored.
    InOrder,
    /// The order of a list that a sampling makes ([`Sampling::is_listed`]). Each global batch is a
    /// consecutive piece of the list, each rank takes its part of that piece, and each block has
    /// consecutive rows of the rank's parts. The order does not depend on the size of blocks.
    ///
    /// Neighbours in the list are not neighbours in storage, so `chunk_rows` must be 1, and a block
    /// has `chunks_per_block` rows of the list, each distinct row read once.
    Listed,
}

impl Order {
    /// The name on the command line and in measurements: `shuffled`, `in-order`, `listed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shuffled => "shuffled",
            Self::InOrder => "in-order",
            Self::Listed => "listed",
        }
    }
}

/// Specifies which rows are delivered and how they are shuffled. Rows are positions in a selection,
/// `0..n_rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanSpec {
    /// Number of rows to deliver, or to sample from.
    pub n_rows: u64,
    /// Consecutive rows that are read together; only the last chunk may have fewer. For samples,
    /// consecutive entries of the list of drawn rows.
    pub chunk_rows: u64,
    /// Chunks that are in memory and shuffled together; the last block may have fewer.
    pub chunks_per_block: u64,
    /// The order of the rows.
    pub order: Order,
    /// Seed of the shuffled order; each epoch has another order.
    pub seed: u64,
    /// Blocks at the start of an epoch that grow, so that the first batch is there sooner: each has
    /// half as many chunks as the next, at least one. With 4, the first has a sixteenth of
    /// `chunks_per_block`; with 0, all blocks are full. The batches of small blocks are less random
    /// ([`entropy::LabelLayout::in_blocks`](crate::entropy::LabelLayout::in_blocks)).
    pub ramp_blocks: u32,
}

/// Shuffled blocks of 1,024 chunks of 64 rows; no rows yet.
impl Default for PlanSpec {
    fn default() -> Self {
        Self {
            n_rows: 0,
            chunk_rows: 64,
            chunks_per_block: 1024,
            order: Order::Shuffled,
            seed: 0,
            ramp_blocks: 0,
        }
    }
}

impl PlanSpec {
    /// Fails if no plan can be made.
    pub fn check(&self) -> Result<(), PlanError> {
        self.block_rows()?;
        self.check_chunks(self.n_rows)
    }

    /// Checks that a sampling, or its absence, fits the order and the batches.
    ///
    /// # Errors
    /// The order is [`Order::Listed`] and nothing lists the rows, or the other way round; the
    /// batches that the sampling composes do not divide the global batches, or are of one group
    /// each and of another size than a rank's.
    pub fn check_sampling(
        &self,
        batches: &BatchSpec,
        sampling: Option<&Sampling>,
    ) -> Result<(), PlanError> {
        match (self.order, sampling.is_some_and(Sampling::is_listed)) {
            (Order::Listed, false) => return Err(PlanError::NoList),
            (Order::Shuffled | Order::InOrder, true) => return Err(PlanError::ListReordered),
            (Order::Listed, true) | (Order::Shuffled | Order::InOrder, false) => {}
        }
        let global_batch_rows = batches.global_batch_rows()?;
        let batch_rows = batches.batch_rows;
        match sampling.and_then(Sampling::batch_rows) {
            Some(sampled_rows)
                if sampling.is_some_and(Sampling::is_of_groups) && sampled_rows != batch_rows =>
            {
                Err(PlanError::GroupBatchSize { sampled_rows, batch_rows })
            }
            Some(sampled_rows) if !global_batch_rows.is_multiple_of(sampled_rows) => {
                Err(PlanError::SamplingBatch { sampled_rows, global_batch_rows })
            }
            _ => Ok(()),
        }
    }

    /// Rows of a full block.
    pub fn block_rows(&self) -> Result<u64, PlanError> {
        for (size, rows) in [
            ("the chunk size", self.chunk_rows),
            ("the number of chunks per block", self.chunks_per_block),
        ] {
            if rows == 0 {
                return Err(PlanError::Zero { size });
            }
        }
        self.chunk_rows
            .checked_mul(self.chunks_per_block)
            .filter(|rows| u32::try_from(*rows).is_ok())
            .ok_or(PlanError::BlockTooLarge {
                chunk_rows: self.chunk_rows,
                chunks_per_block: self.chunks_per_block,
            })
    }

    /// The largest number of rows that a rank has in memory at once in an epoch of `n_rows` rows,
    /// including padding: one block of each lane that the rank delivers.
    ///
    /// # Errors
    /// Sizes do not fit together, or are too large.
    pub fn rank_block_rows(&self, batches: &BatchSpec, n_rows: u64) -> Result<u64, PlanError> {
        let deal = self.deal(batches, n_rows)?;
        Ok(match self.order {
            Order::Listed => deal.of_rank(self)?.max_block_rows(),
            Order::Shuffled | Order::InOrder => deal.max_block_rows(),
        })
    }

    /// Plans an epoch for a single rank that delivers all rows. A shuffled plan takes 4 bytes per
    /// chunk.
    pub fn epoch(&self, epoch: u64) -> Result<EpochPlan, PlanError> {
        self.dealt_epoch(epoch, &BatchSpec::single(self.block_rows()?))
    }

    /// Plans an epoch for one of several ranks; the plan has only the rows that this rank delivers.
    ///
    /// # Errors
    /// Sizes do not fit together, or are too large; the order is that of a list.
    pub fn dealt_epoch(&self, epoch: u64, batches: &BatchSpec) -> Result<EpochPlan, PlanError> {
        if self.order == Order::Listed {
            return Err(PlanError::NoList);
        }
        self.plan(epoch, batches, self.n_rows, None)
    }

    /// Plans an epoch that delivers `rows`, each as often as it occurs in the list.
    ///
    /// The list must ascend, like that of most [`Sampling`]s, unless the order is
    /// [`Order::Listed`], which delivers the rows as they are listed.
    ///
    /// # Errors
    /// The rows do not ascend, or are not in the selection; sizes do not fit together, or are too
    /// large.
    pub fn sampled_epoch(
        &self,
        epoch: u64,
        batches: &BatchSpec,
        rows: Arc<[u32]>,
    ) -> Result<EpochPlan, PlanError> {
        if self.order == Order::Listed {
            return self.listed_epoch(epoch, batches, rows);
        }
        if let Some([row, next]) = rows.array_windows().find(|[row, next]| row > next) {
            let problem = format!("row {next} stands after {row}");
            return Err(PlanError::SampledRows { problem });
        }
        self.check_sampled(rows.last())?;
        self.plan(epoch, batches, rows.len() as u64, Some(rows))
    }

    /// Plans an epoch whose rows come in the order of the list. The rank's part of the list is a
    /// list of its own, which the plan delivers as if the rank were alone.
    fn listed_epoch(
        &self,
        epoch: u64,
        batches: &BatchSpec,
        rows: Arc<[u32]>,
    ) -> Result<EpochPlan, PlanError> {
        self.check_sampled(rows.iter().max())?;
        let of_all = self.deal(batches, rows.len() as u64)?;
        let block_rows = self.block_rows()?;
        let (deal, rows) = (of_all.of_rank(self)?, of_all.listed_part(rows));
        // A block's rows are one piece of the list.
        let sequence = Sequence::new(deal.n_rows, block_rows, None);
        Ok(EpochPlan::new(*self, epoch, (deal, of_all.n_padding()), sequence, Some(rows)))
    }

    fn check_sampled(&self, largest: Option<&u32>) -> Result<(), PlanError> {
        match largest {
            Some(row) if u64::from(*row) >= self.n_rows => {
                let problem = format!("row {row} is none of {}", self.n_rows);
                Err(PlanError::SampledRows { problem })
            }
            _ => Ok(()),
        }
    }

    fn plan(
        &self,
        epoch: u64,
        batches: &BatchSpec,
        n_rows: u64,
        sampled: Option<Arc<[u32]>>,
    ) -> Result<EpochPlan, PlanError> {
        let deal = self.deal(batches, n_rows)?;
        let chunks = match self.order {
            Order::InOrder | Order::Listed => None,
            Order::Shuffled => {
                let n_chunks = n_rows.div_ceil(self.chunk_rows);
                let mut chunks: Vec<u32> = (0..n_chunks as u32).collect();
                permute(&mut generator(self.seed, epoch, Decision::ChunkOrder), &mut chunks);
                Some(chunks)
            }
        };
        let sequence = Sequence::new(n_rows, self.chunk_rows, chunks);
        let n_padding = deal.n_padding();
        Ok(EpochPlan::new(*self, epoch, (deal, n_padding), sequence, sampled))
    }

    fn deal(&self, batches: &BatchSpec, n_rows: u64) -> Result<Deal, PlanError> {
        self.check_chunks(n_rows)?;
        if self.order != Order::Shuffled && batches.lanes > 1 {
            return Err(PlanError::LanesInOrder { lanes: batches.lanes });
        }
        self.block_rows()?;
        Deal::new(*batches, n_rows, self)
    }

    fn check_chunks(&self, n_rows: u64) -> Result<(), PlanError> {
        if self.chunk_rows == 0 {
            return Err(PlanError::Zero { size: "the chunk size" });
        }
        if self.order == Order::Listed && self.chunk_rows != 1 {
            return Err(PlanError::ListedChunks { chunk_rows: self.chunk_rows });
        }
        let n_chunks = n_rows.div_ceil(self.chunk_rows);
        // Rows in stored order need no list of chunks, so any number of chunks is fine.
        if self.order == Order::Shuffled && u32::try_from(n_chunks).is_err() {
            return Err(PlanError::TooManyChunks { n_rows, chunk_rows: self.chunk_rows, n_chunks });
        }
        Ok(())
    }
}
