//! Writes cells of X through libtiledb, many at a time.

use csr::CsrView;
use tiledb::{Context, WriteColumn, WriteQuery};
use tiledb_native::TileRow;

use crate::Error;
use crate::columns::{DATA, DIM_0, DIM_1};
use crate::writer::XLayout;
use crate::writer::through_libtiledb::open_write;

/// Cells to write at a time if tiles have all columns: 80 MiB.
const SUBMIT_CELLS: usize = 4 << 20;

/// Keeps rows until a row of tiles is complete; if a tile has all columns, only for larger writes.
#[derive(Debug)]
pub(super) struct LibtiledbSink {
    context: Context,
    uri: String,
    tile_rows: u64,
    has_all_columns: bool,
    /// The fragment being written.
    query: Option<WriteQuery>,
    /// The rows that are kept, and the first of them.
    kept: TileRow,
    first_row: u64,
    /// The same cells in TileDB's order, kept to reuse the memory.
    submitted: Cells,
}

/// Cells in the array's order.
#[derive(Debug, Default)]
struct Cells {
    rows: Vec<i64>,
    columns: Vec<i64>,
    values: Vec<f32>,
}

impl LibtiledbSink {
    pub(super) fn new(context: Context, uri: &str, n_columns: u64, layout: &XLayout) -> Self {
        Self {
            context,
            uri: uri.to_owned(),
            tile_rows: layout.tile_rows,
            has_all_columns: layout.tile_columns >= n_columns,
            query: None,
            kept: TileRow::new(layout.tile_columns),
            first_row: 0,
            submitted: Cells::default(),
        }
    }

    pub(super) fn write(&mut self, first_row: u64, rows: CsrView<'_>) -> Result<(), Error> {
        let CsrView { row_offsets, columns, values, .. } = rows;
        for (row, pair) in (first_row..).zip(row_offsets.windows(2)) {
            if self.kept.n_rows() == 0 {
                self.first_row = row;
            }
            self.kept.push(&columns[pair[0]..pair[1]], &values[pair[0]..pair[1]]);
            let is_enough = if self.has_all_columns {
                self.kept.nnz() >= SUBMIT_CELLS
            } else {
                (row + 1).is_multiple_of(self.tile_rows)
            };
            if is_enough {
                self.flush()?;
            }
        }
        Ok(())
    }

    pub(super) fn end_fragment(&mut self) -> Result<(), Error> {
        self.flush()?;
        match self.query.take() {
            Some(query) => Ok(query.finish()?),
            None => Ok(()),
        }
    }

    /// Writes the rows that are kept.
    fn flush(&mut self) -> Result<(), Error> {
        let Cells { rows, columns, values } = &mut self.submitted;
        rows.clear();
        columns.clear();
        values.clear();
        self.kept.for_each(|row, of_row, values_of_row| {
            rows.resize(rows.len() + of_row.len(), (self.first_row + row as u64) as i64);
            columns.extend(of_row.iter().map(|column| i64::from(*column)));
            values.extend_from_slice(values_of_row);
        });
        self.kept.clear();
        if self.submitted.values.is_empty() {
            return Ok(());
        }
        let query = match &mut self.query {
            Some(query) => query,
            none => none.insert(open_write(&self.context, &self.uri)?),
        };
        Ok(query.submit(&[
            WriteColumn::fixed(DIM_0, &self.submitted.rows),
            WriteColumn::fixed(DIM_1, &self.submitted.columns),
            WriteColumn::fixed(DATA, &self.submitted.values),
        ])?)
    }
}
