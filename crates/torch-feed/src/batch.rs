//! One batch as tensors, and how long they may be used.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use loader::{Batch, BatchBuffer as _, CooBatch, CsrBatch, Matrix};
use tch::{Device, Kind, Tensor};

use crate::buffers::{TensorBuffer, size};
use crate::error::Error;
use crate::row_sums::RowSums;
use crate::staging::{Staging, remove_duplicates};
use crate::stored_type::to_stored;

/// Some rows of the selection as tensors, with their obs rows.
///
/// On the CPU `x` lies in memory that a later batch is written into: its values (of a CSR one its columns, too), and those of tensors that
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
    n_padding: usize,
    /// The memory of `x`, as far as it is from a pool.
    owners: Vec<TensorBuffer>,
}

impl TensorBatch {
    /// The tensors of a loader's batch, where `feed` wants them.
    pub(crate) fn new(batch: Batch<TensorBuffer>, feed: &Feed) -> Result<Self, Error> {
        let Batch { batch_idx, x, obs, codes, joinids, experiments, n_padding } = batch;
        let (x, owners) = feed.matrix(x)?;
        let x = match feed.stored {
            // The values are copied; indices may be shared still.
            Some(kind) if kind != Kind::Float => to_stored(&x, kind)?,
            _ => x,
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
        Ok(Self { batch_idx, x, obs, codes, joinids, experiments, n_padding, owners })
    }

    /// Which batch of the epoch, counted from 0.
    pub fn batch_idx(&self) -> u64 {
        self.batch_idx
    }

    /// Its number of cells.
    pub fn n_rows(&self) -> usize {
        self.obs.num_rows()
    }

    /// The values: f32 (f16 for `BatchForm::F16`, X's own type where that was asked for), cells x genes, strided, or sparse: CSR with
    /// int32 indices on the CPU and int64 on a GPU, or COO with int64.
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

    /// How many rows, at its end, are padding ([`Batch::n_padding`]).
    pub fn n_padding(&self) -> usize {
        self.n_padding
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
        let owners = if x.device() == self.x.device() { self.owners } else { Vec::new() };
        Ok(Self { x, codes, joinids, owners, ..self })
    }

    /// `x`, obs and joinids, to be kept as long as one likes. The memory leaves the pool, which will allocate anew.
    pub fn into_parts(self) -> (Tensor, RecordBatch, Tensor) {
        self.owners.into_iter().for_each(TensorBuffer::leave_pool);
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
    /// X, and the memory that it lies in as far as that is a pool's.
    fn matrix(&self, x: Matrix<TensorBuffer>) -> Result<(Tensor, Vec<TensorBuffer>), Error> {
        let x = match (x, &self.staging) {
            (Matrix::Dense { values, n_rows, n_columns }, None) => {
                return Ok((values.matrix(n_rows, n_columns)?, vec![values]));
            }
            (Matrix::Dense { values, n_rows, n_columns }, Some(staging)) => {
                let host = values.matrix(n_rows, n_columns)?;
                let (x, ticket) = staging.device().begin_copy(&host)?;
                values.give_back_after(ticket);
                x
            }
            (Matrix::Csr(csr), None) => {
                return Ok((sparse_csr(&csr)?, vec![csr.columns, csr.values]));
            }
            (Matrix::Csr(mut csr), Some(staging)) => match self.dense_kind {
                Some(kind) => {
                    remove_duplicates(&mut csr);
                    staging.send_rows(csr)?.to_dense(kind)?
                }
                None => staging.send_rows(csr)?.to_sparse()?,
            },
            (Matrix::Coo(mut coo), None) => return Ok((sparse_coo(&mut coo)?, vec![coo.values])),
            (Matrix::Coo(mut coo), Some(_)) => sparse_coo(&mut coo)?
                .f_to(self.device)
                .map_err(Error::torch("a copy of X's values on the device"))?,
        };
        Ok((x, Vec::new()))
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

/// torch's sparse CSR tensor of a batch: crow and col int32, values f32. Columns and values stay where they are.
///
/// Without torch's check of the structure, which takes longer than all else; the loader keeps to it. Values stored
/// twice for one cell and gene, which SOMA arrays may have, stay two.
fn sparse_csr(csr: &CsrBatch<TensorBuffer>) -> Result<Tensor, Error> {
    let shape = [size(csr.n_rows())?, size(csr.n_columns)?];
    let crow: Result<Vec<i32>, _> =
        csr.row_offsets.iter().map(|&offset| offset.try_into()).collect();
    let crow = crow.map_err(|_| Error::TooManyValues { nnz: csr.nnz() })?;
    let crow =
        Tensor::f_from_slice(&crow).map_err(Error::torch("the row offsets of a sparse batch"))?;
    let (columns, values) = (csr.columns.flat()?, csr.values.flat()?);
    let options = (Kind::Float, Device::Cpu);
    Tensor::f_internal_sparse_csr_tensor_unsafe(&crow, &columns, &values, shape, options)
        .map_err(Error::torch("a sparse CSR tensor"))
}

/// torch's sparse COO tensor of a batch: indices int64, which torch demands, values f32. The values stay where they are.
///
/// Values stored twice for one cell and gene, which SOMA arrays may have, make it an uncoalesced tensor, in which they add up.
fn sparse_coo(coo: &mut CooBatch<TensorBuffer>) -> Result<Tensor, Error> {
    let shape = [size(coo.shape.0)?, size(coo.shape.1)?];
    let (rows, columns, values) = (coo.rows.flat()?, coo.columns.flat()?, coo.values.flat()?);
    let failed = Error::torch("the indices of a sparse batch");
    let indices = Tensor::f_stack(&[&rows, &columns], 0)
        .and_then(|indices| indices.f_to_kind(Kind::Int64))
        .map_err(failed)?;
    let (rows, columns) =
        (coo.rows.elements_mut().into_u32(), coo.columns.elements_mut().into_u32());
    let cells = || rows.iter().zip(columns.iter());
    let distinct = cells().zip(cells().skip(1)).all(|(one, next)| one != next);
    let options = (Kind::Float, Device::Cpu);
    Tensor::f_sparse_coo_tensor_indices_size(&indices, &values, shape, options, distinct)
        .map_err(Error::torch("a sparse COO tensor"))
}
