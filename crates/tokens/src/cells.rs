//! The cells of a batch, as tokens are made of them.

use csr::CsrView;

use crate::error::Error;
use crate::vocabulary::Genes;

/// Rows of X, with what else the tokens of a cell depend on.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// The values of each cell. Columns may come in any order, each at most once in a row.
    pub rows: CsrView<'a>,
    /// The total of each cell over all of its genes, by which ranks divide; `None` takes the sum of
    /// the row's values. Bins need no totals.
    pub totals: Option<&'a [f64]>,
    /// A number for each cell, for instance its joinid: random choices depend on it. Only needed if
    /// the tokenizer is random ([`Tokenizer::is_random`](crate::Tokenizer::is_random)).
    pub numbers: &'a [u64],
    /// The epoch: random choices differ from epoch to epoch.
    pub epoch: u64,
}

/// One cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    /// The row in the batch.
    pub(crate) row_idx: usize,
    pub(crate) columns: &'a [u32],
    pub(crate) values: &'a [f32],
    pub(crate) total: Option<f64>,
    pub(crate) number: u64,
    pub(crate) epoch: u64,
}

impl Cells<'_> {
    /// Fails unless there is one total, and one number if they are needed, for each row.
    pub(crate) fn check(&self, needs_numbers: bool) -> Result<(), Error> {
        let expected = self.rows.n_rows();
        let totals = self.totals.map_or(expected, <[f64]>::len);
        let numbers = if needs_numbers { self.numbers.len() } else { expected };
        for (what, found) in [("the totals", totals), ("the numbers of cells", numbers)] {
            if found != expected {
                return Err(Error::Length { what, found, expected });
            }
        }
        Ok(())
    }

    /// The cell of a row, which exists.
    pub(crate) fn cell(&self, row_idx: usize) -> Result<Cell<'_>, Error> {
        let (start, end) = (self.rows.row_offsets[row_idx], self.rows.row_offsets[row_idx + 1]);
        let nnz = self.rows.columns.len().min(self.rows.values.len());
        if start > end || end > nnz {
            return Err(Error::RowOffsets { row_idx, start, end, nnz });
        }
        Ok(Cell {
            row_idx,
            columns: &self.rows.columns[start..end],
            values: &self.rows.values[start..end],
            total: self.totals.map(|totals| totals[row_idx]),
            number: self.numbers.get(row_idx).copied().unwrap_or_default(),
            epoch: self.epoch,
        })
    }
}

impl Cell<'_> {
    /// Number of genes with a token and a value above 0, after checking all values.
    ///
    /// # Errors
    /// A column does not exist; a value is negative or not finite.
    pub(crate) fn n_detected(&self, genes: &Genes) -> Result<usize, Error> {
        let (row_idx, n_columns) = (self.row_idx, genes.n_columns());
        // Only the largest is compared: a pass that vectorizes.
        let largest = self.columns.iter().copied().max();
        if let Some(column) = largest.filter(|column| n_columns <= *column as usize) {
            return Err(Error::Column { row_idx, column, n_columns });
        }
        let is_good = |value: f32| (0.0..=f32::MAX).contains(&value);
        if !self.values.iter().fold(true, |good, value| good & is_good(*value)) {
            let mut values = self.columns.iter().zip(self.values);
            if let Some((&column, &value)) = values.find(|(_, value)| !is_good(**value)) {
                return Err(Error::Value { row_idx, column, value });
            }
        }
        let detected = |(column, value): (&u32, &f32)| {
            let is_known = genes.token(*column as usize).is_some();
            usize::from(is_known) & usize::from(*value != 0.0)
        };
        Ok(self.columns.iter().zip(self.values).map(detected).sum())
    }
}
