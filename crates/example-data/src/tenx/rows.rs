//! Assembles entries into rows, one per cell even if it has no values, genes ascending.

use std::path::PathBuf;

use super::matrix::Entry;
use crate::Error;

/// Rows are passed on when there are this many of them, or of their values.
const PIECE_ROWS: usize = 2048;
const PIECE_VALUES: usize = 1 << 22;

/// The origin of entries, for errors.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Bytes that sorting all entries would need, and the limit.
    pub(super) sorting_bytes: u64,
    pub(super) budget_bytes: u64,
}

/// Consecutive cells in CSR.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) row_offsets: Vec<usize>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<f32>,
}

impl Rows {
    pub(super) fn n_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }
}

/// Assembles entries that come cell by cell into rows.
pub(super) struct RowBuilder<'a> {
    source: &'a Source,
    take: &'a mut dyn FnMut(&Rows) -> Result<(), Error>,
    rows: Rows,
    /// The current cell and its entries.
    cell: u64,
    entries: Vec<Entry>,
}

impl<'a> RowBuilder<'a> {
    pub(super) fn new(
        source: &'a Source,
        take: &'a mut dyn FnMut(&Rows) -> Result<(), Error>,
    ) -> Self {
        let rows = Rows { row_offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        Self { source, take, rows, cell: 0, entries: Vec::new() }
    }

    /// Adds an entry. Fails with [`Error::Unsorted`] if it belongs to an earlier cell.
    pub(super) fn add(&mut self, entry: Entry) -> Result<(), Error> {
        if u64::from(entry.cell) < self.cell {
            return Err(Error::Unsorted {
                path: self.source.path.clone(),
                line: entry.line,
                needed_bytes: self.source.sorting_bytes,
                budget_bytes: self.source.budget_bytes,
            });
        }
        self.advance(u64::from(entry.cell))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Ends the last rows; there are `n_cells` in all.
    pub(super) fn finish(mut self, n_cells: u64) -> Result<(), Error> {
        self.advance(n_cells)?;
        self.pass_on()
    }

    /// Ends all cells before `cell`.
    fn advance(&mut self, cell: u64) -> Result<(), Error> {
        while self.cell < cell {
            // 10x writes genes in order; others need not.
            if !self.entries.is_sorted_by_key(|entry| entry.gene) {
                self.entries.sort_by_key(|entry| entry.gene);
            }
            if let Some(pair) = self.entries.windows(2).find(|pair| pair[0].gene == pair[1].gene) {
                return Err(self.duplicate(pair[0], pair[1]));
            }
            // A sparse matrix does not store zeros.
            for entry in self.entries.iter().filter(|entry| entry.value != 0.0) {
                self.rows.columns.push(entry.gene);
                self.rows.values.push(entry.value);
            }
            self.entries.clear();
            self.rows.row_offsets.push(self.rows.values.len());
            self.cell += 1;
            if self.rows.n_rows() == PIECE_ROWS || self.rows.values.len() >= PIECE_VALUES {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    fn duplicate(&self, first: Entry, second: Entry) -> Error {
        Error::Line {
            path: self.source.path.clone(),
            line: second.line,
            problem: format!(
                "gene {} of cell {} already stands in line {}",
                second.gene + 1,
                second.cell + 1,
                first.line
            ),
        }
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        if self.rows.n_rows() > 0 {
            (self.take)(&self.rows)?;
        }
        self.rows.row_offsets.truncate(1);
        self.rows.columns.clear();
        self.rows.values.clear();
        Ok(())
    }
}
