//! Rows inserted between others, in the memory that these are in.

use std::ops::Range;

/// Where the values of rows move if others are inserted between them.
pub(crate) struct Inserted {
    /// Where each row begins, and where the last ends.
    pub(crate) row_offsets: Vec<usize>,
    /// Values that stay together, and where they go: by place, and never to an earlier one.
    moves: Vec<(Range<usize>, usize)>,
}

impl Inserted {
    /// Rows of which `lengths` has an entry each: the number of values of an inserted row, or
    /// `None` for the next of the rows that `row_offsets` bounds.
    ///
    /// # Panics
    /// If there are more or fewer rows than `None`s.
    pub(crate) fn new(row_offsets: &[usize], lengths: &[Option<usize>]) -> Self {
        let n_there = lengths.iter().filter(|length| length.is_none()).count();
        assert_eq!(n_there + 1, row_offsets.len(), "rows that stay");
        let mut there = row_offsets.windows(2).map(|pair| pair[0]..pair[1]);
        let mut moves: Vec<(Range<usize>, usize)> = Vec::new();
        let (mut offsets, mut end) = (vec![0], 0);
        for length in lengths {
            let row = length.is_none().then(|| there.next()).flatten();
            let start = end;
            end += length.unwrap_or_else(|| row.as_ref().map_or(0, Range::len));
            offsets.push(end);
            match (row, moves.last_mut()) {
                (Some(row), Some((last, to))) if *to + last.len() == start => last.end = row.end,
                (Some(row), _) => moves.push((row, start)),
                (None, _) => {}
            }
        }
        Self { row_offsets: offsets, moves }
    }

    /// The number of values.
    pub(crate) fn nnz(&self) -> usize {
        self.row_offsets.last().copied().unwrap_or(0)
    }

    /// Moves values to their places in a buffer that has room for all. Those of inserted rows then
    /// have any content.
    pub(crate) fn apply<T: Copy>(&self, buffer: &mut [T]) {
        // No place is earlier than before, so the last to move overwrites nothing.
        for (from, to) in self.moves.iter().rev() {
            buffer.copy_within(from.clone(), *to);
        }
    }
}

/// Makes `buffer` at least `len` long and keeps its content, with an eighth to spare if it moves.
pub(crate) fn grow<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if len > buffer.capacity() {
        buffer.reserve_exact(len + len / 8 - buffer.len());
    }
    if len > buffer.len() {
        buffer.resize(len, T::default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{CsrBuffers, PackedCsr};

    /// Rows of cells, and whether each is inserted.
    fn rows() -> impl Strategy<Value = Vec<(Vec<u16>, bool)>> {
        let row = prop::collection::vec(any::<u16>(), 0..6);
        prop::collection::vec((row, any::<bool>()), 0..20)
    }

    /// The rows in CSR: columns 0, 1, and so on.
    fn csr<'a>(rows: impl Iterator<Item = &'a Vec<u16>>) -> CsrBuffers {
        let mut csr = CsrBuffers::empty(6);
        for row in rows {
            csr.columns.extend(0..row.len() as u32);
            csr.values.extend(row.iter().copied().map(f32::from));
            csr.row_offsets.push(csr.values.len());
        }
        csr
    }

    proptest! {
        #[test]
        fn rows_stay_what_they_were(rows in rows(), floats: bool) {
            let all = csr(rows.iter().map(|(row, _)| row));
            let there = csr(rows.iter().filter(|(_, is_new)| !is_new).map(|(row, _)| row));
            let lengths: Vec<Option<usize>> =
                rows.iter().map(|(row, is_new)| is_new.then_some(row.len())).collect();

            let mut found = there.clone();
            found.insert_rows(&lengths);
            prop_assert_eq!(&found.row_offsets, &all.row_offsets);
            prop_assert_eq!((found.columns.len(), found.values.len()), (all.nnz(), all.nnz()));
            let mut packed = PackedCsr::pack(&there).unwrap();
            if floats {
                packed.widen();
                packed.widen();
            }
            prop_assert_eq!(packed.keeps_counts(), !floats);
            packed.insert_rows(&lengths);
            let packed = packed.unpack();
            prop_assert_eq!(&packed.row_offsets, &all.row_offsets);
            for (idx, (_, is_new)) in rows.iter().enumerate() {
                if !is_new {
                    prop_assert_eq!(found.row(idx), all.row(idx));
                    prop_assert_eq!(packed.row(idx), all.row(idx));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "rows that stay")]
    fn every_row_has_a_place() {
        CsrBuffers::empty(1).insert_rows(&[None]);
    }
}
