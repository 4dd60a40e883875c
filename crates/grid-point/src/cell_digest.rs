//! A digest of delivered cells, by which ranks show that together they delivered each cell once.

use std::fmt;
use std::ops::AddAssign;

use loader::{Dataset, LoaderSpec, Order};
use serde::{Deserialize, Serialize};
use shuffle::BatchSpec;

/// Number and hash of some cells. It does not depend on their order, and a cell that comes twice
/// changes it, so the sum over ranks equals the digest of all cells only if each was delivered
/// once (but for a chance of 2^-64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellDigest {
    /// Number of cells.
    pub n_cells: u64,
    /// Sum of the hashes of their joinids, without carry.
    pub sum: u64,
}

impl CellDigest {
    /// Adds a cell.
    pub fn add(&mut self, joinid: u64) {
        self.n_cells += 1;
        self.sum = self.sum.wrapping_add(mixed(joinid));
    }

    /// Returns the digests of the cells that all ranks together deliver in each epoch: each cell of
    /// the data set once or, if epochs are cut off or drop their remainder, the cells of the first
    /// global batches, by the plan of one process that delivers the batches of all ranks. Fails if
    /// the settings make no plan.
    pub(crate) fn of_epochs(
        dataset: &Dataset,
        spec: &LoaderSpec,
        (n_epochs, max_batches): (u64, Option<u64>),
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Self>>> {
        let (n_rows, spec) = (dataset.n_rows(), &spec.pipeline);
        let n_ranks = spec.world.size;
        let batches = BatchSpec {
            batch_rows: spec.batch_rows * n_ranks,
            rank: 0,
            world_size: 1,
            lanes: if spec.order == Order::Shuffled { n_ranks } else { 1 },
            remainder: spec.remainder,
        };
        let n_all = batches.n_batches(n_rows)?;
        let n_batches = max_batches.unwrap_or(u64::MAX).min(n_all);
        let n_delivered = n_batches.saturating_mul(batches.batch_rows);
        // The cells of a whole epoch, which are the same in each.
        let all = (n_rows <= n_delivered).then(|| {
            let mut digest = Self::default();
            (0..n_rows).for_each(|row| digest.add(dataset.origin(row).1));
            digest
        });
        let plan = spec.plan(n_rows);
        Ok((0..n_epochs).map(move |epoch| -> anyhow::Result<Self> {
            if let Some(digest) = all {
                return Ok(digest);
            }
            let mut digest = Self::default();
            let mut n_left = n_delivered as usize;
            for block in plan.dealt_epoch(epoch, &batches)? {
                if n_left == 0 {
                    break;
                }
                let rows = block.delivered_rows();
                let taken = &rows[..rows.len().min(n_left)];
                for row in taken {
                    digest.add(dataset.origin(*row).1);
                }
                n_left -= taken.len();
            }
            Ok(digest)
        }))
    }
}

impl AddAssign for CellDigest {
    fn add_assign(&mut self, other: Self) {
        self.n_cells += other.n_cells;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

impl fmt::Display for CellDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells with hash {:016x}", self.n_cells, self.sum)
    }
}

/// The finalizer of SplitMix64, by which each bit of the number changes each bit of the hash.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(joinids: &[u64]) -> CellDigest {
        let mut digest = CellDigest::default();
        for joinid in joinids {
            digest.add(*joinid);
        }
        digest
    }

    #[test]
    fn the_hash_is_splitmix64() {
        // The first numbers of SplitMix64 seeded with 0.
        assert_eq!(mixed(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mixed(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn one_cell_for_another_with_the_same_sum_is_seen() {
        assert_ne!(digest(&[1, 4]), digest(&[2, 3]));
        assert_ne!(digest(&[5, 5]), digest(&[5]));
        assert_ne!(digest(&[1, 1, 2]), digest(&[1, 2, 2]));
    }

    proptest! {
        #[test]
        fn parts_in_any_order_sum_up_to_the_whole(
            mut joinids in prop::collection::vec(any::<u64>(), 0..100),
            at in any::<prop::sample::Index>(),
        ) {
            let whole = digest(&joinids);
            joinids.reverse();
            let (one, other) = joinids.split_at(at.index(joinids.len() + 1));
            let mut sum = digest(one);
            sum += digest(other);
            prop_assert_eq!(sum, whole);
        }

        #[test]
        fn a_missing_and_a_repeated_cell_are_seen(n in 2_u64..200, at in any::<prop::sample::Index>()) {
            let whole: Vec<u64> = (0..n).collect();
            let mut changed = whole.clone();
            let at = at.index(changed.len());
            changed[at] = (changed[at] + 1) % n;
            prop_assert_ne!(digest(&changed), digest(&whole));
            changed.remove(at);
            prop_assert_ne!(digest(&changed), digest(&whole));
        }
    }
}
