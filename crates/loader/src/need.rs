//! Estimates the memory of blocks and batches of cells before any is read.
//!
//! The number of values of a block is estimated as its rows times the mean number of values of a
//! row of X, times the selected share of the genes, plus an eighth.

use pipeline::Need;
use soma_io::ReadForm;

use crate::dataset::Dataset;
use crate::error::Error;
use crate::spec::{BatchForm, BlockForm, LoaderSpec};

/// Bytes of a value in CSR: its column and the value.
const CSR_CELL_BYTES: u64 = 8;
/// Bytes of a value in packed rows, if all are counts.
const PACKED_COUNT_BYTES: u64 = 4;
/// Bytes of a value in packed rows, if some value is not a count.
pub(crate) const PACKED_CELL_BYTES: u64 = 6;
/// Bytes of a value in COO: its row, its column and the value.
const COO_CELL_BYTES: u64 = 12;
/// Bytes of a row of a block: its index in the selection, and its offset.
const BLOCK_ROW_BYTES: u64 = 8 + 8;

/// Estimates the memory that blocks of `block_rows` rows and batches of `batch_rows` rows need.
pub(crate) fn of(
    dataset: &Dataset,
    spec: &LoaderSpec,
    block_rows: u64,
    batch_rows: u64,
) -> Result<Need, Error> {
    let n_columns = dataset.n_columns() as u64;
    let row_nnz = dataset.mean_row_nnz()?;
    let nnz_of = |n_rows: u64| {
        let nnz = (row_nnz * n_rows as f64).ceil() as u64;
        nnz.saturating_add(nnz / 8)
    };
    let block_nnz = nnz_of(block_rows);
    let csr = block_nnz * CSR_CELL_BYTES;
    let dense = block_rows * n_columns * 4;
    let packed = (block_nnz * PACKED_COUNT_BYTES, block_nnz * PACKED_CELL_BYTES);
    let ((block, largest), scratch, form) = match spec.block_form {
        BlockForm::Dense => ((dense, dense), 0, ReadForm::Coo),
        BlockForm::ConvertedCsr => ((csr, csr), block_nnz * COO_CELL_BYTES, ReadForm::Coo),
        BlockForm::Csr if dataset.packs() => (packed, 0, ReadForm::Csr),
        BlockForm::Csr => ((csr, csr), 0, ReadForm::Csr),
    };
    let several = if dataset.n_experiments() > 1 { block_nnz * CSR_CELL_BYTES } else { 0 };
    let batch = match (spec.batch_form, spec.batch_form.dense_type()) {
        (_, Some(element)) => batch_rows * n_columns * element.bytes() as u64,
        // torch's COO tensors have int64 indices: 16 bytes more per value.
        (BatchForm::Coo, None) => nnz_of(batch_rows) * (COO_CELL_BYTES + 16),
        (_, None) => nnz_of(batch_rows) * CSR_CELL_BYTES,
    };
    Ok(Need {
        block: block + block_rows * BLOCK_ROW_BYTES,
        largest: largest + block_rows * BLOCK_ROW_BYTES,
        batch,
        reading: scratch + several + dataset.working_bytes(block_nnz, form),
        other: 0,
    })
}
