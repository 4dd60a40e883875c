//! Batches: rows of X, with the obs row and the joinid of each beside it.

use arrow_array::RecordBatch;
use half::f16;

use crate::buffers::{Elements, HeapBuffer, ReadableBuffer};
use crate::error::Error;

/// Rows of the selection, in the epoch's order.
#[derive(Debug)]
pub struct Batch<B = HeapBuffer> {
    /// Number of the batch in the epoch, from 0.
    pub batch_idx: u64,
    /// The values, a row for each cell and a column for each selected gene.
    pub x: Matrix<B>,
    /// The selected obs columns, a row for each cell, in the same order.
    pub obs: RecordBatch,
    /// The codes of the data set's [encoders](crate::Dataset::with_encoders): an Int64 column for
    /// each encoder, a row for each cell.
    pub codes: RecordBatch,
    /// The `soma_joinid` of each row, in its experiment.
    pub joinids: Vec<i64>,
    /// The experiment of each row, counted from 0.
    pub experiments: Vec<u32>,
    /// Number of rows at its end that are padding: rows that also come in another batch or on
    /// another rank. Leave them out to count every cell once. Only the last batch has any, with
    /// [`Remainder::Pad`](crate::Remainder::Pad).
    pub n_padding: usize,
}

impl<B> Batch<B> {
    /// Its number of cells.
    pub fn n_rows(&self) -> usize {
        self.joinids.len()
    }
}

/// A batch's values, in the form of the loader's specification.
#[derive(Debug)]
pub enum Matrix<B = HeapBuffer> {
    /// Row-major: the value of row `i` and column `j` is at `i * n_columns + j`.
    Dense {
        /// `n_rows * n_columns` values, f32 or f16.
        values: B,
        /// Cells.
        n_rows: usize,
        /// Selected genes.
        n_columns: usize,
    },
    /// The stored values by row.
    Csr(CsrBatch<B>),
    /// The stored values, each with its row.
    Coo(CooBatch<B>),
}

/// Values in compressed sparse rows.
#[derive(Debug)]
pub struct CsrBatch<B = HeapBuffer> {
    /// Where each row begins, from 0, and at last the number of values: one more than there are
    /// rows.
    pub row_offsets: Vec<usize>,
    /// The column of each value: u32.
    pub columns: B,
    /// The values: f32.
    pub values: B,
    /// Selected genes.
    pub n_columns: usize,
}

/// Values with their rows and columns, row by row.
#[derive(Debug)]
pub struct CooBatch<B = HeapBuffer> {
    /// The row of each value: u32.
    pub rows: B,
    /// The column of each value: u32.
    pub columns: B,
    /// The values: f32.
    pub values: B,
    /// Cells and selected genes.
    pub shape: (usize, usize),
}

impl<B> CsrBatch<B> {
    /// Its number of cells.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// Its number of values.
    pub fn nnz(&self) -> usize {
        self.row_offsets.last().copied().unwrap_or(0)
    }
}

impl<B: ReadableBuffer> CsrBatch<B> {
    /// The column of each value.
    ///
    /// # Errors
    /// [`Error::ElementType`] if the buffer holds another type, which no batch of a loader does.
    pub fn columns(&self) -> Result<&[u32], Error> {
        self.columns.elements().as_u32()
    }

    /// The values.
    ///
    /// # Errors
    /// [`Error::ElementType`] if the buffer holds another type, which no batch of a loader does.
    pub fn values(&self) -> Result<&[f32], Error> {
        self.values.elements().as_f32()
    }
}

impl<B: ReadableBuffer> CooBatch<B> {
    /// The row of each value.
    ///
    /// # Errors
    /// [`Error::ElementType`] if the buffer holds another type, which no batch of a loader does.
    pub fn rows(&self) -> Result<&[u32], Error> {
        self.rows.elements().as_u32()
    }

    /// The column of each value.
    ///
    /// # Errors
    /// [`Error::ElementType`] if the buffer holds another type, which no batch of a loader does.
    pub fn columns(&self) -> Result<&[u32], Error> {
        self.columns.elements().as_u32()
    }

    /// The values.
    ///
    /// # Errors
    /// [`Error::ElementType`] if the buffer holds another type, which no batch of a loader does.
    pub fn values(&self) -> Result<&[f32], Error> {
        self.values.elements().as_f32()
    }
}

impl<B> Matrix<B> {
    /// Its cells and genes.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense { n_rows, n_columns, .. } => (*n_rows, *n_columns),
            Self::Csr(csr) => (csr.n_rows(), csr.n_columns),
            Self::Coo(coo) => coo.shape,
        }
    }
}

impl<B: ReadableBuffer> Matrix<B> {
    /// The values of a dense batch of f32, row-major; `None` for any other batch.
    pub fn dense(&self) -> Option<&[f32]> {
        match self {
            Self::Dense { values, .. } => match values.elements() {
                Elements::F32(values) => Some(values),
                Elements::F16(_) | Elements::U32(_) => None,
            },
            Self::Csr(_) | Self::Coo(_) => None,
        }
    }

    /// The values of a dense batch of f16, row-major; `None` for any other batch.
    pub fn dense_f16(&self) -> Option<&[f16]> {
        match self {
            Self::Dense { values, .. } => match values.elements() {
                Elements::F16(values) => Some(values),
                Elements::F32(_) | Elements::U32(_) => None,
            },
            Self::Csr(_) | Self::Coo(_) => None,
        }
    }
}
