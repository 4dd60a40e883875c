//! Rows of a CSR or a dense block, written as dense rows.

use std::borrow::Cow;

use crate::csr_rows::{CsrRows, RowScratch};
use crate::dense_rows::DenseRows;
use crate::{Error, RowTransforms, Value};

/// Writes rows of `csr`, in the order of `rows`, as dense rows into all of `out`, which has
/// `rows.len() * n_columns` values.
///
/// All of `out` is overwritten, zeros included, so it can be used again without being cleared. If
/// values have the same row and column, the last one stays; if they stand side by side, the others
/// do not count for the row's total either.
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

/// The values of a row; only the last one of values side by side with the same column.
fn last_of_each<'a>(columns: &[u32], values: &'a [f32]) -> Cow<'a, [f32]> {
    // Without an early end, and in 32 bits: this vectorizes.
    let pairs = columns.iter().zip(columns.iter().skip(1));
    if pairs.fold(0, |found, (column, next)| found | u32::from(column == next)) == 0 {
        return Cow::Borrowed(values);
    }
    let next = columns.iter().skip(1).map(Some).chain([None]);
    let last = columns.iter().zip(next).map(|(column, next)| next != Some(column));
    values.iter().zip(last).filter(|(_, is_last)| *is_last).map(|(value, _)| *value).collect()
}

/// Writes rows of the dense block `values`, in the order of `rows`, into all of `out`, which has
/// `rows.len() * n_columns` values.
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
    // A product that overflows is as wrong as any other length.
    let expected = rows.len().saturating_mul(n_columns);
    if found != expected {
        return Err(Error::Length { what: "the dense buffer", found, expected });
    }
    transforms.map_or(Ok(()), |transforms| transforms.check(rows.len()))
}
