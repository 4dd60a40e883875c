//! Counting the values of an array.

use std::ops::Range;

use csr::{ColumnSelection, CsrBuffers};

use super::{Output, ReadStats, Reader, plan, task};
use crate::error::Error;
use crate::fragment::Fragment;
use crate::request::Rows;

/// Cells that are read at once if cells have to be read, as far as rows are about equally long.
const BLOCK_CELLS: u64 = 4 << 20;
/// The most rows that are read at once.
const MAX_BLOCK_ROWS: u64 = 1 << 20;
/// The most rows for each cell that are gone through without knowing whether they have cells.
const MOST_EMPTY_ROWS: u64 = 64;
/// Tiles whose row indices are read together.
const TILES_AT_ONCE: usize = 64;

impl Reader {
    /// Number of values as of the opening time, on the current thread pool. Cells are read only if
    /// the footers leave open which of them count, and of them only the rows if it is settled by
    /// these.
    pub(crate) fn n_values(&self) -> Result<u64, Error> {
        if self.all_cells_count() {
            return Ok(self.n_cells());
        }
        let mut ranges = self.occupied_rows()?;
        if n_rows_of(&ranges) / MOST_EMPTY_ROWS > self.n_cells().saturating_add(MAX_BLOCK_ROWS) {
            ranges = self.indexed_rows()?;
        }
        let cells_per_row = (self.n_cells() / n_rows_of(&ranges).max(1)).max(1);
        let block_rows = (BLOCK_CELLS / cells_per_row).clamp(1, MAX_BLOCK_ROWS);
        let mut out = CsrBuffers::new();
        let mut n_values = 0_u64;
        let is_by_rows = self.crop.is_none()
            && !self.is_by_time()
            && !self.deletes_cells()
            && !self.may_repeat();
        for block in blocks(ranges, block_rows) {
            if is_by_rows {
                let rows = Rows::new(&block, self.layout.shape[0].1)?;
                n_values += plan::n_cells(self, task::tasks(&rows, &self.layout))?;
                continue;
            }
            self.read(&block, &ColumnSelection::All, Output::Wide(&mut out))?;
            n_values += out.nnz() as u64;
        }
        Ok(n_values)
    }

    /// Whether the footers show that every cell is a value of its own.
    fn all_cells_count(&self) -> bool {
        let [rows, columns] = self.layout.current;
        let is_within = |fragment: &Fragment| {
            fragment.footer.bounds.is_none_or(|[of_rows, of_columns]| {
                (rows.0..rows.1).contains(&of_rows.0)
                    && of_rows.1 < rows.1
                    && (columns.0..columns.1).contains(&of_columns.0)
                    && of_columns.1 < columns.1
            })
        };
        !self.is_by_time()
            && !self.has_deletes()
            && !self.may_repeat()
            && self.fragments.iter().all(is_within)
    }

    /// Whether several cells may have the same place, of which only the latest counts.
    fn may_repeat(&self) -> bool {
        let has_times = self.fragments.iter().any(|fragment| fragment.footer.has_timestamps);
        self.keeps_latest() && (has_times || overlap(&self.fragments))
    }

    /// Sorted, disjoint ranges of the array's rows outside which no tile has cells.
    fn occupied_rows(&self) -> Result<Vec<Range<u64>>, Error> {
        let fragments: Vec<&Fragment> = self.fragments.iter().collect();
        Fragment::load_tiles(&self.files, &fragments)?;
        let mut found: Vec<Range<u64>> = Vec::new();
        let n_rows = self.layout.shape[0].1;
        for fragment in fragments {
            let tiles = fragment.tiles(&self.files)?;
            tiles.meeting(0, u64::MAX, &mut |tile| {
                let (first, last) = tiles.bounds(tile).rows;
                found.push(first..last.saturating_add(1).min(n_rows));
            });
        }
        Ok(joined(found))
    }

    /// Sorted, disjoint ranges of the rows that have cells, by the row indices of all tiles.
    fn indexed_rows(&self) -> Result<Vec<Range<u64>>, Error> {
        let (n_rows, mut found) = (self.layout.shape[0].1, Vec::new());
        let mut stats = ReadStats::default();
        for (fragment_idx, fragment) in self.fragments.iter().enumerate() {
            let mut tiles = Vec::new();
            let all = fragment.tiles(&self.files)?;
            all.meeting(0, u64::MAX, &mut |tile| tiles.push(tile));
            for tiles in tiles.chunks(TILES_AT_ONCE) {
                let indices = self.with_scratch(|scratch| {
                    plan::indices(self, fragment_idx, tiles, scratch, &mut stats)
                })?;
                let rows = indices.iter().flat_map(|index| index.rows());
                found.extend(rows.map(|rows| rows.start..rows.end.min(n_rows)));
            }
            found = joined(found);
        }
        Ok(found)
    }
}

/// Sorts ranges and joins those that meet; without empty ones.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|rows| rows.start < rows.end);
    ranges.sort_unstable_by_key(|rows| rows.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for rows in ranges {
        match joined.last_mut() {
            Some(last) if rows.start <= last.end => last.end = last.end.max(rows.end),
            _ => joined.push(rows),
        }
    }
    joined
}

fn n_rows_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|rows| rows.end - rows.start).fold(0, u64::saturating_add)
}

/// Cuts ranges into lists of `most` rows each, and what is left.
fn blocks(ranges: Vec<Range<u64>>, most: u64) -> impl Iterator<Item = Vec<Range<u64>>> {
    let mut rest = ranges.into_iter();
    let mut open: Option<Range<u64>> = None;
    std::iter::from_fn(move || {
        let (mut block, mut left) = (Vec::new(), most);
        while left > 0 {
            let Some(rows) = open.take().or_else(|| rest.next()) else { break };
            let cut = rows.end.min(rows.start.saturating_add(left));
            left -= cut - rows.start;
            block.push(rows.start..cut);
            open = Some(cut..rows.end).filter(|rest| rest.start < rest.end);
        }
        (!block.is_empty()).then_some(block)
    })
}

/// Whether the rectangles of any two fragments share a place.
fn overlap(fragments: &[Fragment]) -> bool {
    let mut bounds: Vec<_> =
        fragments.iter().filter_map(|fragment| fragment.footer.bounds).collect();
    bounds.sort_unstable();
    bounds.iter().enumerate().any(|(idx, [rows, columns])| {
        let in_rows = bounds[idx + 1..].iter().take_while(|[next, _]| next.0 <= rows.1);
        in_rows.into_iter().any(|[_, of]| of.0 <= columns.1 && columns.0 <= of.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_all_rows_once() {
        let ranges = joined(vec![7..9, 20..20, 3..8, 1 << 60..(1 << 60) + 1, 30..41]);
        assert_eq!(ranges, [3..9, 30..41, 1 << 60..(1 << 60) + 1]);
        assert_eq!(n_rows_of(&ranges), 18);
        let found: Vec<_> = blocks(ranges, 8).collect();
        let n_rows: Vec<u64> = found.iter().map(|block| n_rows_of(block)).collect();
        assert_eq!(n_rows, [8, 8, 2]);
        let far = 1 << 60;
        assert_eq!(found.concat(), [3..9, 30..32, 32..40, 40..41, far..far + 1]);
        assert_eq!(blocks(Vec::new(), 8).count(), 0);
    }
}
