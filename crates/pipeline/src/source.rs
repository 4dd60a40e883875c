//! The interface between the engine and a kind of samples: how to read blocks and make batches.

use std::ops::Range;
use std::sync::Arc;

use shuffle::Stop;
use worktime::{ReadStats, ThreadTime};

use crate::error::Error;
use crate::skip::{Skipped, system_failure};
use crate::upcoming::Upcoming;

/// Samples that can be read in blocks and assembled into batches.
///
/// The engine asks for blocks in the order of a plan, from one or several threads at once, and
/// passes each to the assembler of the epoch. Samples are numbered by *rows*, from 0 to
/// [`n_rows`](Self::n_rows).
pub trait Source: Send + Sync + 'static {
    /// Rows that were read together. Blocks are reused: reading replaces what they hold.
    type Block: Default + Send + 'static;
    /// Rows as the consumer gets them.
    type Batch: Send + 'static;
    /// Errors of reading and assembling. The engine's own errors convert into it.
    type Error: std::error::Error + From<Error> + Send + Sync + 'static;
    /// Working memory that a reading thread reuses from block to block.
    type Scratch: Default + Send + 'static;
    /// Makes batches from blocks, on one thread.
    type Assembler: Assemble<Block = Self::Block, Batch = Self::Batch, Error = Self::Error>
        + Send
        + 'static;

    /// The number of samples.
    fn n_rows(&self) -> u64;

    /// Identifies the selected samples, by a hash or a name; a saved state must match it.
    fn fingerprint(&self) -> String;

    /// Estimates the bytes of blocks of `block_rows` rows and of batches of `batch_rows` rows.
    ///
    /// # Errors
    /// The estimate needs data that cannot be read.
    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Self::Error>;

    /// Bytes that a block takes.
    fn block_bytes(&self, block: &Self::Block) -> BlockBytes;

    /// Reads a block into `into`.
    ///
    /// A source that works in pieces checks `stop` between them. Once it is set, return any error:
    /// the engine ignores it.
    ///
    /// # Errors
    /// The rows cannot be read; the error names the block's place.
    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut Self::Block,
        scratch: &mut Self::Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, Self::Error>;

    /// One past the last row that is stored in the same pieces as `row`, such as chunks: either all
    /// of them can be read, or none. Blocks whose read fails are searched by these units, if the
    /// settings skip damaged rows.
    fn unit_end(&self, row: u64) -> u64 {
        row.saturating_add(1)
    }

    /// Names a row that was skipped.
    fn row_name(&self, row: u64) -> String {
        format!("sample {row}")
    }

    /// Whether a read failed because of its rows, so that others may be read without them.
    /// Otherwise the epoch ends with the error, whatever the settings say.
    fn is_damage(&self, error: &Self::Error) -> bool {
        system_failure(error).is_none()
    }

    /// Makes an assembler for batches of at most `batch_rows` rows.
    ///
    /// # Errors
    /// The assembler cannot be set up.
    fn assembler(&self, batch_rows: u64) -> Result<Self::Assembler, Self::Error>;

    /// Sets how many bytes the loader with number `holder` allows for values that the source keeps
    /// between reads. Allowances of several loaders add up; 0 withdraws one.
    ///
    /// Called while the budget is locked: the implementation must not call the budget.
    fn keep(&self, _holder: u64, _bytes: u64) {}

    /// Whether the source keeps values between reads, and asks when rows are read again
    /// ([`BlockRows::upcoming`]), which takes memory.
    fn keeps(&self) -> bool {
        false
    }

    /// Whether rows come from a storage that answers late, so that reading several blocks at once
    /// is of use.
    fn answers_late(&self) -> bool {
        false
    }
}

/// Puts rows of blocks into batches.
///
/// The engine calls [`begin`](Self::begin), then [`add`](Self::add) for each block that the batch
/// takes rows from, then [`finish`](Self::finish). After the last rows of a block it calls
/// [`used_up`](Self::used_up).
pub trait Assemble {
    /// The same as [`Source::Block`].
    type Block;
    /// The same as [`Source::Batch`].
    type Batch;
    /// The same as [`Source::Error`].
    type Error;

