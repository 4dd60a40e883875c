//! COO with joinids, as SOMA stores it, and two ways to convert it: scatter to dense rows, or count
//! into CSR.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::{AxisIndex, CsrMatrix, Error};

/// Values with the joinids of their cells and genes, in slices of equal length.
#[derive(Debug, Clone, Copy)]
pub struct CooView<'a> {
    /// The joinid of each value's cell.
    pub rows: &'a [i64],
    /// The joinid of each value's gene.
    pub columns: &'a [i64],
    /// The values.
    pub values: &'a [f32],
}

/// Values with their rows and columns, sorted by row, then by column.
#[derive(Debug, Clone, PartialEq)]
pub struct CooMatrix {
    /// The row of each value.
    pub rows: Vec<u32>,
    /// The column of each value.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// Number of rows and of columns.
    pub shape: (usize, usize),
}

const CELLS: &str = "the array of cells";
const GENES: &str = "the array of genes";
const VALUES: &str = "the array of values";

/// COO from Arrow arrays; borrows values that are `f32` already.
#[derive(Debug)]
pub struct OwnedCoo<'a> {
    rows: &'a [i64],
    columns: &'a [i64],
    values: Cow<'a, [f32]>,
}

impl<'a> OwnedCoo<'a> {
    /// Makes COO from the Arrow arrays of cells (Int64), genes (Int64) and values. Values of other
    /// numeric types become the nearest `f32`, booleans 0 and 1.
    ///
    /// # Errors
    /// Another type, or nulls in any of the three arrays.
    pub fn from_arrow(
        rows: &'a ArrayRef,
        columns: &'a ArrayRef,
        values: &'a ArrayRef,
    ) -> Result<Self, Error> {
        for (what, array) in [(CELLS, rows), (GENES, columns), (VALUES, values)] {
            match array.null_count() {
                0 => {}
                n_nulls => return Err(Error::Nulls { what, n_nulls }),
            }
        }
        let joinids = |what, array: &'a ArrayRef| {
            array.as_primitive_opt::<Int64Type>().map(|array| array.values().as_ref()).ok_or_else(
                || Error::ArrowType {
                    what,
                    found: array.data_type().to_string(),
                    expected: "Int64",
                },
            )
        };
        let values = match values.as_primitive_opt::<Float32Type>() {
            Some(values) => Cow::Borrowed(values.values().as_ref()),
            None => Cow::Owned(to_f32(values)?),
        };
        Ok(Self { rows: joinids(CELLS, rows)?, columns: joinids(GENES, columns)?, values })
    }

    /// Borrows the three parts.
    pub fn view(&self) -> CooView<'_> {
        CooView { rows: self.rows, columns: self.columns, values: &self.values }
    }
}

fn to_f32(values: &ArrayRef) -> Result<Vec<f32>, Error> {
    let found = values.data_type();
    let failed =
        || Error::ArrowType { what: VALUES, found: found.to_string(), expected: "a numeric type" };
    // Checked first, since Arrow would also parse strings as numbers.
    if !found.is_numeric() && *found != DataType::Boolean {
        return Err(failed());
    }
    let cast = arrow_cast::cast(values, &DataType::Float32).map_err(|_| failed())?;
    let cast = cast.as_primitive_opt::<Float32Type>().ok_or_else(failed)?;
    // Arrow turns values that it cannot represent into null.
    if cast.null_count() > 0 {
        return Err(failed());
    }
    Ok(cast.values().to_vec())
}

impl CooView<'_> {
    fn check(&self) -> Result<(), Error> {
        for (what, found) in
            [("the slice of genes", self.columns.len()), ("the slice of values", self.values.len())]
        {
            if found != self.rows.len() {
                return Err(Error::Length { what, found, expected: self.rows.len() });
            }
        }
        Ok(())
    }
}

/// Scatters values to dense rows: `out` has `rows.len() * columns.len()` values. It is not cleared
/// first, so that pieces of a block can be scattered one after another into zeroed memory.
pub fn scatter_coo(
    coo: CooView<'_>,
    rows: &AxisIndex,
    columns: &AxisIndex,
    out: &mut [f32],
) -> Result<(), Error> {
    coo.check()?;
    let n_columns = columns.len();
    // No buffer can have an overflowing length, so it fails the check below.
    let expected = rows.len().saturating_mul(n_columns);
    if out.len() != expected {
        return Err(Error::Length { what: "the dense buffer", found: out.len(), expected });
    }
    let (mut rows, mut columns) = (rows.cursor(), columns.cursor());
    for ((cell, gene), value) in coo.rows.iter().zip(coo.columns).zip(coo.values) {
        out[rows.position(*cell)? * n_columns + columns.position(*gene)?] = *value;
    }
    Ok(())
}

