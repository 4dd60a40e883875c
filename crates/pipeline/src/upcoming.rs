//! When rows are read again, for sources that keep what they decoded.
//!
//! A plan is a function of settings, seed and epoch, so all later blocks of an epoch are known, and
//! those of the next epoch, too. The table of an epoch is made when a source first asks.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use shuffle::{EpochPlan, RowSet};

use crate::read::Plans;
use crate::spec::PipelineSpec;
use crate::state::LoaderState;

/// The most pieces in the table of an epoch. An epoch of more pieces has none.
const MOST_PIECES: u64 = 1 << 20;
/// Longer pieces are split, so that a look into the table passes over few of them.
const MOST_PIECE_ROWS: u64 = 1024;
/// Epochs whose tables are in memory: the present and the next.
const N_TABLES: u64 = 2;

/// When rows are read after a block: by the later blocks of its epoch, or those of the next epoch.
///
/// The default knows of no reads.
#[derive(Debug, Clone, Default)]
pub struct Upcoming {
    epoch: Option<Arc<EpochReads>>,
    /// Rows that the epoch reads before the block, and those with the block.
    block: Range<u64>,
    /// The rows by which a source numbers the samples anew, the innermost source last.
    selected: Vec<Arc<RowSet>>,
}

impl Upcoming {
    /// After a block that is preceded by `block.start` rows of its epoch and followed by those from
    /// `block.end` on.
    pub(crate) fn new(epoch: Arc<EpochReads>, block: Range<u64>) -> Self {
        Self { epoch: Some(epoch), block, selected: Vec::new() }
    }

    /// The same for a source of which only these rows are read: its numbers of the rows.
    pub(crate) fn selected(&self, rows: &Arc<RowSet>) -> Self {
        let mut upcoming = self.clone();
        upcoming.selected.push(Arc::clone(rows));
        upcoming
    }

    /// Number of rows that this loader reads from the beginning of the block until it reads any of
    /// `rows` after the block. `u64::MAX` if that is not known, or not within this epoch and the
    /// next.
    pub fn rows_until(&self, mut rows: Range<u64>) -> u64 {
        let Some(epoch) = &self.epoch else { return u64::MAX };
        for selected in self.selected.iter().rev() {
            rows = selected.n_below(rows.start)..selected.n_below(rows.end);
        }
        let Some(reads) = epoch.reads() else { return u64::MAX };
        if let Some(at) = reads.next(&rows, self.block.end) {
            return at - self.block.start;
        }
        let next = epoch.next_epoch().and_then(|reads| reads.next(&rows, 0));
        next.map_or(u64::MAX, |at| reads.n_rows - self.block.start + at)
    }
}

/// The reads of an epoch and of the one after it, from where it starts.
#[derive(Debug)]
pub(crate) struct EpochReads {
    plans: Plans,
    from: LoaderState,
    /// `None` if its table would be too large.
    plan: Option<EpochPlan>,
    present: OnceLock<Option<Reads>>,
    next: OnceLock<Option<Reads>>,
}

impl EpochReads {
    /// `plan` starts at `from`, and none of its blocks was taken.
    pub(crate) fn new(plans: &Plans, from: &LoaderState, plan: &EpochPlan) -> Self {
        let n_pieces = n_pieces(&plans.spec, plans.n_rows);
        let plan = (n_pieces <= MOST_PIECES).then(|| plan.clone());
        let (plans, from) = (plans.clone(), from.clone());
        Self { plans, from, plan, present: OnceLock::new(), next: OnceLock::new() }
    }

    fn reads(&self) -> Option<&Reads> {
        let made = || self.plan.as_ref().and_then(Reads::new);
        self.present.get_or_init(made).as_ref()
    }

    /// The next epoch's, whether or not the consumer will ask for that epoch.
    fn next_epoch(&self) -> Option<&Reads> {
        let made = || {
            let epoch = self.from.epoch().checked_add(1)?;
            let plan = self.plans.plan(&self.from.at(epoch, self.from.lanes(), 0));
            Reads::new(&plan.ok()?)
        };
        self.next.get_or_init(made).as_ref()
    }
}

