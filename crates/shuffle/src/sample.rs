//! Samples: which rows an epoch has, if it does not have each row once, and which rows are in a
//! batch together, if that is not left to chance.
//!
//! | entry point | rows of an epoch | also known as |
//! |---|---|---|
//! | no sampling, [`Order::InOrder`] | each row once, as stored | `SequentialSampler` of torch |
//! | no sampling, [`Order::Shuffled`], chunks of 1 row | each row once, all orders equally likely | `RandomSampler` of torch |
//! | [`Sampling::with_replacement`] | each draw takes any row with equal probability | `RandomSampler(replacement=True, num_samples=n)` of torch |
//! | [`Sampling::weighted`] | each draw takes a row in proportion to its weight, with or without replacement | `WeightedRandomSampler` of torch |
//! | [`Sampling::by_group`] | the same, with every group (data set) in proportion to its share | `input/dataset_sampling` of htc |
//! | [`Sampling::class_balanced`] | the same, with every class equally likely | `input/oversampling` of htc, for its spectra |
//! | [`Sampling::class_sets_balanced`] | the same, for rows that have several classes | |
//! | [`Sampling::stratified`] | a fixed number of rows, every class in proportion to its size | |
//! | [`Sampling::at_most_per_class`] | at most a fixed number of rows of every class | |
//! | [`Sampling::hierarchical`], [`Order::Listed`] | batches that have every domain | `HierarchicalSampler` of htc |
//! | [`Sampling::group_batches`], [`Order::Listed`] | batches of one group each, with controls | |
//! | [`Sampling::listed`], [`Order::Listed`] | a given list, in its order | a list as torch's `sampler` |
//!
//! [`Order::InOrder`]: crate::Order::InOrder
//! [`Order::Shuffled`]: crate::Order::Shuffled
//! [`Order::Listed`]: crate::Order::Listed
//!
//! Each epoch draws a new sample. A sample is a function of its arguments, the seed and the epoch
//! alone, so it is the same on every machine and every rank: ranks take parts of one sample, and a
//! plan can resume within it ([`PlanSpec::sampled_epoch`](crate::PlanSpec::sampled_epoch)). A
//! sample is a list of rows, in which a row may occur several times. A plan reads a row once per
//! block that contains it, and delivers it as often as it occurs.
//!
//! The list of most samples ascends. A plan cuts chunks of it, and shuffles them like the chunks of
//! all rows; with chunks of 1 row, all orders of the sample are equally likely, so that draws with
//! replacement are independent from batch to batch. A sample that composes batches, or is given,
//! is a list in the order of delivery ([`Sampling::is_listed`]), which `Order::Listed` keeps.
//!
//! Weights are floating-point numbers. They go only through the operations that IEEE 754 defines
//! exactly and, for draws without replacement, through the logarithm of the crate `libm`, which is
//! the same on every machine. Everything else is integer arithmetic.

mod class_sets;
mod classes;
mod error;
mod group_batches;
mod groups;
mod hierarchical;
mod weighted;

use std::fmt;
use std::sync::Arc;

pub use class_sets::ClassSets;
use classes::Classes;
pub use error::Error;
use group_batches::Batches;
pub use group_batches::{Controls, GroupBatches, Rest};
use hierarchical::Hierarchy;
pub use hierarchical::{ClassDraw, Hierarchical};

use crate::random::{SampleDecision, SampleSeed, below};
use crate::stop;

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
    /// Any row, with replacement.
    Uniform,
    /// Whole batches.
    Batches(Arc<Hierarchy>),
    /// Batches of one group each.
    Groups(Arc<Batches>),
    /// The same rows in every epoch.
    Listed(Arc<[u32]>),
}

impl Sampling {
    /// Draws `n_samples` rows of `0..n_rows`, each draw any row with equal probability. A row may
    /// come several times. Takes no memory between epochs.
    ///
    /// # Errors
    /// There are no rows to draw from; there are 2^32 rows or more.
    pub fn with_replacement(n_rows: u64, n_samples: u64) -> Result<Self, Error> {
        check_size(n_rows as usize, n_samples)?;
        if n_rows == 0 && n_samples > 0 {
            return Err(Error::NoRows { n_samples });
        }
        Ok(Self { n_rows, n_samples, draw: Draw::Uniform })
    }

