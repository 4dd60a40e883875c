//! Cells in the order of an array, row by row or tile by tile.

use std::ops::Range;

use super::tile::Cells;

/// Cells in the array's order, in runs of one row.
pub(super) struct Runs<'a> {
    pub(super) numbers: Numbers<'a>,
    /// The beginnings of the runs, and the end of the last one.
    pub(super) offsets: &'a [usize],
    pub(super) columns: &'a [u32],
    pub(super) values: &'a [f32],
}

/// The rows of runs.
pub(super) enum Numbers<'a> {
    /// One after another, from this one on.
    From(u64),
    Each(&'a [u64]),
}

impl<'a> Runs<'a> {
    /// The cells at these places of columns and values.
    pub(super) fn cells(&self, range: Range<usize>) -> Cells<'a> {
        let mut runs = Vec::new();
        let mut start = range.start;
        // The last run that begins at or before the first cell.
        let mut run = self.offsets.partition_point(|offset| *offset <= start).saturating_sub(1);
        while start < range.end {
            let end = self.offsets[run + 1].min(range.end);
            if end > start {
                let row = match self.numbers {
                    Numbers::From(first) => first + run as u64,
                    Numbers::Each(rows) => rows[run],
                };
                runs.push((row, end - start));
            }
            start = end;
            run += 1;
        }
        Cells { runs, columns: &self.columns[range.clone()], values: &self.values[range] }
    }
}
