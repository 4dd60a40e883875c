//! Copies sparse rows, joinids and codes to a device, from host memory that it copies from fastest.

use std::sync::Arc;

use loader::{BatchBuffer as _, CsrBatch, ElementsMut};
use tch::{Kind, TchError, Tensor};

use crate::ahead::Ahead;
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

/// Sparse rows on the device.
#[derive(Debug)]
pub(crate) struct SentRows {
    /// int64, one more than there are rows; the first is 0.
    row_offsets: Tensor,
    /// int32 or 16 bits without a sign, one per stored value.
    columns: Tensor,
    /// f32, or counts of 8 or 16 bits without a sign.
    values: Tensor,
    n_columns: i64,
}

impl Staging {
    /// Makes room for at most `most` batches on their way.
    pub(crate) fn new(device: Arc<dyn CopyDevice>, most: usize) -> Self {
        let pool = || Pool::new(Arc::clone(&device), most);
        let (numbers, row_offsets) = (pool(), pool());
        Self { device, numbers, row_offsets }
    }

    /// The target device.
    pub(crate) fn device(&self) -> &dyn CopyDevice {
        &*self.device
    }

    /// Delivers the batches of an epoch.
    pub(crate) fn ahead<T>(&self) -> Ahead<T> {
        Ahead::new(Arc::clone(&self.device), true)
    }

