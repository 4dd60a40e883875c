//! The classes of each row, if a row may have several: an image has all classes of its mask.

use std::fmt;

use super::{Error, Replacement, Sampling, check_size};
use crate::stop::{Stopped, begin_rows, ranges};

/// The set of classes of each row. Takes 4 bytes per row and 4 bytes per class of a row.
#[derive(Clone, PartialEq, Eq)]
pub struct ClassSets {
    /// Where each row's classes begin in `classes`, and the end.
    starts: Vec<u32>,
    /// Each row's classes, ascending; classes are numbered in the order of their codes.
    classes: Vec<u32>,
    /// The code of each class.
    codes: Vec<u32>,
}

impl ClassSets {
    /// Takes the codes of each row's classes; any codes will do. A code that comes several times in
    /// a row counts once, and a row may have none.
    ///
    /// ```
    /// use shuffle::sample::ClassSets;
    ///
    /// let classes = ClassSets::new([vec![3, 7, 3], vec![], vec![7]])?;
    /// assert_eq!((classes.n_rows(), classes.n_classes()), (3, 2));
    /// assert_eq!(classes.codes_of(0).collect::<Vec<_>>(), [3, 7]);
    /// # Ok::<(), shuffle::sample::Error>(())
    /// ```
    ///
    /// # Errors
    /// The sets have 2^32 codes or more in all.
    pub fn new<Set>(sets: impl IntoIterator<Item = Set>) -> Result<Self, Error>
    where
        Set: IntoIterator<Item = u32>,
    {
        let (mut starts, mut classes, mut set) = (vec![0], Vec::new(), Vec::new());
        for codes in sets {
            begin_rows(1)?;
            set.clear();
            set.extend(codes);
            set.sort_unstable();
            set.dedup();
            classes.extend_from_slice(&set);
            let too_many = |_| Error::TooManyClasses { n_rows: starts.len() };
            starts.push(u32::try_from(classes.len()).map_err(too_many)?);
        }
        let codes = super::hierarchical::number(&mut classes)?;
        Ok(Self { starts, classes, codes })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of classes that at least one row has.
    pub fn n_classes(&self) -> usize {
        self.codes.len()
    }

    /// The codes of a row's classes in ascending order; none past the last row.
    pub fn codes_of(&self, row: usize) -> impl Iterator<Item = u32> {
        self.of_row(row).iter().map(|class| self.code(*class))
    }

    /// The numbers of a row's classes.
    pub(super) fn of_row(&self, row: usize) -> &[u32] {
        match self.starts.get(row..row + 2) {
            Some([start, end]) => &self.classes[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The code of a class, given its number.
    pub(super) fn code(&self, class: u32) -> u32 {
        self.codes[class as usize]
    }

    /// Number of all rows' classes.
    pub(super) fn n_entries(&self) -> usize {
        self.classes.len()
    }

    /// For each row, the sum over its classes of 1 / (rows that have the class).
    fn balanced_weights(&self) -> Result<Vec<f64>, Stopped> {
        let mut n_rows = vec![0_u32; self.n_classes()];
        self.classes.iter().for_each(|class| n_rows[*class as usize] += 1);
        let of_class = |class: &u32| 1.0 / f64::from(n_rows[*class as usize]);
        let mut weights = Vec::with_capacity(self.n_rows());
        for rows in ranges(self.n_rows() as u64) {
            weights.extend(
                rows?.map(|row| -> f64 { self.of_row(row as usize).iter().map(of_class).sum() }),
            );
        }
        Ok(weights)
    }
}

impl fmt::Debug for ClassSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_rows, n_classes) = (self.n_rows(), self.n_classes());
        write!(f, "ClassSets({n_rows} rows of {n_classes} classes)")
    }
}

impl Sampling {
    /// Draws `n_samples` rows, rows of rare classes more often: [`Sampling::class_balanced`] for
    /// rows that may have several classes, like images with a mask.
    ///
    /// With replacement, a draw takes each class with equal probability, and then each row that has
    /// this class with equal probability. So a row's weight is the sum over its classes of 1 /
    /// (rows that have the class). A class still comes more often than another if its rows have
    /// other classes too, for instance a background that is in every image. Rows without a class
    /// never come.
    ///
    /// # Errors
    /// The same as [`Sampling::weighted`].
    pub fn class_sets_balanced(
        classes: &ClassSets,
        n_samples: u64,
        replacement: Replacement,
    ) -> Result<Self, Error> {
        check_size(classes.n_rows(), n_samples)?;
        Self::weighted(&classes.balanced_weights()?, n_samples, replacement)
    }
}
