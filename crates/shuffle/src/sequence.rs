//! All rows of an epoch in sequence: its chunks in their order, each with its rows in stored order.

use std::ops::Range;

/// The order of the chunks, and the position of each row in it. Rows are numbered `0..n_rows`; all
/// chunks but the last are equally long.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    n_rows: u64,
    chunk_rows: u64,
    /// The chunks in sequence; `None` if they are in stored order.
    chunks: Option<Vec<u32>>,
    /// Past this position, rows are shifted by `missing` compared to equally long chunks.
    short_end: u64,
    /// Rows that the last chunk lacks.
    missing: u64,
}

impl Sequence {
    pub(crate) fn new(n_rows: u64, chunk_rows: u64, chunks: Option<Vec<u32>>) -> Self {
        let missing = match n_rows % chunk_rows {
            0 => 0,
            last_rows => chunk_rows - last_rows,
        };
        let last = (n_rows / chunk_rows) as u32;
        let short_end = match &chunks {
            Some(chunks) if missing > 0 => {
                let at = chunks.iter().position(|chunk| *chunk == last).unwrap_or(chunks.len());
                at as u64 * chunk_rows + n_rows % chunk_rows
            }
            _ => n_rows,
        };
        Self { n_rows, chunk_rows, chunks, short_end, missing }
    }

    /// The rows at `positions`, one range per chunk, in the order of the sequence. The positions
    /// must lie in the sequence.
    pub(crate) fn rows(&self, positions: Range<u64>) -> Vec<Range<u64>> {
        let n_ranges = (positions.end - positions.start) / self.chunk_rows + 2;
        let mut rows = Vec::with_capacity(n_ranges as usize);
        let mut position = positions.start;
        while position < positions.end {
            let (first, chunk_end) = self.chunk_at(position);
            let n_rows = (chunk_end - first).min(positions.end - position);
            rows.push(first..first + n_rows);
            position += n_rows;
        }
        rows
    }

    /// The row at a position, and the end of its chunk.
    pub(crate) fn chunk_at(&self, position: u64) -> (u64, u64) {
        let Some(chunks) = &self.chunks else {
            let end = (position - position % self.chunk_rows).saturating_add(self.chunk_rows);
            return (position, end.min(self.n_rows));
        };
        let even = if position < self.short_end { position } else { position + self.missing };
        let start = u64::from(chunks[(even / self.chunk_rows) as usize]) * self.chunk_rows;
        (start + even % self.chunk_rows, start.saturating_add(self.chunk_rows).min(self.n_rows))
    }
}
