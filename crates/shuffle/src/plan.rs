//! The specification of an epoch's plan.

use std::sync::Arc;

use crate::batch_spec::Deal;
use crate::random::{Decision, generator, permute};
use crate::sequence::Sequence;
use crate::{BatchSpec, EpochPlan, Error};

/// The order in which rows are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Random chunks per block, and the rows of each block in random order.
    Shuffled,
    /// The order in which rows are stored.
    InOrder,
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
}

impl PlanSpec {
    /// Fails if no plan can be made.
    pub fn check(&self) -> Result<(), Error> {
        self.block_rows()?;
        self.check_chunks(self.n_rows)
    }

    /// Rows of a full block.
    pub fn block_rows(&self) -> Result<u64, Error> {
        for (size, rows) in [
            ("the chunk size", self.chunk_rows),
            ("the number of chunks per block", self.chunks_per_block),
        ] {
            if rows == 0 {
                return Err(Error::Zero { size });
            }
        }
        self.chunk_rows
            .checked_mul(self.chunks_per_block)
            .filter(|rows| u32::try_from(*rows).is_ok())
            .ok_or(Error::BlockTooLarge {
                chunk_rows: self.chunk_rows,
                chunks_per_block: self.chunks_per_block,
            })
    }

    /// The largest number of rows that a rank has in memory at once in an epoch of `n_rows` rows,
    /// including padding: one block of each lane that the rank delivers.
    ///
    /// # Errors
    /// The same as [`PlanSpec::dealt_epoch`].
    pub fn rank_block_rows(&self, batches: &BatchSpec, n_rows: u64) -> Result<u64, Error> {
        Ok(self.deal(batches, n_rows)?.max_block_rows())
    }

    /// Plans an epoch for a single rank that delivers all rows. A shuffled plan takes 4 bytes per
    /// chunk.
    pub fn epoch(&self, epoch: u64) -> Result<EpochPlan, Error> {
        self.dealt_epoch(epoch, &BatchSpec::single(self.block_rows()?))
    }

    /// Plans an epoch for one of several ranks; the plan has only the rows that this rank delivers.
    ///
    /// # Errors
    /// Sizes do not fit together, or are too large.
    pub fn dealt_epoch(&self, epoch: u64, batches: &BatchSpec) -> Result<EpochPlan, Error> {
        self.plan(epoch, batches, self.n_rows, None)
    }

    /// Plans an epoch that delivers `rows`, each as often as it occurs in the list.
    ///
    /// The list must ascend, like that of a [`Sampling`](crate::sample::Sampling).
    ///
    /// # Errors
    /// The rows do not ascend, or are not in the selection; sizes do not fit together, or are too
    /// large.
    pub fn sampled_epoch(
        &self,
        epoch: u64,
        batches: &BatchSpec,
        rows: Arc<[u32]>,
    ) -> Result<EpochPlan, Error> {
        if let Some([row, next]) = rows.array_windows().find(|[row, next]| row > next) {
            let problem = format!("row {next} stands after {row}");
            return Err(Error::SampledRows { problem });
        }
        if let Some(row) = rows.last().filter(|row| u64::from(**row) >= self.n_rows) {
            let problem = format!("row {row} is none of {}", self.n_rows);
            return Err(Error::SampledRows { problem });
        }
        self.plan(epoch, batches, rows.len() as u64, Some(rows))
    }

    fn plan(
        &self,
        epoch: u64,
        batches: &BatchSpec,
        n_rows: u64,
        sampled: Option<Arc<[u32]>>,
    ) -> Result<EpochPlan, Error> {
        let deal = self.deal(batches, n_rows)?;
        let chunks = match self.order {
            Order::InOrder => None,
            Order::Shuffled => {
                let n_chunks = n_rows.div_ceil(self.chunk_rows);
                let mut chunks: Vec<u32> = (0..n_chunks as u32).collect();
                permute(&mut generator(self.seed, epoch, Decision::ChunkOrder), &mut chunks);
                Some(chunks)
            }
        };
        let sequence = Sequence::new(n_rows, self.chunk_rows, chunks);
        Ok(EpochPlan::new(*self, epoch, deal, sequence, sampled))
    }

    fn deal(&self, batches: &BatchSpec, n_rows: u64) -> Result<Deal, Error> {
        self.check_chunks(n_rows)?;
        if self.order == Order::InOrder && batches.lanes > 1 {
            return Err(Error::LanesInOrder { lanes: batches.lanes });
        }
        Deal::new(*batches, n_rows, self.block_rows()?)
    }

    fn check_chunks(&self, n_rows: u64) -> Result<(), Error> {
        if self.chunk_rows == 0 {
            return Err(Error::Zero { size: "the chunk size" });
        }
        let n_chunks = n_rows.div_ceil(self.chunk_rows);
        // Rows in stored order need no list of chunks, so any number of chunks is fine.
        if self.order == Order::Shuffled && u32::try_from(n_chunks).is_err() {
            return Err(Error::TooManyChunks { n_rows, chunk_rows: self.chunk_rows, n_chunks });
        }
        Ok(())
    }
}
