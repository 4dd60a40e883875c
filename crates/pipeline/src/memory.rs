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
    /// Bytes of everything but blocks.
    other_bytes: u64,
}

/// What a limited budget must have room for.
struct Least {
    need: Need,
    bytes: u64,
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
        let Some(limit) = spec.memory.limit() else {
            let (blocks, batches) = (spec.prefetch_blocks, spec.prefetch_batches);
            return Ok(Self { blocks, batches, block_rows, block_bytes: 0, other_bytes: 0 });
        };
        let Least { need, bytes: least } = least(source, spec, block_rows)?;
        let Some(spare) = available.checked_sub(least) else {
            return Err(match limit < least {
                true => Error::Memory {
                    limit,
                    least,
                    chunk_rows: spec.chunk_rows,
                    chunks_per_block: spec.chunks_per_block,
                },
                false => Error::Budget { limit, available, least },
            }
            .into());
        };
        // A block read while another is used up saves more than a batch made ahead.
        let more_blocks = (spare / need.block.max(1)).min(spec.prefetch_blocks as u64);
        let spare = spare - more_blocks * need.block;
        let more_batches = (spare / need.batch.max(1)).min(spec.prefetch_batches as u64);
        Ok(Self {
            blocks: more_blocks as usize,
            batches: more_batches as usize,
            block_rows,
            block_bytes: need.block,
            other_bytes: need.other + (2 + more_batches) * need.batch,
        })
    }
}

fn least<S: Source>(source: &S, spec: &PipelineSpec, block_rows: u64) -> Result<Least, S::Error> {
    let mut need = source.need(block_rows, spec.batch_rows.min(source.n_rows()))?;
    let order = block_rows.saturating_mul(ORDER_BYTES);
    need.block = need.block.saturating_add(order);
    need.largest = need.largest.saturating_add(order).max(need.block);
    need.other = need.other.saturating_add(FIXED_BYTES);
    let batches = need.batch.saturating_mul(2);
    let bytes = need.other.saturating_add(need.largest).saturating_add(batches);
    Ok(Least { need, bytes })
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
    held_bytes: u64,
}

/// The blocks that there are, and whether there may be another.
#[derive(Debug)]
pub(crate) struct BlocksMade {
    most: usize,
    block_rows: u64,
    n_made: usize,
    held_bytes: u64,
    largest: Arc<LargestBlock>,
    expected_bytes: u64,
    other_bytes: u64,
    lease: Lease,
    is_limited: bool,
}

impl BlocksMade {
    /// No blocks yet. Fails if the lease cannot have what [`Ahead::fitting`] found available.
    pub(crate) fn new(
        ahead: &Ahead,
        largest: Arc<LargestBlock>,
        spec: &PipelineSpec,
    ) -> Result<Self, Error> {
        let no_lease = |least| {
            let (limit, available) = (spec.memory.limit().unwrap_or(0), spec.memory.available());
            Error::Budget { limit, available, least }
        };
        let lease =
            spec.memory.lease(ahead.other_bytes).ok_or_else(|| no_lease(ahead.other_bytes))?;
        let mut made = Self {
            most: ahead.blocks.saturating_add(1),
            block_rows: ahead.block_rows,
            n_made: 0,
            held_bytes: 0,
            largest,
            expected_bytes: ahead.block_bytes,
            other_bytes: ahead.other_bytes,
            lease,
            is_limited: spec.memory.limit().is_some(),
        };
        made.lease_blocks();
        Ok(made)
    }

    /// Bytes that blocks may take: their part of the lease, and what nobody leases.
    fn limit(&self) -> u64 {
        self.lease.most().saturating_sub(self.other_bytes)
    }

    /// Leases what the blocks take that there may be, or as much of it as there is.
    fn lease_blocks(&mut self) {
        let block_bytes = match self.largest.block_bytes(self.block_rows) {
            (0, _) => self.expected_bytes,
            (block_bytes, _) => block_bytes,
        };
        let wanted = block_bytes.saturating_mul(self.most as u64).max(self.held_bytes);
        let wanted = if self.is_limited { wanted.min(self.limit()) } else { self.held_bytes };
        // Another loader may take some in between; the next block asks again.
        self.lease.set(self.other_bytes.saturating_add(wanted));
    }

    /// Another block, if there may be one.
    pub(crate) fn make<B: Default>(&mut self) -> Option<Carried<B>> {
        let is_first = self.n_made == 0;
        if !is_first && (self.n_made >= self.most || !self.fits(0)) {
            return None;
        }
        self.n_made += 1;
        Some(Carried::default())
    }

    /// The block, to be read into again; `None` if it would not fit beside the others, so that one of
    /// those has to be waited for.
    pub(crate) fn keep<B>(&mut self, block: Carried<B>) -> Option<Carried<B>> {
        if self.n_made == 1 || self.fits(block.held_bytes) {
            return Some(block);
        }
        self.n_made -= 1;
        self.held_bytes -= block.held_bytes;
        None
    }

    /// Whether a block that holds `held_bytes` can hold any of the blocks to come.
    fn fits(&self, held_bytes: u64) -> bool {
        let (_, largest) = self.largest.block_bytes(self.block_rows);
        let needed = largest.max(held_bytes);
        let others = self.held_bytes - held_bytes;
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
        let before = block.held_bytes;
        block.held_bytes = before.max(bytes.now);
        self.held_bytes = self.held_bytes + block.held_bytes - before;
        self.largest.saw(bytes, block.order.len(), self.block_rows);
        let limit = self.limit();
        if self.is_limited && limit.saturating_add(FIXED_BYTES / 2) < self.held_bytes {
            let BlockPlace { epoch, block_idx } = block.place;
            return Err(Error::BlockMemory { epoch, block_idx, bytes: self.held_bytes, limit });
        }
        self.lease_blocks();
        Ok(())
    }
}
