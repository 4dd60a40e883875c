//! The order of the new experiment's cells: that of the source, or random.

use soma_io::RowRanges;

/// The order of the new experiment's cells.
#[derive(Debug)]
pub(crate) struct Order {
    /// The joinids of the source's cells.
    cells: RowRanges,
    /// The position of the first cell of each range.
    starts: Vec<u64>,
    /// For each new row the position of its cell in `cells`; `None` if the order does not change.
    permutation: Option<Vec<u32>>,
}

impl Order {
    /// Makes the order of `cells`, fewer than 2^32: random if there is a seed.
    pub(crate) fn new(cells: &RowRanges, seed: Option<u64>) -> Self {
        let permutation = seed.map(|seed| shuffle::storage_order(cells.n_rows() as u32, seed));
        let mut n_before = 0;
        let starts = cells.ranges().iter().map(|range| {
            let start = n_before;
            n_before += range.end - range.start;
            start
        });
        Self { starts: starts.collect(), cells: cells.clone(), permutation }
    }

    pub(crate) fn is_shuffled(&self) -> bool {
        self.permutation.is_some()
    }

    /// The position of each new row's cell.
    pub(crate) fn permutation(&self) -> Option<&[u32]> {
        self.permutation.as_deref()
    }

    /// The new row of each cell, by position.
    pub(crate) fn places(&self) -> Vec<u32> {
        let order = self.permutation.as_deref().unwrap_or_default();
        let mut places = vec![0; order.len()];
        for (row, position) in (0..).zip(order) {
            places[*position as usize] = row;
        }
        places
    }

    /// The source's joinids of the cells in these new rows.
    pub(crate) fn joinids(&self, rows: std::ops::Range<u64>) -> Vec<u64> {
        match &self.permutation {
            Some(order) => order[rows.start as usize..rows.end as usize]
                .iter()
                .map(|position| self.joinid((*position).into()))
                .collect(),
            None => rows.map(|row| self.joinid(row)).collect(),
        }
    }

    /// The joinid of the cell at a position, which must exist.
    fn joinid(&self, position: u64) -> u64 {
        let range = self.starts.partition_point(|start| *start <= position) - 1;
        self.cells.ranges()[range].start + position - self.starts[range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_one_place() {
        let cells = RowRanges::new(vec![3..5, 9..40, 50..51]).unwrap();
        let kept = Order::new(&cells, None);
        assert!(!kept.is_shuffled());
        assert!(kept.joinids(0..34).into_iter().eq(cells.iter()));
        let shuffled = Order::new(&cells, Some(7));
        let mut joinids = shuffled.joinids(0..34);
        assert_ne!(joinids, kept.joinids(0..34));
        let places = shuffled.places();
        for (position, joinid) in cells.iter().enumerate() {
            assert_eq!(joinids[places[position] as usize], joinid);
        }
        joinids.sort_unstable();
        assert!(joinids.into_iter().eq(cells.iter()));
    }
}
