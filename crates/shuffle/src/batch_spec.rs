//! How the rows of an epoch are dealt to global batches, lanes and ranks.

use crate::Error;
use crate::random::MOST_LANES;

/// What becomes of rows that do not fill a global batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remainder {
    /// They are a shorter last batch. For one rank only: several must have batches of equal length.
    Short,
    /// They are left out: others in each epoch, those at the end of its order.
    Drop,
    /// Rows of the beginning of the epoch come again and fill the last global batch, at its end.
    Pad,
}

/// How an epoch's order is dealt to batches and ranks.
///
/// All ranks together take a *global batch* of `batch_rows * world_size` rows at a time, each its part of it. Which rows a global
/// batch has, and in which order, does not depend on the rank nor on the world size, only on their product with `batch_rows`.
///
/// *Lanes* are why ranks need not read each other's rows: every lane is a piece of the epoch's permuted chunks that is shuffled by
/// itself, and every global batch takes as many rows of each, the first lane's first. With as many lanes as ranks a rank reads one
/// lane. With other numbers the same global batches come out: a rank then holds blocks of several lanes, or parts of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchSpec {
    /// Rows of a rank's batch.
    pub batch_rows: u64,
    /// Which of the ranks is planned for, counted from 0.
    pub rank: u64,
    /// How many ranks there are.
    pub world_size: u64,
    /// How many lanes there are: a divisor of the rows of a global batch.
    pub lanes: u64,
    /// What becomes of rows that do not fill a global batch.
    pub remainder: Remainder,
}

impl BatchSpec {
    /// One rank, one lane, a short last batch.
    pub fn single(batch_rows: u64) -> Self {
        Self { batch_rows, rank: 0, world_size: 1, lanes: 1, remainder: Remainder::Short }
    }

    /// The rows of a global batch, after all checks that need no other numbers.
    ///
    /// # Errors
    /// Sizes of zero, a rank outside the world, lanes that do not divide the global batch, a short last batch for several ranks.
    pub fn global_batch_rows(&self) -> Result<u64, Error> {
        let Self { batch_rows, rank, world_size, lanes, remainder } = *self;
        for (size, number) in [
            ("the batch size", batch_rows),
            ("the world size", world_size),
            ("the number of lanes", lanes),
        ] {
            if number == 0 {
                return Err(Error::Zero { size });
            }
        }
        if rank >= world_size {
            return Err(Error::Rank { rank, world_size });
        }
        if remainder == Remainder::Short && world_size > 1 {
            return Err(Error::ShortAmongRanks { world_size });
        }
        if lanes > MOST_LANES {
            return Err(Error::TooManyLanes { lanes, most: MOST_LANES });
        }
        let global_batch_rows = batch_rows
            .checked_mul(world_size)
            .ok_or(Error::TooManyRows { what: "the rows of a global batch" })?;
        if !global_batch_rows.is_multiple_of(lanes) {
            return Err(Error::Lanes { lanes, global_batch_rows });
        }
        Ok(global_batch_rows)
    }

    /// How many global batches `n_rows` rows make: each rank has as many batches.
    ///
    /// # Errors
    /// As those of [`BatchSpec::global_batch_rows`].
    pub fn n_batches(&self, n_rows: u64) -> Result<u64, Error> {
        let global_batch_rows = self.global_batch_rows()?;
        Ok(match self.remainder {
            Remainder::Drop => n_rows / global_batch_rows,
            Remainder::Short | Remainder::Pad => n_rows.div_ceil(global_batch_rows),
        })
    }
}

/// The numbers of an epoch's global batches and lanes: how its `n_rows` positions are dealt.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) spec: BatchSpec,
    pub(crate) global_batch_rows: u64,
    /// Rows that each lane gives to a global batch.
    pub(crate) lane_batch_rows: u64,
    /// Rows of a lane that are shuffled together.
    pub(crate) window_rows: u64,
    /// Rows in the epoch's order, those that are dropped included.
    pub(crate) n_rows: u64,
    /// Global batches.
    pub(crate) n_batches: u64,
    /// Rows of the last global batch, without padding.
    last_rows: u64,
}

impl Deal {
    pub(crate) fn new(spec: BatchSpec, n_rows: u64, block_rows: u64) -> Result<Self, Error> {
        let global_batch_rows = spec.global_batch_rows()?;
        let lane_batch_rows = global_batch_rows / spec.lanes;
        // The windows of all lanes end with the same global batch. A single lane has nobody to wait for.
        let window_rows = match spec.lanes {
            1 => block_rows,
            _ => (block_rows - block_rows % lane_batch_rows).max(lane_batch_rows),
        };
        let n_batches = spec.n_batches(n_rows)?;
        if spec.remainder == Remainder::Pad && n_batches.checked_mul(global_batch_rows).is_none() {
            return Err(Error::TooManyRows { what: "rows with their padding" });
        }
        let last_rows = match n_batches {
            0 => 0,
            _ => (n_rows - (n_batches - 1) * global_batch_rows).min(global_batch_rows),
        };
        let deal = Self {
            spec,
            global_batch_rows,
            lane_batch_rows,
            window_rows,
            n_rows,
            n_batches,
            last_rows,
        };
        let block_rows = deal.max_block_rows();
        if u32::try_from(block_rows).is_err() {
            return Err(Error::RankBlockTooLarge { block_rows, lanes: spec.lanes });
        }
        Ok(deal)
    }

    /// The most rows that a rank's block has.
    pub(crate) fn max_block_rows(&self) -> u64 {
        let BatchSpec { batch_rows, world_size, .. } = self.spec;
        // Batches that a window touches; with several lanes they are whole.
        let most =
            self.window_rows.div_ceil(self.lane_batch_rows) + u64::from(self.spec.lanes == 1);
        let in_batches = most.saturating_mul(batch_rows);
        match (world_size, self.spec.lanes) {
            (_, 1) => in_batches.min(self.window_rows),
            _ => in_batches,
        }
        .min(self.rank_rows(0))
    }

    /// The rows that a rank delivers from a batch on, padding included.
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

    /// How many of the rows of the rank's last batch, at its end, are padding.
    pub(crate) fn n_padding(&self) -> u64 {
        if self.spec.remainder != Remainder::Pad || self.n_batches == 0 {
            return 0;
        }
        let end = (self.spec.rank + 1) * self.spec.batch_rows;
        end.saturating_sub(self.last_rows).min(self.spec.batch_rows)
    }

    /// Where in the order of the epoch's chunks a lane begins.
    pub(crate) fn lane_start(&self, lane: u64) -> u64 {
        let before_last = self.n_batches.saturating_sub(1) * self.lane_batch_rows;
        lane * before_last + self.last_rows.min(lane * self.lane_batch_rows)
    }

    /// The rows of a lane, without padding.
    pub(crate) fn lane_rows(&self, lane: u64) -> u64 {
        self.lane_start(lane + 1) - self.lane_start(lane)
    }

    /// Positions in a lane, with padding where there is some; the first lane has the most.
    pub(crate) fn lane_positions(&self) -> u64 {
        match self.spec.remainder {
            Remainder::Short => self.lane_rows(0),
            Remainder::Drop | Remainder::Pad => self.n_batches * self.lane_batch_rows,
        }
    }
}
