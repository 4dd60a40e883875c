//! How much is held at once: what fits into the memory that a loader may use, decided before anything is read, and kept to while
//! blocks are read.
//!
//! A block's bytes are known only when it is read. Before that they are taken to be those of its rows times the mean number of values
//! of a row of X (times the share of the genes that are read), with an eighth to spare; from the first block on the densest block so
//! far takes the mean's place. A further block is made only where it fits beside those there are.
//!
//! Packed rows take more from the first value on that is no count: any block may be the one that has it, so there is room for one such.
//! When it comes, others are not made again where they do not fit. What blocks leave is for values that the reader keeps decoded, also
//! the room for such a block: the reader lets go of what it keeps when it meets the value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use soma_io::ReadForm;

use crate::block::Block;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::spec::{BatchForm, LoaderSpec, Method};

/// Threads' stacks, what the allocator keeps, and all that is not counted one by one.
const FIXED_BYTES: u64 = 64 << 20;
/// Column and value of a value in CSR, which is what blocks are kept as.
const CSR_CELL_BYTES: u64 = 8;
/// The same of packed rows of counts.
const PACKED_COUNT_BYTES: u64 = 4;
/// And where some value is no count.
pub(crate) const PACKED_CELL_BYTES: u64 = 6;
/// Row, column and value of a value in COO, collected before it is counted into CSR.
const COO_CELL_BYTES: u64 = 12;
/// Of each row of a block: which it is, its place in the order, and where its values begin.
const BLOCK_ROW_BYTES: u64 = 8 + 4 + 8;

/// How much is read and made ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// Blocks beside the one in use.
    pub(crate) blocks: usize,
    /// Batches beside the one with the consumer and the one in the making.
    pub(crate) batches: usize,
    /// Bytes that all blocks may take together.
    pub(crate) block_limit: Option<u64>,
    /// Rows of the largest block.
    pub(crate) block_rows: u64,
    /// Bytes that a block is expected to take before one is read.
    pub(crate) block_bytes: u64,
    /// Bytes that values kept decoded may take; within a limit of memory no more than blocks leave. None where nothing is said of it.
    pub(crate) decoded_limit: Option<u64>,
}

/// Bytes of what is held, as far as it can be known before reading.
#[derive(Clone, Copy, Debug)]
struct Need {
    /// A block of counts, where those take less.
    block: u64,
    /// Any block.
    largest: u64,
    batch: u64,
    /// What reading takes, and all else that does not depend on how much is read ahead.
    other: u64,
}

impl Need {
    fn of(dataset: &Dataset, spec: &LoaderSpec, block_rows: u64) -> Result<Self, Error> {
        let n_columns = dataset.n_columns() as u64;
        let row_nnz = dataset.mean_row_nnz()?;
        let nnz_of = |n_rows: u64| with_spare((row_nnz * n_rows as f64).ceil() as u64);
        let block_nnz = nnz_of(block_rows);
        let batch_rows = spec.batch_rows.min(dataset.n_rows());
        let csr = block_nnz * CSR_CELL_BYTES;
        let dense = block_rows * n_columns * 4;
        let packed = (block_nnz * PACKED_COUNT_BYTES, block_nnz * PACKED_CELL_BYTES);
        let ((block, largest), scratch, form) = match spec.method {
            Method::NpArray => ((dense, dense), 0, ReadForm::Coo),
            Method::ScipyCsr => ((csr, csr), block_nnz * COO_CELL_BYTES, ReadForm::Coo),
            Method::Native if dataset.packs() => (packed, 0, ReadForm::Csr),
            Method::Native => ((csr, csr), 0, ReadForm::Csr),
        };
        let several = if dataset.n_experiments() > 1 { block_nnz * CSR_CELL_BYTES } else { 0 };
        let batch = match (spec.form, spec.form.dense_type()) {
            (_, Some(element)) => batch_rows * n_columns * element.bytes() as u64,
            // Indices of torch's are twice as long.
            (BatchForm::Coo, None) => nnz_of(batch_rows) * (COO_CELL_BYTES + 16),
            (_, None) => nnz_of(batch_rows) * CSR_CELL_BYTES,
        };
        Ok(Self {
            block: block + block_rows * BLOCK_ROW_BYTES,
            largest: largest + block_rows * BLOCK_ROW_BYTES,
            batch,
            other: FIXED_BYTES + scratch + several + dataset.working_bytes(block_nnz, form),
        })
    }

    /// With one block, and as many batches as must be.
    fn least(&self) -> u64 {
        let batches = self.batch.saturating_mul(2);
        self.other.saturating_add(self.largest).saturating_add(batches)
    }
}

