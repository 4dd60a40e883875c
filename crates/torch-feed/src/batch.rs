//! One batch as tensors, and how long they may be used.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use loader::{Batch, CooMatrix, CsrMatrix, Matrix};
use tch::{Device, Kind, Tensor};

use crate::buffers::TensorBuffer;
use crate::error::Error;
use crate::row_sums::RowSums;
use crate::stored_type::to_stored;

/// Some rows of the selection as tensors, with their obs rows.
///
/// A dense `x` on the CPU lies in memory that a later batch is written into: its values, and those of tensors that
/// share its memory (`shallow_clone`, views, what autograd keeps for the backward pass), hold until the batch is
/// dropped. So keep the batch until the step is over; [`into_parts`](Self::into_parts) gives tensors to keep longer.
#[derive(Debug)]
pub struct TensorBatch {
    batch_idx: u64,
    x: Tensor,
    obs: RecordBatch,
    /// By the encoder's name.
    codes: Vec<(String, Tensor)>,
    joinids: Tensor,
    experiments: Vec<u32>,
    /// The memory of `x`, if it is from a pool.
    owner: Option<TensorBuffer>,
}

impl TensorBatch {
    /// The tensors of a loader's batch, on this device.
    pub(crate) fn new(
        batch: Batch<TensorBuffer>,
        device: Device,
        stored: Option<Kind>,
    ) -> Result<Self, Error> {
        let Batch { batch_idx, x, obs, codes, joinids, experiments } = batch;
        let (x, owner) = match x {
            Matrix::Dense { values, n_rows, n_columns } => {
                (values.matrix(n_rows, n_columns)?, Some(values))
            }
            Matrix::Csr(csr) => (sparse_csr(&csr)?, None),
            Matrix::Coo(coo) => (sparse_coo(&coo)?, None),
        };
        let (x, owner) = match stored {
            // A copy, so that the memory of the first can be used again at once.
            Some(kind) if kind != Kind::Float => (to_stored(&x, kind)?, None),
            _ => (x, owner),
        };
        let joinids =
            Tensor::f_from_slice(&joinids).map_err(Error::torch("the tensor of joinids"))?;
        let codes = code_tensors(&codes)?;
        let batch = Self { batch_idx, x, obs, codes, joinids, experiments, owner };
        if device == Device::Cpu { Ok(batch) } else { batch.to_device(device) }
    }

    /// Which batch of the epoch, counted from 0.
    pub fn batch_idx(&self) -> u64 {
        self.batch_idx
    }

    /// Its number of cells.
    pub fn n_rows(&self) -> usize {
        self.obs.num_rows()
    }

    /// The values: f32 (f16 for `BatchForm::F16`, X's own type where that was asked for), cells x genes, strided, or sparse CSR or COO with int64 indices.
    pub fn x(&self) -> &Tensor {
        &self.x
    }

    /// The obs columns that were asked for, a row for each row of `x`.
    pub fn obs(&self) -> &RecordBatch {
        &self.obs
    }

    /// The codes of each row by the data set's encoder of this name: int64, one dimension. None where there is no such encoder.
    pub fn codes(&self, encoder: &str) -> Option<&Tensor> {
        self.codes.iter().find(|(name, _)| name == encoder).map(|(_, codes)| codes)
    }

    /// The `soma_joinid` of each row: int64, one dimension.
    pub fn joinids(&self) -> &Tensor {
        &self.joinids
    }

    /// Which of the data set's experiments each row is from.
    pub fn experiments(&self) -> &[u32] {
        &self.experiments
    }

    /// Sums of each row of `x`, to compare what two loaders deliver.
    pub fn row_sums(&self) -> Result<RowSums, Error> {
        RowSums::of(&self.x)
    }

