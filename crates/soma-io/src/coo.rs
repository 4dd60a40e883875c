//! Rows in CSR as Arrow tables.

use std::sync::Arc;

use arrow_array::{Float32Array, Int64Array, RecordBatch};
use worktime::ThreadTime;

use crate::columns::coo_batch;
use crate::{CsrBuffers, Error, GeneSelection, ReadForm, RowRanges};

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

/// Passes the rows of `csr`, which are `rows` and `genes` of the array at `uri`, to `each` as
/// tables of joinids and values, piece by piece. Returns the time that this took without `each`.
///
/// # Errors
/// The first error of `each`.
pub(crate) fn pieces(
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
        let genes = csr.columns[first..end].iter().map(|column| genes.joinid(*column) as i64);
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
