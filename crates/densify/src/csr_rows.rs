//! Access to the rows of CSR, whole or packed.

use std::ops::Range;

use csr::{CsrView, PackedValues, PackedView};

use crate::Error;
use crate::gathered::{Column, GatheredValue};

/// Rows in CSR that kernels take one by one.
pub trait CsrRows: Copy {
    /// The number of columns.
    fn n_columns(&self) -> usize;

    /// The place of a row's values.
    ///
    /// # Errors
    /// [`Error::Row`] if there is no such row, [`Error::RowOffsets`] if its values do not exist.
    fn place(&self, row_idx: usize) -> Result<Range<usize>, Error>;

    /// The largest column at a row's place; `None` if it has no values.
    fn largest_column(&self, place: Range<usize>) -> Option<u32>;

    /// Copies the columns and values at a row's place into slices of the same length, whose type
    /// must have the largest column. Returns whether theirs has each of the values.
    fn copy<C: Column, V: GatheredValue>(
        &self,
        place: Range<usize>,
        out: (&mut [C], &mut [V]),
    ) -> bool;

    /// The columns and values at a row's place, converted into `scratch` if they are kept in
    /// another form.
    fn values_at<'s>(
        &'s self,
        place: Range<usize>,
        scratch: &'s mut RowScratch,
    ) -> (&'s [u32], &'s [f32]);

    /// The number of values that these rows have together.
    ///
    /// # Errors
    /// Those of [`place`](Self::place).
    fn nnz_of(&self, rows: &[u32]) -> Result<usize, Error> {
        rows.iter().map(|row_idx| Ok(self.place(*row_idx as usize)?.len())).sum()
    }
}

/// Memory for a row, used again for the next.
#[derive(Debug, Default)]
pub struct RowScratch {
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl CsrRows for CsrView<'_> {
    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn place(&self, row_idx: usize) -> Result<Range<usize>, Error> {
        place_of(self.row_offsets, row_idx, self.columns.len().min(self.values.len()))
    }

    fn largest_column(&self, place: Range<usize>) -> Option<u32> {
        self.columns[place].iter().copied().max()
    }

    fn copy<C: Column, V: GatheredValue>(
        &self,
        place: Range<usize>,
        (columns, values): (&mut [C], &mut [V]),
    ) -> bool {
        let whole = &self.columns[place.clone()];
        columns.iter_mut().zip(whole).for_each(|(to, column)| *to = C::from_column(*column));
        V::copy_floats(&self.values[place], values)
    }

    fn values_at<'s>(
        &'s self,
        place: Range<usize>,
        _scratch: &'s mut RowScratch,
    ) -> (&'s [u32], &'s [f32]) {
        (&self.columns[place.clone()], &self.values[place])
    }
}

impl CsrRows for PackedView<'_> {
    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn place(&self, row_idx: usize) -> Result<Range<usize>, Error> {
        let n_values = match self.values {
            PackedValues::Counts(values) => values.len(),
            PackedValues::Floats(values) => values.len(),
        };
        place_of(self.row_offsets, row_idx, self.columns.len().min(n_values))
    }

    fn largest_column(&self, place: Range<usize>) -> Option<u32> {
        self.columns[place].iter().copied().max().map(u32::from)
    }

    fn copy<C: Column, V: GatheredValue>(
        &self,
        place: Range<usize>,
        (columns, values): (&mut [C], &mut [V]),
    ) -> bool {
        let packed = &self.columns[place.clone()];
        columns.iter_mut().zip(packed).for_each(|(to, column)| *to = C::from(*column));
        match self.values {
            PackedValues::Counts(counts) => V::copy_counts(&counts[place], values),
            PackedValues::Floats(floats) => V::copy_floats(&floats[place], values),
        }
    }

    fn values_at<'s>(
        &'s self,
        place: Range<usize>,
        scratch: &'s mut RowScratch,
    ) -> (&'s [u32], &'s [f32]) {
        let RowScratch { columns, values } = scratch;
        if values.len() < place.len() {
            columns.resize(place.len(), 0);
            values.resize(place.len(), 0.0);
        }
        let (columns, values) = (&mut columns[..place.len()], &mut values[..place.len()]);
        // f32 has each value.
        self.copy(place, (&mut *columns, &mut *values));
        (columns, values)
    }
}

/// The place of a row's values among `nnz`.
pub(crate) fn place_of(
    row_offsets: &[usize],
    row_idx: usize,
    nnz: usize,
) -> Result<Range<usize>, Error> {
    let (Some(&start), Some(&end)) = (row_offsets.get(row_idx), row_offsets.get(row_idx + 1))
    else {
        return Err(Error::Row { row_idx, n_rows: row_offsets.len().saturating_sub(1) });
    };
    if start <= end && end <= nnz {
        Ok(start..end)
    } else {
        Err(Error::RowOffsets { row_idx, start, end, nnz })
    }
}
