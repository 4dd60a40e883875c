//! What an epoch delivered, as numbers that do not depend on the order, and whether two loaders delivered the same.

use serde::{Deserialize, Serialize};
use torch_feed::RowSums;

/// What an epoch delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delivered {
    /// Rows of all batches.
    pub(crate) n_cells: u64,
    /// Different joinids among them.
    pub(crate) n_distinct: u64,
    /// Columns of a batch.
    pub(crate) n_genes: u64,
    /// Of all values; exact for whole numbers below 2^53.
    pub(crate) sum: f64,
    /// Sum, modulo 2^64, of a hash of each cell's joinid, the sum of its values, and the sum of each value times its column.
    pub(crate) checksum: u64,
}

/// Adds up what batches deliver. The peers' scripts do the same in Python (`benches/peers/measuring.py`).
#[derive(Debug)]
pub(crate) struct Tally {
    joinids: Vec<i64>,
    n_genes: u64,
    sum: f64,
    checksum: u64,
}

impl Tally {
    pub(crate) fn new(n_genes: u64) -> Self {
        Self { joinids: Vec::new(), n_genes, sum: 0.0, checksum: 0 }
    }

    /// A batch: its rows' joinids and sums.
    pub(crate) fn add(&mut self, joinids: &[i64], sums: &RowSums) {
        self.joinids.extend_from_slice(joinids);
        self.sum += sums.values.iter().sum::<f64>();
        for ((joinid, sum), by_column) in joinids.iter().zip(&sums.values).zip(&sums.by_column) {
            self.checksum = self.checksum.wrapping_add(cell_hash(*joinid, *sum, *by_column));
        }
    }

    pub(crate) fn n_cells(&self) -> u64 {
        self.joinids.len() as u64
    }

    pub(crate) fn finish(mut self) -> Delivered {
        let n_cells = self.n_cells();
        self.joinids.sort_unstable();
        self.joinids.dedup();
        Delivered {
            n_cells,
            n_distinct: self.joinids.len() as u64,
            n_genes: self.n_genes,
            sum: self.sum,
            checksum: self.checksum,
        }
    }
}

/// 64 bits of a cell. Adding zero makes one zero of the two.
fn cell_hash(joinid: i64, sum: f64, by_column: f64) -> u64 {
    let bits = |number: f64| (number + 0.0).to_bits();
    let joinid = mix(joinid.cast_unsigned());
    mix(mix(joinid.wrapping_add(bits(sum))).wrapping_add(bits(by_column)))
}

/// The finalizer of SplitMix64: each bit of the input changes about half of the output's.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Fails, and says how they differ, unless both delivered each of the `n_cells` cells once, with the same values.
pub(crate) fn same(
    ours: &Delivered,
    theirs: &Delivered,
    n_cells: u64,
    peer: &str,
) -> Result<(), String> {
    for (name, delivered) in [("somafeed", ours), (peer, theirs)] {
        if delivered.n_cells != n_cells || delivered.n_distinct != n_cells {
            return Err(format!(
                "{name} delivered {} cells, {} of them different, and not each of {n_cells} once",
                delivered.n_cells, delivered.n_distinct
            ));
        }
    }
    if ours.n_genes != theirs.n_genes {
        return Err(format!(
            "the batches have {} columns, those of {peer} {}",
            ours.n_genes, theirs.n_genes
        ));
    }
    if ours.sum != theirs.sum || ours.checksum != theirs.checksum {
        let exact = ours.sum.fract() == 0.0 && theirs.sum.fract() == 0.0;
        let hint = if exact { "" } else { "; only whole numbers can be compared, such as counts" };
        return Err(format!(
            "the values add up to {} (checksum {:016x}), those of {peer} to {} ({:016x}){hint}",
            ours.sum, ours.checksum, theirs.sum, theirs.checksum
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A cell: its joinid and values by column.
    type Cell = (i64, Vec<f64>);

    fn tally(cells: &[Cell], batch_rows: usize) -> Delivered {
        let mut tally = Tally::new(cells.first().map_or(0, |(_, values)| values.len() as u64));
        for batch in cells.chunks(batch_rows) {
            let joinids: Vec<i64> = batch.iter().map(|(joinid, _)| *joinid).collect();
            let by_column = |values: &[f64]| {
                values.iter().zip(1..).map(|(value, column)| value * f64::from(column)).sum()
            };
            let sums = RowSums {
                values: batch.iter().map(|(_, values)| values.iter().sum()).collect(),
                by_column: batch.iter().map(|(_, values)| by_column(values)).collect(),
            };
            tally.add(&joinids, &sums);
        }
        tally.finish()
    }

    fn cells() -> Vec<Cell> {
        (0..50_u32).map(|n| (i64::from(n) * 3, vec![f64::from(n % 7), 0.0, f64::from(n)])).collect()
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Vec<Cell>), expect: &str) {
        let mut changed = cells();
        change(&mut changed);
        let error = same(&tally(&cells(), 8), &tally(&changed, 8), 50, "other").unwrap_err();
        assert!(error.contains(expect) && error.contains("other"), "{error}");
    }

    #[test]
    fn whatever_differs_is_refused() {
        refused(|cells| drop(cells.pop()), "other delivered 49 cells, 49 of them different");
        refused(|cells| cells[4].0 = cells[5].0, "50 cells, 49 of them different");
        refused(|cells| cells.push((1, vec![0.0; 3])), "other delivered 51 cells");
        refused(|cells| cells[4].0 = 1_000, "checksum");
        refused(|cells| cells[4].1[2] += 1.0, "the values add up to");
        // The same values in other columns, and in other cells.
        refused(|cells| cells[4].1.rotate_left(1), "checksum");
        refused(
            |cells| {
                let (one, other) = (cells[4].1.clone(), cells[5].1.clone());
                (cells[4].1, cells[5].1) = (other, one);
            },
            "checksum",
        );
        refused(
            |cells| cells.iter_mut().for_each(|(_, values)| values.push(0.0)),
            "have 3 columns",
        );
        refused(|cells| cells[4].1[2] += 0.5, "only whole numbers can be compared");
    }

    #[test]
    fn our_own_faults_are_ours() {
        let error = same(&tally(&cells()[1..], 8), &tally(&cells(), 8), 50, "other").unwrap_err();
        assert!(error.starts_with("somafeed delivered 49"), "{error}");
    }

    #[test]
    fn python_comes_to_the_same() {
        // From `cell_hash` of benches/peers/measuring.py.
        assert_eq!(cell_hash(0, 0.0, 0.0), 0);
        assert_eq!(cell_hash(1, 5.0, 13.0), PYTHON_HASHES[0]);
        assert_eq!(cell_hash(-7, -0.0, 1e15), PYTHON_HASHES[1]);
    }

    const PYTHON_HASHES: [u64; 2] = [0xfa47_946c_e80e_5db7, 0xafd9_561c_fa9d_3b74];

    proptest! {
        #[test]
        fn neither_order_nor_batches_matter(seed in any::<u64>(), batch_rows in 1_usize..60) {
            let mut shuffled = cells();
            shuffled.sort_by_key(|(joinid, _)| mix(seed ^ joinid.cast_unsigned()));
            prop_assert_eq!(same(&tally(&cells(), 8), &tally(&shuffled, batch_rows), 50, "other"), Ok(()));
        }
    }
}