    /// Takes the rows of a list, in its order, in every epoch; a row may occur several times.
    /// `n_rows` is the number of rows to choose from. Needs
    /// [`Order::Listed`](crate::Order::Listed).
    ///
    /// ```
    /// use shuffle::sample::Sampling;
    ///
    /// let sampling = Sampling::listed(10, [7, 3, 7])?;
    /// assert_eq!(*sampling.rows(42, 0)?, [7, 3, 7]);
    /// # Ok::<(), shuffle::sample::Error>(())
    /// ```
    ///
    /// # Errors
    /// A row is not below `n_rows`; there are 2^32 rows or more.
    pub fn listed(n_rows: u64, rows: impl Into<Arc<[u32]>>) -> Result<Self, Error> {
        let rows = rows.into();
        let n_samples = rows.len() as u64;
        check_size(n_rows as usize, n_samples)?;
        if let Some(at) = stop::position(rows.iter(), |row| u64::from(*row) >= n_rows)? {
            let problem = format!("row {}, at place {at}, is none of {n_rows}", rows[at]);
            return Err(Error::SampledRows { problem });
        }
        Ok(Self { n_rows, n_samples, draw: Draw::Listed(rows) })
    }

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
    /// # Ok::<(), shuffle::sample::Error>(())
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
        Self::weighted(&Classes::count(labels)?.balanced_weights()?, n_samples, replacement)
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
        Ok(Self::of_classes(Classes::count(labels)?.in_proportion(n_samples)))
    }

    /// Draws at most `most` rows of every class without replacement; all rows of a smaller class.
    ///
    /// # Errors
    /// There are 2^32 rows or more.
    pub fn at_most_per_class(labels: &[u32], most: u64) -> Result<Self, Error> {
        check_size(labels.len(), 0)?;
        Ok(Self::of_classes(Classes::count(labels)?.at_most(most)))
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

    /// Whether the rows of an epoch are listed in the order of delivery, and not in ascending
    /// order.
    pub fn is_listed(&self) -> bool {
        matches!(self.draw, Draw::Batches(_) | Draw::Groups(_) | Draw::Listed(_))
    }

    /// Rows of the batches that the sampling composes; `None` if it leaves that to chance, or to
    /// the list.
    pub fn batch_rows(&self) -> Option<u64> {
        match &self.draw {
            Draw::Batches(hierarchy) => Some(hierarchy.batch_rows()),
            Draw::Groups(batches) => Some(batches.batch_rows()),
            Draw::Weighted(..) | Draw::OfClasses(_) | Draw::Uniform | Draw::Listed(_) => None,
        }
    }

    /// Whether each batch that the sampling composes is of one group, and so must be a rank's.
    pub(crate) fn is_of_groups(&self) -> bool {
        matches!(self.draw, Draw::Groups(_))
    }

    /// Draws the rows of an epoch, in ascending order or, if the sampling
    /// [is listed](Self::is_listed), in the order of delivery. Takes 4 bytes per row.
    ///
    /// # Errors
    /// They do not fit into memory.
    pub fn rows(&self, seed: u64, epoch: u64) -> Result<Arc<[u32]>, Error> {
        let too_large = || Error::TooLarge { n_samples: self.n_samples, n_rows: self.n_rows };
        let (n_samples, drawn_by) = (self.n_samples as usize, SampleSeed { seed, epoch });
        let rows = match &self.draw {
            Draw::Weighted(weights, Replacement::With) => {
                weighted::with_replacement(weights, n_samples, drawn_by)
            }
            Draw::Weighted(weights, Replacement::Without) => {
                weighted::without_replacement(weights, n_samples, drawn_by)
            }
            Draw::OfClasses(classes) => classes.draw(drawn_by),
            Draw::Uniform => uniform(self.n_rows, n_samples, drawn_by),
            Draw::Batches(hierarchy) => hierarchy.draw(drawn_by),
            Draw::Groups(batches) => batches.draw(drawn_by),
            Draw::Listed(rows) => return Ok(Arc::clone(rows)),
        };
        match rows {
            // A list of the draw, which may have another length.
            Err(Error::TooLarge { .. }) => Err(too_large()),
            rows => Ok(rows?.into()),
        }
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
            Draw::Uniform => {
                sink(b"any");
                sink(&self.n_rows.to_le_bytes());
            }
            Draw::Batches(hierarchy) => {
                sink(b"batches");
                hierarchy.write_to(sink);
            }
            Draw::Groups(batches) => {
                sink(b"groups");
                batches.write_to(sink);
            }
            Draw::Listed(rows) => {
                sink(b"listed");
                rows.iter().for_each(|row| sink(&row.to_le_bytes()));
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
            Draw::Uniform => "any, with replacement",
            Draw::Batches(_) => "batches with every domain",
            Draw::Groups(_) => "batches of one group",
            Draw::Listed(_) => "a list",
        };
        f.debug_struct("Sampling")
            .field("n_rows", &self.n_rows)
            .field("n_samples", &self.n_samples)
            .field("draw", &draw)
            .finish_non_exhaustive()
    }
}

/// Draws any rows with replacement; the rows ascend.
fn uniform(n_rows: u64, n_samples: usize, seed: SampleSeed) -> Result<Vec<u32>, Error> {
    let mut generator = seed.generator(SampleDecision::Uniform);
    let mut rows = reserved(n_samples)?;
    for places in stop::ranges(n_samples as u64) {
        rows.extend(places?.map(|_| below(&mut generator, n_rows) as u32));
    }
    stop::sort(&mut rows)?;
    Ok(rows)
}

/// A list with room for `n` items.
fn reserved<T>(n: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    let too_large = |_| Error::TooLarge { n_samples: n as u64, n_rows: n as u64 };
    list.try_reserve_exact(n).map_err(too_large)?;
    Ok(list)
}

/// Rows have 32-bit numbers, and lists of them must be addressable.
fn check_size(n_rows: usize, n_samples: u64) -> Result<(), Error> {
    let n_rows = n_rows as u64;
    match u32::try_from(n_rows.max(n_samples)) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooLarge { n_samples, n_rows }),
    }
}
