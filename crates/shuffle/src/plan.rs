//! The plan of an epoch: its blocks, and the order of the rows in each.

use std::ops::Range;

use crate::Error;
use crate::random::{Decision, generator, permute};

/// The order in which rows are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Random chunks to a block, and the block's rows in random order.
    Shuffled,
    /// As the rows are stored.
    InOrder,
}

/// What an epoch is planned from. Rows are positions in a selection, `0..n_rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanSpec {
    /// The rows to deliver.
    pub n_rows: u64,
    /// The consecutive rows that are read together; only the last chunk of the selection may have fewer.
    pub chunk_rows: u64,
    /// The chunks that are held, and shuffled, together; the last block may have fewer.
    pub chunks_per_block: u64,
    /// The order of the rows.
    pub order: Order,
    /// What a shuffled order is made from, together with the epoch.
    pub seed: u64,
}

impl PlanSpec {
    /// Fails when no plan can be made.
    pub fn check(&self) -> Result<(), Error> {
        self.block_rows()?;
        let n_chunks = self.n_chunks();
        // In order no list of chunks is kept, so any number of them will do.
        if self.order == Order::Shuffled && u32::try_from(n_chunks).is_err() {
            return Err(Error::TooManyChunks {
                n_rows: self.n_rows,
                chunk_rows: self.chunk_rows,
                n_chunks,
            });
        }
        Ok(())
    }

    /// The rows of a full block.
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

    /// The plan of an epoch. Keeps 4 bytes per chunk when shuffled.
    pub fn epoch(&self, epoch: u64) -> Result<EpochPlan, Error> {
        self.check()?;
        let chunks = match self.order {
            Order::InOrder => None,
            Order::Shuffled => {
                let mut chunks: Vec<u32> = (0..self.n_chunks() as u32).collect();
                permute(&mut generator(self.seed, epoch, Decision::ChunkOrder), &mut chunks);
                Some(chunks)
            }
        };
        Ok(EpochPlan {
            n_blocks: self.n_chunks().div_ceil(self.chunks_per_block),
            spec: *self,
            epoch,
            chunks,
            next: 0,
        })
    }

    fn n_chunks(&self) -> u64 {
        self.n_rows.div_ceil(self.chunk_rows)
    }

    fn chunk(&self, chunk_idx: u64) -> Range<u64> {
        let start = chunk_idx * self.chunk_rows;
        start..start.saturating_add(self.chunk_rows).min(self.n_rows)
    }
}

/// The blocks of an epoch, made one by one when they are asked for.
#[derive(Debug, Clone)]
pub struct EpochPlan {
    spec: PlanSpec,
    epoch: u64,
    /// The chunks in the order in which they are read; `None` when that is their own.
    chunks: Option<Vec<u32>>,
    n_blocks: u64,
    next: u64,
}

impl EpochPlan {
    /// How many blocks there are, those that were taken already included.
    pub fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// Any block; `None` past the last.
    pub fn block(&self, block_idx: u64) -> Option<BlockPlan> {
        if block_idx >= self.n_blocks {
            return None;
        }
        let first = block_idx * self.spec.chunks_per_block;
        let last = first.saturating_add(self.spec.chunks_per_block).min(self.spec.n_chunks());
        let mut chunks: Vec<Range<u64>> = match &self.chunks {
            None => (first..last).map(|chunk_idx| self.spec.chunk(chunk_idx)).collect(),
            Some(order) => order[first as usize..last as usize]
                .iter()
                .map(|chunk_idx| self.spec.chunk((*chunk_idx).into()))
                .collect(),
        };
        chunks.sort_unstable_by_key(|chunk| chunk.start);
        let n_rows: u64 = chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        if self.spec.order == Order::Shuffled {
            permute(
                &mut generator(self.spec.seed, self.epoch, Decision::RowOrder { block_idx }),
                &mut order,
            );
        }
        Some(BlockPlan { block_idx, chunks, order })
    }
}

impl Iterator for EpochPlan {
    type Item = BlockPlan;

    fn next(&mut self) -> Option<BlockPlan> {
        let block = self.block(self.next)?;
        self.next += 1;
        Some(block)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n_left = (self.n_blocks - self.next) as usize;
        (n_left, Some(n_left))
    }
}

impl ExactSizeIterator for EpochPlan {}

/// The rows that are held together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlan {
    /// The block's number in the epoch.
    pub block_idx: u64,
    /// The rows to read: ascending, none twice.
    pub chunks: Vec<Range<u64>>,
    /// For each row to deliver, which of the rows as read it is, counted through all chunks.
    pub order: Vec<u32>,
}

impl BlockPlan {
    /// How many rows the block has.
    pub fn n_rows(&self) -> usize {
        self.order.len()
    }

    /// The rows in the order in which they are delivered.
    pub fn delivered_rows(&self) -> Vec<u64> {
        let read: Vec<u64> = self.chunks.iter().cloned().flatten().collect();
        self.order.iter().map(|at| read[*at as usize]).collect()
    }
}
