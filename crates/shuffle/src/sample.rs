//! Samples: which rows an epoch has, if it does not have each row once.
//!
//! | entry point | rows of an epoch |
//! |---|---|
//! | [`Sampling::weighted`] | each draw takes a row in proportion to its weight, with or without replacement |
//! | [`Sampling::class_balanced`] | the same, with every class equally likely |
//! | [`Sampling::stratified`] | a fixed number of rows, every class in proportion to its size |
//! | [`Sampling::at_most_per_class`] | at most a fixed number of rows of every class |
//!
//! Each epoch draws a new sample. A sample is a function of its arguments, the seed and the epoch
//! alone, so it is the same on every machine and every rank: ranks take parts of one sample, and a
//! plan can resume within it ([`PlanSpec::sampled_epoch`](crate::PlanSpec::sampled_epoch)). A
//! sample is an ascending list of rows, in which a row may occur several times. A plan cuts chunks
//! of that list, reads a row once per block that contains it, and delivers it as often as it
//! occurs.
//!
//! Weights are floating-point numbers. They go only through the operations that IEEE 754 defines
//! exactly and, for draws without replacement, through the logarithm of the crate `libm`, which is
//! the same on every machine. Everything else is integer arithmetic.

mod classes;
mod weighted;

use std::fmt;
use std::sync::Arc;

use classes::Classes;

use crate::Error;

/// Whether a row can be drawn more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Every draw is from all rows, so a row may come several times.
    With,
    /// Every draw is from the rows not drawn yet, so a row comes at most once. The distribution of
    /// `torch.multinomial(replacement=False)`.
    Without,
}

/// Draws the rows of each epoch. Cheap to clone.
#[derive(Clone, PartialEq)]
pub struct Sampling {
    n_rows: u64,
    n_samples: u64,
    draw: Draw,
}

#[derive(Clone, PartialEq)]
enum Draw {
    /// Weights from 0 to 1.
    Weighted(Arc<[f64]>, Replacement),
    OfClasses(Arc<Classes>),
}

impl Sampling {
    /// Draws `n_samples` rows of `0..weights.len()`, each in proportion to its weight. Rows of
    /// weight 0 never come.
    ///
    /// ```
    /// use shuffle::sample::{Replacement, Sampling};
    ///
    /// let sampling = Sampling::weighted(&[1.0, 0.0, 8.0], 100, Replacement::With)?;
    /// let rows = sampling.rows(42, 0)?;
    /// assert_eq!(rows.len(), 100);
    /// assert!(rows.iter().all(|row| *row != 1));
    /// # Ok::<(), shuffle::Error>(())
    /// ```
    ///
    /// # Errors
    /// A weight is negative, infinite or not a number; no weight is above 0; without replacement,
    /// fewer rows than `n_samples` have a weight above 0; there are 2^32 rows or more.
    pub fn weighted(
        weights: &[f64],
        n_samples: u64,
        replacement: Replacement,
    ) -> Result<Self, Error> {
        check_size(weights.len(), n_samples)?;
        let weights = weighted::scaled(weights, n_samples, replacement)?;
        Ok(Self {
            n_rows: weights.len() as u64,
            n_samples,
            draw: Draw::Weighted(weights, replacement),
        })
    }

    /// Draws `n_samples` rows with every class equally likely: a row's weight is 1 / (rows of its
    /// class).
    ///
    /// `labels` has a code for each row, for instance of its cell type; any codes will do.
    ///
    /// # Errors
    /// The same as [`Sampling::weighted`].
    pub fn class_balanced(
        labels: &[u32],
        n_samples: u64,
        replacement: Replacement,
    ) -> Result<Self, Error> {
        check_size(labels.len(), n_samples)?;
        Self::weighted(&Classes::count(labels).balanced_weights(), n_samples, replacement)
    }

    /// Draws `n_samples` rows without replacement, every class in proportion to its rows.
    ///
    /// Each class's share is rounded down, and the classes with the largest remainders get one row
    /// more (of equal remainders, the lower code). So each epoch has the same number of rows per
    /// class, but other rows.
    ///
    /// # Errors
    /// `n_samples` is larger than the number of rows; there are 2^32 rows or more.
    pub fn stratified(labels: &[u32], n_samples: u64) -> Result<Self, Error> {
        check_size(labels.len(), n_samples)?;
        let n_rows = labels.len() as u64;
        if n_samples > n_rows {
            return Err(Error::TooManySamples { n_samples, n_rows });
        }
        Ok(Self::of_classes(Classes::count(labels).in_proportion(n_samples)))
    }

    /// Draws at most `most` rows of every class without replacement; all rows of a smaller class.
    ///
    /// # Errors
    /// There are 2^32 rows or more.
    pub fn at_most_per_class(labels: &[u32], most: u64) -> Result<Self, Error> {
        check_size(labels.len(), 0)?;
        Ok(Self::of_classes(Classes::count(labels).at_most(most)))
    }

    fn of_classes(classes: Classes) -> Self {
        let (n_rows, n_samples) = (classes.n_rows(), classes.n_samples());
        Self { n_rows, n_samples, draw: Draw::OfClasses(Arc::new(classes)) }
    }

    /// Number of rows to draw from.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Number of rows of an epoch, with repetitions.
    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// Draws the rows of an epoch, in ascending order.
    ///
    /// # Errors
    /// They do not fit into memory.
    pub fn rows(&self, seed: u64, epoch: u64) -> Result<Arc<[u32]>, Error> {
        let too_large = || Error::SampleTooLarge { n_samples: self.n_samples, n_rows: self.n_rows };
        let n_samples = self.n_samples as usize;
        let rows = match &self.draw {
            Draw::Weighted(weights, Replacement::With) => {
                weighted::with_replacement(weights, n_samples, (seed, epoch))
            }
            Draw::Weighted(weights, Replacement::Without) => {
                weighted::without_replacement(weights, n_samples, (seed, epoch))
            }
            Draw::OfClasses(classes) => classes.draw((seed, epoch)),
        };
        Ok(rows.ok_or_else(too_large)?.into())
    }

    /// Passes everything that determines the rows, except seed and epoch, to `sink` as bytes, for a
    /// fingerprint. The bytes are the same on every machine.
    pub fn write_to(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(&self.n_samples.to_le_bytes());
        match &self.draw {
            Draw::Weighted(weights, replacement) => {
                sink(match replacement {
                    Replacement::With => b"with",
                    Replacement::Without => b"without",
                });
                weights.iter().for_each(|weight| sink(&weight.to_bits().to_le_bytes()));
            }
            Draw::OfClasses(classes) => {
                sink(b"classes");
                classes.write_to(sink);
            }
        }
    }
}

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let draw = match &self.draw {
            Draw::Weighted(_, Replacement::With) => "by weight, with replacement",
            Draw::Weighted(_, Replacement::Without) => "by weight, without replacement",
            Draw::OfClasses(_) => "of each class",
        };
        f.debug_struct("Sampling")
            .field("n_rows", &self.n_rows)
            .field("n_samples", &self.n_samples)
            .field("draw", &draw)
            .finish_non_exhaustive()
    }
}

/// Rows have 32-bit numbers, and lists of them must be addressable.
fn check_size(n_rows: usize, n_samples: u64) -> Result<(), Error> {
    let n_rows = n_rows as u64;
    match u32::try_from(n_rows.max(n_samples)) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::SampleTooLarge { n_samples, n_rows }),
    }
}
