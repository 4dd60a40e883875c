//! Splits: which rows are for training, validation and test.
//!
//! Rows are positions in a selection, like those of a plan. A split is a function of its arguments
//! and the seed alone, and the same on every machine. It does not depend on the order of delivery,
//! so test data stays test data in every epoch.
//!
//! | entry point | guarantee |
//! |---|---|
//! | [`by_fraction`] | the sizes, by one of three [`Method`]s |
//! | [`stratified`] | the sizes, and the fractions within each label |
//! | [`by_group`] | no group is in two splits; sizes are as near to the fractions as whole groups allow |
//! | [`by_group_stratified`] | no group is in two splits; sizes and labels are as near as whole groups allow |
//!
//! Each returns one [`RowSet`] per fraction, in the order of the fractions; each row is in exactly
//! one. Fractions are numbers from 0 to 1 whose sum is 1, to within 1e-9. Each is rounded to 12
//! decimals and the rest goes to the largest (the first of equals), so that everything after is
//! integer arithmetic. A split whose fraction is 0 gets no row. To split a split again, map the
//! result through it by [`RowSet::at`].
//!
//! All splits together take at most 2 bytes per row; three of them at most 3/8 byte, one bit per
//! row in each.

mod error;
mod fraction;
mod group;
mod parts;
mod rounding;
mod stratified;

pub use error::Error;
pub use fraction::{Method, UnknownMethod, by_fraction};
pub use group::{by_group, by_group_stratified};
pub use stratified::stratified;

use rand_chacha::ChaCha8Rng;

use crate::random::below;
use crate::{RowSet, RowSetBuilder};

/// One empty set of rows per split; fails if `n_rows` cannot fit into memory.
fn empty_splits(n_rows: u64, n_splits: usize) -> Result<Vec<RowSetBuilder>, Error> {
    // A bit for each row, at least, unless they are a few ranges.
    let is_possible = usize::try_from(n_rows / 8)
        .is_ok_and(|n_bytes| Vec::<u8>::new().try_reserve_exact(n_bytes).is_ok());
    if is_possible {
        Ok((0..n_splits).map(|_| RowSetBuilder::default()).collect())
    } else {
        Err(Error::TooLarge { n_rows })
    }
}

/// The sets of rows.
fn finished(splits: Vec<RowSetBuilder>) -> Vec<RowSet> {
    splits.into_iter().map(RowSetBuilder::finish).collect()
}

/// Assigns the next row: returns its split, drawn in proportion to the places left in each, and
/// takes one of that split's places.
///
/// If all rows are assigned this way, in ascending order, each division into these sizes is equally
/// likely. At least one place must be left.
fn deal(generator: &mut ChaCha8Rng, places: &mut [u64]) -> usize {
    let mut draw = below(generator, places.iter().sum());
    let mut split_idx = 0;
    while places[split_idx] <= draw {
        draw -= places[split_idx];
        split_idx += 1;
    }
    places[split_idx] -= 1;
    split_idx
}
