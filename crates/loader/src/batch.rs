//! Batches: rows of X and of the matrices beside it, with the obs row and the joinid of each.

use std::fmt;

use arrow_array::RecordBatch;
use half::f16;

use crate::buffers::{HeapBuffer, ReadableBuffer};
use crate::elements::{ElementTypeError, Elements, ElementsMut};
use crate::neighbours::Neighbours;
use crate::tokens::TokenBatch;

/// Rows of the selection, in the epoch's order.
#[non_exhaustive]
pub struct Batch<B = HeapBuffer> {
    /// The batch's index in the epoch, from 0.
    pub batch_idx: u64,
    /// The values of X: one row per cell, one column per selected gene. With `neighbours`, the rows
    /// of further cells come after those of the batch's cells.
    pub x: Matrix<B>,
    /// The [neighbours](crate::DatasetSpec::neighbours) of each cell, as rows of `x`.
    pub neighbours: Option<Neighbours>,
    /// The [further layers](crate::DatasetSpec::layers), each with its name: rows, columns and form
    /// are those of `x`. Transforms are not applied to them.
    pub layers: Vec<(String, Matrix<B>)>,
    /// The [arrays of obsm](crate::DatasetSpec::obsm), each with its name: the rows of `x`, columns
    /// of their own. Always dense; f16 if `x` is, otherwise f32. Transforms are not applied to
    /// them.
    pub obsm: Vec<(String, Matrix<B>)>,
    /// Whether X has each cell; one that was not measured has a row of zeros. All true
    /// unless the experiment says otherwise
    /// ([`Measurement::present`](soma_io::Measurement::present)).
    pub present: Vec<bool>,
    /// The [modalities](crate::DatasetSpec::modalities) beside X, each with its name.
    pub modalities: Vec<(String, Modality<B>)>,
    /// Sequences of tokens made of `x`; `None` unless [`LoaderSpec::tokens`] asks for them.
    ///
    /// [`LoaderSpec::tokens`]: crate::LoaderSpec::tokens
    pub tokens: Option<TokenBatch<B>>,
    /// The requested obs columns: one row per cell, in the order of `x`.
    pub obs: RecordBatch,
    /// The codes of the data set's [encoders](crate::Dataset::with_encoders): one Int64 column per
    /// encoder, one row per cell.
    pub codes: RecordBatch,
    /// The `soma_joinid` of each row in its experiment.
    pub joinids: Vec<i64>,
    /// The experiment of each row: its index in the data set, from 0.
    pub experiments: Vec<u32>,
    /// Number of padding rows at the end. They also come in another batch or on another rank; leave
    /// them out to count every cell once. Above 0 only in the last batch, with
    /// [`Remainder::Pad`](crate::Remainder::Pad).
    pub n_padding: usize,
}

impl<B> Batch<B> {
    /// Number of cells.
    pub fn n_rows(&self) -> usize {
        self.joinids.len()
    }

    /// The further layer with this name; `None` if the batch has none.
    pub fn layer(&self, name: &str) -> Option<&Matrix<B>> {
        self.layers.iter().find(|(layer, _)| layer == name).map(|(_, matrix)| matrix)
    }

    /// The modality with this name; `None` if the batch has none.
    pub fn modality(&self, name: &str) -> Option<&Modality<B>> {
        self.modalities.iter().find(|(modality, _)| modality == name).map(|(_, modality)| modality)
    }

    /// The array of obsm with this name; `None` if the batch has none.
    pub fn obsm(&self, name: &str) -> Option<&Matrix<B>> {
        self.obsm.iter().find(|(array, _)| array == name).map(|(_, matrix)| matrix)
    }
}

impl<B> fmt::Debug for Batch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({}: {:?}, {} padding)", self.batch_idx, self.x, self.n_padding)
    }
}

/// Rows of a further measurement: row `i` is the cell of row `i` of X.
#[derive(Debug)]
#[non_exhaustive]
pub struct Modality<B = HeapBuffer> {
    /// The values: one row per cell, one column per gene of the modality. In the form of
    /// [`LoaderSpec::modality_forms`](crate::LoaderSpec::modality_forms). Transforms are not
    /// applied to them.
    pub x: Matrix<B>,
    /// Whether each cell was measured. One that was not has a row of zeros, as nothing is stored of
    /// it.
    pub present: Vec<bool>,
}

/// The values of X in a batch, in the form of
/// [`LoaderSpec::batch_form`](crate::LoaderSpec::batch_form), or those of a matrix beside X.
#[non_exhaustive]
pub enum Matrix<B = HeapBuffer> {
    /// Row-major: the value of row `i` and column `j` is at `i * n_columns + j`.
    Dense {
        /// `n_rows * n_columns` values, f32 or f16.
        values: B,
        /// Number of cells.
        n_rows: usize,
        /// Number of selected genes, or of columns of an array of obsm.
        n_columns: usize,
    },
    /// The stored values in compressed sparse rows.
    Csr(CsrBatch<B>),
    /// The stored values, each with its row and column.
    Coo(CooBatch<B>),
}

