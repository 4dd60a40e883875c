//! Writes a layer of X in the array's own order, so that nothing is sorted and all pieces form one
//! fragment.
//!
//! Cells are ordered by space tile, and by row and column within it, so rows are buffered until a
//! row of tiles is complete. If a tile has all columns, rows arrive in this order; libtiledb's
//! writes are then buffered only to be larger, and the native writer does not buffer.

use std::time::{SystemTime, UNIX_EPOCH};

use tiledb::{Context, WriteColumn, WriteQuery};
use tiledb_native::{FragmentWriter, Threads, WriteOptions};

use super::{ExperimentSpec, layout, mark, open_write};
use crate::Error;
use crate::columns::{DATA, DIM_0, DIM_1};

/// Cells to write at a time if rows need not be buffered: 80 MiB.
const SUBMIT_CELLS: usize = 4 << 20;

/// A layer being written.
#[derive(Debug)]
pub(super) struct MatrixWriter {
    context: Context,
    uri: String,
    /// The fragment being written.
    query: Option<WriteQuery>,
    /// Writes the layer without libtiledb, if enabled.
    native: Option<FragmentWriter>,
    n_obs: u64,
    n_var: u64,
    fragment_rows: u64,
    tile_rows: u64,
    tile_columns: u64,
    /// Rows written so far, and the beginning of the present fragment.
    n_written: u64,
    fragment_start: u64,
    /// Rows of incomplete rows of tiles, in CSR.
    row_offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
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

impl MatrixWriter {
    pub(super) fn create(
        context: &Context,
        uri: String,
        spec: &ExperimentSpec,
    ) -> Result<Self, Error> {
        let schema = layout::matrix(spec.n_obs, spec.n_var, spec.extent, &spec.x_layout);
        tiledb::Array::create(context, &uri, &schema)?;
        mark(context, &uri, "SOMASparseNDArray")?;
        Ok(Self {
            context: context.clone(),
            uri,
            query: None,
            native: None,
            n_obs: spec.n_obs,
            n_var: spec.n_var,
            fragment_rows: spec.fragment_rows.unwrap_or(u64::MAX),
            tile_rows: spec.x_layout.tile_rows,
            tile_columns: spec.x_layout.tile_columns,
            n_written: 0,
            fragment_start: 0,
            row_offsets: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            submitted: Cells::default(),
        })
    }