    /// Begins a batch of `n_rows` rows. Fewer follow if rows of a later block were skipped.
    ///
    /// # Errors
    /// The memory of the batch cannot be allocated.
    fn begin(&mut self, n_rows: usize) -> Result<(), Self::Error>;

    /// Appends rows of a block, in their order. Returns the time that other threads than the
    /// caller's spent on it.
    ///
    /// # Errors
    /// The rows do not make a batch.
    fn add(&mut self, block: &Self::Block, part: BlockPart<'_>) -> Result<ThreadTime, Self::Error>;

    /// Leaves out rows that the batch should have: they could not be read.
    fn leave_out(&mut self, _rows: &[Arc<Skipped>]) {}

    /// Ends the batch and returns it.
    ///
    /// # Errors
    /// The batch cannot be completed.
    fn finish(&mut self, place: BatchPlace) -> Result<Self::Batch, Self::Error>;

    /// Ends the use of a block whose last rows were added, before it is read into again. An
    /// assembler whose batches share a block's memory takes that memory out of the block here.
    fn used_up(&mut self, _block: &mut Self::Block) {}

    /// Allocates and touches the memory of up to `n_batches` batches of `n_rows` rows, while the
    /// first block is read. Stops as soon as `is_enough` returns true.
    fn prepare(&mut self, _n_batches: usize, _n_rows: usize, _is_enough: &dyn Fn() -> bool) {}
}

/// The rows of a block: which ones to read, and in which order they will be delivered.
#[derive(Debug, Clone, Copy)]
pub struct BlockRows<'a> {
    /// The block, for error messages.
    pub place: BlockPlace,
    /// The rows, as disjoint ascending ranges.
    pub ranges: &'a [Range<u64>],
    /// Positions among the rows of `ranges`, in the order of delivery. A sampling may repeat some;
    /// others may be absent, because an epoch resumes after them.
    pub order: &'a [u32],
    /// The rows of the block that the same thread reads next after this one, if it is known and of
    /// the same epoch; none with several reading threads. A remote source may request them while
    /// this block is decoded.
    pub next: &'a [Range<u64>],
    /// When rows are read again after this block. A source that keeps values between reads keeps
    /// those that are needed soonest.
    pub upcoming: &'a Upcoming,
}

impl BlockRows<'_> {
    /// The rows in the order of delivery.
    pub fn delivered(&self) -> Vec<u64> {
        let rows: Vec<u64> = self.ranges.iter().cloned().flatten().collect();
        self.order.iter().filter_map(|at| rows.get(*at as usize).copied()).collect()
    }
}

/// The rows of a block that a batch takes next.
#[derive(Debug, Clone, Copy)]
pub struct BlockPart<'a> {
    /// Rows of the block that were delivered before, as read: without those that were skipped.
    pub start: usize,
    /// Positions of the part's rows among the block's ranges, in the order of delivery.
    pub order: &'a [u32],
}

/// Identifies a block in error messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// The epoch.
    pub epoch: u64,
    /// The block, counted from 0 in the epoch's order.
    pub block_idx: u64,
}

/// A batch's place in its epoch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    /// The epoch.
    pub epoch: u64,
    /// The batch, counted from 0 at the beginning of the epoch.
    pub batch_idx: u64,
    /// Padding rows at its end.
    pub n_padding: usize,
}

/// Bytes that a source expects to need.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// A typical block.
    pub block: u64,
    /// The largest block that may come, if some take more than a typical one.
    pub largest: u64,
    /// A batch.
    pub batch: u64,
    /// Working memory of one reading thread.
    pub reading: u64,
    /// Memory whose size does not depend on how much is read ahead.
    pub other: u64,
}

/// Bytes that a block occupies.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BlockBytes {
    /// In its present form.
    pub now: u64,
    /// In the largest form that a later block of the same rows may take.
    pub most: u64,
}
