//! Estimates the memory of blocks and batches of cells before any is read.
//!
//! The number of values of a block is estimated as its rows times the mean number of values of a
//! row of the matrix, times the selected share of its columns, plus an eighth.

use pipeline::Need;
use soma_io::ReadForm;

use crate::beside::DatasetMatrix;
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::neighbours::NeighbourSpec;
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

/// Bytes of a neighbour in a block: its row and its value.
const NEIGHBOUR_BYTES: u64 = 8;
/// Bytes of the row in X of one of the block's own cells.
const OWN_ROW_BYTES: u64 = 4;
/// Bytes of a neighbour in a batch: in Python an int64, a value and a boolean.
const POSITION_BYTES: u64 = 13;
/// Bytes of a cell's experiment and joinid.
const CELL_NAME_BYTES: u64 = 16;
/// Bytes of a neighbour or a cell while the rows of X are sought.
const USE_BYTES: u64 = 8;

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
            let (of_block, of_batch) = rows_of(dataset, matrix, (block_rows, batch_rows));
            let of_matrix =
                MatrixNeed::estimate((matrix, is_shared), row_nnz, spec, of_block, of_batch);
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
    if let Some(NeighbourSpec { k, .. }) = &dataset.neighbours {
        add_neighbours(dataset, *k as u64, (block_rows, batch_rows), &mut need)?;
    }
    Ok(need)
}

/// Rows of a matrix in blocks and batches. X has those of neighbours, too, counted as if no two
/// cells shared one: at most all cells.
fn rows_of(
    dataset: &Dataset,
    matrix: &DatasetMatrix<'_>,
    (block_rows, batch_rows): (u64, u64),
) -> (u64, u64) {
    let (Some(of), None) = (&dataset.neighbours, matrix.beside) else {
        return (block_rows, batch_rows);
    };
    let n_cells: u64 = dataset.sources.iter().map(|source| source.x.reader.n_rows()).sum();
    let with_neighbours =
        |n_rows: u64| n_rows.saturating_add(n_rows.saturating_mul(of.k as u64).min(n_cells));
    // A block has each cell once; a batch may have its own ones several times.
    let of_block = with_neighbours(block_rows).min(n_cells.max(block_rows));
    (of_block, with_neighbours(batch_rows))
}

/// Adds the memory of neighbours, apart from that of their rows in blocks and batches.
fn add_neighbours(
    dataset: &Dataset,
    k: u64,
    (block_rows, batch_rows): (u64, u64),
    need: &mut Need,
) -> Result<(), LoaderError> {
    let x = dataset.x_matrix();
    let (x_rows, table_rows) = rows_of(dataset, &x, (block_rows, batch_rows));
    let of_cell = k.saturating_mul(NEIGHBOUR_BYTES).saturating_add(OWN_ROW_BYTES);
    let lists = block_rows.saturating_mul(of_cell).saturating_add(x_rows * CELL_NAME_BYTES);
    need.block = need.block.saturating_add(lists);
    need.largest = need.largest.saturating_add(lists);
    let positions = batch_rows.saturating_mul(k).saturating_mul(POSITION_BYTES);
    let of_batch = positions.saturating_add(table_rows * CELL_NAME_BYTES);
    need.batch = need.batch.saturating_add(of_batch);
    // Rows of the graph, then the uses of cells; the reader's memory is used again for X.
    let (mut rows_of_graph, mut working) = (0, 0);
    for graph in dataset.sources.iter().filter_map(|source| source.graph.as_ref()) {
        let nnz = (graph.mean_row_nnz()? * block_rows as f64).ceil() as u64;
        let nnz = nnz.saturating_add(nnz / 8);
        let of_reader = graph.reader.working_bytes(nnz, &graph.columns.selection, ReadForm::Csr);
        (rows_of_graph, working) =
            (rows_of_graph.max(nnz * CSR_CELL_BYTES), working.max(of_reader));
    }
    let uses = block_rows.saturating_mul(k.saturating_add(1)).saturating_mul(USE_BYTES);
    need.reading = need.reading.max(working.saturating_add(uses)).saturating_add(rows_of_graph);
    // The rows of a batch in the making that spans blocks.
    let rows = (dataset.mean_row_nnz(&x)? * table_rows as f64) as u64;
    need.other = need.other.saturating_add(rows.saturating_mul(CSR_CELL_BYTES));
    Ok(())
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
            // Packed batches need less, unless values are being widened.
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
