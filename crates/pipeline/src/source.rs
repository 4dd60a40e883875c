//! The seam between the engine and a kind of samples: what reads blocks, and what makes batches of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use worktime::{ReadTimes, ThreadTime};

use crate::error::Error;

/// Samples that can be read in blocks and assembled into batches.
///
/// The engine asks for blocks in the order of a plan, from one or several threads at once, and hands
/// each to the assembler of the epoch. Samples are numbered by *rows*, from 0 to [`n_rows`](Self::n_rows).
pub trait Source: Send + Sync + 'static {
    /// Rows that were read together. Blocks are reused: reading replaces what they hold.
    type Block: Default + Send + 'static;
    /// Rows as the consumer gets them.
    type Batch: Send + 'static;
    /// Errors of reading and assembling; those of the engine convert into them.
    type Error: std::error::Error + From<Error> + Send + Sync + 'static;
    /// Memory that a reading thread uses again from block to block, until its epochs end.
    type Scratch: Default;
    /// Makes batches of blocks, on one thread.
    type Assembler: Assemble<Block = Self::Block, Batch = Self::Batch, Error = Self::Error>
        + Send
        + 'static;

    /// The number of samples.
    fn n_rows(&self) -> u64;

    /// A hash or name of the selected samples, by which a saved state is recognised.
    fn fingerprint(&self) -> String;

    /// Bytes that blocks of `block_rows` rows and batches of `batch_rows` rows take.
    ///
    /// # Errors
    /// What is needed to estimate the size cannot be read.
    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Self::Error>;

    /// Bytes that a block takes.
    fn block_bytes(&self, block: &Self::Block) -> BlockBytes;

    /// Reads the rows of `rows`, which are disjoint ascending ranges, into `into`.
    ///
    /// A source that works in pieces looks at `stop` between them, and returns any error once it is
    /// set: the engine ignores that error.
    ///
    /// # Errors
    /// The rows cannot be read; the error names `place`.
    fn read(
        &self,
        place: BlockPlace,
        rows: &[Range<u64>],
        into: &mut Self::Block,
        scratch: &mut Self::Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, Self::Error>;

    /// An assembler for the batches of some epochs, of at most `batch_rows` rows each.
    ///
    /// # Errors
    /// What the assembler needs cannot be had.
    fn assembler(&self, batch_rows: u64) -> Result<Self::Assembler, Self::Error>;

    /// Sets how many bytes a loader, numbered `holder`, grants for values that the source keeps
    /// between reads. Grants of several loaders add up; 0 withdraws one.
    ///
    /// Called while the budget is locked: it must not ask or change the budget.
    fn keep(&self, _holder: u64, _bytes: u64) {}
}

/// Puts rows of blocks into batches: [`begin`](Self::begin), [`add`](Self::add) for each block that
/// the batch takes rows of, then [`finish`](Self::finish).
pub trait Assemble {
    /// As [`Source::Block`].
    type Block;
    /// As [`Source::Batch`].
    type Batch;
    /// As [`Source::Error`].
    type Error;

    /// Begins a batch of `n_rows` rows.
    ///
    /// # Errors
    /// There is no memory for it.
    fn begin(&mut self, n_rows: usize) -> Result<(), Self::Error>;

    /// Appends rows of a block, given by their positions in the block, in this order. Returns the
    /// time that threads other than the caller's spent.
    ///
    /// # Errors
    /// The rows do not make a batch.
    fn add(&mut self, block: &Self::Block, order: &[u32]) -> Result<ThreadTime, Self::Error>;

    /// Ends the batch and returns it.
    ///
    /// # Errors
    /// The batch cannot be completed.
    fn finish(&mut self, place: BatchPlace) -> Result<Self::Batch, Self::Error>;

    /// Allocates and touches the memory of up to `n_batches` batches of `n_rows` rows, while the
    /// first block is read. Stops as soon as `is_enough` says so.
    fn prepare(&mut self, _n_batches: usize, _n_rows: usize, _is_enough: &dyn Fn() -> bool) {}
}

/// Identifies a block in error messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// The epoch.
    pub epoch: u64,
    /// The block, counted from 0 in the epoch's order.
    pub block_idx: u64,
}

/// A batch's position in its epoch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    /// The epoch.
    pub epoch: u64,
    /// The batch, counted from 0 from the beginning of the epoch.
    pub batch_idx: u64,
    /// Rows of padding at its end.
    pub n_padding: usize,
}

/// Bytes that a source expects to take.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// A typical block.
    pub block: u64,
    /// The largest block that may come, if some take more than a typical one.
    pub largest: u64,
    /// A batch.
    pub batch: u64,
    /// Working memory of a thread that reads.
    pub reading: u64,
    /// Memory that does not depend on how much is read ahead.
    pub other: u64,
}

/// Bytes that a block takes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BlockBytes {
    /// As it is.
    pub now: u64,
    /// As it would be in the largest form that a later block of the same rows may have.
    pub most: u64,
}

/// What reading a block did.
///
/// Counts are `None` if the source does not know them; a sum over blocks is then `None`, too.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ReadStats {
    /// Values returned: stored values of sparse samples, elements of dense ones.
    pub values: u64,
    /// Values decoded to find them.
    pub values_decoded: Option<u64>,
    /// Bytes read from storage.
    pub bytes_read: Option<u64>,
    /// Requests sent to an object store.
    pub requests: Option<u64>,
    /// Bytes that came out of decompression.
    pub bytes_decoded: Option<u64>,
    /// Bytes that the values returned take as they are stored, uncompressed.
    pub bytes_needed: Option<u64>,
    /// Time that the source's threads spent fetching and decoding.
    pub times: Option<ReadTimes>,
    /// Time on the calling thread spent converting what was read into the block's form.
    pub convert: ThreadTime,
}

/// Set once nobody wants any more blocks.
#[derive(Debug, Default, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether reading should end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks reading to end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
