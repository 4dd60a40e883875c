//! Sparse batches as matrices of sprs.

use sprs::{CsMatI, TriMatI};

use crate::batch::Matrix;
use crate::buffers::HeapBuffer;
use crate::error::Error;

impl Matrix<HeapBuffer> {
    /// A CSR batch as a matrix of sprs, without a copy. Its memory leaves the pool.
    ///
    /// # Errors
    /// If the batch has another form, or a cell has two values of one gene, which sprs does not
    /// allow.
    pub fn into_sprs_csr(self) -> Result<CsMatI<f32, u32, usize>, Error> {
        let Self::Csr(csr) = self else { return Err(self.other_form("CSR")) };
        let shape = (csr.n_rows(), csr.n_columns);
        let (columns, values) = (csr.columns.into_u32()?, csr.values.into_f32()?);
        CsMatI::try_new(shape, csr.row_offsets, columns, values)
            .map_err(|(_, _, _, source)| Error::Sprs { problem: source.to_string() })
    }

    /// A COO batch as triplets of sprs, without a copy. Its memory leaves the pool.
    ///
    /// # Errors
    /// If the batch has another form.
    pub fn into_sprs_coo(self) -> Result<TriMatI<f32, u32>, Error> {
        let Self::Coo(coo) = self else { return Err(self.other_form("COO")) };
        let (rows, columns) = (coo.rows.into_u32()?, coo.columns.into_u32()?);
        Ok(TriMatI::from_triplets(coo.shape, rows, columns, coo.values.into_f32()?))
    }

    fn other_form(&self, expected: &'static str) -> Error {
        let found = match self {
            Self::Dense { .. } => "dense",
            Self::Csr(_) => "CSR",
            Self::Coo(_) => "COO",
        };
        Error::OtherForm { expected, found }
    }
}
