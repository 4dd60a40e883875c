//! Rows in CSR with whole columns and values, owned and borrowed.

use crate::error::Error;
use crate::insert::{Inserted, grow};

/// Rows in CSR, in memory that is used again from read to read.
///
/// Row `i` has the columns `columns[row_offsets[i]..row_offsets[i + 1]]`, ascending, and the values
/// at the same places. A cell that a matrix holds twice (TileDB arrays may allow duplicates) is
/// there twice, in the order in which it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct CsrBuffers {
    /// Where each row begins, from 0, and at last the number of values: one more than there are
    /// rows.
    pub row_offsets: Vec<usize>,
    /// The column of each value; with a selection of columns, its position in the selection.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// The number of columns.
    pub n_columns: usize,
}

impl Default for CsrBuffers {
    fn default() -> Self {
        Self::empty(0)
    }
}

impl CsrBuffers {
    /// No rows and no columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// No rows, of `n_columns` columns.
    pub fn empty(n_columns: usize) -> Self {
        Self { row_offsets: vec![0], columns: Vec::new(), values: Vec::new(), n_columns }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// The number of values.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.row_offsets.clear();
        self.row_offsets.push(0);
        self.columns.clear();
        self.values.clear();
    }

    /// The columns and values of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row_idx: usize) -> (&[u32], &[f32]) {
        let range = self.row_offsets[row_idx]..self.row_offsets[row_idx + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The rows, borrowed.
    pub fn view(&self) -> CsrView<'_> {
        CsrView {
            row_offsets: &self.row_offsets,
            columns: &self.columns,
            values: &self.values,
            n_columns: self.n_columns,
        }
    }

    /// Begins `n_rows` rows for a reader to fill: `lengths` writes how many values each row has at
    /// the row's place behind the first offset. Columns and values then have any content.
    pub fn begin(&mut self, n_rows: usize, lengths: impl FnOnce(&mut [usize])) {
        let nnz = sum_lengths(&mut self.row_offsets, n_rows, lengths);
        set_len(&mut self.columns, nnz);
        set_len(&mut self.values, nnz);
    }

    /// Inserts rows for a reader to fill. `lengths` has an entry for each row of the result: the
    /// number of values of an inserted row, which then have any content, or `None` for the next of
    /// the rows that are there.
    ///
    /// # Panics
    /// If there are more or fewer rows than `None`s.
    pub fn insert_rows(&mut self, lengths: &[Option<usize>]) {
        let inserted = Inserted::new(&self.row_offsets, lengths);
        grow(&mut self.columns, inserted.nnz());
        grow(&mut self.values, inserted.nnz());
        inserted.apply(&mut self.columns);
        inserted.apply(&mut self.values);
        self.row_offsets = inserted.row_offsets;
    }

    /// The rows as a matrix of sprs, without a copy.
    ///
    /// # Errors
    /// If a cell is there twice, which sprs does not allow, or the parts do not fit together.
    #[cfg(feature = "sprs")]
    pub fn to_sprs(&self) -> Result<sprs::CsMatViewI<'_, f32, u32, usize>, Error> {
        let shape = (self.n_rows(), self.n_columns);
        sprs::CsMatViewI::try_new(shape, &self.row_offsets, &self.columns, &self.values)
            .map_err(|(_, _, _, error)| Error::Sprs { problem: error.to_string() })
    }

    /// Fails if the parts do not fit together, or columns do not ascend within a row.
    pub fn check(&self) -> Result<(), Error> {
        let (n_columns, n_values) = (self.columns.len(), self.values.len());
        if n_columns != n_values {
            return Err(Error::Lengths { n_columns, n_values });
        }
        let ends = (self.row_offsets.first(), self.row_offsets.last());
        if ends != (Some(&0), Some(&n_values)) || !self.row_offsets.is_sorted() {
            return Err(Error::RowOffsets { nnz: n_values });
        }
        for row in 0..self.n_rows() {
            let (columns, _) = self.row(row);
            if !columns.is_sorted() {
                return Err(Error::Order { row });
            }
            let n_columns = self.n_columns;
            if let Some(&column) = columns.last().filter(|last| **last as usize >= n_columns) {
                return Err(Error::Column { row, column, n_columns });
            }
        }
        Ok(())
    }
}

/// Rows in CSR, borrowed.
///
/// Row `i` has the columns `columns[row_offsets[i]..row_offsets[i + 1]]` and the values at the same
/// places.
#[derive(Debug, Clone, Copy)]
pub struct CsrView<'a> {
    /// Where each row begins, and where the last ends: one more than there are rows. May begin
    /// above 0.
    pub row_offsets: &'a [usize],
    /// The column of each value.
    pub columns: &'a [u32],
    /// The values.
    pub values: &'a [f32],
    /// The number of columns.
    pub n_columns: usize,
}

impl CsrView<'_> {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }
}

/// Replaces `row_offsets` by those of `n_rows` rows, whose lengths `lengths` writes each at the
/// place of its row's end. Returns the number of values.
pub(crate) fn sum_lengths(
    row_offsets: &mut Vec<usize>,
    n_rows: usize,
    lengths: impl FnOnce(&mut [usize]),
) -> usize {
    row_offsets.clear();
    row_offsets.resize(n_rows + 1, 0);
    lengths(row_offsets);
    let mut nnz = 0;
    for end in row_offsets {
        nnz += *end;
        *end = nnz;
    }
    nnz
}

/// Makes `buffer` `len` long with any content. Its content is neither cleared nor copied. A buffer
/// that is too small is made anew, zeroed by the system page by page as the threads that fill it
/// touch them, with an eighth to spare for the next read.
fn set_len<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if len > buffer.capacity() {
        *buffer = Vec::new();
        *buffer = vec![T::default(); len + len / 8];
    }
    if len > buffer.len() {
        buffer.resize(len, T::default());
    } else {
        buffer.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> CsrBuffers {
        CsrBuffers {
            row_offsets: vec![0, 2, 2],
            columns: vec![0, 3],
            values: vec![1.0, 2.0],
            n_columns: 4,
        }
    }

    #[test]
    fn broken_parts_are_errors() {
        let good = good();
        good.check().unwrap();
        for (bad, error) in [
            (CsrBuffers { n_columns: 3, ..good.clone() }, "row 0 has column 3"),
            (CsrBuffers { columns: vec![3, 0], ..good.clone() }, "do not ascend"),
            (CsrBuffers { row_offsets: vec![0, 3, 2], ..good.clone() }, "from 0 to 2"),
            (CsrBuffers { values: vec![1.0], ..good }, "2 columns for 1 values"),
        ] {
            let found = bad.check().unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
    }

    #[cfg(feature = "sprs")]
    #[test]
    fn sprs_takes_rows_without_duplicates() {
        assert_eq!(good().to_sprs().unwrap().get(0, 3), Some(&2.0));
        let twice = CsrBuffers { columns: vec![3, 3], ..good() };
        assert!(matches!(twice.to_sprs(), Err(Error::Sprs { .. })));
    }

    #[test]
    fn begun_rows_have_their_lengths_and_keep_their_memory() {
        let mut csr = good();
        csr.begin(3, |lengths| lengths[1..].copy_from_slice(&[2, 0, 5]));
        assert_eq!(csr.row_offsets, [0, 2, 2, 7]);
        assert_eq!((csr.columns.len(), csr.values.len()), (7, 7));
        let memory = csr.values.as_ptr();
        csr.begin(1, |lengths| lengths[1] = 3);
        assert_eq!((csr.nnz(), csr.values.as_ptr()), (3, memory));
    }
}
