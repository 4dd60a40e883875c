//! The work of a task: its tiles, and the wanted cells in them.

use std::ops::Range;
use std::sync::Arc;

use super::task::Task;
use crate::row_index::{Found, TileIndex};

/// A tile with wanted rows.
#[derive(Debug)]
pub(super) struct TileWork {
    pub(super) fragment: usize,
    pub(super) tile: usize,
    pub(super) index: Arc<TileIndex>,
    /// The wanted parts, by ascending cell.
    pub(super) parts: Vec<Part>,
    /// The wanted cells of each row, if only some of the tile's columns are wanted and those cells
    /// were determined.
    pub(super) kept: Option<Kept>,
}

impl TileWork {
    /// These parts of a tile, in all columns.
    pub(super) fn new(
        (fragment, tile): (usize, usize),
        index: Arc<TileIndex>,
        parts: Vec<Part>,
    ) -> Self {
        Self { fragment, tile, index, parts, kept: None }
    }

    /// Calls `each` for every row of a part that has wanted cells among `cells`, with the row's
    /// index in the part and those cells. All of `cells` belong to the part.
    pub(super) fn rows(
        &self,
        part: &Part,
        cells: Range<u32>,
        mut each: impl FnMut(usize, Range<u32>),
    ) {
        let starts = self.index.starts(part.found);
        let kept = self.kept.as_ref().map(|kept| kept.ranges(part));
        let mut row = starts.partition_point(|&start| start <= cells.start) - 1;
        let mut cell = cells.start;
        while cell < cells.end {
            let end = starts[row + 1].min(cells.end);
            let wanted = match kept {
                Some(kept) => cell.max(kept[row].start)..end.min(kept[row].end),
                None => cell..end,
            };
            if wanted.start < wanted.end {
                each(row, wanted);
            }
            (cell, row) = (end, row + 1);
        }
    }

    /// Number of wanted cells in each row of a part.
    pub(super) fn counts(&self, part: &Part) -> impl Iterator<Item = u32> {
        let starts = self.index.starts(part.found);
        let kept = self.kept.as_ref().map(|kept| kept.ranges(part));
        starts.windows(2).enumerate().map(move |(row, pair)| match kept {
            Some(kept) => kept[row].end - kept[row].start,
            None => pair[1] - pair[0],
        })
    }
}

/// Consecutive rows of a tile, all from one wanted range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) found: Found,
    /// Index of the first row among the task's rows.
    pub(super) task_row: usize,
    /// The first cell and the end.
    pub(super) cells: (u32, u32),
    /// Number of rows in the tile's earlier parts.
    pub(super) n_rows_before: usize,
}

/// A task and its tiles.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) task: Task,
    /// By fragment, then by tile.
    pub(super) works: Vec<TileWork>,
    /// Wanted cells of each of the task's rows, in all tiles. All cells, if the wanted columns may
    /// not be adjacent in each row.
    pub(super) counts: Vec<u32>,
    /// Whether those are the cells to deliver.
    pub(super) is_counted: bool,
}

impl Planned {
    pub(super) fn n_cells(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }
}

/// The wanted cells of each row of a tile's parts, part after part.
#[derive(Debug)]
pub(super) struct Kept(Vec<Range<u32>>);

impl Kept {
    /// No wanted cells yet, for `n_rows` rows.
    pub(super) fn new(n_rows: usize) -> Self {
        Self(vec![0..0; n_rows])
    }

    /// Those of one part.
    pub(super) fn ranges(&self, part: &Part) -> &[Range<u32>] {
        &self.0[part.n_rows_before..][..part.found.n_rows as usize]
    }

    /// Adds wanted cells of a row. Returns whether they directly follow the row's earlier ones.
    pub(super) fn add(&mut self, part: &Part, row: usize, cells: Range<u32>) -> bool {
        let of_row = &mut self.0[part.n_rows_before + row];
        if of_row.start == of_row.end {
            *of_row = cells;
            return true;
        }
        let follows = of_row.end == cells.start;
        of_row.end = cells.end;
        follows
    }
}
