//! CSR blocks, and rows taken out of them.

use crate::Error;

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

impl<'a> CsrView<'a> {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// The columns and values of a row.
    fn row(&self, row_idx: usize) -> Result<(&'a [u32], &'a [f32]), Error> {
        let (Some(&start), Some(&end)) =
            (self.row_offsets.get(row_idx), self.row_offsets.get(row_idx + 1))
        else {
            return Err(Error::Row { row_idx, n_rows: self.n_rows() });
        };
        match (self.columns.get(start..end), self.values.get(start..end)) {
            (Some(columns), Some(values)) => Ok((columns, values)),
            _ => Err(Error::RowOffsets { row_idx, start, end, nnz: self.values.len() }),
        }
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
/// What `out` held is overwritten, zeros included, so that it can be used again without being cleared.
pub fn csr_rows_to_dense(csr: CsrView<'_>, rows: &[u32], out: &mut [f32]) -> Result<(), Error> {
    // A product that no buffer can have is as wrong as any other.
    let expected = rows.len().saturating_mul(csr.n_columns);
    if out.len() != expected {
        return Err(Error::Length { what: "the dense buffer", found: out.len(), expected });
    }
    if csr.n_columns == 0 {
        return rows.iter().try_for_each(|row_idx| match csr.row(*row_idx as usize)?.0.first() {
            Some(column) => {
                Err(Error::Column { row_idx: *row_idx as usize, column: *column, n_columns: 0 })
            }
            None => Ok(()),
        });
    }
    for (row_idx, out) in rows.iter().zip(out.chunks_exact_mut(csr.n_columns)) {
        let row_idx = *row_idx as usize;
        let (columns, values) = csr.row(row_idx)?;
        // Zeroed row by row, so that the row is still in the cache when its values come.
        out.fill(0.0);
        for (column, value) in columns.iter().zip(values) {
            match out.get_mut(*column as usize) {
                Some(place) => *place = *value,
                None => {
                    return Err(Error::Column {
                        row_idx,
                        column: *column,
                        n_columns: csr.n_columns,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Appends rows of `csr`, in the order of `rows`, to `out`, which has as many columns. Of a row that fails nothing is appended.
pub fn csr_gather_rows(csr: CsrView<'_>, rows: &[u32], out: &mut CsrMatrix) -> Result<(), Error> {
    if out.n_columns != csr.n_columns {
        return Err(Error::Length {
            what: "the gathered matrix",
            found: out.n_columns,
            expected: csr.n_columns,
        });
    }
    for row_idx in rows {
        let row_idx = *row_idx as usize;
        let (columns, values) = csr.row(row_idx)?;
        // The largest first: one comparison a row, and a pass that vectorizes.
        let largest = columns.iter().copied().max();
        if let Some(column) = largest.filter(|column| csr.n_columns <= *column as usize) {
            return Err(Error::Column { row_idx, column, n_columns: csr.n_columns });
        }
        out.columns.extend_from_slice(columns);
        out.values.extend_from_slice(values);
        out.row_offsets.push(out.values.len());
    }
    Ok(())
}
