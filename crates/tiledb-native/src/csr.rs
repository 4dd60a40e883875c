//! The form that reads have: compressed sparse rows, in buffers that the caller keeps.

/// Rows in CSR. Kept from read to read, the buffers are filled without being allocated, zeroed or faulted in again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CsrBuffers {
    /// Where each row begins in `columns` and `values`; one more than there are rows, from 0.
    pub row_offsets: Vec<usize>,
    /// Columns of the values, ascending within a row; with a selection of columns, positions in it.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// Columns that there are.
    pub n_columns: usize,
}

impl CsrBuffers {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// How many values there are.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Columns and values of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.row_offsets[row]..self.row_offsets[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// No rows and no values, for an error to leave behind; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.row_offsets.clear();
        self.row_offsets.push(0);
        self.columns.clear();
        self.values.clear();
    }

    /// Makes `columns` and `values` `nnz` long, with any content.
    pub(crate) fn set_nnz(&mut self, nnz: usize) {
        set_len(&mut self.columns, nnz);
        set_len(&mut self.values, nnz);
    }
}

/// Makes `buffer` `len` long with any content. What is there is neither cleared nor copied; where it is too small it is made anew,
/// zeroed by the system page by page as the threads that fill it touch them, with an eighth to spare for the next read.
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