/// Counts COO into CSR: pieces are added one after another, then counted, summed and placed.
#[derive(Debug, Default)]
pub struct CooToCsr {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl CooToCsr {
    /// Makes an empty counter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.columns.clear();
        self.values.clear();
    }

    /// Adds values, by their positions in the indices. If one fails, none of `coo` is added.
    pub fn add(
        &mut self,
        coo: CooView<'_>,
        rows: &AxisIndex,
        columns: &AxisIndex,
    ) -> Result<(), Error> {
        coo.check()?;
        for (what, axis) in [("the index of cells", rows), ("the index of genes", columns)] {
            if u32::try_from(axis.len()).is_err() {
                return Err(Error::Length { what, found: axis.len(), expected: u32::MAX as usize });
            }
        }
        let n_before = self.values.len();
        if let Err(error) = self.add_positions(coo, rows, columns) {
            self.rows.truncate(n_before);
            self.columns.truncate(n_before);
            return Err(error);
        }
        self.values.extend_from_slice(coo.values);
        Ok(())
    }

    fn add_positions(
        &mut self,
        coo: CooView<'_>,
        rows: &AxisIndex,
        columns: &AxisIndex,
    ) -> Result<(), Error> {
        let (mut rows, mut columns) = (rows.cursor(), columns.cursor());
        self.rows.reserve(coo.rows.len());
        self.columns.reserve(coo.rows.len());
        for (cell, gene) in coo.rows.iter().zip(coo.columns) {
            self.rows.push(rows.position(*cell)? as u32);
            self.columns.push(columns.position(*gene)? as u32);
        }
        Ok(())
    }

    /// Fails if a value lies outside the shape.
    fn check_shape(&self, n_rows: usize, n_columns: usize) -> Result<(), Error> {
        for (row, column) in self.rows.iter().zip(&self.columns) {
            let row_idx = *row as usize;
            if n_rows <= row_idx {
                return Err(Error::Row { row_idx, n_rows });
            }
            if n_columns <= *column as usize {
                return Err(Error::Column { row_idx, column: *column, n_columns });
            }
        }
        Ok(())
    }

    /// Places the values in the rows of `out`, each row by ascending column, equal columns in the
    /// order in which they were added. Fails, and leaves `out` unchanged, if a value lies outside
    /// the shape.
    pub fn finish(
        &self,
        n_rows: usize,
        n_columns: usize,
        out: &mut CsrMatrix,
    ) -> Result<(), Error> {
        self.check_shape(n_rows, n_columns)?;
        out.n_columns = n_columns;
        out.row_offsets.clear();
        out.row_offsets.resize(n_rows + 1, 0);
        for row in &self.rows {
            out.row_offsets[*row as usize + 1] += 1;
        }
        for row_idx in 0..n_rows {
            out.row_offsets[row_idx + 1] += out.row_offsets[row_idx];
        }
        let mut next = out.row_offsets.clone();
        out.columns.resize(self.values.len(), 0);
        out.values.resize(self.values.len(), 0.0);
        for ((row, column), value) in self.rows.iter().zip(&self.columns).zip(&self.values) {
            let at = &mut next[*row as usize];
            out.columns[*at] = *column;
            out.values[*at] = *value;
            *at += 1;
        }
        sort_rows(out);
        Ok(())
    }
}

/// Sorts each row whose columns do not ascend. SOMA returns cells in bands of genes, so most rows
/// ascend already.
fn sort_rows(csr: &mut CsrMatrix) {
    let mut cells: Vec<(u32, f32)> = Vec::new();
    for pair in csr.row_offsets.windows(2) {
        let columns = &mut csr.columns[pair[0]..pair[1]];
        if columns.is_sorted() {
            continue;
        }
        let values = &mut csr.values[pair[0]..pair[1]];
        cells.clear();
        cells.extend(columns.iter().copied().zip(values.iter().copied()));
        cells.sort_by_key(|(column, _)| *column);
        for ((column, value), cell) in columns.iter_mut().zip(values).zip(&cells) {
            (*column, *value) = *cell;
        }
    }
}