/// About the number of pieces that all ranks read in an epoch over `n_rows` rows.
fn n_pieces(spec: &PipelineSpec, n_rows: u64) -> u64 {
    spec.epoch_rows(n_rows).div_ceil(spec.chunk_rows.clamp(1, MOST_PIECE_ROWS))
}

/// Bytes of a piece in a table, with its slots, of which there are at most two for each.
const PIECE_BYTES: u64 = (size_of::<Piece>() + 2 * size_of::<u32>()) as u64;

/// The bytes of the tables of an epoch over `n_rows` rows.
pub(crate) fn table_bytes(spec: &PipelineSpec, n_rows: u64) -> u64 {
    let n_pieces = n_pieces(spec, n_rows);
    if n_pieces <= MOST_PIECES { N_TABLES * n_pieces * PIECE_BYTES } else { 0 }
}

/// Rows that are read together.
#[derive(Debug)]
struct Piece {
    rows: Range<u64>,
    /// Rows that the epoch reads before.
    at: u64,
}

/// When an epoch reads which rows.
#[derive(Debug)]
struct Reads {
    /// By their first row. They may overlap if rows are sampled.
    pieces: Vec<Piece>,
    /// For every `1 << slot_bits` rows, the first piece that may have the first of them or later
    /// ones: about as many as pieces.
    slots: Vec<u32>,
    slot_bits: u32,
    /// Rows of all pieces.
    n_rows: u64,
}

impl Reads {
    fn new(plan: &EpochPlan) -> Option<Self> {
        let n_blocks = plan.n_blocks();
        let (mut pieces, mut longest, mut n_rows) = (Vec::new(), 0, 0);
        for block_idx in n_blocks - plan.len() as u64..n_blocks {
            for chunk in plan.rows_read(block_idx)? {
                let mut start = chunk.start;
                while start < chunk.end {
                    let end = chunk.end.min(start.saturating_add(MOST_PIECE_ROWS));
                    pieces.push(Piece { rows: start..end, at: n_rows });
                    longest = longest.max(end - start);
                    n_rows += end - start;
                    start = end;
                }
            }
            if pieces.len() as u64 > MOST_PIECES {
                return None;
            }
        }
        pieces.sort_unstable_by_key(|piece| piece.rows.start);
        let end = pieces.last().map_or(0, |piece| piece.rows.start + 1);
        let slot_bits = (end / (pieces.len() as u64).max(1)).max(1).ilog2();
        let mut first = 0;
        let slots = (0..=end >> slot_bits).map(|slot| {
            let row = slot << slot_bits;
            let is_before = |piece: &Piece| piece.rows.start + longest <= row;
            first += pieces[first..].iter().take_while(|piece| is_before(piece)).count();
            first as u32
        });
        let slots = slots.collect();
        Some(Self { pieces, slots, slot_bits, n_rows })
    }

    /// Rows that are read before any of `rows` is read, of the reads that come after `from` rows.
    fn next(&self, rows: &Range<u64>, from: u64) -> Option<u64> {
        let slot = usize::try_from(rows.start >> self.slot_bits).ok();
        // Past the last slot only the last pieces may reach.
        let first = slot.and_then(|slot| self.slots.get(slot)).or_else(|| self.slots.last());
        let first = first.map_or(0, |first| *first as usize);
        let overlapping =
            self.pieces[first..].iter().take_while(|piece| piece.rows.start < rows.end);
        let read = overlapping.filter_map(|Piece { rows: piece, at }| {
            // If a piece began before, its rest counts.
            let start = rows.start.max(piece.start + from.saturating_sub(*at));
            let start = start.max(piece.start);
            (start < rows.end.min(piece.end)).then(|| at + (start - piece.start))
        });
        read.min()
    }
}

#[cfg(test)]
mod tests;
