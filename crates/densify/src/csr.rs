//! CSR blocks, and rows taken out of them.

use std::borrow::Cow;
use std::ops::Range;

use crate::csr_rows::{CsrRows, RowScratch, place_of};
use crate::dense_rows::DenseRows;
use crate::{CooMatrix, Error, RowTransforms, Value};

/// Rows in compressed sparse rows, borrowed.
///
/// Row `i` has the columns `columns[row_offsets[i]..row_offsets[i + 1]]` and the values at the same places.
#[derive(Debug, Clone, Copy)]
pub struct CsrView<'a> {
    /// Where each row begins, and where the last ends: one more than there are rows. May begin above 0.
    pub row_offsets: &'a [usize],
    /// The column of each value.
    pub columns: &'a [u32],
    /// The values.
    pub values: &'a [f32],
    /// The number of columns.
    pub n_columns: usize,
}

impl CsrView<'_> {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }
}

impl CsrRows for CsrView<'_> {
    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn place(&self, row_idx: usize) -> Result<Range<usize>, Error> {
        place_of(self.row_offsets, row_idx, self.columns.len().min(self.values.len()))
    }

    fn copy(&self, place: Range<usize>, (columns, values): (&mut [u32], &mut [f32])) {
        columns.copy_from_slice(&self.columns[place.clone()]);
        values.copy_from_slice(&self.values[place]);
    }

    fn values_at<'s>(
        &'s self,
        place: Range<usize>,
        _scratch: &'s mut RowScratch,
    ) -> (&'s [u32], &'s [f32]) {
        (&self.columns[place.clone()], &self.values[place])
    }
}

/// Rows in compressed sparse rows, in memory that can be used again.
#[derive(Debug, Clone, PartialEq)]
pub struct CsrMatrix {
    /// Where each row begins, and at last the number of values: one more than there are rows.
    pub row_offsets: Vec<usize>,
    /// The column of each value.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// The number of columns.
    pub n_columns: usize,
}

impl CsrMatrix {
    /// A matrix without rows.
    pub fn empty(n_columns: usize) -> Self {
        Self { row_offsets: vec![0], columns: Vec::new(), values: Vec::new(), n_columns }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// The number of values.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The matrix, borrowed.
    pub fn view(&self) -> CsrView<'_> {
        CsrView {
            row_offsets: &self.row_offsets,
            columns: &self.columns,
            values: &self.values,
            n_columns: self.n_columns,
        }
    }

    /// The same values, each with its row.
    pub fn into_coo(self) -> CooMatrix {
        let shape = (self.n_rows(), self.n_columns);
        let mut rows = vec![0; self.values.len()];
        csr_rows_to_coo(&self.row_offsets, &mut rows);
        CooMatrix { rows, columns: self.columns, values: self.values, shape }
    }

    /// Forgets all rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.row_offsets.clear();
        self.row_offsets.push(0);
        self.columns.clear();
        self.values.clear();
    }
}

/// Writes rows of `csr`, in the order of `rows`, as dense rows into all of `out`, which has `rows.len() * n_columns` values.
///
/// What `out` held is overwritten, zeros included, so that it can be used again without being cleared. Of values with the same row
/// and column the last one stays; where they stand side by side, the others do not count for the row's total either.
pub fn csr_rows_to_dense<V: Value>(
    csr: impl CsrRows,
    rows: &[u32],
    transforms: Option<RowTransforms<'_>>,
    out: &mut [V],
) -> Result<(), Error> {
    let n_columns = csr.n_columns();
    check_dense(rows, n_columns, transforms, out.len())?;
    let mut scratch = RowScratch::default();
    if n_columns == 0 {
        return rows.iter().try_for_each(|row_idx| {
            let row_idx = *row_idx as usize;
            match csr.values_at(csr.place(row_idx)?, &mut scratch).0.first() {
                Some(&column) => Err(Error::Column { row_idx, column, n_columns }),
                None => Ok(()),
            }
        });
    }
    let mut dense = DenseRows::new(out.len());
    for (idx, (row_idx, out)) in rows.iter().zip(out.chunks_exact_mut(n_columns)).enumerate() {
        let row_idx = *row_idx as usize;
        let (columns, values) = csr.values_at(csr.place(row_idx)?, &mut scratch);
        let of_row = match transforms {
            Some(transforms) => transforms.of_row(idx, row_idx, &last_of_each(columns, values))?,
            None => None,
        };
        let stray = match of_row {
            None => dense.write(columns, values, V::from_f32, out),
            Some(of_row) => {
                dense.write(columns, values, |value| V::from_f32(of_row.apply(value)), out)
            }
        };
        if let Some(column) = stray {
            return Err(Error::Column { row_idx, column, n_columns });
        }
    }
    Ok(())
}

/// The values of a row; of those side by side with the same column, the last.
fn last_of_each<'a>(columns: &[u32], values: &'a [f32]) -> Cow<'a, [f32]> {
    // Looked at to the end and in 32 bits, which vectorizes.
    let pairs = columns.iter().zip(columns.iter().skip(1));
    if pairs.fold(0, |found, (column, next)| found | u32::from(column == next)) == 0 {
        return Cow::Borrowed(values);
    }
    let next = columns.iter().skip(1).map(Some).chain([None]);
    let last = columns.iter().zip(next).map(|(column, next)| next != Some(column));
    values.iter().zip(last).filter(|(_, is_last)| *is_last).map(|(value, _)| *value).collect()
}

