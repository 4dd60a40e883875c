//! Rows of a CSR block, gathered into CSR or COO.

use csr::CsrBuffers;

use crate::csr_rows::CsrRows;
use crate::gathered::{Column, GatheredValue};
use crate::{Error, RowTransforms};

/// Writes the row of each value into `out`, for rows that begin and end at `row_offsets` from 0 on.
/// Stops at the end of `out`.
pub fn csr_rows_to_coo(row_offsets: &[usize], out: &mut [u32]) {
    let mut rest = out;
    for (row, pair) in (0..).zip(row_offsets.windows(2)) {
        let n_values = rest.len().min(pair[1] - pair[0]);
        let (of_row, after) = rest.split_at_mut(n_values);
        of_row.fill(row);
        rest = after;
    }
}

/// Appends rows of `csr`, in the order of `rows`, to `out`, which has as many columns. If a row
/// fails, nothing is appended. All values of a row count for its total, also those with the same
/// column.
pub fn csr_gather_rows(
    csr: impl CsrRows,
    rows: &[u32],
    transforms: Option<RowTransforms<'_>>,
    out: &mut CsrBuffers,
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

/// Writes the columns and values of rows of `csr`, in the order of `rows`, into all of two slices
/// of [`CsrRows::nnz_of`] elements, and appends the end of each row to `row_offsets`, counted on
/// from its last.
pub fn csr_gather_rows_into<C: Column>(
    csr: impl CsrRows,
    rows: &[u32],
    transforms: Option<RowTransforms<'_>>,
    row_offsets: &mut Vec<usize>,
    out: (&mut [C], &mut [f32]),
) -> Result<(), Error> {
    transforms.map_or(Ok(()), |transforms| transforms.check(rows.len()))?;
    let transform = |(idx, row_idx): (usize, usize), values: &mut [f32]| {
        let of_row = match transforms {
            Some(transforms) => transforms.of_row(idx, row_idx, values)?,
            None => None,
        };
        if let Some(of_row) = of_row {
            for value in values {
                *value = of_row.apply(*value);
            }
        }
        Ok(())
    };
    gather(csr, rows, row_offsets, out, transform).map(drop)
}

/// Writes rows like [`csr_gather_rows_into`], with values of a narrow type and as they are. Returns
/// whether the type has each of them; otherwise nothing is appended to `row_offsets`, and the
/// slices have any content.
pub fn csr_gather_counts_into<C: Column, V: GatheredValue>(
    csr: impl CsrRows,
    rows: &[u32],
    row_offsets: &mut Vec<usize>,
    out: (&mut [C], &mut [V]),
) -> Result<bool, Error> {
    let n_before = row_offsets.len();
    let has_each = gather(csr, rows, row_offsets, out, |_, _| Ok(()))?;
    if !has_each {
        row_offsets.truncate(n_before);
    }
    Ok(has_each)
}

/// Writes rows, each of which `finish` may change. Ends early, with `false`, at a row with a value
/// that the type lacks.
fn gather<C: Column, V: GatheredValue>(
    csr: impl CsrRows,
    rows: &[u32],
    row_offsets: &mut Vec<usize>,
    (out_columns, out_values): (&mut [C], &mut [V]),
    finish: impl Fn((usize, usize), &mut [V]) -> Result<(), Error>,
) -> Result<bool, Error> {
    let expected = csr.nnz_of(rows)?;
    for found in [out_columns.len(), out_values.len()] {
        if found != expected {
            return Err(Error::Length { what: "the buffers of gathered rows", found, expected });
        }
    }
    let begin = row_offsets.last().copied().unwrap_or(0);
    let n_columns = csr.n_columns().min(C::MOST);
    let mut filled = 0;
    for (idx, row_idx) in rows.iter().enumerate() {
        let row_idx = *row_idx as usize;
        let place = csr.place(row_idx)?;
        let to = filled..filled + place.len();
        filled = to.end;
        // Only the largest is compared: one comparison per row, and a pass that vectorizes.
        let largest = csr.largest_column(place.clone());
        if let Some(column) = largest.filter(|column| n_columns <= *column as usize) {
            return Err(Error::Column { row_idx, column, n_columns });
        }
        let (columns, values) = (&mut out_columns[to.clone()], &mut out_values[to]);
        if !csr.copy(place, (columns, &mut *values)) {
            return Ok(false);
        }
        finish((idx, row_idx), values)?;
        row_offsets.push(begin + filled);
    }
    Ok(true)
}
