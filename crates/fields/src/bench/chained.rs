//! The batches of several epochs, one epoch after the other.

use arrays::{ArrayBatch, ArraySamples};
use pipeline::{Epoch, EpochStats, Epochs};

/// The batches of some of the next epochs.
pub(crate) struct Chained<'a, 'p> {
    epochs: &'a mut Epochs<'p, ArraySamples>,
    /// Epochs to begin after the current one.
    n_left: u64,
    current: Option<Epoch<ArraySamples>>,
    stats: Vec<EpochStats>,
}

impl<'a, 'p> Chained<'a, 'p> {
    /// Begins the first of the next `n_epochs` epochs.
    pub(crate) fn begin(
        epochs: &'a mut Epochs<'p, ArraySamples>,
        n_epochs: u64,
    ) -> anyhow::Result<Self> {
        let current = epochs.next().transpose()?;
        let n_left = n_epochs.saturating_sub(1);
        Ok(Self { epochs, n_left, current, stats: Vec::new() })
    }

    /// Ends the current epoch; returns the statistics of each.
    pub(crate) fn end(mut self) -> Vec<EpochStats> {
        self.close();
        self.stats
    }

    fn close(&mut self) {
        self.stats.extend(self.current.take().map(|epoch| epoch.stats()));
    }
}

impl Iterator for Chained<'_, '_> {
    type Item = anyhow::Result<ArrayBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_mut()?.next() {
                return Some(batch.map_err(anyhow::Error::from));
            }
            if self.n_left == 0 {
                return None;
            }
            self.close();
            self.n_left -= 1;
            match self.epochs.next()? {
                Ok(epoch) => self.current = Some(epoch),
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}
