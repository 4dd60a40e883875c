//! What the consumer gets: the rows of X, with the obs row and the joinid of each beside it.

use arrow_array::RecordBatch;
use densify::CsrMatrix;

use crate::buffers::HeapBuffer;

/// Some rows of the selection in the epoch's order.
#[derive(Debug)]
pub struct Batch<B = HeapBuffer> {
    /// Which batch of the epoch, counted from 0.
    pub batch_idx: u64,
    /// The values, a row for each cell and a column for each selected gene.
    pub x: Matrix<B>,
    /// The obs columns that were asked for, a row for each cell, in the same order.
    pub obs: RecordBatch,
    /// The `soma_joinid` of each row, in its experiment.
    pub joinids: Vec<i64>,
    /// Which of the data set's experiments each row is from, counted from 0.
    pub experiments: Vec<u32>,
}

impl<B> Batch<B> {
    /// Its number of cells.
    pub fn n_rows(&self) -> usize {
        self.joinids.len()
    }
}

/// A batch's values, in the form that was asked for.
#[derive(Debug)]
pub enum Matrix<B = HeapBuffer> {
    /// Row-major: the value of row `i` and column `j` is at `i * n_columns + j`.
    Dense {
        /// `n_rows * n_columns` values.
        values: B,
        /// Cells.
        n_rows: usize,
        /// Selected genes.
        n_columns: usize,
    },
    /// The stored values by row.
    Csr(CsrMatrix),
}

impl<B> Matrix<B> {
    /// Its cells and genes.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense { n_rows, n_columns, .. } => (*n_rows, *n_columns),
            Self::Csr(csr) => (csr.n_rows(), csr.n_columns),
        }
    }
}

impl<B: AsRef<[f32]>> Matrix<B> {
    /// The values of a dense batch, row-major; none of a CSR batch.
    pub fn dense(&self) -> Option<&[f32]> {
        match self {
            Self::Dense { values, .. } => Some(values.as_ref()),
            Self::Csr(_) => None,
        }
    }
}
