//! The rows that are held and shuffled together, in the form the method keeps them in.

use densify::{CsrMatrix, CsrView, RowTransforms};
use soma_io::CsrBuffers;

use crate::buffers::DenseValuesMut;
use crate::error::Error;

/// Which epoch and block it is: for errors.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct BlockId {
    pub(crate) epoch: u64,
    pub(crate) idx: u64,
}

impl BlockId {
    pub(crate) fn densify_error(self, source: densify::Error) -> Error {
        Error::Densify { epoch: self.epoch, block_idx: self.idx, source }
    }
}

/// A block's rows. Its memory is used again for later blocks.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) id: BlockId,
    /// The selection's row of each row as read, ascending.
    pub(crate) rows: Vec<u64>,
    /// Which row as read is delivered first, second and so on.
    pub(crate) order: Vec<u32>,
    pub(crate) n_columns: usize,
    pub(crate) values: Values,
}

/// What a block's values are kept as.
#[derive(Debug)]
pub(crate) enum Values {
    /// `np.array`: row-major, a row for each row as read.
    Dense(Vec<f32>),
    /// `scipy.csr`: made from COO.
    Counted(CsrMatrix),
    /// `native`: as the reader gave it.
    Read(CsrBuffers),
}

impl Default for Values {
    fn default() -> Self {
        Self::Dense(Vec::new())
    }
}

impl Block {
    pub(crate) fn n_rows(&self) -> usize {
        self.order.len()
    }

    /// The number of values of a dense block, if memory can address it.
    pub(crate) fn dense_len(n_rows: u64, n_columns: usize) -> Result<usize, Error> {
        let bytes = u128::from(n_rows) * n_columns as u128 * size_of::<f32>() as u128;
        match isize::try_from(bytes) {
            Ok(bytes) => Ok(bytes as usize / size_of::<f32>()),
            Err(_) => Err(Self::too_large(n_rows, n_columns)),
        }
    }

    fn too_large(n_rows: u64, n_columns: usize) -> Error {
        Error::OutOfMemory {
            what: "a dense block",
            bytes: u128::from(n_rows) * n_columns as u128 * size_of::<f32>() as u128,
            n_rows,
            n_columns: n_columns as u64,
            advice: "make chunks or blocks smaller, select fewer genes, or take method scipy.csr or native",
        }
    }

    /// Makes the values dense and all zero, in the memory of the last block where there is one.
    pub(crate) fn zeroed_dense(&mut self) -> Result<(), Error> {
        let n_values = Self::dense_len(self.rows.len() as u64, self.n_columns)?;
        if !matches!(self.values, Values::Dense(_)) {
            self.values = Values::Dense(Vec::new());
        }
        let Values::Dense(values) = &mut self.values else {
            unreachable!("it was just made dense")
        };
        values.clear();
        values
            .try_reserve_exact(n_values)
            .map_err(|_| Self::too_large(self.rows.len() as u64, self.n_columns))?;
        values.resize(n_values, 0.0);
        Ok(())
    }

    /// The dense values; none of a block that has others.
    pub(crate) fn dense_mut(&mut self) -> &mut [f32] {
        match &mut self.values {
            Values::Dense(values) => values,
            _ => &mut [],
        }
    }

    /// CSR to be counted into, in the memory of the last block where there is one.
    pub(crate) fn csr_to_count(&mut self) -> &mut CsrMatrix {
        if !matches!(self.values, Values::Counted(_)) {
            self.values = Values::Counted(CsrMatrix::empty(self.n_columns));
        }
        let Values::Counted(csr) = &mut self.values else { unreachable!("it was just made so") };
        csr
    }

    /// CSR for a reader to fill, in the memory of the last block where there is one.
    pub(crate) fn csr_to_read(&mut self) -> &mut CsrBuffers {
        if !matches!(self.values, Values::Read(_)) {
            self.values = Values::Read(CsrBuffers::default());
        }
        let Values::Read(csr) = &mut self.values else { unreachable!("it was just made so") };
        csr
    }

    /// The selection's row of one row as read.
    pub(crate) fn selection_row(&self, row: u32) -> u64 {
        self.rows[row as usize]
    }

    /// Writes these rows as read, in this order, row-major over all of `out`.
    pub(crate) fn rows_to_dense(
        &self,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        out: DenseValuesMut<'_>,
    ) -> Result<(), Error> {
        match out {
            DenseValuesMut::F32(out) => self.rows_to(rows, transforms, out),
            DenseValuesMut::F16(out) => self.rows_to(rows, transforms, out),
        }
        .map_err(|source| self.id.densify_error(source))
    }

    fn rows_to<V: densify::Value>(
        &self,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        out: &mut [V],
    ) -> Result<(), densify::Error> {
        match (&self.values, self.csr()) {
            (Values::Dense(values), _) => {
                densify::dense_rows_to_dense(values, self.n_columns, rows, transforms, out)
            }
            (_, Some(csr)) => densify::csr_rows_to_dense(csr, rows, transforms, out),
            (_, None) => Ok(()),
        }
    }

    /// Appends these rows as read, in this order, to `out`. Dense blocks cannot.
    pub(crate) fn rows_to_csr(
        &self,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        out: &mut CsrMatrix,
    ) -> Result<(), Error> {
        let csr = self.csr().ok_or(Error::NpArraySparse)?;
        densify::csr_gather_rows(csr, rows, transforms, out)
            .map_err(|source| self.id.densify_error(source))
    }

    /// The values as CSR; none of a dense block.
    fn csr(&self) -> Option<CsrView<'_>> {
        match &self.values {
            Values::Dense(_) => None,
            Values::Counted(csr) => Some(csr.view()),
            Values::Read(csr) => Some(CsrView {
                row_offsets: &csr.row_offsets,
                columns: &csr.columns,
                values: &csr.values,
                n_columns: csr.n_columns,
            }),
        }
    }
}
