//! How much is read and assembled ahead: decided before anything is read, kept to while reading.
//!
//! The bytes of a block are known only after it was read. Before that they are what the source
//! expects; from the first block on the largest block so far takes that place, with an eighth to
//! spare. Another block is made only if it fits beside the blocks there are.
//!
//! A block may turn out larger than a typical one ([`BlockBytes::most`]): there is always room for one
//! such block. Blocks that no longer fit beside it are not made again. The rest of the budget is
//! granted to the source for values that it keeps; the grant shrinks when blocks need the bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::budget::Lease;
use crate::error::Error;
use crate::source::{BlockBytes, BlockPlace, Need, Source};
use crate::spec::PipelineSpec;

/// Thread stacks, what the allocator keeps, and everything else that is not counted one by one.
const FIXED_BYTES: u64 = 64 << 20;

/// Bytes of a block's order, for each row.
const ORDER_BYTES: u64 = size_of::<u32>() as u64;

/// How much is read and assembled ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Blocks beside the one in use.
    pub(crate) blocks: usize,
    /// Batches beside the one with the consumer and the one in the making.
    pub(crate) batches: usize,
    /// Rows of the largest block.
    pub(crate) block_rows: u64,
    /// Bytes that a block is expected to take before one was read.
    block_bytes: u64,
    /// Bytes that the largest block is expected to take.
    largest_bytes: u64,
    /// Bytes of everything but blocks.
    other_bytes: u64,
}

