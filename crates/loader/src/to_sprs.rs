//! Sparse batches as matrices of sprs.

use sprs::{CsMatI, TriMatI};

use crate::batch::Matrix;
use crate::buffers::HeapBuffer;
use crate::elements::ElementTypeError;

/// A batch could not be converted to a matrix of sprs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToSprsError {
    /// A batch has another form than the conversion requires.
    #[error("a {found} batch cannot be converted to {expected}: ask the loader for that form")]
    OtherForm {
        /// The required form.
        expected: &'static str,
        /// The batch's form.
        found: &'static str,
    },

    /// sprs rejected a matrix.
    #[error("sprs rejects this batch: {problem}")]
    Sprs {
        /// The reason.
        problem: String,
    },

    /// The elements of a buffer have another type than the conversion requires.
    #[error(transparent)]
    ElementType(#[from] ElementTypeError),
}

impl Matrix<HeapBuffer> {
    /// A CSR batch as a matrix of sprs, without a copy. Its memory leaves the pool. A packed batch
    /// is widened into new memory.
    ///
    /// # Errors
    /// If the batch has another form, or a cell has two values of one gene, which sprs does not
    /// allow.
    pub fn into_sprs_csr(self) -> Result<CsMatI<f32, u32, usize>, ToSprsError> {
        let Self::Csr(csr) = self else { return Err(self.other_form("CSR")) };
        let shape = (csr.n_rows(), csr.n_columns);
        let (columns, values) = if csr.columns().is_ok() && csr.values().is_ok() {
            (csr.columns.into_u32()?, csr.values.into_f32()?)
        } else {
            csr.unpacked()?
        };
        CsMatI::try_new(shape, csr.row_offsets, columns, values)
            .map_err(|(_, _, _, source)| ToSprsError::Sprs { problem: source.to_string() })
    }

    /// A COO batch as triplets of sprs, without a copy. Its memory leaves the pool.
    ///
    /// # Errors
    /// If the batch has another form.
    pub fn into_sprs_coo(self) -> Result<TriMatI<f32, u32>, ToSprsError> {
        let Self::Coo(coo) = self else { return Err(self.other_form("COO")) };
        let (rows, columns) = (coo.rows.into_u32()?, coo.columns.into_u32()?);
        Ok(TriMatI::from_triplets(coo.shape, rows, columns, coo.values.into_f32()?))
    }

    fn other_form(&self, expected: &'static str) -> ToSprsError {
        let found = match self {
            Self::Dense { .. } => "dense",
            Self::Csr(_) => "CSR",
            Self::Coo(_) => "COO",
        };
        ToSprsError::OtherForm { expected, found }
    }
}
