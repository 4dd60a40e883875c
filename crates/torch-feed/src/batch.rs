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
/// The tensors may be kept as long as one likes, as may all that share their memory
/// (`shallow_clone`, views, what autograd keeps for the backward pass): the batch need not be kept
/// for them. On the CPU the memory of `x` is written again for a later batch once the last of them
/// is dropped, so what is kept costs new memory. It has a fixed size: make a copy to `resize_` it.
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
}

impl TensorBatch {
    /// The tensors of a loader's batch, where `feed` wants them.
    pub(crate) fn new(batch: Batch<TensorBuffer>, feed: &Feed) -> Result<Self, Error> {
        let Batch { batch_idx, x, obs, codes, joinids, experiments, n_padding } = batch;
        let x = feed.matrix(x)?;
        let x = match feed.stored {
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
        Ok(Self { batch_idx, x, obs, codes, joinids, experiments, n_padding })
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

    /// Copies the tensors to `device`. On the CPU already, nothing is copied.
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
        Ok(Self { x, codes, joinids, ..self })
    }

    /// `x`, obs and joinids.
    pub fn into_parts(self) -> (Tensor, RecordBatch, Tensor) {
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
    /// X.
    fn matrix(&self, x: Matrix<TensorBuffer>) -> Result<Tensor, Error> {
        match (x, &self.staging) {
            (Matrix::Dense { values, n_rows, n_columns }, None) => {
                values.into_tensor(&[size(n_rows)?, size(n_columns)?])
            }
            (Matrix::Dense { values, n_rows, n_columns }, Some(staging)) => {
                let host = values.source_matrix(n_rows, n_columns)?;
                let (x, ticket) = staging.device().begin_copy(&host)?;
                values.give_back_after(ticket);
                Ok(x)
            }
            (Matrix::Csr(csr), None) => sparse_csr(csr),
            (Matrix::Csr(mut csr), Some(staging)) => match self.dense_kind {
                Some(kind) => {
                    remove_duplicates(&mut csr)?;
                    staging.send_rows(csr)?.to_dense(kind)
                }
                None => staging.send_rows(csr)?.to_sparse(),
            },
            (Matrix::Coo(coo), None) => sparse_coo(coo),
            (Matrix::Coo(coo), Some(_)) => sparse_coo(coo)?
                .f_to(self.device)
                .map_err(Error::torch("a copy of X's values on the device")),
        }
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
fn sparse_csr(csr: CsrBatch<TensorBuffer>) -> Result<Tensor, Error> {
    let shape = [size(csr.n_rows())?, size(csr.n_columns)?];
    let crow: Result<Vec<i32>, _> =
        csr.row_offsets.iter().map(|&offset| offset.try_into()).collect();
    let crow = crow.map_err(|_| Error::TooManyValues { nnz: csr.nnz() })?;
    let crow =
        Tensor::f_from_slice(&crow).map_err(Error::torch("the row offsets of a sparse batch"))?;
    let (columns, values) = (csr.columns.into_flat()?, csr.values.into_flat()?);
    let options = (Kind::Float, Device::Cpu);
    Tensor::f_internal_sparse_csr_tensor_unsafe(&crow, &columns, &values, shape, options)
        .map_err(Error::torch("a sparse CSR tensor"))
}

/// torch's sparse COO tensor of a batch: indices int64, which torch demands, values f32. The values stay where they are.
///
/// Values stored twice for one cell and gene, which SOMA arrays may have, make it an uncoalesced tensor, in which they add up.
fn sparse_coo(mut coo: CooBatch<TensorBuffer>) -> Result<Tensor, Error> {
    let shape = [size(coo.shape.0)?, size(coo.shape.1)?];
    let distinct = {
        let (rows, columns) =
            (coo.rows.elements_mut().into_u32()?, coo.columns.elements_mut().into_u32()?);
        let cells = || rows.iter().zip(columns.iter());
        cells().zip(cells().skip(1)).all(|(one, next)| one != next)
    };
    let (rows, columns) = (coo.rows.into_flat()?, coo.columns.into_flat()?);
    let indices = Tensor::f_stack(&[&rows, &columns], 0)
        .and_then(|indices| indices.f_to_kind(Kind::Int64))
        .map_err(Error::torch("the indices of a sparse batch"))?;
    let (values, options) = (coo.values.into_flat()?, (Kind::Float, Device::Cpu));
    Tensor::f_sparse_coo_tensor_indices_size(&indices, &values, shape, options, distinct)
        .map_err(Error::torch("a sparse COO tensor"))
}
