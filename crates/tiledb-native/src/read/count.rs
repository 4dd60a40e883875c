//! Counting the values of an array.

use std::ops::Range;

use csr::{ColumnSelection, CsrBuffers};

use super::{Output, Reader};
use crate::error::Error;
use crate::fragment::Fragment;

/// Cells that are read at once if cells have to be read, as far as rows are about equally long.
const BLOCK_CELLS: u64 = 4 << 20;
/// The most rows that are read at once.
const MAX_BLOCK_ROWS: u64 = 1 << 20;

impl Reader {
    /// Number of values as of the opening time, on the current thread pool. Cells are read only if
    /// the footers leave open which of them count.
    pub(crate) fn n_values(&self) -> Result<u64, Error> {
        if self.all_cells_count() {
            return Ok(self.n_cells());
        }
        let ranges = self.occupied_rows()?;
        let n_rows = ranges.iter().map(|rows| rows.end - rows.start).fold(0, u64::saturating_add);
        let cells_per_row = (self.n_cells() / n_rows.max(1)).max(1);
        let block_rows = (BLOCK_CELLS / cells_per_row).clamp(1, MAX_BLOCK_ROWS);
        let mut out = CsrBuffers::new();
        let mut n_values = 0_u64;
        for rows in ranges {
            let mut start = rows.start;
            while start < rows.end {
                let end = rows.end.min(start.saturating_add(block_rows));
                let block = start..end;
                let block = std::slice::from_ref(&block);
                self.read(block, &ColumnSelection::All, Output::Wide(&mut out))?;
                n_values += out.nnz() as u64;
                start = end;
            }
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
        let has_times = self.fragments.iter().any(|fragment| fragment.footer.has_timestamps);
        let may_repeat = self.keeps_latest() && (has_times || overlap(&self.fragments));
        !self.is_by_time() && !may_repeat && self.fragments.iter().all(is_within)
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
        found.sort_unstable_by_key(|rows| rows.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for rows in found {
            match joined.last_mut() {
                Some(last) if rows.start <= last.end => last.end = last.end.max(rows.end),
                _ => joined.push(rows),
            }
        }
        joined.retain(|rows| rows.start < rows.end);
        Ok(joined)
    }
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
