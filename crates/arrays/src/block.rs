//! Rows that were read together, decoded.

/// Rows that were read together.
#[derive(Debug)]
pub struct RowBlock<T> {
    /// As long as the largest block so far: shortening and lengthening would write it twice.
    pub(crate) values: Vec<T>,
}

impl<T> Default for RowBlock<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T> RowBlock<T> {
    pub(crate) fn row(&self, row: usize, row_len: usize) -> &[T] {
        &self.values[row * row_len..(row + 1) * row_len]
    }
}
