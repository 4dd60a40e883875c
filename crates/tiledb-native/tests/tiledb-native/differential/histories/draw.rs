//! Random numbers from a seed.

use std::ops::Range;

use tiledb_native::ColumnSelection;

/// Draws numbers from a seed, the same on every machine (SplitMix64).
#[derive(Debug)]
pub(in crate::differential) struct Draw(u64);

impl Draw {
    pub(in crate::differential) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `range`, which must not be empty.
    pub(in crate::differential) fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    pub(in crate::differential) fn below(&mut self, n: usize) -> usize {
        self.within(0..n as u64) as usize
    }

    /// Returns true with a probability of `percent`.
    pub(in crate::differential) fn chance(&mut self, percent: u64) -> bool {
        self.within(0..100) < percent
    }

    pub(in crate::differential) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Puts `items` into a random order.
    pub(in crate::differential) fn shuffle<T>(&mut self, items: &mut [T]) {
        for idx in (1..items.len()).rev() {
            let other = self.below(idx + 1);
            items.swap(idx, other);
        }
    }

    /// Rows to read: all, ranges, or single rows; sorted, shuffled, or with a repetition.
    pub(in crate::differential) fn rows(&mut self, n_rows: u64) -> Vec<Range<u64>> {
        let mut rows: Vec<Range<u64>> = match self.below(4) {
            0 => return vec![0..n_rows],
            1 => (0..self.below(30))
                .map(|_| self.within(0..n_rows))
                .map(|row| row..row + 1)
                .collect(),
            _ => {
                let mut cuts: Vec<u64> =
                    (0..2 * self.below(5)).map(|_| self.within(0..n_rows + 1)).collect();
                cuts.sort_unstable();
                cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
            }
        };
        match self.below(3) {
            0 => rows.sort_unstable_by_key(|range| (range.start, range.end)),
            1 => self.shuffle(&mut rows),
            _ => {
                let again = rows.first().cloned();
                rows.extend(again);
            }
        }
        rows
    }

    /// Columns to read, below `n_columns` and mostly from `first` on.
    pub(in crate::differential) fn columns(
        &mut self,
        first: u64,
        n_columns: u64,
    ) -> ColumnSelection {
        let from = if self.chance(80) { first } else { 0 };
        let some = from..n_columns.min(from + 200).max(from + 1);
        match self.below(4) {
            0 => ColumnSelection::All,
            1 | 2 => {
                let (a, b) = (self.within(some.clone()), self.within(some));
                let range = a.min(b)..a.max(b).min(n_columns);
                if self.chance(80) {
                    ColumnSelection::Range(range)
                } else {
                    ColumnSelection::List(range.collect())
                }
            }
            _ => {
                let mut list: Vec<u64> = some.filter(|_| self.chance(40)).collect();
                list.retain(|column| *column < n_columns);
                if self.chance(70) {
                    self.shuffle(&mut list);
                }
                ColumnSelection::List(list)
            }
        }
    }
}
