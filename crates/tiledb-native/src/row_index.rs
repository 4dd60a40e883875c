//! The place of each row in a tile, built from the tile's row coordinates, which compress to almost
//! nothing and decode quickly.
//!
//! Cells of a tile are in the array's global order, which goes by space tile first. So the rows of
//! a data tile do not ascend as a whole; they form a few ascending runs, one for every space tile
//! that it has cells of. A run stores one position for each of its rows, so that finding a row is
//! one subtraction. With another cell order than row-major there may be as many runs as cells,
//! which is slow but correct.

use std::ops::Range;
use std::sync::OnceLock;

use crate::datatype::Number;
use crate::error::Fault;
use crate::filter::Decoded;
use crate::tile::Chunks;

/// Missing rows between two others cost one position each; more than this many begin a new run.
const MAX_GAP: u64 = 8;

/// The index of one tile, and the places of the chunks of its other files once they are known.
#[derive(Debug, Default)]
pub(crate) struct TileIndex {
    runs: Box<[Run]>,
    /// For each run the positions of the first cells of its rows, and the end of the last row.
    starts: Box<[u32]>,
    /// Chunks of columns, values, times and times of deletion.
    pub(crate) chunks: [OnceLock<Chunks>; 4],
}

/// Rows that ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first_row: u64,
    n_rows: u32,
    starts_at: u32,
}

/// Requested rows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) first_row: u64,
    pub(crate) n_rows: u32,
    /// Index in [`TileIndex::starts`] of the first row's position.
    pub(crate) starts_at: u32,
}

impl Found {
    /// `n_rows` of the rows, from the one with index `first` on.
    pub(crate) fn part(self, first: usize, n_rows: usize) -> Self {
        Self {
            first_row: self.first_row + first as u64,
            n_rows: n_rows as u32,
            starts_at: self.starts_at + first as u32,
        }
    }
}

impl TileIndex {
    /// The positions of the first cells of the rows of `found`, and the end of the last row.
    pub(crate) fn starts(&self, found: Found) -> &[u32] {
        let at = found.starts_at as usize;
        &self.starts[at..=at + found.n_rows as usize]
    }

    /// The rows of each run.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().map(|run| run.first_row..run.first_row + u64::from(run.n_rows))
    }

    /// Calls `each` with the tile's part of every one of the sorted, disjoint `wanted` row ranges,
    /// by ascending cell.
    pub(crate) fn find(&self, wanted: &[Range<u64>], mut each: impl FnMut(usize, Found)) {
        for run in &self.runs {
            let end = run.first_row + u64::from(run.n_rows);
            let first = wanted.partition_point(|range| range.end <= run.first_row);
            for (idx, range) in
                wanted.iter().enumerate().skip(first).take_while(|(_, range)| range.start < end)
            {
                let low = range.start.max(run.first_row);
                let n_rows = (range.end.min(end) - low) as u32;
                each(
                    idx,
                    Found {
                        first_row: low,
                        n_rows,
                        starts_at: run.starts_at + (low - run.first_row) as u32,
                    },
                );
            }
        }
    }

    /// Its size in a cache, including chunks that may be added.
    pub(crate) fn memory_bytes(&self, n_cells: usize) -> usize {
        let chunks = 3 * (n_cells / 4096 + 2) * 8;
        self.runs.len() * size_of::<Run>() + self.starts.len() * 4 + chunks + size_of::<Self>()
    }
}

/// Builds the index of a tile from its row coordinates, chunk by chunk.
#[derive(Debug)]
pub(crate) struct Builder {
    bounds: (u64, u64),
    runs: Vec<Run>,
    starts: Vec<u32>,
    row: Option<u64>,
    cell: u32,
}

impl Builder {
    /// Begins a tile whose rows lie within `bounds`, both included.
    pub(crate) fn new(bounds: (u64, u64)) -> Self {
        Self { bounds, runs: Vec::new(), starts: Vec::new(), row: None, cell: 0 }
    }

    /// Adds the rows of the next cells.
    pub(crate) fn add(&mut self, rows: Decoded<'_>, number: Number) -> Result<(), Fault> {
        match (rows, number) {
            (Decoded::Plain(bytes), Number::I64 | Number::U64) => {
                self.add_words(bytes.as_chunks::<8>().0, u64::from_le_bytes)
            }
            (Decoded::Plain(bytes), _) => {
                self.add_words(bytes.as_chunks::<4>().0, |word| u32::from_le_bytes(word).into())
            }
            (Decoded::LowFour(bytes), _) => {
                self.add_words(bytes.as_chunks::<4>().0, |word| u32::from_le_bytes(word).into())
            }
            (Decoded::Planes(planes), number) => {
                let size = number.size();
                let n_rows = planes.len() / size;
                let mut rows = vec![[0; 8]; n_rows];
                for (byte, plane) in planes.chunks_exact(n_rows.max(1)).enumerate() {
                    rows.iter_mut().zip(plane).for_each(|(row, &from)| row[byte] = from);
                }
                self.add_words(&rows, u64::from_le_bytes)
            }
        }
    }

    /// Adds `n` cells of the row whose bytes are `row`.
    pub(crate) fn add_run(&mut self, row: &[u8], n: u16) -> Result<(), Fault> {
        let mut wide = [0; 8];
        wide.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
        let row = u64::from_le_bytes(wide);
        if n > 0 && self.row != Some(row) {
            self.begin(row)?;
        }
        self.cell += u32::from(n);
        Ok(())
    }

