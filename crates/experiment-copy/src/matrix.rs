//! Copies matrices with a row for each cell, in parts that fit into memory.

use std::sync::Arc;

use soma_io::{CsrBuffers, GeneSelection, Measurement, ReadForm, ReaderChoice, RowRanges, XReader};

use crate::Error;
use crate::rows::Reads;

/// Rows of obs or var that are copied together.
pub(crate) const FRAME_ROWS: u64 = 1 << 16;
/// Largest number of rows per read; more gain nothing.
const MAX_ROWS: u64 = 1 << 16;
/// Smallest number of rows per read; fewer would take too long.
const MIN_ROWS: u64 = 64;
/// Rows that the writer buffers for one row of tiles.
const TILE_ROWS: u64 = 2048;
/// Bytes of a value in CSR.
const CSR_BYTES: u64 = 8;
/// Bytes of a value while a row of tiles is written: in CSR, as coordinates with the value, and as
/// libtiledb's tiles of them.
const WRITING_BYTES: u64 = CSR_BYTES + 20 + 20;

/// Called with a number of rows that were written; an error ends the copy.
pub(crate) type Progress<'a> = dyn FnMut(u64) -> Result<(), Error> + 'a;

/// A layer of X or an array of obsm, and its reader.
pub(crate) struct Matrix {
    pub(crate) name: String,
    pub(crate) uri: String,
    pub(crate) reader: Arc<dyn XReader>,
}

impl Matrix {
    /// Opens layers. Reading one fails at a value that 32-bit floats do not have.
    pub(crate) fn layers(
        measurement: &Measurement,
        names: &[String],
        choice: ReaderChoice,
    ) -> Result<Vec<Self>, Error> {
        let open = |name: &String| {
            let x = measurement.x(name)?;
            let reader = x.exact_reader(choice)?;
            Ok(Self { name: name.clone(), uri: x.uri().to_owned(), reader })
        };
        names.iter().map(open).collect()
    }

    /// The smallest memory limit with which [`copy`](Self::copy) reads by the mean row.
    pub(crate) fn least_memory(
        &self,
        n_cells: u64,
        columns: &GeneSelection,
    ) -> Result<LeastMemory<'_>, Error> {
        let n_values = self.values_per_row(columns)?.max(1);
        let copy = Copy { matrix: self, columns, memory_bytes: 0 };
        let n_bytes = copy.bytes_of(MIN_ROWS.min(n_cells), n_values);
        Ok(LeastMemory { n_bytes, n_values, uri: &self.uri })
    }

    /// Copies the rows of these cells but the first `n_skipped`, as many at a time as fit into
    /// `memory_bytes`, which must be at least [`least_memory`](Self::least_memory). A run of
    /// denser rows is read in smaller parts rather than rejected.
    pub(crate) fn copy(
        &self,
        cells: &RowRanges,
        n_skipped: u64,
        columns: &GeneSelection,
        memory_bytes: u64,
        each: &mut dyn FnMut(&CsrBuffers) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let copy = Copy { matrix: self, columns, memory_bytes };
        copy.rows(cells, n_skipped, each)
    }

    /// Mean values per row of the chosen columns, if all columns had equally many. A dense matrix
    /// has a value in each column, at most.
    pub(crate) fn values_per_row(&self, columns: &GeneSelection) -> Result<u64, Error> {
        let (n_rows, n_columns) = (self.reader.n_rows().max(1), self.reader.n_columns().max(1));
        let n_chosen = columns.n_columns(n_columns).map_err(soma_io::Error::from)?;
        let Some(nnz) = self.reader.nnz()? else { return Ok(n_chosen as u64) };
        let share = n_chosen as f64 / n_columns as f64;
        Ok((nnz as f64 / n_rows as f64 * share).ceil() as u64)
    }
}

/// Requests a run of genes as a range, which reads faster than a list.
pub(crate) fn selection(genes: &RowRanges) -> GeneSelection {
    match genes.ranges() {
        [one] => GeneSelection::Range(one.clone()),
        _ => GeneSelection::List(genes.iter().collect()),
    }
}

/// The memory that a matrix needs at least.
pub(crate) struct LeastMemory<'a> {
    pub(crate) n_bytes: u64,
    /// Mean values per row.
    pub(crate) n_values: u64,
    pub(crate) uri: &'a str,
}

/// A matrix that is being copied.
struct Copy<'a> {
    matrix: &'a Matrix,
    columns: &'a GeneSelection,
    memory_bytes: u64,
}

impl Copy<'_> {
    fn rows(
        &self,
        cells: &RowRanges,
        n_skipped: u64,
        each: &mut dyn FnMut(&CsrBuffers) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mean = self.matrix.values_per_row(self.columns)?.max(1);
        let mut reads = Reads::after(cells, n_skipped);
        let mut rows = CsrBuffers::default();
        let mut latest = mean;
        while let Some(part) = reads.next(self.rows_at_once(latest.max(mean)))? {
            self.matrix.reader.read_csr(&part, self.columns, &mut rows)?;
            self.check_ascending(&part, &rows)?;
            each(&rows)?;
            latest = (rows.nnz() as u64).div_ceil(rows.n_rows().max(1) as u64);
        }
        Ok(())
    }

    /// Rows per read that fit into memory beside those that are being written.
    fn rows_at_once(&self, row_nnz: u64) -> u64 {
        let mut n_rows = MIN_ROWS;
        while n_rows < MAX_ROWS && self.bytes_of(2 * n_rows, row_nnz) <= self.memory_bytes {
            n_rows *= 2;
        }
        n_rows
    }

    /// Memory for reading that many rows and writing a row of tiles.
    fn bytes_of(&self, n_rows: u64, row_nnz: u64) -> u64 {
        let nnz = n_rows * row_nnz;
        let reading = self.matrix.reader.working_bytes(nnz, self.columns, ReadForm::Csr);
        TILE_ROWS * row_nnz * WRITING_BYTES + nnz * CSR_BYTES + reading
    }

    /// Fails if a value is there twice: the new experiment could not represent it.
    fn check_ascending(&self, part: &RowRanges, rows: &CsrBuffers) -> Result<(), Error> {
        for (row_idx, joinid) in part.iter().enumerate() {
            let (columns, _) = rows.row(row_idx);
            if let Some([gene, _]) = columns.array_windows().find(|[gene, next]| gene == next) {
                return Err(Error::ValueTwice {
                    uri: self.matrix.uri.clone(),
                    joinid,
                    gene: *gene,
                });
            }
        }
        Ok(())
    }
}