/// Writes rows of the dense block `values`, in the order of `rows`, into all of `out`, which has `rows.len() * n_columns` values.
pub fn dense_rows_to_dense<V: Value>(
    values: &[f32],
    n_columns: usize,
    rows: &[u32],
    transforms: Option<RowTransforms<'_>>,
    out: &mut [V],
) -> Result<(), Error> {
    check_dense(rows, n_columns, transforms, out.len())?;
    if n_columns == 0 {
        return Ok(());
    }
    for (idx, (row_idx, out)) in rows.iter().zip(out.chunks_exact_mut(n_columns)).enumerate() {
        let row_idx = *row_idx as usize;
        let start = row_idx * n_columns;
        let row = values.get(start..start + n_columns);
        let row = row.ok_or(Error::Row { row_idx, n_rows: values.len() / n_columns })?;
        let of_row = match transforms {
            Some(transforms) => transforms.of_row(idx, row_idx, row)?,
            None => None,
        };
        let pairs = out.iter_mut().zip(row);
        match of_row {
            None => pairs.for_each(|(to, value)| *to = V::from_f32(*value)),
            Some(of_row) => pairs.for_each(|(to, value)| {
                *to = if *value == 0.0 { V::default() } else { V::from_f32(of_row.apply(*value)) };
            }),
        }
    }
    Ok(())
}

fn check_dense(
    rows: &[u32],
    n_columns: usize,
    transforms: Option<RowTransforms<'_>>,
    found: usize,
) -> Result<(), Error> {
    // A product that no buffer can have is as wrong as any other.
    let expected = rows.len().saturating_mul(n_columns);
    if found != expected {
        return Err(Error::Length { what: "the dense buffer", found, expected });
    }
    transforms.map_or(Ok(()), |transforms| transforms.check(rows.len()))
}

/// Writes the row of each value, where rows begin and end at `row_offsets` from 0 on. Stops where `out` ends.
pub fn csr_rows_to_coo(row_offsets: &[usize], out: &mut [u32]) {
    let mut rest = out;
    for (row, pair) in (0..).zip(row_offsets.windows(2)) {
        let n_values = rest.len().min(pair[1] - pair[0]);
        let (of_row, after) = rest.split_at_mut(n_values);
        of_row.fill(row);
        rest = after;
    }
}

/// Appends rows of `csr`, in the order of `rows`, to `out`, which has as many columns. Where one fails nothing is appended. All of
/// its values count for a row's total, also those with the same column.
pub fn csr_gather_rows(
    csr: impl CsrRows,
    rows: &[u32],
    transforms: Option<RowTransforms<'_>>,
    out: &mut CsrMatrix,
) -> Result<(), Error> {
    if out.n_columns != csr.n_columns() {
        return Err(Error::Length {
            what: "the gathered matrix",
            found: out.n_columns,
            expected: csr.n_columns(),
        });
    }
    let (n_rows, nnz) = (out.row_offsets.len(), out.nnz());
    let added = csr.nnz_of(rows)?;
    out.columns.resize(nnz + added, 0);
    out.values.resize(nnz + added, 0.0);
    let slices = (&mut out.columns[nnz..], &mut out.values[nnz..]);
    let gathered = csr_gather_rows_into(csr, rows, transforms, &mut out.row_offsets, slices);
    if gathered.is_err() {
        out.row_offsets.truncate(n_rows);
        out.columns.truncate(nnz);
        out.values.truncate(nnz);
    }
    gathered
}

/// Writes the columns and values of rows of `csr`, in the order of `rows`, into all of `out`, two slices of as many elements as
/// [`CsrRows::nnz_of`] says, and the end of each row behind the last of `row_offsets`, counted on from there.
pub fn csr_gather_rows_into(
    csr: impl CsrRows,
    rows: &[u32],
    transforms: Option<RowTransforms<'_>>,
    row_offsets: &mut Vec<usize>,
    (out_columns, out_values): (&mut [u32], &mut [f32]),
) -> Result<(), Error> {
    transforms.map_or(Ok(()), |transforms| transforms.check(rows.len()))?;
    let expected = csr.nnz_of(rows)?;
    for found in [out_columns.len(), out_values.len()] {
        if found != expected {
            return Err(Error::Length { what: "the buffers of gathered rows", found, expected });
        }
    }
    let begin = row_offsets.last().copied().unwrap_or(0);
    let n_columns = csr.n_columns();
    let mut filled = 0;
    for (idx, row_idx) in rows.iter().enumerate() {
        let row_idx = *row_idx as usize;
        let place = csr.place(row_idx)?;
        let to = filled..filled + place.len();
        filled = to.end;
        let (columns, values) = (&mut out_columns[to.clone()], &mut out_values[to]);
        csr.copy(place, (columns, values));
        // The largest first: one comparison a row, and a pass that vectorizes.
        let largest = columns.iter().copied().max();
        if let Some(column) = largest.filter(|column| n_columns <= *column as usize) {
            return Err(Error::Column { row_idx, column, n_columns });
        }
        let of_row = match transforms {
            Some(transforms) => transforms.of_row(idx, row_idx, values)?,
            None => None,
        };
        if let Some(of_row) = of_row {
            for value in values {
                *value = of_row.apply(*value);
            }
        }
        row_offsets.push(begin + filled);
    }
    Ok(())
}
