//! How rows are cut into batches.

/// The lengths of an epoch's batches: batches run across the borders of blocks, so that only the last can be short.
#[derive(Debug, Clone)]
pub struct BatchLengths {
    n_rows: u64,
    batch_rows: u64,
    drop_last: bool,
}

impl BatchLengths {
    /// Batches of `batch_rows` from `n_rows` rows; with `drop_last` a short last one is left out. A `batch_rows` of 0 gives none.
    pub fn new(n_rows: u64, batch_rows: u64, drop_last: bool) -> Self {
        Self {
            n_rows: if batch_rows == 0 { 0 } else { n_rows },
            batch_rows: batch_rows.max(1),
            drop_last,
        }
    }

    /// The rows that are delivered: all, but for those of a last batch that is left out.
    pub fn delivered_rows(&self) -> u64 {
        if self.drop_last { self.n_rows - self.n_rows % self.batch_rows } else { self.n_rows }
    }
}

impl Iterator for BatchLengths {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let length = self.n_rows.min(self.batch_rows);
        if length == 0 || (self.drop_last && length < self.batch_rows) {
            return None;
        }
        self.n_rows -= length;
        Some(length)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n_batches = self.delivered_rows().div_ceil(self.batch_rows) as usize;
        (n_batches, Some(n_batches))
    }
}

impl ExactSizeIterator for BatchLengths {}
