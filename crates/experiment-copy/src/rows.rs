//! Ascending joinids collected into ranges, so that a run of joinids takes the memory of one.

use std::ops::Range;

use soma_io::RowRanges;

/// The rows collected so far.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    ranges: Vec<Range<u64>>,
}

impl Rows {
    /// Adds a joinid, which must be larger than all before.
    pub(crate) fn push(&mut self, joinid: u64) {
        match self.ranges.last_mut() {
            Some(last) if last.end == joinid => last.end += 1,
            _ => self.ranges.push(joinid..joinid + 1),
        }
    }

    pub(crate) fn finish(self) -> Result<RowRanges, soma_io::Error> {
        RowRanges::new(self.ranges)
    }
}

/// Cuts rows into reads of a requested number of rows each.
#[derive(Debug)]
pub(crate) struct Reads<'a> {
    ranges: &'a [Range<u64>],
    /// The first unread row, if it lies within the first range.
    start: u64,
}

impl<'a> Reads<'a> {
    /// Reads of all rows but the first `n_skipped`.
    pub(crate) fn after(rows: &'a RowRanges, n_skipped: u64) -> Self {
        let (mut ranges, mut n_left) = (rows.ranges(), n_skipped);
        while let Some((first, later)) = ranges.split_first() {
            let n_rows = first.end - first.start;
            if n_left < n_rows {
                return Self { ranges, start: first.start + n_left };
            }
            n_left -= n_rows;
            ranges = later;
        }
        Self { ranges, start: 0 }
    }

    /// The next rows, at most `n_rows`; `None` at the end.
    pub(crate) fn next(&mut self, n_rows: u64) -> Result<Option<RowRanges>, soma_io::Error> {
        let (mut part, mut rest) = (Vec::new(), n_rows.max(1));
        while let (Some((first, later)), true) = (self.ranges.split_first(), rest > 0) {
            let start = first.start.max(self.start);
            let end = first.end.min(start + rest);
            part.push(start..end);
            rest -= end - start;
            self.start = end;
            if end == first.end {
                self.ranges = later;
            }
        }
        if part.is_empty() { Ok(None) } else { RowRanges::new(part).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_all_rows_after_the_skipped_ones_in_order() {
        let mut rows = Rows::default();
        let joinids: Vec<u64> = (0..100).filter(|joinid| joinid % 7 > 2).collect();
        for joinid in &joinids {
            rows.push(*joinid);
        }
        let rows = rows.finish().unwrap();
        for (n_rows, n_skipped) in [(1, 0), (2, 1), (3, 4), (5, 5), (99, 57), (1_000, 58)] {
            let mut reads = Reads::after(&rows, n_skipped);
            let mut found = Vec::new();
            while let Some(read) = reads.next(n_rows).unwrap() {
                assert!((1..=n_rows).contains(&read.n_rows()));
                found.extend(read.iter());
            }
            assert_eq!(found, joinids[joinids.len().min(n_skipped as usize)..]);
        }
        assert!(Reads::after(&RowRanges::default(), 0).next(3).unwrap().is_none());
    }
}
