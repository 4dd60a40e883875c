//! One batch as tensors, and how long they may be used.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use loader::{Batch, BatchBuffer as _, CooBatch, CsrBatch, Matrix, Modality};
use tch::{Device, Kind, Tensor};

use crate::buffers::{TensorBuffer, size};
use crate::error::Error;
use crate::row_values::RowValues;
use crate::staging::{SentRows, Staging, remove_duplicates};
use crate::stored_type::to_stored;

/// Rows of the selection as tensors, with their obs rows.
///
/// The tensors may be kept without the batch, and so may every tensor that shares their memory
/// (`shallow_clone`, views, tensors that autograd keeps for the backward pass). On the CPU the
/// memory of `x` is reused for a later batch when the last of them is dropped, so a kept tensor
/// costs new memory. The memory has a fixed size: copy the tensor before calling `resize_`.
pub struct TensorBatch {
    batch_idx: u64,
    x: Tensor,
    /// Further layers, each with its name.
    layers: Vec<(String, Tensor)>,
    /// Arrays of obsm, each with its name.
    obsm: Vec<(String, Tensor)>,
    /// Modalities, each with its name.
    modalities: Vec<(String, Tensor)>,
    /// Whether each modality has each cell.
    present: Vec<(String, Tensor)>,
    obs: RecordBatch,
    /// With the names of the encoders.
    codes: Vec<(String, Tensor)>,
    joinids: Tensor,
    experiments: Vec<u32>,
    n_padding: usize,
}

/// A batch whose copies to the feed's device have begun. The device has still to make dense or
/// sparse matrices of them.
#[derive(Debug)]
pub(crate) struct SentBatch {
    batch_idx: u64,
    x: SentMatrix,
    layers: Vec<(String, SentMatrix)>,
    obsm: Vec<(String, SentMatrix)>,
    modalities: Vec<(String, SentMatrix)>,
    /// The names of the modalities, then of the encoders.
    names: Vec<String>,
    /// The joinids, whether each modality has each cell, and the codes: int64, one dimension.
    numbers: Vec<Tensor>,
    obs: RecordBatch,
    experiments: Vec<u32>,
    n_padding: usize,
}

/// A matrix on its way to a device.
#[derive(Debug)]
enum SentMatrix {
    /// As it will be delivered.
    Whole(Tensor),
    /// Rows of which the device makes a matrix.
    Rows(SentRows),
}

impl SentBatch {
    /// Begins to copy a loader's batch to the feed's device, or makes its tensors in place.
    pub(crate) fn new(batch: Batch<TensorBuffer>, feed: &Feed) -> Result<Self, Error> {
        let Batch {
            batch_idx,
            x,
            layers,
            obsm,
            modalities,
            obs,
            codes,
            joinids,
            experiments,
            n_padding,
            ..
        } = batch;
        let send = |matrix| feed.send(matrix);
        let (x, layers, obsm) = (send(x)?, named(layers, send)?, named(obsm, send)?);
        let (modalities, present): (Vec<_>, Vec<_>) = modalities
            .into_iter()
            .map(|(name, Modality { x, present, .. })| ((name, x), present))
            .unzip();
        let modalities = named(modalities, send)?;
        let present: Vec<Vec<i64>> =
            present.iter().map(|mask| mask.iter().map(|&is| i64::from(is)).collect()).collect();
        let (encoders, codes) = code_columns(&codes);
        let names = modalities.iter().map(|(name, _)| name.clone()).chain(encoders).collect();
        let present = present.iter().map(Vec::as_slice);
        let columns: Vec<&[i64]> = [&joinids[..]].into_iter().chain(present).chain(codes).collect();
        let numbers = feed.numbers(&columns)?;
        Ok(Self {
            batch_idx,
            x,
            layers,
            obsm,
            modalities,
            names,
            numbers,
            obs,
            experiments,
            n_padding,
        })
    }

