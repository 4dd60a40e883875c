//! Draws a fixed number of rows of each class.

use super::{Error, reserved};
use crate::labels::LabelNumbers;
use crate::random::{SampleDecision, SampleSeed, below};
use crate::stop::{self, Stopped, pieces};

/// The class of each row, and the number of rows to draw per class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classes {
    /// Class of each row; classes are numbered in the order of their codes.
    class_of: Vec<u32>,
    /// Rows of each class.
    n_rows: Vec<u64>,
    /// Rows to draw of each class.
    n_samples: Vec<u64>,
}

impl Classes {
    /// Numbers the classes of `labels` and draws all rows of each.
    pub(super) fn count(labels: &[u32]) -> Result<Self, Stopped> {
        let numbers = LabelNumbers::assign(labels)?;
        let mut n_rows = vec![0; numbers.n_labels()];
        let mut class_of = Vec::with_capacity(labels.len());
        // Neighbouring rows often have the same label, so look up each run once.
        for piece in pieces(labels) {
            for run in piece?.chunk_by(|a, b| a == b) {
                let class = numbers.of_label(run[0]);
                n_rows[class] += run.len() as u64;
                class_of.resize(class_of.len() + run.len(), class as u32);
            }
        }
        Ok(Self { class_of, n_samples: n_rows.clone(), n_rows })
    }

    /// For each row, 1 / (rows of its class).
    pub(super) fn balanced_weights(&self) -> Result<Vec<f64>, Stopped> {
        let of_class: Vec<f64> = self.n_rows.iter().map(|n_rows| 1.0 / *n_rows as f64).collect();
        stop::map(&self.class_of, |class| of_class[*class as usize])
    }

    /// Draws `n_samples` rows in all, by largest remainders. `n_samples` is at most the number of
    /// rows.
    pub(super) fn in_proportion(mut self, n_samples: u64) -> Self {
        let total = u128::from(self.n_rows());
        let shares: Vec<u128> =
            self.n_rows.iter().map(|n_rows| u128::from(*n_rows) * u128::from(n_samples)).collect();
        self.n_samples = shares.iter().map(|share| (share / total) as u64).collect();
        let n_left = n_samples - self.n_samples();
        let mut by_lack: Vec<usize> = (0..shares.len()).collect();
        by_lack.sort_by_key(|class| std::cmp::Reverse(shares[*class] % total));
        by_lack.into_iter().take(n_left as usize).for_each(|class| self.n_samples[class] += 1);
        self
    }

    /// Draws at most `most` rows of each class.
    pub(super) fn at_most(mut self, most: u64) -> Self {
        self.n_samples = self.n_rows.iter().map(|n_rows| most.min(*n_rows)).collect();
        self
    }

    pub(super) fn n_rows(&self) -> u64 {
        self.class_of.len() as u64
    }

    pub(super) fn n_samples(&self) -> u64 {
        self.n_samples.iter().sum()
    }

    /// The drawn rows in ascending order.
    ///
    /// A row is drawn with probability (rows its class still needs) / (rows its class still has),
    /// which makes all selections equally likely.
    pub(super) fn draw(&self, seed: SampleSeed) -> Result<Vec<u32>, Error> {
        let mut generator = seed.generator(SampleDecision::OfClass);
        let (mut n_rows, mut n_wanted) = (self.n_rows.clone(), self.n_samples.clone());
        let mut rows = reserved(self.n_samples() as usize)?;
        let mut row = 0;
        for piece in pieces(&self.class_of) {
            for class in piece?.iter().map(|class| *class as usize) {
                if below(&mut generator, n_rows[class]) < n_wanted[class] {
                    n_wanted[class] -= 1;
                    rows.push(row);
                }
                n_rows[class] -= 1;
                row += 1;
            }
        }
        Ok(rows)
    }

    pub(super) fn write_to(&self, sink: &mut dyn FnMut(&[u8])) {
        self.class_of.iter().for_each(|class| sink(&class.to_le_bytes()));
        self.n_samples.iter().for_each(|n_samples| sink(&n_samples.to_le_bytes()));
    }
}
