//! How the rows of an epoch are distributed over global batches, lanes and ranks.

use std::sync::Arc;

use crate::random::MAX_LANES;
use crate::windows::Windows;
use crate::{PlanError, PlanSpec};

/// Treatment of the rows that do not fill a global batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Remainder {
    /// They form a shorter last batch. Only for a single rank: several need batches of equal
    /// length.
    Short,
    /// They are left out. They are the last rows of the epoch's order, so each epoch drops others.
    Drop,
    /// Rows from the beginning of the epoch are repeated to fill the last global batch, at its end.
    Pad,
}

/// How an epoch's order is distributed over batches and ranks.
///
/// All ranks together take a *global batch* of `batch_rows * world_size` rows per step, each rank
/// its part. The rows of a global batch and their order depend only on that product, not on the
/// rank or the world size alone.
///
/// *Lanes* keep ranks from reading each other's rows. Each lane is a piece of the epoch's permuted
/// chunks that is shuffled by itself, and each global batch takes equally many rows of every lane,
/// in the order of the lanes. If there are as many lanes as ranks, a rank reads a single lane. Any
/// other world size gives the same global batches; a rank then holds blocks of several lanes, or
/// parts of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchSpec {
    /// Rows of one rank's batch.
    pub batch_rows: u64,
    /// This rank, counted from 0.
    pub rank: u64,
    /// Number of ranks.
    pub world_size: u64,
    /// Number of lanes; must divide the rows of a global batch.
    pub lanes: u64,
    /// Treatment of the rows that do not fill a global batch.
    pub remainder: Remainder,
}

impl BatchSpec {
    /// A single rank and a single lane, with a short last batch.
    pub fn single(batch_rows: u64) -> Self {
        Self { batch_rows, rank: 0, world_size: 1, lanes: 1, remainder: Remainder::Short }
    }

    /// Rows of a global batch. Also checks every field.
    ///
    /// # Errors
    /// A size is 0; the rank is outside the world; the lanes do not divide the global batch;
    /// several ranks are asked to end with a short batch.
    pub fn global_batch_rows(&self) -> Result<u64, PlanError> {
        let Self { batch_rows, rank, world_size, lanes, remainder } = *self;
        for (size, number) in [
            ("the batch size", batch_rows),
            ("the world size", world_size),
            ("the number of lanes", lanes),
        ] {
            if number == 0 {
                return Err(PlanError::Zero { size });
            }
        }
        if rank >= world_size {
            return Err(PlanError::Rank { rank, world_size });
        }
        if remainder == Remainder::Short && world_size > 1 {
            return Err(PlanError::ShortAmongRanks { world_size });
        }
        if lanes > MAX_LANES {
            return Err(PlanError::TooManyLanes { lanes, most: MAX_LANES });
        }
        let global_batch_rows = batch_rows
            .checked_mul(world_size)
            .ok_or(PlanError::TooManyRows { what: "the rows of a global batch" })?;
        if !global_batch_rows.is_multiple_of(lanes) {
            return Err(PlanError::Lanes { lanes, global_batch_rows });
        }
        Ok(global_batch_rows)
    }

    /// Number of global batches that `n_rows` rows make, which is also each rank's number of
    /// batches.
    ///
    /// # Errors
    /// The same as [`BatchSpec::global_batch_rows`].
    pub fn n_batches(&self, n_rows: u64) -> Result<u64, PlanError> {
        let global_batch_rows = self.global_batch_rows()?;
        Ok(match self.remainder {
            Remainder::Drop => n_rows / global_batch_rows,
            Remainder::Short | Remainder::Pad => n_rows.div_ceil(global_batch_rows),
        })
    }
}

/// How the `n_rows` positions of an epoch's order are distributed over global batches and lanes.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) spec: BatchSpec,
    pub(crate) global_batch_rows: u64,
    /// Rows that each lane contributes to a global batch.
    pub(crate) lane_batch_rows: u64,
    /// The rows of a lane that are shuffled together.
    pub(crate) windows: Windows,
    /// Rows in the epoch's order, including those that are dropped.
    pub(crate) n_rows: u64,
    /// Number of global batches.
    pub(crate) n_batches: u64,
    /// Rows of the last global batch, without padding.
    last_rows: u64,
}

