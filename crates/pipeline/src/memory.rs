//! Decides how much is read and assembled ahead, and keeps to it while reading.
//!
//! The bytes of a block are known only after reading it. Before that the source's estimate counts;
//! from the first block on, the largest block so far plus an eighth. Another block is made only if
//! it fits beside the existing ones.
//!
//! A block may turn out larger than a typical one ([`BlockBytes::most`]): there is always room for
//! one such block. Blocks that no longer fit beside it are not made again. The rest of the budget
//! is granted to the source for values that it keeps; the grant shrinks when blocks need the bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::budget::Lease;
use crate::error::Error;
use crate::skip::LeftOut;
use crate::source::{BlockBytes, BlockPlace, Need, Source};
use crate::spec::PipelineSpec;
use crate::upcoming::table_bytes;

/// Thread stacks, the allocator's reserves, and everything else that is not counted individually.
const FIXED_BYTES: u64 = 64 << 20;

/// Bytes per row of a block's order.
const ORDER_BYTES: u64 = size_of::<u32>() as u64;

/// How much is read and assembled ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Blocks beside the one in use.
    pub(crate) blocks: usize,
    /// Batches beside the consumer's and the one in the making.
    pub(crate) batches: usize,
    /// The most threads that read, each a block; 0 if the consumer reads.
    pub(crate) read_threads: usize,
    /// Rows of the largest block.
    pub(crate) block_rows: u64,
    /// Expected bytes of a block, before any was read.
    block_bytes: u64,
    /// Expected bytes of the largest block.
    largest_bytes: u64,
    /// Bytes of everything but blocks.
    other_bytes: u64,
}

impl Ahead {
    /// The requested read-ahead, or as much of it as fits into `available` bytes: first fewer
    /// batches, then fewer blocks.
    pub(crate) fn fitting<S: Source>(
        source: &S,
        spec: &PipelineSpec,
        block_rows: u64,
        available: u64,
    ) -> Result<Self, S::Error> {
        let block_rows = block_rows.min(source.n_rows());
        let (blocks, batches) = (spec.prefetch_blocks, spec.prefetch_batches);
        let read_threads = spec.read_threads;
        let Some(limit) = spec.memory.limit() else {
            let (block_bytes, largest_bytes, other_bytes) = (0, 0, 0);
            return Ok(Self {
                blocks,
                batches,
                read_threads,
                block_rows,
                block_bytes,
                largest_bytes,
                other_bytes,
            });
        };
        let Need { block, largest, batch, reading, other } = need(source, spec, block_rows)?;
        let least = [other, reading, largest, batch, batch]
            .iter()
            .fold(0, |sum: u64, n| sum.saturating_add(*n));
        let Some(spare) = available.checked_sub(least) else {
            let (chunk_rows, chunks_per_block) = (spec.chunk_rows, spec.chunks_per_block);
            return Err(if limit < least {
                Error::Memory { limit, least, chunk_rows, chunks_per_block }
            } else {
                Error::Budget { limit, available, least }
            }
            .into());
        };
        // Reading a block while another is used up saves more than a batch made ahead. Each
        // additional thread that reads needs working memory, too; without it, a block may still
        // fit.
        let n_others = read_threads.saturating_sub(1).min(blocks) as u64;
        let with_thread = (spare / block.saturating_add(reading).max(1)).min(n_others);
        let spare = spare - with_thread * (block + reading);
        let without = (spare / block.max(1)).min(blocks as u64 - with_thread);
        let spare = spare - without * block;
        let more_batches = (spare / batch.max(1)).min(batches as u64);
        Ok(Self {
            blocks: (with_thread + without) as usize,
            batches: more_batches as usize,
            read_threads: read_threads.min(1 + with_thread as usize),
            block_rows,
            block_bytes: block,
            largest_bytes: largest,
            other_bytes: other + (1 + with_thread) * reading + (2 + more_batches) * batch,
        })
    }
}

