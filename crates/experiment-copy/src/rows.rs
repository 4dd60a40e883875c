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
    pub(crate) fn new(rows: &'a RowRanges) -> Self {
        Self { ranges: rows.ranges(), start: 0 }
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
    fn reads_are_all_rows_in_order() {
        let mut rows = Rows::default();
        let joinids: Vec<u64> = (0..100).filter(|joinid| joinid % 7 > 2).collect();
        for joinid in &joinids {
            rows.push(*joinid);
        }
        let rows = rows.finish().unwrap();
        for n_rows in [1, 2, 3, 5, 99, 1_000] {
            let mut reads = Reads::new(&rows);
            let mut found = Vec::new();
            while let Some(read) = reads.next(n_rows).unwrap() {
                assert!((1..=n_rows).contains(&read.n_rows()));
                found.extend(read.iter());
            }
            assert_eq!(found, joinids);
        }
        assert!(Reads::new(&RowRanges::default()).next(3).unwrap().is_none());
    }
}
