//! Rows in CSR as Arrow tables.

use std::sync::{Arc, Mutex};

use arrow_array::{Float32Array, Int64Array, RecordBatch};
use worktime::ThreadTime;

use crate::columns::coo_batch;
use crate::{CsrBuffers, Error, GeneSelection, ReadForm, ReadStats, RowRanges, XReader};

/// Maximum number of cells in a piece of COO; a longer row is a piece of its own.
const PIECE_CELLS: usize = 1 << 20;
/// Bytes of a column and a value in CSR.
const CSR_CELL_BYTES: u64 = 8;
/// Bytes of one cell in Arrow: two joinids and a value.
const COO_CELL_BYTES: u64 = 20;

/// Bytes of memory of a read in this form, if COO is converted from CSR one piece at a time.
pub(crate) fn working_bytes(nnz: u64, form: ReadForm) -> u64 {
    match form {
        ReadForm::Csr => 0,
        ReadForm::Coo => {
            nnz.saturating_mul(CSR_CELL_BYTES).saturating_add(PIECE_CELLS as u64 * COO_CELL_BYTES)
        }
    }
}

/// [`XReader::read_coo`] of a reader that reads CSR: reads into `csr`, which later reads use again,
/// and converts the rows piece by piece.
///
/// # Errors
/// Those of [`XReader::read_csr`], and the first error of `each`.
pub(crate) fn read(
    (reader, uri): (&dyn XReader, &str),
    (rows, genes): (&RowRanges, &GeneSelection),
    csr: &Mutex<CsrBuffers>,
    each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<ReadStats, Error> {
    // A concurrent read uses memory of its own.
    let mut own = CsrBuffers::default();
    let mut shared = csr.try_lock().ok();
    let csr = shared.as_deref_mut().unwrap_or(&mut own);
    let mut stats = reader.read_csr(rows, genes, csr)?;
    let building = pieces(uri, (rows, genes), csr, each)?;
    if let Some(times) = &mut stats.times {
        times.decode += building;
    }
    Ok(stats)
}

/// Passes the rows of `csr`, which are `rows` and `genes` of the array at `uri`, to `each` as
/// tables of joinids and values, piece by piece. Returns the time that this took without `each`.
///
/// # Errors
/// The first error of `each`.
fn pieces(
    uri: &str,
    (rows, genes): (&RowRanges, &GeneSelection),
    csr: &CsrBuffers,
    each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<ThreadTime, Error> {
    let mut building = ThreadTime::default();
    let (mut cells, mut joinids) = (Vec::new(), rows.iter().zip(0..).peekable());
    let mut first = 0;
    while let Some((joinid, row)) = joinids.next() {
        cells.resize(csr.row_offsets[row + 1] - first, joinid as i64);
        let next = joinids.peek().map(|(_, row)| csr.row(*row).0.len());
        let has_room = next.is_some_and(|next| cells.len() + next <= PIECE_CELLS);
        if cells.is_empty() || has_room {
            continue;
        }
        let end = first + cells.len();
        let start = worktime::now();
        let genes =
            csr.columns[first..end].iter().map(|column| genes.stored_column(*column) as i64);
        let piece = coo_batch(
            uri,
            Int64Array::from(std::mem::take(&mut cells)),
            Int64Array::from_iter_values(genes),
            Arc::new(Float32Array::from(csr.values[first..end].to_vec())),
        )?;
        building += worktime::now() - start;
        each(&piece)?;
        first = end;
    }
    Ok(building)
}
