//! Values with their rows and columns, counted into rows.

use crate::buffers::CsrBuffers;
use crate::error::Error;

/// Values in the order in which they were read, each with its row and column (COO): three vectors
/// of one length, whose memory is used again.
#[derive(Debug, Default)]
pub struct CooList {
    /// The row of each value.
    pub rows: Vec<u32>,
    /// The column of each value.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
}

impl CooList {
    /// Adds a value.
    pub fn push(&mut self, row: u32, column: u32, value: f32) {
        self.rows.push(row);
        self.columns.push(column);
        self.values.push(value);
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.columns.clear();
        self.values.clear();
    }

    /// Fails if a value lies outside of the shape.
    pub fn check(&self, n_rows: usize, n_columns: usize) -> Result<(), Error> {
        for (row, column) in self.rows.iter().zip(&self.columns) {
            let row = *row as usize;
            if n_rows <= row {
                return Err(Error::Row { row, n_rows });
            }
            if n_columns <= *column as usize {
                return Err(Error::Column { row, column: *column, n_columns });
            }
        }
        Ok(())
    }

    /// Counts the values into `n_rows` rows: one pass to count, a prefix sum, one pass to place
    /// them. Each row's columns ascend; equal ones stay in the order in which they were added.
    ///
    /// # Panics
    /// If a value is of a row past the last, or the three vectors differ in length.
    pub fn count_into(&self, n_rows: usize, n_columns: usize, out: &mut CsrBuffers) {
        out.n_columns = n_columns;
        out.row_offsets.clear();
        out.row_offsets.resize(n_rows + 1, 0);
        for row in &self.rows {
            out.row_offsets[*row as usize + 1] += 1;
        }
        for row_idx in 0..n_rows {
            out.row_offsets[row_idx + 1] += out.row_offsets[row_idx];
        }
        out.columns.resize(self.columns.len(), 0);
        out.values.resize(self.values.len(), 0.0);
        let mut next = out.row_offsets.clone();
        for ((row, column), value) in self.rows.iter().zip(&self.columns).zip(&self.values) {
            let at = &mut next[*row as usize];
            out.columns[*at] = *column;
            out.values[*at] = *value;
            *at += 1;
        }
        sort_rows(out);
    }
}

/// Sorts the columns of each row that does not ascend yet. SOMA gives cells by bands of genes, so
/// most rows do.
fn sort_rows(csr: &mut CsrBuffers) {
    let mut cells: Vec<(u32, f32)> = Vec::new();
    for pair in csr.row_offsets.windows(2) {
        let columns = &mut csr.columns[pair[0]..pair[1]];
        if columns.is_sorted() {
            continue;
        }
        let values = &mut csr.values[pair[0]..pair[1]];
        cells.clear();
        cells.extend(columns.iter().copied().zip(values.iter().copied()));
        // Stable, so that cells of one column stay in the order in which they were added.
        cells.sort_by_key(|(column, _)| *column);
        for ((column, value), cell) in columns.iter_mut().zip(values).zip(&cells) {
            (*column, *value) = *cell;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counting_equals_a_sorted_list(
            cells in proptest::collection::vec((0_u32..7, 0_u32..9, 1_u8..100), 0..60)
        ) {
            let mut list = CooList::default();
            for (row, column, value) in &cells {
                list.push(*row, *column, f32::from(*value));
            }
            list.check(7, 9).unwrap();
            let mut csr = CsrBuffers::default();
            list.count_into(7, 9, &mut csr);
            csr.check().unwrap();
            let mut expected = cells;
            expected.sort_by_key(|(row, column, _)| (*row, *column));
            let found: Vec<_> = (0..7)
                .flat_map(|row| {
                    let (columns, values) = csr.row(row as usize);
                    columns.iter().zip(values).map(move |(column, value)| (row, *column, *value as u8)).collect::<Vec<_>>()
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn values_outside_of_the_shape_are_errors() {
        let mut list = CooList::default();
        list.push(2, 3, 1.0);
        assert_eq!(list.check(2, 4), Err(Error::Row { row: 2, n_rows: 2 }));
        assert_eq!(list.check(3, 3), Err(Error::Column { row: 2, column: 3, n_columns: 3 }));
        list.check(3, 4).unwrap();
    }
}
