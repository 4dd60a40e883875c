//! Samples: which rows come in an epoch, where that is not each once.
//!
//! | entry point | which rows come |
//! |---|---|
//! | [`Sampling::weighted`] | each draw takes a row in proportion to its weight, with or without replacement |
//! | [`Sampling::class_balanced`] | the same, every class as likely as any other |
//! | [`Sampling::stratified`] | so many in all, of every class in proportion to its rows |
//! | [`Sampling::at_most_per_class`] | of every class at most so many |
//!
//! A sample is drawn anew in each epoch, and is a function of its arguments, the seed and the epoch alone: the same on every machine
//! and every rank, so that ranks take parts of one sample and a plan can go on in the middle of one
//! ([`PlanSpec::sampled_epoch`](crate::PlanSpec::sampled_epoch)). It is an ascending list of rows, in which a row may stand several
//! times; a plan cuts chunks of that list, reads a row once for each block that it is in, and delivers it as often as it stands there.
//!
//! Weights are floating-point numbers, of which only IEEE 754's exactly defined operations are used, and for draws without replacement
//! the logarithm of the crate `libm`, which is the same everywhere, too. Everything else is whole numbers.

mod classes;
mod weighted;

use std::fmt;
use std::sync::Arc;

use classes::Classes;

use crate::Error;

/// Whether a row can be drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Every draw is from all rows: a row may come several times.
    With,
    /// Every draw is from the rows that were not drawn before: a row comes at most once. The distribution of
    /// `torch.multinomial(replacement=False)`.
    Without,
}

/// Which rows come in each epoch. Cheap to clone.
#[derive(Clone, PartialEq)]
pub struct Sampling {
    n_rows: u64,
    n_samples: u64,
    draw: Draw,
}

#[derive(Clone, PartialEq)]
enum Draw {
    /// By weights from 0 to 1.
    Weighted(Arc<[f64]>, Replacement),
    OfClasses(Arc<Classes>),
}

impl Sampling {
    /// Draws `n_samples` rows of `0..weights.len()`, each in proportion to its weight. Rows of weight 0 never come.
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
    /// A weight that is negative, infinite or not a number; none above 0; without replacement, fewer rows of a weight above 0 than
    /// are to be drawn; 2^32 rows or more.
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

    /// Draws `n_samples` rows, a row of each class as likely: every row's weight is 1 over the rows of its class.
    ///
    /// `labels` has a code for each row, as of its cell type; any codes will do.
    ///
    /// # Errors
    /// As those of [`Sampling::weighted`].
    pub fn class_balanced(
        labels: &[u32],
        n_samples: u64,
        replacement: Replacement,
    ) -> Result<Self, Error> {
        check_size(labels.len(), n_samples)?;
        Self::weighted(&Classes::count(labels).balanced_weights(), n_samples, replacement)
    }

    /// Draws `n_samples` rows without replacement, of every class in proportion to its rows: rounded down, and one more of those classes
    /// that lack most of theirs (of equal ones, the lower code). So the numbers are the same in each epoch, the rows are not.
    ///
    /// # Errors
    /// More rows than there are; 2^32 rows or more.
    pub fn stratified(labels: &[u32], n_samples: u64) -> Result<Self, Error> {
        check_size(labels.len(), n_samples)?;
        let n_rows = labels.len() as u64;
        if n_samples > n_rows {
            return Err(Error::TooManySamples { n_samples, n_rows });
        }
        Ok(Self::of_classes(Classes::count(labels).in_proportion(n_samples)))
    }

    /// Draws at most `most` rows of every class without replacement: all rows of a class that has no more.
    ///
    /// # Errors
    /// 2^32 rows or more.
    pub fn at_most_per_class(labels: &[u32], most: u64) -> Result<Self, Error> {
        check_size(labels.len(), 0)?;
        Ok(Self::of_classes(Classes::count(labels).at_most(most)))
    }

    fn of_classes(classes: Classes) -> Self {
        let (n_rows, n_samples) = (classes.n_rows(), classes.n_samples());
        Self { n_rows, n_samples, draw: Draw::OfClasses(Arc::new(classes)) }
    }

    /// The rows that are drawn from.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The rows of an epoch, those that come several times counted as often.
    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// The rows of an epoch, ascending.
    ///
    /// # Errors
    /// There is no memory for them.
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

    /// Gives everything that decides the rows, apart from seed and epoch, to `sink` as bytes: for a fingerprint. The same bytes on every
    /// machine.
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

/// Rows are numbered by 32 bits, and lists of them must be addressable.
fn check_size(n_rows: usize, n_samples: u64) -> Result<(), Error> {
    let n_rows = n_rows as u64;
    match u32::try_from(n_rows.max(n_samples)) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::SampleTooLarge { n_samples, n_rows }),
    }
}
