//! The order of a matrix's cells in an array whose space tiles have only some of the columns.

use std::ops::Range;

/// Consecutive rows that are kept until they fill a row of space tiles. Cells are ordered by space
/// tile, and by row and column within it, so the first row's last cells follow the last row's first
/// ones.
#[derive(Debug, Clone)]
pub struct TileRow {
    tile_columns: u64,
    row_offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl TileRow {
    /// Begins without rows; a space tile has `tile_columns` columns, at least one.
    pub fn new(tile_columns: u64) -> Self {
        let tile_columns = tile_columns.max(1);
        Self { tile_columns, row_offsets: vec![0], columns: Vec::new(), values: Vec::new() }
    }

    /// Adds a row: its columns, ascending, and as many values.
    pub fn push(&mut self, columns: &[u32], values: &[f32]) {
        self.columns.extend_from_slice(columns);
        self.values.extend_from_slice(values);
        self.row_offsets.push(self.values.len().min(self.columns.len()));
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }

    /// Number of values.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Removes all rows, and keeps their memory.
    pub fn clear(&mut self) {
        self.row_offsets.truncate(1);
        self.columns.clear();
        self.values.clear();
    }

    /// Calls `each` with the cells in the array's order: the index of a row, the columns that it
    /// has in the next space tile, and their values; not for a row without cells there.
    pub fn for_each(&self, mut each: impl FnMut(usize, &[u32], &[f32])) {
        // The cells of each row that are left for the next tiles.
        let mut rest: Vec<Range<usize>> =
            self.row_offsets.windows(2).map(|pair| pair[0]..pair[1]).collect();
        // Whole tiles may be empty, so the next one is that of the least column that is left.
        let next = |rest: &[Range<usize>]| {
            let columns = rest.iter().filter(|rest| !rest.is_empty());
            columns.map(|rest| u64::from(self.columns[rest.start]) / self.tile_columns).min()
        };
        while let Some(tile) = next(&rest) {
            let tile_end = (tile + 1).saturating_mul(self.tile_columns);
            for (row, rest) in rest.iter_mut().enumerate() {
                let columns = &self.columns[rest.clone()];
                let n_here = columns.partition_point(|column| u64::from(*column) < tile_end);
                if n_here == 0 {
                    continue;
                }
                let here = rest.start..rest.start + n_here;
                each(row, &self.columns[here.clone()], &self.values[here.clone()]);
                rest.start = here.end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cells_are_ordered_by_tile_row_and_column(
            rows in prop::collection::vec(prop::collection::btree_set(0_u32..50, 0..9), 0..9),
            tile_columns in 1_u64..60,
        ) {
            let mut tile_row = TileRow::new(tile_columns);
            let mut expected = Vec::new();
            for (idx, row) in rows.iter().enumerate() {
                let columns: Vec<u32> = row.iter().copied().collect();
                let values: Vec<f32> = columns.iter().map(|column| *column as f32).collect();
                tile_row.push(&columns, &values);
                expected.extend(columns.iter().map(|&column| (u64::from(column) / tile_columns, idx, column)));
            }
            expected.sort_unstable();
            let mut found = Vec::new();
            tile_row.for_each(|row, columns, values| {
                for (column, value) in columns.iter().zip(values) {
                    assert_eq!(*column as f32, *value);
                    found.push((u64::from(*column) / tile_columns, row, *column));
                }
            });
            prop_assert_eq!(found, expected);
            prop_assert_eq!(tile_row.n_rows(), rows.len());
            tile_row.clear();
            prop_assert_eq!((tile_row.n_rows(), tile_row.nnz()), (0, 0));
        }
    }
}