impl Ahead {
    /// As much as is asked for, or as fits: first fewer batches, then fewer blocks.
    pub(crate) fn fitting(
        dataset: &Dataset,
        spec: &LoaderSpec,
        block_rows: u64,
    ) -> Result<Self, Error> {
        let (blocks, batches) = (spec.prefetch_blocks, spec.prefetch_batches);
        let block_rows = block_rows.min(dataset.n_rows());
        let Some(limit) = spec.memory_bytes else {
            let decoded_limit = spec.keep_decoded_bytes;
            let block_bytes = 0;
            return Ok(Self {
                blocks,
                batches,
                block_limit: None,
                block_rows,
                block_bytes,
                decoded_limit,
            });
        };
        let need = Need::of(dataset, spec, block_rows)?;
        let least = need.least();
        let Some(spare) = limit.checked_sub(least) else {
            return Err(Error::Memory {
                limit,
                least,
                chunk_rows: spec.chunk_rows,
                chunks_per_block: spec.chunks_per_block,
            });
        };
        // A block read while another is used up saves more than a batch made ahead.
        let more_blocks = (spare / need.block.max(1)).min(blocks as u64);
        let spare = spare - more_blocks * need.block;
        let more_batches = (spare / need.batch.max(1)).min(batches as u64);
        let spare = spare - more_batches * need.batch;
        let block_limit = need.largest + more_blocks * need.block + spare;
        Ok(Self {
            blocks: more_blocks as usize,
            batches: more_batches as usize,
            block_limit: Some(block_limit),
            block_rows,
            block_bytes: need.block,
            decoded_limit: Some(spec.keep_decoded_bytes.unwrap_or(u64::MAX)),
        })
    }
}

fn with_spare(n: u64) -> u64 {
    n.saturating_add(n / 8)
}

/// Bytes of a row in the densest block of all epochs so far. Of small blocks chance makes some dense; they say nothing of large ones.
#[derive(Debug, Default)]
pub(crate) struct Densest {
    row_bytes: AtomicU64,
    /// Where packed values are no counts.
    most_row_bytes: AtomicU64,
}

impl Densest {
    fn saw(&self, block: &Block, block_rows: u64) {
        if (block.n_rows() as u64) < block_rows / 2 {
            return;
        }
        let of_row = |bytes: u64| bytes.div_ceil(block.n_rows().max(1) as u64);
        self.row_bytes.fetch_max(of_row(block.bytes()), Ordering::Relaxed);
        self.most_row_bytes.fetch_max(of_row(block.most_bytes()), Ordering::Relaxed);
    }

    /// What a block may take that is as dense, and what any may.
    fn block_bytes(&self, n_rows: u64) -> (u64, u64) {
        let of = |row_bytes: &AtomicU64| {
            with_spare(row_bytes.load(Ordering::Relaxed).saturating_mul(n_rows))
        };
        (of(&self.row_bytes), of(&self.most_row_bytes))
    }
}

/// The blocks that there are, and whether there may be another.
#[derive(Debug)]
pub(crate) struct BlocksMade {
    most: usize,
    limit: Option<u64>,
    /// Of the largest block to come.
    block_rows: u64,
    n_made: usize,
    held_bytes: u64,
    densest: Arc<Densest>,
    /// Of a block while there was none.
    expected_bytes: u64,
    decoded_limit: Option<u64>,
}

impl BlocksMade {
    pub(crate) fn new(ahead: Ahead, densest: Arc<Densest>) -> Self {
        let Ahead { blocks, block_limit: limit, block_rows, block_bytes, decoded_limit, .. } =
            ahead;
        Self {
            most: blocks.saturating_add(1),
            limit,
            block_rows,
            n_made: 0,
            held_bytes: 0,
            densest,
            expected_bytes: block_bytes,
            decoded_limit,
        }
    }

    /// Bytes that values kept decoded may take: within a limit what the blocks leave that there may be.
    pub(crate) fn decoded_limit(&self) -> Option<u64> {
        let Some(limit) = self.limit else { return self.decoded_limit };
        let block_bytes = match self.densest.block_bytes(self.block_rows) {
            (0, _) => self.expected_bytes,
            (block_bytes, _) => block_bytes,
        };
        let blocks = block_bytes.saturating_mul(self.most as u64).max(self.held_bytes);
        self.decoded_limit.map(|most| most.min(limit.saturating_sub(blocks)))
    }

    /// Another block, where there may be one.
    pub(crate) fn make(&mut self) -> Option<Block> {
        let first = self.n_made == 0;
        if !first && (self.n_made >= self.most || !self.fits(0)) {
            return None;
        }
        self.n_made += 1;
        Some(Block::default())
    }

    /// The block, to be read into; none where it would not fit beside the others, so that one of those has to be waited for.
    pub(crate) fn keep(&mut self, block: Block) -> Option<Block> {
        if self.n_made == 1 || self.fits(block.held_bytes) {
            return Some(block);
        }
        self.n_made -= 1;
        self.held_bytes -= block.held_bytes;
        None
    }

    /// Whether a block that holds so many bytes can hold any of those to come.
    fn fits(&self, held_bytes: u64) -> bool {
        let (_, largest) = self.densest.block_bytes(self.block_rows);
        let needed = largest.max(held_bytes);
        let others = self.held_bytes - held_bytes;
        self.limit.is_none_or(|limit| others.saturating_add(needed) <= limit)
    }

    /// A block was filled. A little more than expected the fixed part has room for.
    pub(crate) fn filled(&mut self, block: &mut Block) -> Result<(), Error> {
        let before = block.held_bytes;
        let bytes = block.bytes();
        block.held_bytes = before.max(bytes);
        self.held_bytes = self.held_bytes + block.held_bytes - before;
        self.densest.saw(block, self.block_rows);
        match self.limit {
            Some(limit) if limit.saturating_add(FIXED_BYTES / 2) < self.held_bytes => {
                Err(Error::BlockMemory {
                    epoch: block.id.epoch,
                    block_idx: block.id.idx,
                    bytes: self.held_bytes,
                    limit,
                })
            }
            _ => Ok(()),
        }
    }
}
