//! Estimates the memory of blocks and batches of cells before any is read.
//!
//! The number of values of a block is estimated as its rows times the mean number of values of a
//! row of the matrix, times the selected share of its columns, plus an eighth.

use pipeline::Need;
use soma_io::ReadForm;

use crate::beside::DatasetMatrix;
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::spec::{BatchForm, BlockForm, LoaderSpec};

/// Bytes of a value in CSR: its column and the value.
const CSR_CELL_BYTES: u64 = 8;
/// Bytes of a value in packed rows, if all are counts.
const PACKED_COUNT_BYTES: u64 = 4;
/// Bytes of a value in packed rows, if some value is not a count.
pub(crate) const PACKED_CELL_BYTES: u64 = 6;
/// Bytes of a value in COO: its row, its column and the value.
const COO_CELL_BYTES: u64 = 12;
/// Bytes of a row's index in the selection, in a block.
const ROW_INDEX_BYTES: u64 = 8;
/// Bytes of a row's offset among the values, in each matrix of a block.
const OFFSET_BYTES: u64 = 8;

/// Estimates the memory that blocks of `block_rows` rows and batches of `batch_rows` rows need, of
/// X and the matrices beside it.
pub(crate) fn memory_need(
    dataset: &Dataset,
    spec: &LoaderSpec,
    block_rows: u64,
    batch_rows: u64,
) -> Result<Need, LoaderError> {
    let indices = block_rows * ROW_INDEX_BYTES;
    let mut need = Need { block: indices, largest: indices, ..Need::default() };
    let (mut collected, mut working) = (0, 0);
    for group in dataset.read_groups() {
        let (mut of_group, is_shared) = ((0, 0), group.len() > 1);
        for (_, matrix) in &group {
            let row_nnz = dataset.mean_row_nnz(matrix)?;
            let of_matrix =
                MatrixNeed::estimate((matrix, is_shared), row_nnz, spec, block_rows, batch_rows);
            need.block += of_matrix.block;
            need.largest += of_matrix.largest;
            need.batch += of_matrix.batch;
            if let (Some(tokens), None) = (&spec.tokens, matrix.beside) {
                need.batch += tokens.need(batch_rows, row_nnz);
            }
            of_group = (of_group.0 + of_matrix.collected, of_matrix.working.max(of_group.1));
        }
        if dataset.reads_at_once() {
            collected += of_group.0;
            working += of_group.1;
        } else {
            // The groups are read one after another, in the same memory.
            collected = collected.max(of_group.0);
            working = working.max(of_group.1);
        }
    }
    need.reading = collected + working;
    Ok(need)
}

/// Bytes that one matrix needs.
struct MatrixNeed {
    block: u64,
    largest: u64,
    batch: u64,
    /// Values that a reading thread collects before they are in their block.
    collected: u64,
    /// Working memory of the reader.
    working: u64,
}

impl MatrixNeed {
    /// `row_nnz` is the mean number of values in a row. A matrix whose rows are shared is not
    /// packed.
    fn estimate(
        (matrix, is_shared): (&DatasetMatrix<'_>, bool),
        row_nnz: f64,
        spec: &LoaderSpec,
        block_rows: u64,
        batch_rows: u64,
    ) -> Self {
        let n_columns = matrix.n_columns as u64;
        let nnz_of = |n_rows: u64| {
            let nnz = (row_nnz * n_rows as f64).ceil() as u64;
            nnz.saturating_add(nnz / 8)
        };
        let block_nnz = nnz_of(block_rows);
        let csr = block_nnz * CSR_CELL_BYTES;
        let dense = block_rows * n_columns * 4;
        let packed = (block_nnz * PACKED_COUNT_BYTES, block_nnz * PACKED_CELL_BYTES);
        let ((block, largest), coo, form) = match spec.block_form {
            BlockForm::Dense => ((dense, dense), 0, ReadForm::Coo),
            BlockForm::ConvertedCsr => ((csr, csr), block_nnz * COO_CELL_BYTES, ReadForm::Coo),
            BlockForm::Csr if matrix.packs() && !is_shared => (packed, 0, ReadForm::Csr),
            BlockForm::Csr => ((csr, csr), 0, ReadForm::Csr),
        };
        let several = if matrix.of_each.len() > 1 { block_nnz * CSR_CELL_BYTES } else { 0 };
        let batch_form = matrix.batch_form(spec);
        let batch = match (batch_form, batch_form.dense_type()) {
            (_, Some(element)) => batch_rows * n_columns * element.bytes() as u64,
            // torch's COO tensors have int64 indices: 16 bytes more per value.
            (BatchForm::Coo, None) => nnz_of(batch_rows) * (COO_CELL_BYTES + 16),
            (_, None) => nnz_of(batch_rows) * CSR_CELL_BYTES,
        };
        let offsets = block_rows * OFFSET_BYTES;
        Self {
            block: block + offsets,
            largest: largest + offsets,
            batch,
            collected: coo + several,
            working: matrix.working_bytes(block_nnz, form),
        }
    }
}