impl Ahead {
    /// As much as is asked for, or as fits into `available` bytes: first fewer batches, then fewer
    /// blocks.
    pub(crate) fn fitting<S: Source>(
        source: &S,
        spec: &PipelineSpec,
        block_rows: u64,
        available: u64,
    ) -> Result<Self, S::Error> {
        let block_rows = block_rows.min(source.n_rows());
        let (blocks, batches) = (spec.prefetch_blocks, spec.prefetch_batches);
        let Some(limit) = spec.memory.limit() else {
            let (block_bytes, largest_bytes, other_bytes) = (0, 0, 0);
            return Ok(Self {
                blocks,
                batches,
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
        // A block read while another is used up saves more than a batch made ahead. As many of them as
        // there are other threads need working memory, too.
        let n_others = (spec.read_threads - 1).min(blocks) as u64;
        let with_thread = (spare / block.saturating_add(reading).max(1)).min(n_others);
        let spare = spare - with_thread * (block + reading);
        let without = if with_thread < n_others { 0 } else { blocks as u64 - n_others };
        let without = (spare / block.max(1)).min(without);
        let spare = spare - without * block;
        let more_batches = (spare / batch.max(1)).min(batches as u64);
        Ok(Self {
            blocks: (with_thread + without) as usize,
            batches: more_batches as usize,
            block_rows,
            block_bytes: block,
            largest_bytes: largest,
            other_bytes: other + (1 + with_thread) * reading + (2 + more_batches) * batch,
        })
    }
}

/// What the source needs, and what the engine needs with it.
fn need<S: Source>(source: &S, spec: &PipelineSpec, block_rows: u64) -> Result<Need, S::Error> {
    let mut need = source.need(block_rows, spec.batch_rows.min(source.n_rows()))?;
    let order = block_rows.saturating_mul(ORDER_BYTES);
    need.block = need.block.saturating_add(order);
    need.largest = need.largest.saturating_add(order).max(need.block);
    need.other = need.other.saturating_add(FIXED_BYTES);
    Ok(need)
}

fn with_spare(n: u64) -> u64 {
    n.saturating_add(n / 8)
}

/// Bytes of a row in the largest block of all epochs so far. Small blocks vary by chance, so they say
/// nothing about large ones.
#[derive(Debug, Default)]
pub(crate) struct LargestBlock {
    row_bytes: AtomicU64,
    most_row_bytes: AtomicU64,
}

impl LargestBlock {
    fn saw(&self, bytes: BlockBytes, n_rows: usize, block_rows: u64) {
        if (n_rows as u64) < block_rows / 2 {
            return;
        }
        let by_row = |bytes: u64| bytes.div_ceil(n_rows.max(1) as u64);
        self.row_bytes.fetch_max(by_row(bytes.now), Ordering::Relaxed);
        self.most_row_bytes.fetch_max(by_row(bytes.most), Ordering::Relaxed);
    }

    /// Bytes of a block of `n_rows` rows as large as that, now and at most.
    fn block_bytes(&self, n_rows: u64) -> (u64, u64) {
        let of = |row_bytes: &AtomicU64| {
            with_spare(row_bytes.load(Ordering::Relaxed).saturating_mul(n_rows))
        };
        (of(&self.row_bytes), of(&self.most_row_bytes))
    }
}

/// A block with the order of its rows, on its way round between the threads that read and the one
/// that assembles.
#[derive(Debug, Default)]
pub(crate) struct Carried<B> {
    pub(crate) block: B,
    pub(crate) place: BlockPlace,
    /// Which row as read is delivered first, second and so on.
    pub(crate) order: Vec<u32>,
    /// The most bytes that it has taken.
    taken_bytes: u64,
    /// Bytes that are counted for it: until it is read, those that it is expected to take.
    counted_bytes: u64,
}

/// The blocks that there are, and whether there may be another.
#[derive(Debug)]
pub(crate) struct BlocksMade {
    most: usize,
    block_rows: u64,
    n_made: usize,
    /// Bytes that are counted for all blocks.
    counted_bytes: u64,
    seen: Arc<LargestBlock>,
    expected_bytes: u64,
    largest_bytes: u64,
    other_bytes: u64,
    lease: Lease,
    is_limited: bool,
}

impl BlocksMade {
    /// No blocks yet, and a lease of what one block needs with everything else. Fails if another
    /// loader has taken that since [`Ahead::fitting`] looked.
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

    /// Bytes that a block is expected to take, and that any block may.
    fn block_bytes(&self) -> (u64, u64) {
        match self.seen.block_bytes(self.block_rows) {
            (0, _) => (self.expected_bytes, self.largest_bytes),
            (block_bytes, largest_bytes) => (block_bytes, largest_bytes.max(block_bytes)),
        }
    }

    /// Bytes that blocks may take: their part of the lease, and what nobody leases.
    fn limit(&self) -> u64 {
        self.lease.most().saturating_sub(self.other_bytes)
    }

    /// Leases what the blocks take that there may be, or as much of it as there is, and keeps room for
    /// one that turns out to be of the largest kind.
    fn lease_blocks(&mut self) {
        let (block_bytes, largest_bytes) = self.block_bytes();
        let (mut wanted, mut reserve) = (self.counted_bytes, 0);
        if self.is_limited {
            let limit = self.limit();
            reserve = (largest_bytes - block_bytes).min(limit.saturating_sub(self.counted_bytes));
            let all = block_bytes.saturating_mul(self.most as u64);
            wanted = all.min(limit - reserve).max(self.counted_bytes).min(limit);
        }
        // Another loader may take some in between; the next block asks again.
        self.lease.set_with_reserve(self.other_bytes.saturating_add(wanted), reserve);
    }

    /// Another block, if there may be one.
    pub(crate) fn make<B: Default>(&mut self) -> Option<Carried<B>> {
        // Blocks read at once are measured too late to learn from: the first one is read alone.
        let is_measured = self.seen.block_bytes(self.block_rows).0 > 0 || !self.is_limited;
        let may_be = self.n_made < self.most && is_measured && self.fits(0);
        if self.n_made > 0 && !may_be {
            return None;
        }
        self.n_made += 1;
        let mut block = Carried::default();
        self.expect(&mut block);
        Some(block)
    }

    /// The block, to be read into again; `None` if it would not fit beside the others, so that one of
    /// those has to be waited for.
    pub(crate) fn keep<B>(&mut self, mut block: Carried<B>) -> Option<Carried<B>> {
        if self.n_made == 1 || self.fits(block.counted_bytes) {
            self.expect(&mut block);
            return Some(block);
        }
        self.n_made -= 1;
        self.counted_bytes -= block.counted_bytes;
        None
    }

    /// Counts a block that will be read as large as blocks are expected to be.
    fn expect<B>(&mut self, block: &mut Carried<B>) {
        let expected = if self.is_limited { self.block_bytes().0 } else { 0 };
        self.count(block, expected.max(block.taken_bytes));
        self.lease_blocks();
    }

    fn count<B>(&mut self, block: &mut Carried<B>, bytes: u64) {
        self.counted_bytes = self.counted_bytes - block.counted_bytes + bytes;
        block.counted_bytes = bytes;
    }

    /// Whether a block that is counted with `counted_bytes` can hold any of the blocks to come.
    fn fits(&self, counted_bytes: u64) -> bool {
        let (_, largest) = self.block_bytes();
        let others = self.counted_bytes - counted_bytes;
        let needed = largest.max(counted_bytes);
        !self.is_limited || others.saturating_add(needed) <= self.limit()
    }

    /// Counts a block that was read. Fixed memory has room for a little more than expected.
    pub(crate) fn filled<B>(
        &mut self,
        block: &mut Carried<B>,
        bytes: BlockBytes,
    ) -> Result<(), Error> {
        let order = size_of_val(block.order.as_slice()) as u64;
        let bytes = BlockBytes { now: bytes.now + order, most: bytes.most + order };
        block.taken_bytes = block.taken_bytes.max(bytes.now);
        self.count(block, block.taken_bytes);
        self.seen.saw(bytes, block.order.len(), self.block_rows);
        let limit = self.limit();
        if self.is_limited && limit.saturating_add(FIXED_BYTES / 2) < self.counted_bytes {
            let BlockPlace { epoch, block_idx } = block.place;
            return Err(Error::BlockMemory { epoch, block_idx, bytes: self.counted_bytes, limit });
        }
        self.lease_blocks();
        Ok(())
    }
}
