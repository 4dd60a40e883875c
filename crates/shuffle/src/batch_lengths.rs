//! How rows are cut into batches.

/// The lengths of the batches that some rows are cut into: batches run across the borders of blocks, so that only the last can be
/// short.
#[derive(Debug, Clone)]
pub struct BatchLengths {
    n_rows: u64,
    batch_rows: u64,
}

impl BatchLengths {
    /// Batches of `batch_rows` from `n_rows` rows. A `batch_rows` of 0 gives none.
    pub fn new(n_rows: u64, batch_rows: u64) -> Self {
        Self { n_rows: if batch_rows == 0 { 0 } else { n_rows }, batch_rows: batch_rows.max(1) }
    }

    /// The rows of all batches that are still to come.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }
}

impl Iterator for BatchLengths {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let length = self.n_rows.min(self.batch_rows);
        self.n_rows -= length;
        (length > 0).then_some(length)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n_batches = self.n_rows.div_ceil(self.batch_rows) as usize;
        (n_batches, Some(n_batches))
    }
}

impl ExactSizeIterator for BatchLengths {}
