//! Counts of the rows that are read for neighbours.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of X that were read in an epoch, including those of blocks that are read ahead. An epoch
/// that a loader runs again adds to its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeighbourRows {
    /// Rows of cells that batches are made of.
    pub centres: u64,
    /// Further rows, which are only neighbours. Each counts once for each block that needs it.
    pub further: u64,
}

impl NeighbourRows {
    /// Rows read for each row of the epoch itself: 1 if all neighbours are in the same blocks.
    /// `None` before anything was read.
    pub fn amplification(self) -> Option<f64> {
        let all = self.centres + self.further;
        (self.centres > 0).then(|| all as f64 / self.centres as f64)
    }
}

/// The counts of each epoch of a loader.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowCounts(Arc<Mutex<BTreeMap<u64, NeighbourRows>>>);

impl RowCounts {
    pub(crate) fn add(&self, epoch: u64, centres: usize, further: usize) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_epoch = counts.entry(epoch).or_default();
        of_epoch.centres += centres as u64;
        of_epoch.further += further as u64;
    }

    pub(crate) fn of(&self, epoch: u64) -> NeighbourRows {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&epoch).copied().unwrap_or_default()
    }
}
