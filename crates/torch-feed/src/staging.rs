//! What is copied to a device besides dense values: sparse rows, joinids and codes, from host memory that it copies from best.

use std::sync::Arc;

use loader::{BatchBuffer as _, CsrBatch};
use tch::{Kind, TchError, Tensor};

use crate::buffers::TensorBuffer;
use crate::device::CopyDevice;
use crate::error::Error;
use crate::memory::{ValueType, ValuesMut};
use crate::pool::Pool;

/// Host memory for one loader's batches on their way to a device.
#[derive(Debug)]
pub(crate) struct Staging {
    device: Arc<dyn CopyDevice>,
    numbers: Pool,
    row_offsets: Pool,
}

/// Sparse rows on the device, as they were sent.
#[derive(Debug)]
pub(crate) struct SentRows {
    /// int64, one more than there are rows; the first is 0.
    row_offsets: Tensor,
    /// int32, of each stored value.
    columns: Tensor,
    /// f32.
    values: Tensor,
    n_columns: i64,
}

impl Staging {
    /// Room for as many batches on their way as `most`.
    pub(crate) fn new(device: Arc<dyn CopyDevice>, most: usize) -> Self {
        let pool = || Pool::new(Arc::clone(&device), most);
        let (numbers, row_offsets) = (pool(), pool());
        Self { device, numbers, row_offsets }
    }

    /// Where it copies to.
    pub(crate) fn device(&self) -> &dyn CopyDevice {
        &*self.device
    }

    /// Sends columns of as many numbers each, as one copy: an int64 tensor for each.
    pub(crate) fn send_numbers(&self, columns: &[&[i64]]) -> Result<Vec<Tensor>, Error> {
        let n_rows = columns.first().map_or(0, |column| column.len());
        let n_values = n_rows * columns.len();
        let sent = self.send(&self.numbers, n_values, ValueType::I64, |memory| {
            if let ValuesMut::I64(values) = memory {
                let numbers = columns.iter().copied().flatten();
                values.iter_mut().zip(numbers).for_each(|(value, number)| *value = *number);
            }
        })?;
        let part = |idx: usize| sent.f_narrow(0, (idx * n_rows) as i64, n_rows as i64);
        (0..columns.len())
            .map(part)
            .collect::<Result<_, _>>()
            .map_err(Error::torch("the joinids and codes on the device"))
    }

    /// Sends sparse rows.
    ///
    /// # Errors
    /// More columns or values than torch can address.
    pub(crate) fn send_rows(&self, rows: CsrBatch<TensorBuffer>) -> Result<SentRows, Error> {
        let n_columns = i32::try_from(rows.n_columns)
            .map_err(|_| Error::TooLarge { n_values: rows.n_columns })?;
        let row_offsets =
            self.send(&self.row_offsets, rows.n_rows() + 1, ValueType::I64, |memory| {
                if let ValuesMut::I64(values) = memory {
                    // A matrix of no rows may have no offsets; one is zero then, too.
                    values[0] = 0;
                    let offsets = rows.row_offsets.iter().map(|offset| *offset as i64);
                    values.iter_mut().zip(offsets).for_each(|(value, offset)| *value = offset);
                }
            })?;
        let (columns, values) = (self.send_buffer(rows.columns)?, self.send_buffer(rows.values)?);
        Ok(SentRows { row_offsets, columns, values, n_columns: i64::from(n_columns) })
    }

    /// Begins the copy of what the loader wrote.
    fn send_buffer(&self, buffer: TensorBuffer) -> Result<Tensor, Error> {
        let (copy, ticket) = self.device.begin_copy(&buffer.source()?)?;
        buffer.give_back_after(ticket);
        Ok(copy)
    }

