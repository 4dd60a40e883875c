//! One batch as tensors, and how long they may be used.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use loader::{Batch, CooMatrix, CsrMatrix, Matrix};
use tch::{Device, Kind, Tensor};

use crate::buffers::TensorBuffer;
use crate::error::Error;
use crate::staging::{Staging, without_duplicates};
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
    /// The tensors of a loader's batch, where `feed` wants them.
    pub(crate) fn new(batch: Batch<TensorBuffer>, feed: &Feed) -> Result<Self, Error> {
        let Batch { batch_idx, x, obs, codes, joinids, experiments } = batch;
        let (x, owner) = feed.matrix(x)?;
        let (x, owner) = match feed.stored {
            // A copy, so that the memory of the first can be used again at once.
            Some(kind) if kind != Kind::Float => (to_stored(&x, kind)?, None),
            _ => (x, owner),
        };
        let (names, columns) = code_columns(&codes);
        let numbers = [&[&joinids[..]], &columns[..]].concat();
        let mut numbers = feed.numbers(&numbers)?.into_iter();
        let Some(joinids) = numbers.next() else {
            unreachable!(
                "a tensor comes of each column that was sent, and the first is the joinids"
            )
        };
        let codes = names.into_iter().zip(numbers).collect();
        Ok(Self { batch_idx, x, obs, codes, joinids, experiments, owner })
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

/// How a loader's batches become tensors.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Where they are to be.
    pub(crate) device: Device,
    /// By which they are copied there. None where they are made where they stay.
    pub(crate) staging: Option<Staging>,
    /// Where sparse rows are sent and made dense on the device: what of.
    pub(crate) dense_kind: Option<Kind>,
    /// X's own type, where that is wanted.
    pub(crate) stored: Option<Kind>,
}

impl Feed {
    /// X, and the memory that it lies in where that is a pool's.
    fn matrix(&self, x: Matrix<TensorBuffer>) -> Result<(Tensor, Option<TensorBuffer>), Error> {
        let x = match (x, &self.staging) {
            (Matrix::Dense { values, n_rows, n_columns }, None) => {
                return Ok((values.matrix(n_rows, n_columns)?, Some(values)));
            }
            (Matrix::Dense { values, n_rows, n_columns }, Some(staging)) => {
                let host = values.matrix(n_rows, n_columns)?;
                let (x, ticket) = staging.device().begin_copy(&host)?;
                values.give_back_after(ticket);
                x
            }
            (Matrix::Csr(csr), None) => sparse_csr(&csr)?,
            (Matrix::Csr(csr), Some(staging)) => match self.dense_kind {
                Some(kind) => {
                    let once = without_duplicates(&csr);
                    staging.send_rows(once.as_ref().unwrap_or(&csr))?.to_dense(kind)?
                }
                None => staging.send_rows(&csr)?.to_sparse()?,
            },
            (Matrix::Coo(coo), _) => sparse_coo(&coo)?
                .f_to(self.device)
                .map_err(Error::torch("a copy of X's values on the device"))?,
        };
        Ok((x, None))
    }

    /// An int64 tensor of each column of numbers; all are as long.
    fn numbers(&self, columns: &[&[i64]]) -> Result<Vec<Tensor>, Error> {
        match &self.staging {
            Some(staging) => staging.send_numbers(columns),
            None => columns
                .iter()
                .map(|column| Tensor::f_from_slice(column))
                .collect::<Result<_, _>>()
                .map_err(Error::torch("the tensors of joinids and codes")),
        }
    }
}

/// The encoders' names and their codes.
fn code_columns(codes: &RecordBatch) -> (Vec<String>, Vec<&[i64]>) {
    let fields = codes.schema_ref().fields();
    let columns = fields.iter().zip(codes.columns()).filter_map(|(field, column)| {
        let codes = column.as_primitive_opt::<Int64Type>()?;
        Some((field.name().clone(), &codes.values()[..]))
    });
    columns.unzip()
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
