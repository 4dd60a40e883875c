//! Rows of X in CSR, and how they are counted together from COO.

use sprs::CsMatViewI;

use crate::Error;

/// A block of rows in compressed sparse rows, in memory that is used again from read to read.
///
/// Row `i` has the columns `columns[row_offsets[i]..row_offsets[i + 1]]`, ascending, and the values at the same places. A cell that
/// X holds twice (where the array allows duplicates) is there twice, in the order in which it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct CsrBuffers {
    /// Where each row begins, and at last the number of values: one more than there are rows.
    pub row_offsets: Vec<usize>,
    /// The column of each value.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// The number of columns.
    pub n_columns: usize,
}

impl Default for CsrBuffers {
    fn default() -> Self {
        Self { row_offsets: vec![0], columns: Vec::new(), values: Vec::new(), n_columns: 0 }
    }
}

impl CsrBuffers {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// The number of values.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Forgets all rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.row_offsets.clear();
        self.row_offsets.push(0);
        self.columns.clear();
        self.values.clear();
    }

    /// The columns and values of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row_idx: usize) -> (&[u32], &[f32]) {
        let range = self.row_offsets[row_idx]..self.row_offsets[row_idx + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The block as a matrix of sprs, without a copy. Fails where sprs demands more than CSR does: a cell that is there twice.
    pub fn to_sprs(&self) -> Result<CsMatViewI<'_, f32, u32, usize>, Error> {
        let shape = (self.n_rows(), self.n_columns);
        CsMatViewI::try_new(shape, &self.row_offsets, &self.columns, &self.values)
            .map_err(|(_, _, _, error)| Error::Csr { problem: error.to_string() })
    }

    /// Fails when the parts do not fit together, or columns do not ascend within a row.
    pub fn check(&self) -> Result<(), Error> {
        let problem = |problem: String| Err(Error::Csr { problem });
        if self.columns.len() != self.values.len() {
            return problem(format!(
                "there are {} columns for {} values",
                self.columns.len(),
                self.values.len()
            ));
        }
        let ends = (self.row_offsets.first(), self.row_offsets.last());
        if ends != (Some(&0), Some(&self.values.len())) || !self.row_offsets.is_sorted() {
            return problem(format!("row offsets must ascend from 0 to {}", self.values.len()));
        }
        for row_idx in 0..self.n_rows() {
            let (columns, _) = self.row(row_idx);
            if !columns.is_sorted() {
                return problem(format!("the columns of row {row_idx} do not ascend"));
            }
            if columns.last().is_some_and(|last| *last as usize >= self.n_columns) {
                return problem(format!(
                    "row {row_idx} has a column past the {} there are",
                    self.n_columns
                ));
            }
        }
        Ok(())
    }
}

/// Cells in the order in which they were read, until they are counted into rows. Its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct CellList {
    pub(crate) rows: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
}

impl CellList {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.columns.clear();
        self.values.clear();
    }

    /// Counts the cells into `n_rows` rows: one pass to count, a prefix sum, one pass to place them.
    pub(crate) fn count_into(&self, n_rows: usize, n_columns: usize, out: &mut CsrBuffers) {
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

/// Sorts the columns of each row that does not ascend yet. Cells come by bands of genes, so that most rows do.
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
        // Stable, so that cells with the same column stay in the order in which they were read.
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
        fn counting_equals_a_sorted_list(cells in proptest::collection::vec((0_u32..7, 0_u32..9, 1_u8..100), 0..60)) {
            let mut list = CellList::default();
            for (row, column, value) in &cells {
                list.rows.push(*row);
                list.columns.push(*column);
                list.values.push(f32::from(*value));
            }
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
    fn broken_parts_are_told() {
        let good = CsrBuffers {
            row_offsets: vec![0, 2, 2],
            columns: vec![0, 3],
            values: vec![1.0, 2.0],
            n_columns: 4,
        };
        good.check().unwrap();
        assert_eq!(good.to_sprs().unwrap().get(0, 3), Some(&2.0));
        for bad in [
            CsrBuffers { n_columns: 3, ..good.clone() },
            CsrBuffers { columns: vec![3, 0], ..good.clone() },
            CsrBuffers { row_offsets: vec![0, 3, 2], ..good.clone() },
            CsrBuffers { values: vec![1.0], ..good },
        ] {
            bad.check().unwrap_err();
        }
    }
}