/// The memory that source and engine need together.
fn need<S: Source>(source: &S, spec: &PipelineSpec, block_rows: u64) -> Result<Need, S::Error> {
    let mut need = source.need(block_rows, spec.batch_rows.min(source.n_rows()))?;
    let order = block_rows.saturating_mul(ORDER_BYTES);
    need.block = need.block.saturating_add(order);
    need.largest = need.largest.saturating_add(order).max(need.block);
    let upcoming = if source.keeps() { table_bytes(spec, source.n_rows()) } else { 0 };
    need.other = need.other.saturating_add(upcoming).saturating_add(FIXED_BYTES);
    Ok(need)
}

fn with_spare(n: u64) -> u64 {
    n.saturating_add(n / 8)
}

/// Bytes per row in the largest block of all epochs so far. Small blocks are left out: their size
/// varies by chance.
#[derive(Debug, Default)]
pub(crate) struct LargestBlock {
    row_bytes: AtomicU64,
    most_row_bytes: AtomicU64,
}

impl LargestBlock {
    fn record(&self, bytes: BlockBytes, n_rows: usize, block_rows: u64) {
        if (n_rows as u64) < block_rows / 2 {
            return;
        }
        let by_row = |bytes: u64| bytes.div_ceil(n_rows.max(1) as u64);
        self.row_bytes.fetch_max(by_row(bytes.now), Ordering::Relaxed);
        self.most_row_bytes.fetch_max(by_row(bytes.most), Ordering::Relaxed);
    }

    /// Bytes of a block of `n_rows` rows at that size, now and at most.
    fn block_bytes(&self, n_rows: u64) -> BlockBytes {
        let bytes = |row_bytes: &AtomicU64| {
            with_spare(row_bytes.load(Ordering::Relaxed).saturating_mul(n_rows))
        };
        BlockBytes { now: bytes(&self.row_bytes), most: bytes(&self.most_row_bytes) }
    }
}

/// A block with the order of its rows, on its way between the reading threads and the assembling
/// one.
#[derive(Debug, Default)]
pub(crate) struct Carried<B> {
    pub(crate) block: B,
    pub(crate) place: BlockPlace,
    /// The row, as read, that is delivered first, second and so on.
    pub(crate) order: Vec<u32>,
    /// The rows that could not be read, by their places in the order as planned.
    pub(crate) left_out: Vec<LeftOut>,
    /// The most bytes that it has occupied.
    taken_bytes: u64,
    /// Bytes counted for it: until it is read, its expected size.
    counted_bytes: u64,
}

impl<B> Carried<B> {
    /// Number of rows that the plan delivers of it.
    pub(crate) fn n_planned(&self) -> usize {
        self.order.len() + self.left_out.len()
    }
}

/// Counts the existing blocks, and decides whether another may be made.
#[derive(Debug)]
pub(crate) struct BlocksMade {
    most: usize,
    block_rows: u64,
    n_made: usize,
    /// Bytes counted for all blocks.
    counted_bytes: u64,
    seen: Arc<LargestBlock>,
    expected_bytes: u64,
    largest_bytes: u64,
    other_bytes: u64,
    lease: Lease,
    is_limited: bool,
}

impl BlocksMade {
    /// Starts without blocks, and leases the memory of one block and everything else. Fails if
    /// another loader has taken it since [`Ahead::fitting`] ran.
    pub(crate) fn new(
        ahead: &Ahead,
        seen: Arc<LargestBlock>,
        spec: &PipelineSpec,
    ) -> Result<Self, Error> {
        let Ahead { block_bytes, largest_bytes, other_bytes, .. } = *ahead;
        let bytes = other_bytes.saturating_add(block_bytes);
        let lease = spec.memory.lease_with_reserve(bytes, largest_bytes - block_bytes);
        let lease = lease.ok_or_else(|| Error::Budget {
            limit: spec.memory.limit().unwrap_or(u64::MAX),
            available: spec.memory.available(),
            least: other_bytes.saturating_add(largest_bytes),
        })?;
        let mut made = Self {
            most: ahead.blocks.saturating_add(1),
            block_rows: ahead.block_rows,
            n_made: 0,
            counted_bytes: 0,
            seen,
            expected_bytes: block_bytes,
            largest_bytes,
            other_bytes,
            lease,
            is_limited: spec.memory.limit().is_some(),
        };
        made.lease_blocks();
        Ok(made)
    }

