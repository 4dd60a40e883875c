//! Rows in compressed sparse rows, whole or packed.

use std::ops::Range;

use crate::Error;

/// Rows in compressed sparse rows, to be taken one by one.
pub trait CsrRows: Copy {
    /// The number of columns.
    fn n_columns(&self) -> usize;

    /// Where the values of a row are.
    ///
    /// # Errors
    /// [`Error::Row`] where there is no such row, [`Error::RowOffsets`] where its values are not there.
    fn place(&self, row_idx: usize) -> Result<Range<usize>, Error>;

    /// Copies the columns and values at a row's place, which are as many.
    fn copy(&self, place: Range<usize>, out: (&mut [u32], &mut [f32]));

    /// The columns and values at a row's place, in `scratch` where they are kept in another form.
    fn values_at<'s>(
        &'s self,
        place: Range<usize>,
        scratch: &'s mut RowScratch,
    ) -> (&'s [u32], &'s [f32]);

    /// How many values these rows have together.
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

/// Packed rows of at most 65,536 columns, borrowed: a value with its column in 4 bytes where all values are counts, otherwise in 6.
///
/// Row `i` has its columns and values at `row_offsets[i]..row_offsets[i + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct PackedView<'a> {
    /// Where each row begins, and where the last ends: one more than there are rows.
    pub row_offsets: &'a [usize],
    /// The column of each value.
    pub columns: &'a [u16],
    /// The values.
    pub values: PackedValues<'a>,
    /// The number of columns.
    pub n_columns: usize,
}

/// Values of packed rows, borrowed.
#[derive(Debug, Clone, Copy)]
pub enum PackedValues<'a> {
    /// As whole numbers.
    Counts(&'a [u16]),
    /// As they are.
    Floats(&'a [f32]),
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

    fn copy(&self, place: Range<usize>, (columns, values): (&mut [u32], &mut [f32])) {
        let packed = &self.columns[place.clone()];
        columns.iter_mut().zip(packed).for_each(|(to, column)| *to = u32::from(*column));
        match self.values {
            PackedValues::Counts(counts) => {
                let counts = &counts[place];
                values.iter_mut().zip(counts).for_each(|(to, count)| *to = f32::from(*count));
            }
            PackedValues::Floats(floats) => values.copy_from_slice(&floats[place]),
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
        self.copy(place, (columns, values));
        (columns, values)
    }
}

/// Where the values of a row are among `nnz`.
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