    /// Makes the tensors, once the device orders its work after the copies.
    pub(crate) fn finish(self, feed: &Feed) -> Result<TensorBatch, Error> {
        let x = feed.finish(self.x)?;
        let x = match feed.stored {
            Some(kind) if kind != Kind::Float => to_stored(&x, kind)?,
            _ => x,
        };
        let layers = named(self.layers, |layer| feed.finish(layer))?;
        let obsm = named(self.obsm, |array| feed.finish_beside(array))?;
        let modalities = named(self.modalities, |modality| feed.finish_beside(modality))?;
        let mut numbers = self.numbers.into_iter();
        let Some(joinids) = numbers.next() else {
            unreachable!(
                "a tensor comes of each column that was sent, and the first is the joinids"
            )
        };
        let mut present: Vec<(String, Tensor)> = self.names.into_iter().zip(numbers).collect();
        let codes = present.split_off(modalities.len());
        let to_mask = |mask: Tensor| {
            mask.f_to_kind(Kind::Bool).map_err(Error::torch("the mask of a modality"))
        };
        Ok(TensorBatch {
            batch_idx: self.batch_idx,
            x,
            layers,
            obsm,
            modalities,
            present: named(present, to_mask)?,
            obs: self.obs,
            codes,
            joinids,
            experiments: self.experiments,
            n_padding: self.n_padding,
        })
    }
}

impl TensorBatch {
    /// The batch's index in the epoch, from 0.
    pub fn batch_idx(&self) -> u64 {
        self.batch_idx
    }

    /// Number of cells.
    pub fn n_rows(&self) -> usize {
        self.obs.num_rows()
    }

    /// The values, cells x genes: f32, f16 for `BatchForm::F16`, or X's own type
    /// ([`TensorLoader::in_stored_type`](crate::TensorLoader::in_stored_type)). Strided or sparse:
    /// CSR with int32 indices on the CPU and int64 on a GPU, or COO with int64.
    pub fn x(&self) -> &Tensor {
        &self.x
    }

    /// The further layer with this name, cells x genes in the form of `x`, except that its values
    /// always stay floating-point numbers. `None` if the batch has none of this name.
    pub fn layer(&self, name: &str) -> Option<&Tensor> {
        self.layers.iter().find(|(layer, _)| layer == name).map(|(_, tensor)| tensor)
    }

    /// The array of obsm with this name, cells x columns, strided: f16 for `BatchForm::F16`,
    /// otherwise f32. `None` if the batch has none of this name.
    pub fn obsm(&self, name: &str) -> Option<&Tensor> {
        self.obsm.iter().find(|(array, _)| array == name).map(|(_, tensor)| tensor)
    }

    /// The modality with this name, cells x its genes, in its own form. `None` if the batch has
    /// none of this name.
    pub fn modality(&self, name: &str) -> Option<&Tensor> {
        self.modalities.iter().find(|(modality, _)| modality == name).map(|(_, tensor)| tensor)
    }

    /// Whether the modality with this name has each cell: booleans, one dimension. `None` if the
    /// batch has none of this name.
    pub fn present(&self, modality: &str) -> Option<&Tensor> {
        self.present.iter().find(|(name, _)| name == modality).map(|(_, tensor)| tensor)
    }

    /// The selected obs columns, a row for each row of `x`.
    pub fn obs(&self) -> &RecordBatch {
        &self.obs
    }

    /// The codes of each row from the data set's encoder with this name: int64, one dimension.
    /// `None` if there is no such encoder.
    pub fn codes(&self, encoder: &str) -> Option<&Tensor> {
        self.codes.iter().find(|(name, _)| name == encoder).map(|(_, codes)| codes)
    }

    /// The `soma_joinid` of each row: int64, one dimension.
    pub fn joinids(&self) -> &Tensor {
        &self.joinids
    }

    /// The index of each row's experiment in the data set.
    pub fn experiments(&self) -> &[u32] {
        &self.experiments
    }

    /// Number of padding rows at the end ([`Batch::n_padding`]).
    pub fn n_padding(&self) -> usize {
        self.n_padding
    }

    /// The nonzero values of `x` by row, to compare the batches of two loaders.
    pub fn row_values(&self) -> Result<RowValues, Error> {
        RowValues::from_tensor(&self.x)
    }

