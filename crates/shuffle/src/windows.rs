//! Where the blocks of an epoch begin and end.

use std::ops::Range;

use crate::PlanSpec;

/// Chunks of the block that comes `before` blocks before the first full one of a ramp
/// ([`PlanSpec::ramp_blocks`]): half as many as the next, at least one.
pub fn ramp_chunks(chunks_per_block: u64, before: u32) -> u64 {
    chunks_per_block.checked_shr(before).unwrap_or(0).max(1)
}

/// The windows that a lane's positions are cut into, one per block. All are equally long, but for
/// the first few of a plan with a ramp and the last, which ends with the lane.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    /// Where the windows of the ramp begin, and behind them the first full one. Never empty.
    starts: Vec<u64>,
    /// Rows of a full window.
    rows: u64,
}

impl Windows {
    /// The windows of a lane with `lane_batch_rows` rows in each global batch, one of `lanes`. The
    /// sizes of `spec` have been checked.
    pub(crate) fn new(spec: &PlanSpec, lanes: u64, lane_batch_rows: u64) -> Self {
        let rows_of = |chunks: u64| {
            let rows = spec.chunk_rows * chunks;
            // The windows of all lanes must end with the same global batch. A single lane need not
            // wait.
            match lanes {
                1 => rows,
                _ => (rows - rows % lane_batch_rows).max(lane_batch_rows),
            }
        };
        let mut starts = vec![0];
        let mut start = 0_u64;
        for halvings in (1..=spec.ramp_blocks.min(u64::BITS)).rev() {
            let chunks = ramp_chunks(spec.chunks_per_block, halvings);
            start = start.saturating_add(rows_of(chunks));
            starts.push(start);
        }
        Self { starts, rows: rows_of(spec.chunks_per_block) }
    }

    /// Rows of the longest window.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of windows that have one of the first `positions` positions.
    pub(crate) fn count(&self, positions: u64) -> u64 {
        match positions.checked_sub(1) {
            Some(last) => self.containing(last) + 1,
            None => 0,
        }
    }

    /// The window that contains a position.
    pub(crate) fn containing(&self, position: u64) -> u64 {
        let (n_ramp, ramp_end) = self.ramp();
        match position.checked_sub(ramp_end) {
            Some(behind) => n_ramp + behind / self.rows,
            None => self.starts.partition_point(|start| *start <= position) as u64 - 1,
        }
    }

    /// The positions of a window; `None` if it begins past the first `positions` positions.
    pub(crate) fn positions(&self, window: u64, positions: u64) -> Option<Range<u64>> {
        let start = self.start(window).filter(|start| *start < positions)?;
        let end = self.start(window + 1).unwrap_or(positions);
        Some(start..end.min(positions))
    }

    fn start(&self, window: u64) -> Option<u64> {
        let (n_ramp, ramp_end) = self.ramp();
        match window.checked_sub(n_ramp) {
            Some(behind) => ramp_end.checked_add(behind.checked_mul(self.rows)?),
            None => self.starts.get(window as usize).copied(),
        }
    }

    /// Number of windows before the first full one, and where that begins.
    fn ramp(&self) -> (u64, u64) {
        let n_ramp = self.starts.len() - 1;
        (n_ramp as u64, self.starts.last().copied().unwrap_or(0))
    }
}
