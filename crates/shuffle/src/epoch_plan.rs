//! The plan of an epoch: its blocks, and the order of the rows in each.

use std::ops::Range;
use std::sync::Arc;

use crate::batch_spec::Deal;
use crate::plan::{Order, PlanSpec};
use crate::random::{Decision, generator, permute};
use crate::sequence::Sequence;

/// Iterator over the blocks of an epoch that one rank delivers. Each block is computed on demand.
#[derive(Debug, Clone)]
pub struct EpochPlan {
    spec: PlanSpec,
    epoch: u64,
    deal: Deal,
    /// Padding rows at the end of the rank's last batch.
    n_padding: u64,
    sequence: Sequence,
    /// If rows are sampled, the row for each number in the sequence.
    sampled: Option<Arc<[u32]>>,
    /// Global batches delivered before the start.
    first_batch: u64,
    next: u64,
}

/// A rank's part of a lane: the rows at `places` among the lane's rows of each batch.
struct LanePart {
    lane: u64,
    places: Range<u64>,
    /// The rows of the current window in the order of delivery, without padding.
    window: Vec<u64>,
}

impl EpochPlan {
    pub(crate) fn new(
        spec: PlanSpec,
        epoch: u64,
        (deal, n_padding): (Deal, u64),
        sequence: Sequence,
        sampled: Option<Arc<[u32]>>,
    ) -> Self {
        Self { spec, epoch, deal, n_padding, sequence, sampled, first_batch: 0, next: 0 }
    }

    /// Starts the plan at a global batch, counted from 0.
    ///
    /// Skips all rows before it and delivers the same rows in the same order from there on. Past
    /// the last batch nothing is left.
    #[must_use]
    pub fn starting_at(mut self, batch_idx: u64) -> Self {
        self.first_batch = batch_idx.min(self.deal.n_batches);
        self.next = match self.deal.n_batches {
            n_batches if n_batches == self.first_batch => self.n_blocks(),
            _ => self.deal.windows.containing(self.first_batch * self.deal.lane_batch_rows),
        };
        self
    }

    /// Number of blocks, including those already taken.
    pub fn n_blocks(&self) -> u64 {
        self.deal.windows.count(self.deal.lane_positions())
    }

    /// Number of global batches, which is also each rank's number of batches. Includes those before
    /// the start.
    pub fn n_batches(&self) -> u64 {
        self.deal.n_batches
    }

    /// The global batch at which the plan starts.
    pub fn first_batch(&self) -> u64 {
        self.first_batch
    }

    /// Rows that the rank delivers from the start on, including padding.
    pub fn n_rows(&self) -> u64 {
        self.deal.rank_rows(self.first_batch)
    }

    /// Number of padding rows at the end of the rank's last batch. Each padding
    /// row repeats a row of the same epoch.
    pub fn n_padding(&self) -> u64 {
        self.n_padding
    }

    /// Returns any block; `None` past the last. A block has no rows if it lies before the start or
    /// if other ranks deliver all of it.
    pub fn block(&self, block_idx: u64) -> Option<BlockPlan> {
        let window = self.deal.windows.positions(block_idx, self.deal.lane_positions())?;
        let mut parts = self.lane_parts();
        if let [part] = &parts[..]
            && let Some((chunks, order)) = self.whole_window(part, &window)
        {
            return Some(BlockPlan { block_idx, chunks, order });
        }
        for part in &mut parts {
            part.window = self.window_rows(part.lane, &window);
        }
        Some(BlockPlan::of_rows(block_idx, &self.delivered(&parts, &window)))
    }

    /// The rows that a block reads, like [`BlockPlan::chunks`]; their order is not computed if it
    /// does not decide which rows these are.
    pub fn rows_read(&self, block_idx: u64) -> Option<Vec<Range<u64>>> {
        let window = self.deal.windows.positions(block_idx, self.deal.lane_positions())?;
        if let [part] = &self.lane_parts()[..]
            && self.is_whole(part, &window)
        {
            return Some(self.window_chunks(part.lane, &window));
        }
        self.block(block_idx).map(|block| block.chunks)
    }

    /// The lanes of which the rank delivers rows, in the order of their rows in a global batch.
    fn lane_parts(&self) -> Vec<LanePart> {
        let (spec, of_lane) = (&self.deal.spec, self.deal.lane_batch_rows);
        let start = spec.rank * spec.batch_rows;
        let end = start + spec.batch_rows;
        (start / of_lane..end.div_ceil(of_lane))
            .map(|lane| {
                let lane_start = lane * of_lane;
                let places =
                    start.max(lane_start) - lane_start..end.min(lane_start + of_lane) - lane_start;
                LanePart { lane, places, window: Vec::new() }
            })
            .collect()
    }

    /// The chunks and the order of a window that is delivered whole. A shortcut: the general way
    /// gives the same.
    fn whole_window(
        &self,
        part: &LanePart,
        window: &Range<u64>,
    ) -> Option<(Vec<Range<u64>>, Vec<u32>)> {
        self.is_whole(part, window)
            .then(|| (self.window_chunks(part.lane, window), self.window_order(part.lane, window)))
    }