    /// Begins the copy of `n_values` values that `write` writes.
    fn send(
        &self,
        pool: &Pool,
        n_values: usize,
        value_type: ValueType,
        write: impl FnOnce(ValuesMut<'_>),
    ) -> Result<Tensor, Error> {
        let what = "memory for a batch on its way to the device";
        // Sparse batches differ in size a little; rounded up, one fits the next.
        let mut memory =
            pool.take(n_values.next_power_of_two(), value_type).map_err(Error::torch(what))?;
        write(memory.values_mut());
        let host = memory.source(n_values);
        let host = host.map_err(Error::torch("a batch on its way to the device"));
        match host.and_then(|host| self.device.begin_copy(&host)) {
            Ok((copy, ticket)) => {
                pool.give_back_after(memory, ticket);
                Ok(copy)
            }
            Err(error) => {
                pool.give_back(memory);
                Err(error)
            }
        }
    }
}

impl SentRows {
    fn nnz(&self) -> i64 {
        self.values.size()[0]
    }

    fn n_rows(&self) -> i64 {
        self.row_offsets.size()[0] - 1
    }

    /// torch's sparse CSR tensor of them: crow and col int64, values f32.
    pub(crate) fn to_sparse(&self) -> Result<Tensor, Error> {
        let failed = || Error::torch("a sparse CSR tensor on the device");
        let options = (Kind::Float, self.values.device());
        let shape = [self.n_rows(), self.n_columns];
        let columns = self.columns.f_to_kind(Kind::Int64).map_err(failed())?;
        Tensor::f_internal_sparse_csr_tensor_unsafe(
            &self.row_offsets,
            &columns,
            &self.values,
            shape,
            options,
        )
        .map_err(failed())
    }

    /// A dense matrix of them, made on the device. No cell and gene may be there twice, as [`remove_duplicates`] provides.
    pub(crate) fn to_dense(&self, kind: Kind) -> Result<Tensor, Error> {
        self.scattered(kind).map_err(Error::torch("a dense batch on the device"))
    }

    fn scattered(&self, kind: Kind) -> Result<Tensor, TchError> {
        let (n_rows, device) = (self.n_rows(), self.values.device());
        let starts =
            Tensor::f_arange(n_rows, (Kind::Int64, device))?.f_mul_scalar(self.n_columns)?;
        let nnz_of_rows = self.row_offsets.f_diff(1, 0, None::<&Tensor>, None::<&Tensor>)?;
        // With the size told, torch need not ask the device for it.
        let starts = starts.f_repeat_interleave_self_tensor(&nnz_of_rows, 0, self.nnz())?;
        let places = starts.f_add(&self.columns)?;
        let mut dense = Tensor::f_zeros([n_rows * self.n_columns], (kind, device))?;
        drop(dense.f_scatter_(0, &places, &self.values.f_to_kind(kind)?)?);
        dense.f_view_([n_rows, self.n_columns])
    }
}

/// Leaves each cell and gene once, with the value that is stored last: what densify gives.
///
/// A device scatters in no order, so of two values for one place either might stay.
pub(crate) fn remove_duplicates(rows: &mut CsrBatch<TensorBuffer>) -> Result<(), Error> {
    let columns = rows.columns.elements_mut().into_u32()?;
    let values = rows.values.elements_mut().into_f32()?;
    let ascends = |columns: &[u32]| columns.windows(2).all(|pair| pair[0] < pair[1]);
    if rows.row_offsets.windows(2).all(|ends| ascends(&columns[ends[0]..ends[1]])) {
        return Ok(());
    }
    let (mut n_kept, mut start) = (0, 0);
    for end in rows.row_offsets.iter_mut().skip(1) {
        let mut cells: Vec<(u32, f32)> = columns[start..*end]
            .iter()
            .copied()
            .zip(values[start..*end].iter().copied())
            .rev()
            .collect();
        // Of equal columns the one that was stored last comes first, and stays.
        cells.sort_by_key(|(column, _)| *column);
        cells.dedup_by_key(|(column, _)| *column);
        for (column, value) in cells {
            (columns[n_kept], values[n_kept]) = (column, value);
            n_kept += 1;
        }
        (start, *end) = (*end, n_kept);
    }
    rows.columns.truncate(n_kept);
    rows.values.truncate(n_kept);
    Ok(())
}