    /// Adds rows given as little-endian words. A negative row becomes one beyond any bounds.
    fn add_words<const N: usize>(
        &mut self,
        words: &[[u8; N]],
        row: impl Fn([u8; N]) -> u64,
    ) -> Result<(), Fault> {
        let Some((first, after)) = words.split_first() else { return Ok(()) };
        if self.row != Some(row(*first)) {
            self.begin(row(*first))?;
        }
        self.cell += 1;
        // Most cells are in the same row as the cell before, so sixteen are compared at once with
        // their predecessors. The processor cannot predict where a row begins among them: record
        // the places without a branch, then visit only these.
        let (blocks, rest) = after.as_chunks::<16>();
        let (before, _) = words.as_chunks::<16>();
        for (block, before) in blocks.iter().zip(before) {
            let differs =
                |all, (word, before): (&[u8; N], &[u8; N])| all | (row(*word) ^ row(*before));
            if block.iter().zip(before).fold(0, differs) != 0 {
                let mut begins = 0_u32;
                for (idx, (word, before)) in block.iter().zip(before).enumerate() {
                    begins |= u32::from(word != before) << idx;
                }
                let first = self.cell;
                while begins != 0 {
                    let idx = begins.trailing_zeros();
                    begins &= begins - 1;
                    self.cell = first + idx;
                    self.begin(row(block[idx as usize]))?;
                }
                self.cell = first;
            }
            self.cell += 16;
        }
        for word in rest {
            if self.row != Some(row(*word)) {
                self.begin(row(*word))?;
            }
            self.cell += 1;
        }
        Ok(())
    }

    /// Begins `row` at the cell `self.cell`.
    fn begin(&mut self, row: u64) -> Result<(), Fault> {
        if row < self.bounds.0 || row > self.bounds.1 {
            let (low, high) = self.bounds;
            return Err(Fault::new(format!(
                "cell {} is in row {row}, outside the tile's bounds {low} to {high}",
                self.cell
            )));
        }
        match (self.row, self.runs.last_mut()) {
            (Some(before), Some(run)) if row > before && row - before <= MAX_GAP => {
                // Rows without cells in between begin at the same cell.
                for _ in before..row {
                    self.starts.push(self.cell);
                }
                run.n_rows += (row - before) as u32;
            }
            _ => {
                if self.row.is_some() {
                    self.starts.push(self.cell);
                }
                self.runs.push(Run {
                    first_row: row,
                    n_rows: 1,
                    starts_at: self.starts.len() as u32,
                });
                self.starts.push(self.cell);
            }
        }
        self.row = Some(row);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> TileIndex {
        if self.row.is_some() {
            self.starts.push(self.cell);
        }
        TileIndex { runs: self.runs.into(), starts: self.starts.into(), chunks: Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn build(rows: &[u64]) -> TileIndex {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        let mut builder = Builder::new((0, 1000));
        for chunk in bytes.chunks(8 * 50) {
            builder.add(Decoded::Plain(chunk), Number::I64).unwrap();
        }
        let index = builder.finish();
        let mut by_run = Builder::new((0, 1000));
        for run in rows.chunk_by(|a, b| a == b) {
            by_run.add_run(&run[0].to_le_bytes(), 0).unwrap();
            by_run.add_run(&run[0].to_le_bytes(), run.len() as u16).unwrap();
        }
        let by_run = by_run.finish();
        assert_eq!((&index.runs, &index.starts), (&by_run.runs, &by_run.starts));
        index
    }

    proptest! {
        #[test]
        fn finds_every_cell_once(rows in prop::collection::vec(0_u64..60, 0..300), sorted in any::<bool>(), cuts in prop::collection::btree_set(0_u64..70, 2..8)) {
            let mut rows = rows;
            if sorted { rows.sort_unstable(); }
            let cuts: Vec<_> = cuts.into_iter().collect();
            let wanted: Vec<_> = cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            let index = build(&rows);
            let mut cells = Vec::new();
            index.find(&wanted, |idx, found| {
                for (offset, bounds) in index.starts(found).windows(2).enumerate() {
                    let row = found.first_row + offset as u64;
                    assert!(wanted[idx].contains(&row));
                    cells.extend((bounds[0]..bounds[1]).map(|cell| (cell, row)));
                }
            });
            let expect: Vec<_> = rows.iter().enumerate().map(|(cell, &row)| (cell as u32, row))
                .filter(|(_, row)| wanted.iter().any(|range| range.contains(row))).collect();
            prop_assert_eq!(cells, expect);
        }
    }

    #[test]
    fn rows_outside_the_bounds_are_damage() {
        let mut builder = Builder::new((5, 9));
        assert!(builder.add(Decoded::Plain(&4_u64.to_le_bytes()), Number::I64).is_err());
        assert!(builder.add(Decoded::Plain(&(-1_i64).to_le_bytes()), Number::I64).is_err());
    }

    #[test]
    fn consecutive_rows_cost_one_position_each() {
        let index = build(&[3, 3, 4, 7, 7, 7, 8]);
        assert_eq!(index.runs.len(), 1);
        assert_eq!(&*index.starts, &[0, 2, 3, 3, 3, 6, 7]);
    }
}
