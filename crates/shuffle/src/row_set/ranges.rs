//! The rows of a set as ranges.

use std::ops::Range;

use super::RowSet;

/// Iterator over the ranges of consecutive rows at some places of a set.
#[derive(Debug)]
pub(crate) struct Ranges<'a> {
    set: &'a RowSet,
    /// The piece at hand, and the number in it from which on to go on.
    piece_idx: usize,
    from: u32,
    /// Rows that are still to come.
    n_left: u64,
    /// A range that the next one may continue.
    open: Option<Range<u64>>,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(set: &'a RowSet, places: Range<u64>) -> Self {
        let end = places.end.min(set.n_rows);
        let (mut piece_idx, mut from) = (set.pieces.len(), 0);
        if let Some(idx) = set.piece_of_place(places.start) {
            let piece = &set.pieces[idx];
            piece_idx = idx;
            from = piece.members.get((places.start - piece.n_before) as u32);
        }
        let n_left = end.saturating_sub(places.start);
        Self { set, piece_idx, from, n_left, open: None }
    }

    /// The next rows of one piece.
    fn next_of_piece(&mut self) -> Option<Range<u64>> {
        while self.n_left > 0 {
            let piece = self.set.pieces.get(self.piece_idx)?;
            let Some(range) = piece.members.range_from(self.from) else {
                (self.piece_idx, self.from) = (self.piece_idx + 1, 0);
                continue;
            };
            let n_rows = u64::from(range.end - range.start).min(self.n_left);
            self.n_left -= n_rows;
            self.from = range.end;
            let start = piece.start + u64::from(range.start);
            return Some(start..start + n_rows);
        }
        None
    }
}

impl Iterator for Ranges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        loop {
            match (self.next_of_piece(), &mut self.open) {
                (Some(next), Some(open)) if open.end == next.start => open.end = next.end,
                (Some(next), open) => {
                    if let Some(done) = open.replace(next) {
                        return Some(done);
                    }
                }
                (None, open) => return open.take(),
            }
        }
    }
}