    /// Sends columns of equally many numbers in one copy; returns an int64 tensor for each.
    pub(crate) fn send_numbers(&self, columns: &[&[i64]]) -> Result<Vec<Tensor>, Error> {
        let n_rows = columns.first().map_or(0, |column| column.len());
        let n_values = n_rows * columns.len();
        let sent = self.send(&self.numbers, n_values, |values| {
            let numbers = columns.iter().copied().flatten();
            values.iter_mut().zip(numbers).for_each(|(value, number)| *value = *number);
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
    /// There are more columns or values than torch can address.
    pub(crate) fn send_rows(&self, rows: CsrBatch<TensorBuffer>) -> Result<SentRows, Error> {
        let n_columns = i32::try_from(rows.n_columns)
            .map_err(|_| Error::TooLarge { n_values: rows.n_columns })?;
        let row_offsets = self.send(&self.row_offsets, rows.n_rows() + 1, |values| {
            // A matrix without rows may lack offsets; its only offset is 0.
            values[0] = 0;
            let offsets = rows.row_offsets.iter().map(|offset| *offset as i64);
            values.iter_mut().zip(offsets).for_each(|(value, offset)| *value = offset);
        })?;
        let (columns, values) = (self.send_buffer(rows.columns)?, self.send_buffer(rows.values)?);
        Ok(SentRows { row_offsets, columns, values, n_columns: i64::from(n_columns) })
    }

    /// Begins the copy of a buffer that the loader wrote.
    fn send_buffer(&self, buffer: TensorBuffer) -> Result<Tensor, Error> {
        let (copy, ticket) = self.device.begin_copy(&buffer.source()?)?;
        buffer.give_back_after(ticket);
        Ok(copy)
    }

    /// Begins the copy of `n_values` int64 values, which `write` writes.
    fn send(
        &self,
        pool: &Pool,
        n_values: usize,
        write: impl FnOnce(&mut [i64]),
    ) -> Result<Tensor, Error> {
        let what = "memory for a batch on its way to the device";
        // Sparse batches differ slightly in size; rounded up, one buffer fits the next batch.
        let room = n_values.next_power_of_two();
        let mut memory = pool.take(room, ValueType::I64).map_err(Error::torch(what))?;
        let ValuesMut::I64(values) = memory.values_mut() else {
            unreachable!("the pool returns memory of the requested type")
        };
        write(values);
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

    /// Makes torch's sparse CSR tensor of the rows: crow and col int64, values f32.
    pub(crate) fn to_sparse(&self) -> Result<Tensor, Error> {
        let failed = || Error::torch("a sparse CSR tensor on the device");
        let options = (Kind::Float, self.values.device());
        let shape = [self.n_rows(), self.n_columns];
        let columns = widened(&self.columns, Kind::Int64).map_err(failed())?;
        let values = widened(&self.values, Kind::Float).map_err(failed())?;
        Tensor::f_internal_sparse_csr_tensor_unsafe(
            &self.row_offsets,
            &columns,
            &values,
            shape,
            options,
        )
        .map_err(failed())
    }

    /// Makes a dense matrix of the rows on the device. Requires at most one value per cell and
    /// gene, see [`remove_duplicates`].
    pub(crate) fn to_dense(&self, kind: Kind) -> Result<Tensor, Error> {
        self.scattered(kind).map_err(Error::torch("a dense batch on the device"))
    }

    fn scattered(&self, kind: Kind) -> Result<Tensor, TchError> {
        let (n_rows, device) = (self.n_rows(), self.values.device());
        let starts =
            Tensor::f_arange(n_rows, (Kind::Int64, device))?.f_mul_scalar(self.n_columns)?;
        let nnz_of_rows = self.row_offsets.f_diff(1, 0, None::<&Tensor>, None::<&Tensor>)?;
        // Given the size, torch need not ask the device for it.
        let starts = starts.f_repeat_interleave_self_tensor(&nnz_of_rows, 0, self.nnz())?;
        let places = starts.f_add(&widened(&self.columns, Kind::Int)?)?;
        let mut dense = Tensor::f_zeros([n_rows * self.n_columns], (kind, device))?;
        drop(dense.f_scatter_(0, &places, &widened(&self.values, kind)?)?);
        dense.f_view_([n_rows, self.n_columns])
    }
}

/// The numbers of packed rows as this kind. torch's int16 has their bits, and its conversion keeps
/// their sign.
fn widened(numbers: &Tensor, kind: Kind) -> Result<Tensor, TchError> {
    if numbers.f_kind()? == Kind::Int16 {
        return numbers.f_to_kind(Kind::Int)?.f_bitwise_and_(0xffff)?.f_to_kind(kind);
    }
    numbers.f_to_kind(kind)
}

/// Keeps one value per cell and gene, the last one stored, like densify.
///
/// A device scatters in no defined order, so either of two values for one place could win.
pub(crate) fn remove_duplicates(rows: &mut CsrBatch<TensorBuffer>) -> Result<(), Error> {
    let CsrBatch { row_offsets, columns, values, .. } = rows;
    let n_kept = match columns.elements_mut() {
        ElementsMut::U16(columns) => keep_last(row_offsets, columns, values.elements_mut()),
        columns => keep_last(row_offsets, columns.into_u32()?, values.elements_mut()),
    }?;
    columns.truncate(n_kept);
    values.truncate(n_kept);
    Ok(())
}

/// Keeps the last of equal columns, with values of any type; returns how many are kept.
fn keep_last<C: Copy + Ord>(
    row_offsets: &mut [usize],
    columns: &mut [C],
    values: ElementsMut<'_>,
) -> Result<usize, Error> {
    let ascends = |columns: &[C]| columns.windows(2).all(|pair| pair[0] < pair[1]);
    if row_offsets.windows(2).all(|ends| ascends(&columns[ends[0]..ends[1]])) {
        return Ok(columns.len());
    }
    Ok(match values {
        ElementsMut::U8(counts) => keep_last_of(row_offsets, columns, counts),
        ElementsMut::U16(counts) => keep_last_of(row_offsets, columns, counts),
        values => keep_last_of(row_offsets, columns, values.into_f32()?),
    })
}

fn keep_last_of<C: Copy + Ord, V: Copy>(
    row_offsets: &mut [usize],
    columns: &mut [C],
    values: &mut [V],
) -> usize {
    let (mut n_kept, mut start) = (0, 0);
    for end in row_offsets.iter_mut().skip(1) {
        let columns_of_row = columns[start..*end].iter().copied();
        let mut cells: Vec<(C, V)> =
            columns_of_row.zip(values[start..*end].iter().copied()).rev().collect();
        // The one stored last of equal columns comes first, and stays.
        cells.sort_by_key(|(column, _)| *column);
        cells.dedup_by_key(|(column, _)| *column);
        for (column, value) in cells {
            (columns[n_kept], values[n_kept]) = (column, value);
            n_kept += 1;
        }
        (start, *end) = (*end, n_kept);
    }
    n_kept
}