impl Deal {
    /// Deals `n_rows` rows of a plan whose sizes have been checked.
    pub(crate) fn new(spec: BatchSpec, n_rows: u64, plan: &PlanSpec) -> Result<Self, PlanError> {
        let global_batch_rows = spec.global_batch_rows()?;
        let lane_batch_rows = global_batch_rows / spec.lanes;
        let windows = Windows::new(plan, spec.lanes, lane_batch_rows);
        let n_batches = spec.n_batches(n_rows)?;
        if spec.remainder == Remainder::Pad && n_batches.checked_mul(global_batch_rows).is_none() {
            return Err(PlanError::TooManyRows { what: "rows with their padding" });
        }
        let last_rows = match n_batches {
            0 => 0,
            _ => (n_rows - (n_batches - 1) * global_batch_rows).min(global_batch_rows),
        };
        let deal = Self {
            spec,
            global_batch_rows,
            lane_batch_rows,
            windows,
            n_rows,
            n_batches,
            last_rows,
        };
        let block_rows = deal.max_block_rows();
        if u32::try_from(block_rows).is_err() {
            return Err(PlanError::RankBlockTooLarge { block_rows, lanes: spec.lanes });
        }
        Ok(deal)
    }

    /// The largest number of rows that a rank's block has.
    pub(crate) fn max_block_rows(&self) -> u64 {
        let BatchSpec { batch_rows, world_size, .. } = self.spec;
        let window_rows = self.windows.rows();
        // Batches that a window touches. With several lanes a window is a whole number of batches.
        let most = window_rows.div_ceil(self.lane_batch_rows) + u64::from(self.spec.lanes == 1);
        let in_batches = most.saturating_mul(batch_rows);
        match (world_size, self.spec.lanes) {
            (_, 1) => in_batches.min(window_rows),
            _ => in_batches,
        }
        .min(self.rank_rows(0))
    }

    /// Rows that the rank delivers from `first_batch` on, including padding.
    pub(crate) fn rank_rows(&self, first_batch: u64) -> u64 {
        match self.spec.remainder {
            Remainder::Short => {
                self.n_rows.saturating_sub(first_batch.saturating_mul(self.global_batch_rows))
            }
            Remainder::Drop | Remainder::Pad => {
                self.n_batches.saturating_sub(first_batch) * self.spec.batch_rows
            }
        }
    }

    /// Number of padding rows at the end of the rank's last batch.
    pub(crate) fn n_padding(&self) -> u64 {
        if self.spec.remainder != Remainder::Pad || self.n_batches == 0 {
            return 0;
        }
        let end = (self.spec.rank + 1) * self.spec.batch_rows;
        end.saturating_sub(self.last_rows).min(self.spec.batch_rows)
    }

    /// The rank's part of a listed order as an order of its own. Its batches are the rank's, and
    /// its padding consists of rows like any others.
    pub(crate) fn of_rank(&self, plan: &PlanSpec) -> Result<Self, PlanError> {
        Self::new(BatchSpec::single(self.spec.batch_rows), self.rank_rows(0), plan)
    }

    /// The rank's part of a list, with padding: `batch_rows` rows of each global batch.
    pub(crate) fn listed_part(&self, rows: Arc<[u32]>) -> Arc<[u32]> {
        if self.spec.world_size == 1 && self.n_padding() == 0 {
            return rows;
        }
        let BatchSpec { batch_rows, rank, .. } = self.spec;
        let first = rank * batch_rows;
        let starts =
            (0..self.n_batches).map(|batch_idx| batch_idx * self.global_batch_rows + first);
        let positions = starts.flat_map(|start| start..start + batch_rows);
        positions.map(|at| rows[(at % self.n_rows) as usize]).collect()
    }

    /// Position in the order of the epoch's chunks at which a lane begins.
    pub(crate) fn lane_start(&self, lane: u64) -> u64 {
        let before_last = self.n_batches.saturating_sub(1) * self.lane_batch_rows;
        lane * before_last + self.last_rows.min(lane * self.lane_batch_rows)
    }

    /// Rows of a lane, without padding.
    pub(crate) fn lane_rows(&self, lane: u64) -> u64 {
        self.lane_start(lane + 1) - self.lane_start(lane)
    }

    /// Positions in a lane, including padding. The first lane has the most.
    pub(crate) fn lane_positions(&self) -> u64 {
        match self.spec.remainder {
            Remainder::Short => self.lane_rows(0),
            Remainder::Drop | Remainder::Pad => self.n_batches * self.lane_batch_rows,
        }
    }
}