    /// Copies the tensors to `device`; no copy if they are on the CPU already.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        let copy = |tensor: Tensor, what| tensor.f_to(device).map_err(Error::torch(what));
        let values = "a copy of the values on the device";
        Ok(Self {
            x: copy(self.x, values)?,
            layers: named(self.layers, |layer| copy(layer, values))?,
            obsm: named(self.obsm, |array| copy(array, values))?,
            modalities: named(self.modalities, |modality| copy(modality, values))?,
            present: named(self.present, |mask| copy(mask, "a copy of a mask on the device"))?,
            codes: named(self.codes, |codes| copy(codes, "a copy of the codes on the device"))?,
            joinids: copy(self.joinids, "a copy of the joinids on the device")?,
            ..self
        })
    }

    /// Splits the batch into `x`, obs and joinids.
    pub fn into_parts(self) -> (Tensor, RecordBatch, Tensor) {
        (self.x, self.obs, self.joinids)
    }
}

impl fmt::Debug for TensorBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorBatch({}: {:?}, {} padding)", self.batch_idx, self.x, self.n_padding)
    }
}

/// The conversion of a loader's batches to tensors.
#[derive(Debug)]
pub(crate) struct Feed {
    /// The device for the tensors.
    pub(crate) device: Device,
    /// Copies tensors to the device; `None` if they are made in place.
    pub(crate) staging: Option<Staging>,
    /// The kind of dense tensors that the device makes from sparse rows, if it does.
    pub(crate) dense_kind: Option<Kind>,
    /// X's own type, if batches should have it.
    pub(crate) stored: Option<Kind>,
}

impl Feed {
    /// Begins to send a matrix, or makes its tensor in place.
    fn send(&self, matrix: Matrix<TensorBuffer>) -> Result<SentMatrix, Error> {
        let whole = match (matrix, &self.staging) {
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
            (Matrix::Csr(mut csr), Some(staging)) => {
                if self.dense_kind.is_some() {
                    remove_duplicates(&mut csr)?;
                }
                return staging.send_rows(csr).map(SentMatrix::Rows);
            }
            (Matrix::Coo(coo), None) => sparse_coo(coo),
            (Matrix::Coo(coo), Some(_)) => sparse_coo(coo)?
                .f_to(self.device)
                .map_err(Error::torch("a copy of X's values on the device")),
            (other, _) => Err(Error::UnknownForm { batch: format!("{other:?}") }),
        };
        whole.map(SentMatrix::Whole)
    }

    /// The tensor of a matrix.
    fn finish(&self, matrix: SentMatrix) -> Result<Tensor, Error> {
        match (matrix, self.dense_kind) {
            (SentMatrix::Whole(tensor), _) => Ok(tensor),
            (SentMatrix::Rows(rows), Some(kind)) => rows.to_dense(kind),
            (SentMatrix::Rows(rows), None) => rows.to_sparse(),
        }
    }

    /// The tensor of an array of obsm, which the loader makes dense, or of a modality. It is f16 if
    /// the device makes X so.
    fn finish_beside(&self, matrix: SentMatrix) -> Result<Tensor, Error> {
        let tensor = self.finish(matrix)?;
        match self.dense_kind {
            Some(kind) if kind != Kind::Float => {
                tensor.f_to_kind(kind).map_err(Error::torch("a matrix beside X"))
            }
            _ => Ok(tensor),
        }
    }

    /// Makes an int64 tensor of each column of numbers, all of equal length.
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

/// Converts each value and keeps its name.
fn named<T, U>(
    all: Vec<(String, T)>,
    convert: impl Fn(T) -> Result<U, Error>,
) -> Result<Vec<(String, U)>, Error> {
    all.into_iter().map(|(name, value)| Ok((name, convert(value)?))).collect()
}

/// The names of the encoders, and their codes.
fn code_columns(codes: &RecordBatch) -> (Vec<String>, Vec<&[i64]>) {
    let fields = codes.schema_ref().fields();
    // The loader makes every column of codes Int64.
    let columns = fields.iter().zip(codes.columns()).map(|(field, column)| {
        (field.name().clone(), &column.as_primitive::<Int64Type>().values()[..])
    });
    columns.unzip()
}

/// Makes torch's sparse CSR tensor of a batch: crow and col int32, values f32. Columns and values
/// are not copied.
///
/// Skips torch's check of the structure, which takes longer than everything else; the loader
/// guarantees it. Values that are stored twice for one cell and gene, which SOMA arrays may have,
/// stay separate.
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

/// Makes torch's sparse COO tensor of a batch: indices int64, as torch requires, values f32. The
/// values are not copied.
///
/// Values that are stored twice for one cell and gene, which SOMA arrays may have, make the tensor
/// uncoalesced, so that they add up.
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