    /// Makes all rows be written without libtiledb.
    pub(super) fn write_natively(&mut self, n_threads: usize, several: bool) -> Result<(), Error> {
        let Some(folder) = storage::local_path(&self.uri) else {
            return Err(self.failed("only libtiledb writes to an object store".to_owned()));
        };
        if self.n_written > 0 || !self.values.is_empty() || self.native.is_some() {
            return Err(self.failed("writing it has already begun".to_owned()));
        }
        if several {
            return Err(self.failed("only libtiledb writes several fragments".to_owned()));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let options = WriteOptions {
            threads: Threads::Own(n_threads),
            timestamp: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            chunk_cells: None,
        };
        self.native = Some(FragmentWriter::create(folder, &options)?);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        if let Some(native) = &mut self.native {
            native.write(row_offsets, columns, values)?;
            self.n_written += row_offsets.len().saturating_sub(1) as u64;
            return Ok(());
        }
        self.check(row_offsets, columns, values)?;
        for pair in row_offsets.windows(2) {
            self.columns.extend_from_slice(&columns[pair[0]..pair[1]]);
            self.values.extend_from_slice(&values[pair[0]..pair[1]]);
            self.row_offsets.push(self.values.len());
            if self.is_enough() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Completes the layer, and returns its URI.
    pub(super) fn finish(mut self) -> Result<String, Error> {
        self.flush()?;
        if self.n_written != self.n_obs {
            return Err(
                self.failed(format!("{} of {} rows were written", self.n_written, self.n_obs))
            );
        }
        if let Some(query) = self.query.take() {
            query.finish()?;
        }
        if let Some(native) = self.native.take() {
            native.finish()?;
        }
        Ok(self.uri)
    }

    fn n_pending(&self) -> u64 {
        self.row_offsets.len() as u64 - 1
    }

    /// Whether to write the buffered rows: a complete row of tiles, or many cells if a tile has all
    /// columns.
    fn is_enough(&self) -> bool {
        if self.tile_columns < self.n_var {
            return self.n_pending() == self.tile_rows;
        }
        let ends_fragment = self.ends_fragment(self.n_written + self.n_pending());
        self.values.len() >= SUBMIT_CELLS || ends_fragment
    }

    /// Whether a fragment ends before row `n_rows`: it has at least the requested rows, and whole
    /// rows of tiles.
    fn ends_fragment(&self, n_rows: u64) -> bool {
        n_rows - self.fragment_start >= self.fragment_rows && n_rows.is_multiple_of(self.tile_rows)
    }

    fn check(&self, row_offsets: &[usize], columns: &[u32], values: &[f32]) -> Result<(), Error> {
        let n_rows = row_offsets.len().saturating_sub(1) as u64;
        let n_after = self.n_written + self.n_pending() + n_rows;
        if n_after > self.n_obs {
            return Err(self.failed(format!(
                "{n_after} rows were given, but the experiment has {}",
                self.n_obs
            )));
        }
        if !row_offsets.is_sorted()
            || columns.len() != values.len()
            || row_offsets.last().is_some_and(|last| *last > values.len())
        {
            return Err(self.failed("row offsets, columns and values do not match".into()));
        }
        for (row_idx, pair) in row_offsets.windows(2).enumerate() {
            let row = &columns[pair[0]..pair[1]];
            let joinid = self.n_written + self.n_pending() + row_idx as u64;
            if !row.is_sorted_by(|a, b| a < b) {
                return Err(self.failed(format!("the columns of row {joinid} do not ascend")));
            }
            if let Some(last) = row.last().filter(|last| u64::from(**last) >= self.n_var) {
                return Err(self
                    .failed(format!("row {joinid} has column {last}, there are {}", self.n_var)));
            }
        }
        Ok(())
    }

    /// Puts the buffered rows into the array's order: one column of tiles after another, each row
    /// by row.
    fn order(&mut self) {
        let n_rows = self.row_offsets.len() - 1;
        let nnz = self.values.len();
        let Cells { rows, columns, values } = &mut self.submitted;
        rows.clear();
        columns.clear();
        values.clear();
        // The position of each row in the next column of tiles.
        let mut next = self.row_offsets[..n_rows].to_vec();
        let mut band_end = 0;
        while values.len() < nnz {
            band_end += self.tile_columns;
            for (row_idx, next) in next.iter_mut().enumerate() {
                let rest = *next..self.row_offsets[row_idx + 1];
                let n_band = self.columns[rest.clone()]
                    .partition_point(|column| u64::from(*column) < band_end);
                let band = rest.start..rest.start + n_band;
                rows.resize(rows.len() + n_band, (self.n_written + row_idx as u64) as i64);
                columns.extend(self.columns[band.clone()].iter().map(|column| i64::from(*column)));
                values.extend_from_slice(&self.values[band.clone()]);
                *next = band.end;
            }
        }
    }

    /// Writes the buffered rows.
    fn flush(&mut self) -> Result<(), Error> {
        let n_rows = self.row_offsets.len() - 1;
        self.order();
        if !self.values.is_empty() {
            let query = match &mut self.query {
                Some(query) => query,
                none => none.insert(open_write(&self.context, &self.uri)?),
            };
            query.submit(&[
                WriteColumn::fixed(DIM_0, &self.submitted.rows),
                WriteColumn::fixed(DIM_1, &self.submitted.columns),
                WriteColumn::fixed(DATA, &self.submitted.values),
            ])?;
        }
        self.n_written += n_rows as u64;
        self.row_offsets.truncate(1);
        self.columns.clear();
        self.values.clear();
        if self.ends_fragment(self.n_written) {
            self.fragment_start = self.n_written;
            if let Some(query) = self.query.take() {
                query.finish()?;
            }
        }
        Ok(())
    }

    fn failed(&self, problem: String) -> Error {
        Error::Write { what: "rows of X".into(), uri: self.uri.clone(), problem }
    }
}
