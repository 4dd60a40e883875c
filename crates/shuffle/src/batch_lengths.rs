//! How rows are cut into batches.

/// Iterator over the lengths of the batches that a stream of rows is cut into.
///
/// Batches run across the borders of blocks, so only the last one can be short.
#[derive(Debug, Clone)]
pub struct BatchLengths {
    n_rows: u64,
    batch_rows: u64,
}

impl BatchLengths {
    /// Cuts `n_rows` rows into batches of `batch_rows`. Yields nothing if `batch_rows` is 0.
    pub fn new(n_rows: u64, batch_rows: u64) -> Self {
        Self { n_rows: if batch_rows == 0 { 0 } else { n_rows }, batch_rows: batch_rows.max(1) }
    }

    /// Number of rows in the batches still to come.
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
