//! Counts the cells and values of an epoch, and checks that two loaders delivered the same.

use serde::{Deserialize, Serialize};
use torch_feed::RowValues;

use crate::equality::{self, Tally};

/// Cells and values of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delivered {
    /// Rows of all batches.
    pub(crate) n_cells: u64,
    /// Number of distinct joinids.
    pub(crate) n_distinct: u64,
    /// Columns of a batch.
    pub(crate) n_genes: u64,
    /// Values other than zero.
    pub(crate) tally: Tally,
}

/// Counts the cells and values of batches. The peers' scripts do the same
/// (`benches/peers/measuring.py`).
#[derive(Debug, Default)]
pub(crate) struct DeliveryCount {
    joinids: Vec<i64>,
    tally: Tally,
}

impl DeliveryCount {
    /// Adds a batch: its rows' joinids and values.
    pub(crate) fn add(&mut self, joinids: &[i64], rows: &RowValues) {
        self.joinids.extend_from_slice(joinids);
        for (row, joinid) in joinids.iter().enumerate() {
            let (genes, values) = rows.row(row);
            self.tally.add_cell(*joinid);
            self.tally.add_row(*joinid, genes, values);
        }
    }

    /// Returns the number of rows so far.
    pub(crate) fn n_cells(&self) -> u64 {
        self.joinids.len() as u64
    }

    /// Returns the count for batches with `n_genes` columns.
    pub(crate) fn finish(mut self, n_genes: u64) -> Delivered {
        let n_cells = self.n_cells();
        self.joinids.sort_unstable();
        self.joinids.dedup();
        let n_distinct = self.joinids.len() as u64;
        Delivered { n_cells, n_distinct, n_genes, tally: self.tally }
    }
}

/// Checks that both loaders delivered each of the `n_cells` cells once, with the same values.
///
/// # Errors
/// A message about the difference.
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
    equality::same(("somafeed", &ours.tally), (peer, &theirs.tally))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A cell: its joinid and values by column.
    type Cell = (i64, Vec<f32>);

    fn count(cells: &[Cell], batch_rows: usize) -> Delivered {
        let mut count = DeliveryCount::default();
        for batch in cells.chunks(batch_rows) {
            let joinids: Vec<i64> = batch.iter().map(|(joinid, _)| *joinid).collect();
            let mut rows = RowValues::default();
            for (_, values) in batch {
                let stored = (0..).zip(values).filter(|(_, value)| **value != 0.0);
                rows.push_row(stored.map(|(gene, value)| (gene, *value)));
            }
            count.add(&joinids, &rows);
        }
        count.finish(cells.first().map_or(0, |(_, values)| values.len() as u64))
    }

    fn cells() -> Vec<Cell> {
        let value = |n: u16| f32::from(n);
        (0..50_u16).map(|n| (i64::from(n) * 3, vec![value(n % 7), 0.0, value(n)])).collect()
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Vec<Cell>), expect: &str) {
        let mut changed = cells();
        change(&mut changed);
        let error = same(&count(&cells(), 8), &count(&changed, 8), 50, "other").unwrap_err();
        assert!(error.contains(expect) && error.contains("other"), "{error}");
    }

    #[test]
    fn whatever_differs_is_refused() {
        refused(|cells| drop(cells.pop()), "other delivered 49 cells, 49 of them different");
        refused(|cells| cells[4].0 = cells[5].0, "50 cells, 49 of them different");
        refused(|cells| cells.push((1, vec![0.0; 3])), "other delivered 51 cells");
        refused(|cells| cells[4].0 = 1_000, "at other places");
        // A cell without values has a joinid, too.
        refused(|cells| cells[0].0 = 1_000, "at other places");
        refused(|cells| cells[4].1[2] += 1.0, "add up to");
        // The same values in other columns, and in other cells.
        refused(|cells| cells[4].1.rotate_left(1), "at other places");
        refused(
            |cells| {
                let (one, other) = (cells[4].1.clone(), cells[5].1.clone());
                (cells[4].1, cells[5].1) = (other, one);
            },
            "at other places",
        );
        refused(
            |cells| cells.iter_mut().for_each(|(_, values)| values.push(0.0)),
            "have 3 columns",
        );
        refused(|cells| cells[4].1[2] += 0.5, "add up to");
    }

    #[test]
    fn our_own_faults_are_ours() {
        let error = same(&count(&cells()[1..], 8), &count(&cells(), 8), 50, "other").unwrap_err();
        assert!(error.starts_with("somafeed delivered 49"), "{error}");
    }

    proptest! {
        #[test]
        fn neither_order_nor_batches_matter(seed in any::<u64>(), batch_rows in 1_usize..60) {
            let mut shuffled = cells();
            let factor = 0x9e37_79b9_7f4a_7c15_u64;
            shuffled.sort_by_key(|(joinid, _)| (seed ^ joinid.cast_unsigned()).wrapping_mul(factor));
            let verdict = same(&count(&cells(), 8), &count(&shuffled, batch_rows), 50, "other");
            prop_assert_eq!(verdict, Ok(()));
        }
    }
}
