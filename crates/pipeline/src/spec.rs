//! The settings of the engine: plain data, checked once.

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use shuffle::sample::Sampling;
use shuffle::{BatchSpec, Order, PlanSpec, Remainder};

use crate::budget::Budget;
use crate::error::Error;
use crate::skip::WhenDamaged;
use crate::world::World;

/// Decides the order of the samples, how they are cut into batches, and how much is read ahead.
///
/// Can be written and read with serde, by the names of the fields, unless it has a sampling, which
/// is drawn for one data set. Fields that are left out have their default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineSpec {
    /// Consecutive rows that are read together. Must be 1 for [`Order::Listed`].
    pub chunk_rows: u64,
    /// Chunks that are in memory, and shuffled, together.
    pub chunks_per_block: u64,
    /// Blocks at the start of an epoch that grow, so that the first batch is there sooner
    /// ([`PlanSpec::ramp_blocks`]): with 4, the first has a sixteenth of `chunks_per_block`. An
    /// epoch that resumes does not ramp up again.
    pub ramp_blocks: u32,
    /// Shuffled, in the order of the rows, or in the order of a list that `sampling` makes.
    pub order: Order,
    /// Seed of the shuffled order, which also depends on the epoch's number.
    pub seed: u64,
    /// Rows of a rank's batch; only the last batch may have fewer.
    pub batch_rows: u64,
    /// Rank and number of processes. All ranks share one order; each takes `batch_rows` rows of
    /// every global batch.
    pub world: World,
    /// Pieces of the order that are each shuffled separately ([`BatchSpec::lanes`]). A rank keeps
    /// one block in memory for each lane that it delivers. `None` means one lane per rank, and one
    /// lane if rows come in stored or listed order; a loader that first resumes takes the lanes of
    /// the state.
    pub lanes: Option<u64>,
    /// Treatment of the rows that do not fill a global batch. Several ranks cannot deliver a short
    /// batch.
    pub remainder: Remainder,
    /// Which rows come, and how often; `None` means each row once. If it also decides which rows
    /// are in a batch together ([`Sampling::is_listed`]), `order` must be [`Order::Listed`].
    #[serde(
        skip_deserializing,
        skip_serializing_if = "Option::is_none",
        serialize_with = "refused"
    )]
    pub sampling: Option<Sampling>,
    /// What happens if rows cannot be read.
    pub when_damaged: WhenDamaged,
    /// Blocks to read ahead while one is cut into batches. At most `1 + prefetch_blocks` blocks are
    /// in memory; with 0, a block is read only after the one before it is used up.
    pub prefetch_blocks: usize,
    /// Blocks to read at the same time, one per thread. They are delivered in the plan's order.
    /// More than `1 + prefetch_blocks` gain nothing. With 0, each block is read by the thread that
    /// makes batches, when it needs the block.
    pub read_threads: usize,
    /// Finished batches that may wait while the consumer works on one. With 0, each batch is made
    /// on the consumer's thread when it asks for it.
    pub prefetch_batches: usize,
    /// Memory for blocks, batches and reading, possibly shared with other loaders. If it is too
    /// small for the requested read-ahead, less is read ahead.
    pub memory: Budget,
    /// Bytes that the source may keep between reads ([`Source::keep`](crate::Source::keep)), at
    /// most the rest of the budget. `None` means the whole rest of a limited budget, and 0 without
    /// a limit.
    pub keep_bytes: Option<u64>,
}

/// Shuffled batches of 1,024 rows, cut from blocks of 1,024 chunks of 64 rows. One block and one
/// batch are read ahead, without a memory limit.
impl Default for PipelineSpec {
    fn default() -> Self {
        let plan = PlanSpec::default();
        Self {
            chunk_rows: plan.chunk_rows,
            chunks_per_block: plan.chunks_per_block,
            ramp_blocks: plan.ramp_blocks,
            order: plan.order,
            seed: plan.seed,
            batch_rows: 1024,
            world: World::default(),
            lanes: None,
            remainder: Remainder::Short,
            sampling: None,
            when_damaged: WhenDamaged::Fail,
            prefetch_blocks: 1,
            read_threads: 1,
            prefetch_batches: 1,
            memory: Budget::unlimited(),
            keep_bytes: None,
        }
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn refused<S: Serializer>(_: &Option<Sampling>, _: S) -> Result<S::Ok, S::Error> {
    Err(S::Error::custom("a sampling cannot be written: write what it is made of"))
}

impl PipelineSpec {
    /// Checks that the settings fit together.
    ///
    /// # Errors
    /// A size is zero; rank, lanes and remainder do not fit together; the sampling does not fit the
    /// order or the batch size.
    pub fn check(&self) -> Result<(), Error> {
        if self.batch_rows == 0 {
            return Err(Error::ZeroBatchRows);
        }
        self.world.check()?;
        let batches = self.batches(self.default_lanes());
        batches.global_batch_rows()?;
        self.plan(0).check()?;
        Ok(self.plan(0).check_sampling(&batches, self.sampling.as_ref())?)
    }

    /// How the order is dealt to batches and ranks.
    pub fn batches(&self, lanes: u64) -> BatchSpec {
        BatchSpec {
            batch_rows: self.batch_rows,
            rank: self.world.rank,
            world_size: self.world.size,
            lanes,
            remainder: self.remainder,
        }
    }

    /// Number of lanes of an order that begins with this loader.
    pub fn default_lanes(&self) -> u64 {
        self.lanes.unwrap_or(match self.order {
            Order::Shuffled => self.world.size,
            Order::InOrder | Order::Listed => 1,
        })
    }

    /// Number of rows in an epoch over `n_rows` rows, before a remainder is dropped or padded.
    pub fn epoch_rows(&self, n_rows: u64) -> u64 {
        self.sampling.as_ref().map_or(n_rows, Sampling::n_samples)
    }

    /// Bytes of memory of the order of an epoch over `n_rows` rows: 4 for each chunk of a shuffled
    /// order, and 4 for each row that a sampling draws.
    pub fn order_bytes(&self, n_rows: u64) -> u64 {
        let n_rows = self.epoch_rows(n_rows);
        let n_chunks = match self.order {
            Order::Shuffled => n_rows.div_ceil(self.chunk_rows.max(1)),
            Order::InOrder | Order::Listed => 0,
        };
        let n_drawn = if self.sampling.is_some() { n_rows } else { 0 };
        n_chunks.saturating_add(n_drawn).saturating_mul(size_of::<u32>() as u64)
    }

    /// Number of rows in a rank's largest block, given `n_rows` rows and the number of lanes.
    ///
    /// # Errors
    /// The sizes do not make a plan.
    pub fn block_rows(&self, n_rows: u64, lanes: u64) -> Result<u64, Error> {
        Ok(self.plan(n_rows).rank_block_rows(&self.batches(lanes), self.epoch_rows(n_rows))?)
    }

    /// Specification of the plan over `n_rows` rows.
    pub fn plan(&self, n_rows: u64) -> PlanSpec {
        PlanSpec {
            n_rows,
            chunk_rows: self.chunk_rows,
            chunks_per_block: self.chunks_per_block,
            order: self.order,
            seed: self.seed,
            ramp_blocks: self.ramp_blocks,
        }
    }
}