    /// Whether the rank delivers each row of a window, as stored and once.
    fn is_whole(&self, part: &LanePart, window: &Range<u64>) -> bool {
        self.sampled.is_none()
            && part.places == (0..self.deal.lane_batch_rows)
            && self.first_batch.saturating_mul(self.deal.lane_batch_rows) <= window.start
            && window.end <= self.deal.lane_rows(part.lane)
    }

    /// The numbers of a window's rows as ascending parts of chunks, without padding.
    fn window_chunks(&self, lane: u64, window: &Range<u64>) -> Vec<Range<u64>> {
        let (start, n_rows) = (self.deal.lane_start(lane), self.deal.lane_rows(lane));
        let positions = start + window.start.min(n_rows)..start + window.end.min(n_rows);
        let mut chunks = self.sequence.rows(positions);
        chunks.sort_unstable_by_key(|chunk| chunk.start);
        chunks
    }

    /// The order in which a window's rows, counted in ascending order, are delivered.
    fn window_order(&self, lane: u64, window: &Range<u64>) -> Vec<u32> {
        let n_rows = window.end.min(self.deal.lane_rows(lane)).saturating_sub(window.start);
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        if self.spec.order == Order::Shuffled {
            let window = self.deal.windows.containing(window.start);
            let decision = Decision::RowOrder { lane, window };
            permute(&mut generator(self.spec.seed, self.epoch, decision), &mut order);
        }
        order
    }

    /// A window's rows in the order of delivery, of all ranks.
    fn window_rows(&self, lane: u64, window: &Range<u64>) -> Vec<u64> {
        let ascending: Vec<u64> =
            self.window_chunks(lane, window).into_iter().flatten().map(|at| self.row(at)).collect();
        let order = self.window_order(lane, window);
        order.into_iter().map(|at| ascending[at as usize]).collect()
    }

    /// The rows of a block in the order in which the rank delivers them.
    fn delivered(&self, parts: &[LanePart], window: &Range<u64>) -> Vec<u64> {
        let of_lane = self.deal.lane_batch_rows;
        let first = self.first_batch.max(window.start / of_lane);
        let mut rows = Vec::new();
        for batch_idx in first..window.end.div_ceil(of_lane) {
            for part in parts {
                let start = batch_idx * of_lane;
                // The window of a single lane may begin and end within a batch.
                let from = (start + part.places.start).clamp(window.start, window.end);
                let to = start.saturating_add(part.places.end).clamp(window.start, window.end);
                for position in from..to {
                    match part.window.get((position - window.start) as usize) {
                        Some(row) => rows.push(*row),
                        None => rows.extend(self.padding(part.lane, position)),
                    }
                }
            }
        }
        rows
    }

    /// The padding row at a lane's position past its last row; `None` if the last batch is short.
    fn padding(&self, lane: u64, position: u64) -> Option<u64> {
        let Deal { lane_batch_rows, global_batch_rows, n_rows, .. } = self.deal;
        let (batch_idx, place) = (position / lane_batch_rows, position % lane_batch_rows);
        let behind =
            (batch_idx * global_batch_rows + lane * lane_batch_rows + place).checked_sub(n_rows)?;
        (self.n_padding() > 0).then(|| self.row(self.sequence.chunk_at(behind % n_rows).0))
    }

    /// The row for a number in the sequence.
    fn row(&self, number: u64) -> u64 {
        match &self.sampled {
            Some(sampled) => sampled[number as usize].into(),
            None => number,
        }
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
        let n_left = (self.n_blocks() - self.next) as usize;
        (n_left, Some(n_left))
    }
}

impl ExactSizeIterator for EpochPlan {}

/// The rows that a rank keeps in memory together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlan {
    /// Number of the block in the epoch.
    pub block_idx: u64,
    /// The rows to read: ascending, each once, and only those that the rank delivers.
    pub chunks: Vec<Range<u64>>,
    /// For each row to deliver, its position among the rows read, counted through all chunks. A row
    /// that was sampled several times, or is padding too, comes several times.
    pub order: Vec<u32>,
}

impl BlockPlan {
    /// A plan that reads these rows and delivers them in this order.
    fn of_rows(block_idx: u64, rows: &[u64]) -> Self {
        let mut ascending: Vec<(u64, u32)> = rows.iter().copied().zip(0..).collect();
        ascending.sort_unstable();
        let mut chunks: Vec<Range<u64>> = Vec::new();
        let mut order = vec![0; rows.len()];
        let mut n_read = 0;
        for (row, at) in ascending {
            match chunks.last_mut() {
                Some(chunk) if chunk.end == row + 1 => {}
                Some(chunk) if chunk.end == row => (chunk.end, n_read) = (row + 1, n_read + 1),
                _ => {
                    chunks.push(row..row + 1);
                    n_read += 1;
                }
            }
            order[at as usize] = n_read - 1;
        }
        Self { block_idx, chunks, order }
    }

    /// Number of rows that the block delivers.
    pub fn n_rows(&self) -> usize {
        self.order.len()
    }

    /// Number of rows read for the block; smaller than `n_rows` if rows come several times.
    pub fn n_rows_read(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.end - chunk.start).sum()
    }

    /// The rows in the order of delivery.
    pub fn delivered_rows(&self) -> Vec<u64> {
        let read: Vec<u64> = self.chunks.iter().cloned().flatten().collect();
        self.order.iter().map(|at| read[*at as usize]).collect()
    }
}

#[cfg(test)]
mod tests;
