//! Splits: which rows are for training, and which for test or validation.
//!
//! Rows are positions in a selection, as in a plan. A split is a function of its arguments and the seed alone, the same on every
//! machine; it does not depend on the order in which rows are later delivered, so what is test data stays test data in every epoch.
//!
//! | entry point | what it keeps |
//! |---|---|
//! | [`by_fraction`] | the sizes, by one of three [`Method`]s |
//! | [`stratified`] | the sizes, and within each label the fractions |
//! | [`by_group`] | no group in two splits; sizes as near to the fractions as whole groups allow |
//! | [`by_group_stratified`] | no group in two splits; sizes and labels as near as whole groups allow |
//!
//! All give one list of rows for each fraction, in their order: ascending, and each row in exactly one of the lists. Fractions are
//! numbers from 0 to 1 that sum to 1, to 1e-9; each is taken to 12 decimals, and what that leaves of the whole goes to the largest
//! (the first of equals), so that all that follows is whole numbers. A split whose fraction is 0 gets no row. Rows that are
//! split again keep their numbers through the list: `rows[i as usize]` for each row `i` of the second split.

mod fraction;
mod group;
mod parts;
mod rounding;
mod stratified;

pub use fraction::{Method, by_fraction};
pub use group::{by_group, by_group_stratified};
pub use stratified::stratified;

use rand_chacha::ChaCha8Rng;

use crate::Error;
use crate::random::below;

/// One empty list of rows for each split, with memory for as many rows as are expected in it.
fn empty_splits(sizes: &[u64]) -> Result<Vec<Vec<u64>>, Error> {
    let list = |n_rows: &u64| {
        let mut rows = Vec::new();
        usize::try_from(*n_rows)
            .ok()
            .and_then(|n| rows.try_reserve_exact(n).ok())
            .ok_or(Error::SplitTooLarge { n_rows: *n_rows })?;
        Ok(rows)
    };
    sizes.iter().map(list).collect()
}

/// Deals the next row: the split that gets it, drawn in proportion to the places that each has left, of which one is taken.
///
/// Dealing all rows so makes each division into these sizes as likely, and in ascending order; there is a place left.
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