/// Values in compressed sparse rows (CSR).
pub struct CsrBatch<B = HeapBuffer> {
    /// The index of each row's first value, then the number of values: `n_rows + 1` offsets from 0.
    pub row_offsets: Vec<usize>,
    /// The column of each value, as u32; in a packed batch u16, if there are at most 65,536.
    pub columns: B,
    /// The values, as f32; in a packed batch maybe as u8 or u16
    /// ([`BatchForm::Packed`](crate::BatchForm::Packed)).
    pub values: B,
    /// Number of selected genes.
    pub n_columns: usize,
}

/// Values with their rows and columns (COO), row by row.
pub struct CooBatch<B = HeapBuffer> {
    /// The row of each value, as u32.
    pub rows: B,
    /// The column of each value, as u32.
    pub columns: B,
    /// The values, as f32.
    pub values: B,
    /// Number of cells, and of selected genes.
    pub shape: (usize, usize),
}

impl<B> CsrBatch<B> {
    /// Number of cells.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len().saturating_sub(1)
    }

    /// Number of values.
    pub fn nnz(&self) -> usize {
        self.row_offsets.last().copied().unwrap_or(0)
    }
}

impl<B: ReadableBuffer> CsrBatch<B> {
    /// The column of each value.
    ///
    /// # Errors
    /// The buffer's elements are not u32: the batch is packed, or no loader made it.
    pub fn columns(&self) -> Result<&[u32], ElementTypeError> {
        self.columns.elements().into_u32()
    }

    /// The values.
    ///
    /// # Errors
    /// The buffer's elements are not f32: the batch is packed, or no loader made it.
    pub fn values(&self) -> Result<&[f32], ElementTypeError> {
        self.values.elements().into_f32()
    }

    /// Columns and values of a batch that may be packed, as u32 and f32.
    ///
    /// # Errors
    /// The buffers' elements are of no type of packed batches, so no loader made the batch.
    pub fn unpacked(&self) -> Result<(Vec<u32>, Vec<f32>), ElementTypeError> {
        let (columns, values) = (self.columns.elements(), self.values.elements());
        let (mut wide_columns, mut wide_values) = (vec![0; columns.len()], vec![0.0; values.len()]);
        ElementsMut::U32(&mut wide_columns).widen_from(columns)?;
        ElementsMut::F32(&mut wide_values).widen_from(values)?;
        Ok((wide_columns, wide_values))
    }
}

impl<B> fmt::Debug for CsrBatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CsrBatch({} x {}, {} values)", self.n_rows(), self.n_columns, self.nnz())
    }
}

impl<B: ReadableBuffer> CooBatch<B> {
    /// The row of each value.
    ///
    /// # Errors
    /// The buffer's elements are not u32, so no loader made the batch.
    pub fn rows(&self) -> Result<&[u32], ElementTypeError> {
        self.rows.elements().into_u32()
    }

    /// The column of each value.
    ///
    /// # Errors
    /// The buffer's elements are not u32, so no loader made the batch.
    pub fn columns(&self) -> Result<&[u32], ElementTypeError> {
        self.columns.elements().into_u32()
    }

    /// The values.
    ///
    /// # Errors
    /// The buffer's elements are not f32, so no loader made the batch.
    pub fn values(&self) -> Result<&[f32], ElementTypeError> {
        self.values.elements().into_f32()
    }
}

impl<B> fmt::Debug for CooBatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CooBatch({} x {})", self.shape.0, self.shape.1)
    }
}

impl<B> Matrix<B> {
    /// Number of cells, and of selected genes or columns of an array of obsm.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense { n_rows, n_columns, .. } => (*n_rows, *n_columns),
            Self::Csr(csr) => (csr.n_rows(), csr.n_columns),
            Self::Coo(coo) => coo.shape,
        }
    }
}

impl<B: ReadableBuffer> Matrix<B> {
    /// The values of a dense f32 batch, row-major. `None` for any other batch.
    pub fn dense(&self) -> Option<&[f32]> {
        match self {
            Self::Dense { values, .. } => match values.elements() {
                Elements::F32(values) => Some(values),
                _ => None,
            },
            Self::Csr(_) | Self::Coo(_) => None,
        }
    }

    /// The values of a dense f16 batch, row-major. `None` for any other batch.
    pub fn dense_f16(&self) -> Option<&[f16]> {
        match self {
            Self::Dense { values, .. } => match values.elements() {
                Elements::F16(values) => Some(values),
                _ => None,
            },
            Self::Csr(_) | Self::Coo(_) => None,
        }
    }
}

impl<B> fmt::Debug for Matrix<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense { n_rows, n_columns, .. } => write!(f, "Dense({n_rows} x {n_columns})"),
            Self::Csr(csr) => csr.fmt(f),
            Self::Coo(coo) => coo.fmt(f),
        }
    }
}
