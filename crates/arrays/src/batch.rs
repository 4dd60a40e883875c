//! Batches of rows, and the pool of their buffers.

use std::sync::{Arc, Mutex, PoisonError};

use pipeline::BatchPlace;

use crate::element::Element;

/// Buffers of dropped batches, for reuse by later ones.
#[derive(Debug)]
pub(crate) struct Buffers<T>(Mutex<Vec<Vec<T>>>);

impl<T> Default for Buffers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Buffers<T> {
    /// Takes a buffer: empty, with the memory of a returned one if there is any.
    pub(crate) fn take(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&self, mut buffer: Vec<T>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Rows of an array, in the order of the plan.
///
/// Dropping a batch returns its memory for later batches.
#[derive(Debug)]
pub struct RowBatch<T: Element> {
    pub(crate) values: Vec<T>,
    pub(crate) n_rows: usize,
    pub(crate) row_shape: Arc<[usize]>,
    pub(crate) place: BatchPlace,
    pub(crate) buffers: Arc<Buffers<T>>,
}

impl<T: Element> RowBatch<T> {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The values of all rows, row after row, each in C order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The shape of the values: the number of rows, then the shape of a row.
    pub fn shape(&self) -> Vec<usize> {
        std::iter::once(self.n_rows).chain(self.row_shape.iter().copied()).collect()
    }

    /// The batch's position in its epoch.
    pub fn place(&self) -> BatchPlace {
        self.place
    }

    /// Converts the batch to its values; later batches do not reuse their memory.
    pub fn into_values(mut self) -> Vec<T> {
        std::mem::take(&mut self.values)
    }
}

impl<T: Element> Drop for RowBatch<T> {
    fn drop(&mut self) {
        if self.values.capacity() != 0 {
            self.buffers.give_back(std::mem::take(&mut self.values));
        }
    }
}