    /// Copies the tensors to `device`. On the device they are nobody else's, so they may be kept.
    ///
    /// On the CPU already, nothing is copied.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        let x = self.x.f_to(device).map_err(Error::torch("a copy of X's values on the device"))?;
        let joinids = self
            .joinids
            .f_to(device)
            .map_err(Error::torch("a copy of the joinids on the device"))?;
        let codes = self
            .codes
            .into_iter()
            .map(|(name, codes)| Ok((name, codes.f_to(device)?)))
            .collect::<Result<_, _>>()
            .map_err(Error::torch("a copy of the codes on the device"))?;
        // Where there was no copy, `x` still lies in the pool's memory.
        let owner = if x.device() == self.x.device() { self.owner } else { None };
        Ok(Self { x, codes, joinids, owner, ..self })
    }

    /// `x`, obs and joinids, to be kept as long as one likes. The memory leaves the pool, which will allocate anew.
    pub fn into_parts(self) -> (Tensor, RecordBatch, Tensor) {
        if let Some(owner) = self.owner {
            owner.leave_pool();
        }
        (self.x, self.obs, self.joinids)
    }
}

/// The columns of codes as tensors.
fn code_tensors(codes: &RecordBatch) -> Result<Vec<(String, Tensor)>, Error> {
    let mut tensors = Vec::with_capacity(codes.num_columns());
    for (field, column) in codes.schema_ref().fields().iter().zip(codes.columns()) {
        if let Some(codes) = column.as_primitive_opt::<Int64Type>() {
            let tensor = Tensor::f_from_slice(codes.values())
                .map_err(Error::torch("the tensor of codes"))?;
            tensors.push((field.name().clone(), tensor));
        }
    }
    Ok(tensors)
}

/// torch's sparse CSR tensor of a matrix: crow and col int64, values f32. Copies.
///
/// Without torch's check of the structure, which takes longer than the copy; the loader keeps to it. Values stored
/// twice for one cell and gene, which SOMA arrays may have, stay two.
fn sparse_csr(csr: &CsrMatrix) -> Result<Tensor, Error> {
    let size = |n: usize| i64::try_from(n).map_err(|_| Error::TooLarge { n_values: n });
    let shape = [size(csr.n_rows())?, size(csr.n_columns)?];
    size(csr.values.len())?;
    let first = csr.row_offsets.first().copied().unwrap_or(0);
    let crow: Vec<i64> = csr.row_offsets.iter().map(|&offset| (offset - first) as i64).collect();
    let col: Vec<i64> = csr.columns.iter().map(|&column| i64::from(column)).collect();
    let crow =
        Tensor::f_from_slice(&crow).map_err(Error::torch("the row offsets of a sparse batch"))?;
    let col = Tensor::f_from_slice(&col).map_err(Error::torch("the columns of a sparse batch"))?;
    let values =
        Tensor::f_from_slice(&csr.values).map_err(Error::torch("the values of a sparse batch"))?;
    let options = (Kind::Float, Device::Cpu);
    Tensor::f_internal_sparse_csr_tensor_unsafe(&crow, &col, &values, shape, options)
        .map_err(Error::torch("a sparse CSR tensor"))
}

/// torch's sparse COO tensor of a matrix: indices int64, values f32. Copies.
///
/// Values stored twice for one cell and gene, which SOMA arrays may have, make it an uncoalesced tensor, in which they add up.
fn sparse_coo(coo: &CooMatrix) -> Result<Tensor, Error> {
    let size = |n: usize| i64::try_from(n).map_err(|_| Error::TooLarge { n_values: n });
    let shape = [size(coo.shape.0)?, size(coo.shape.1)?];
    let nnz = size(coo.values.len())?;
    let places = coo.rows.iter().chain(&coo.columns).map(|&place| i64::from(place));
    let indices = Tensor::f_from_slice(&places.collect::<Vec<_>>())
        .and_then(|flat| flat.f_view_([2, nnz]))
        .map_err(Error::torch("the indices of a sparse batch"))?;
    let values =
        Tensor::f_from_slice(&coo.values).map_err(Error::torch("the values of a sparse batch"))?;
    let cells = || coo.rows.iter().zip(&coo.columns);
    let distinct = cells().zip(cells().skip(1)).all(|(one, next)| one != next);
    let options = (Kind::Float, Device::Cpu);
    Tensor::f_sparse_coo_tensor_indices_size(&indices, &values, shape, options, distinct)
        .map_err(Error::torch("a sparse COO tensor"))
}