    /// Expected bytes of a block, and the most that any block may occupy.
    fn block_bytes(&self) -> BlockBytes {
        match self.seen.block_bytes(self.block_rows) {
            BlockBytes { now: 0, .. } => {
                BlockBytes { now: self.expected_bytes, most: self.largest_bytes }
            }
            BlockBytes { now, most } => BlockBytes { now, most: most.max(now) },
        }
    }

    /// Bytes for blocks: their part of the lease, plus everything that is not leased.
    fn limit(&self) -> u64 {
        self.lease.most().saturating_sub(self.other_bytes)
    }

    /// Leases memory for all allowed blocks, or as much of it as is available. Reserves room for
    /// one block of the largest form.
    fn lease_blocks(&mut self) {
        let BlockBytes { now, most } = self.block_bytes();
        let (mut wanted, mut reserve) = (self.counted_bytes, 0);
        if self.is_limited {
            let limit = self.limit();
            reserve = (most - now).min(limit.saturating_sub(self.counted_bytes));
            let all = now.saturating_mul(self.most as u64);
            wanted = all.min(limit - reserve).max(self.counted_bytes).min(limit);
        }
        // Another loader may have taken some in between; the next block asks again.
        self.lease.set_with_reserve(self.other_bytes.saturating_add(wanted), reserve);
    }

    /// Makes another block, if one is allowed.
    pub(crate) fn make<B: Default>(&mut self) -> Option<Carried<B>> {
        // The first block is read alone: blocks read at once are measured too late to learn from.
        let is_measured = self.seen.block_bytes(self.block_rows).now > 0 || !self.is_limited;
        let may_be = self.n_made < self.most && is_measured && self.fits(0);
        if self.n_made > 0 && !may_be {
            return None;
        }
        self.n_made += 1;
        let mut block = Carried::default();
        self.expect(&mut block);
        Some(block)
    }

    /// Returns the block, to be read into again; `None` if it no longer fits beside the others, so
    /// that the reader must wait for one of those.
    pub(crate) fn keep<B>(&mut self, mut block: Carried<B>) -> Option<Carried<B>> {
        if self.n_made == 1 || self.fits(block.counted_bytes) {
            self.expect(&mut block);
            return Some(block);
        }
        self.n_made -= 1;
        self.counted_bytes -= block.counted_bytes;
        None
    }

    /// Counts a block that will be read at the expected size.
    fn expect<B>(&mut self, block: &mut Carried<B>) {
        let expected = if self.is_limited { self.block_bytes().now } else { 0 };
        self.count(block, expected.max(block.taken_bytes));
        self.lease_blocks();
    }

    fn count<B>(&mut self, block: &mut Carried<B>, bytes: u64) {
        self.counted_bytes = self.counted_bytes - block.counted_bytes + bytes;
        block.counted_bytes = bytes;
    }

    /// Whether a block counted with `counted_bytes` can take any of the coming blocks.
    fn fits(&self, counted_bytes: u64) -> bool {
        let others = self.counted_bytes - counted_bytes;
        let needed = self.block_bytes().most.max(counted_bytes);
        !self.is_limited || others.saturating_add(needed) <= self.limit()
    }

    /// Counts a block that was read. The fixed memory absorbs a slight excess.
    pub(crate) fn filled<B>(
        &mut self,
        block: &mut Carried<B>,
        bytes: BlockBytes,
    ) -> Result<(), Error> {
        let order = size_of_val(block.order.as_slice()) as u64;
        let bytes = BlockBytes { now: bytes.now + order, most: bytes.most + order };
        block.taken_bytes = block.taken_bytes.max(bytes.now);
        self.count(block, block.taken_bytes);
        self.seen.record(bytes, block.order.len(), self.block_rows);
        let limit = self.limit();
        if self.is_limited && limit.saturating_add(FIXED_BYTES / 2) < self.counted_bytes {
            let BlockPlace { epoch, block_idx } = block.place;
            return Err(Error::BlockMemory { epoch, block_idx, bytes: self.counted_bytes, limit });
        }
        self.lease_blocks();
        Ok(())
    }
}
