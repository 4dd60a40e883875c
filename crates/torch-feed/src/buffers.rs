//! Dense batches' buffers in memory that torch owns, kept for reuse.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use loader::{BatchBuffers, DenseBuffer, DenseType, DenseValuesMut};
use tch::Tensor;

use crate::error::Error;
use crate::memory::Memory;

/// A pool of tensors on the CPU that the loader writes batches into.
#[derive(Clone)]
pub struct TensorBuffers {
    free: Arc<Mutex<Vec<Memory>>>,
    max_free: usize,
}

impl TensorBuffers {
    /// A pool that keeps at most `max_free` tensors that no batch uses; more than that are freed as they come back.
    pub fn new(max_free: usize) -> Self {
        Self { free: Arc::default(), max_free }
    }

    /// How many tensors lie in the pool now.
    pub fn n_free(&self) -> usize {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl fmt::Debug for TensorBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorBuffers")
            .field("n_free", &self.n_free())
            .field("max_free", &self.max_free)
            .finish_non_exhaustive()
    }
}

impl BatchBuffers for TensorBuffers {
    type Buffer = TensorBuffer;

    fn take(&self, n_values: usize, dense_type: DenseType) -> Result<TensorBuffer, loader::Error> {
        let reused = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let fits =
            |memory: &Memory| memory.n_values() >= n_values && memory.dense_type() == dense_type;
        let memory = match reused.filter(fits) {
            Some(memory) => memory,
            None => Memory::zeros(n_values, dense_type)
                .map_err(|source| loader::Error::Buffer { n_values, source: Box::new(source) })?,
        };
        Ok(TensorBuffer { memory: Some(memory), n_values, pool: self.clone() })
    }
}

/// The memory of one dense batch. Goes back to its [`TensorBuffers`] when it is dropped.
pub struct TensorBuffer {
    /// There until it is dropped.
    memory: Option<Memory>,
    n_values: usize,
    pool: TensorBuffers,
}

impl TensorBuffer {
    /// A view of the values as a matrix; shares the memory.
    pub(crate) fn matrix(&self, n_rows: usize, n_columns: usize) -> Result<Tensor, Error> {
        let size = |n: usize| i64::try_from(n).map_err(|_| Error::TooLarge { n_values: n });
        let shape = [size(n_rows)?, size(n_columns)?];
        match &self.memory {
            Some(memory) => memory
                .tensor()
                .f_narrow(0, 0, size(self.n_values)?)
                .and_then(|flat| flat.f_view_(shape))
                .map_err(Error::torch("a matrix of a batch's values")),
            None => unreachable!("a buffer has its memory until it is dropped"),
        }
    }

    /// Takes the memory from the pool for good: views of it stay as they are.
    pub(crate) fn leave_pool(mut self) {
        self.memory = None;
    }
}

impl DenseBuffer for TensorBuffer {
    fn values_mut(&mut self) -> DenseValuesMut<'_> {
        match &mut self.memory {
            Some(memory) => memory.values_mut().slice(0..self.n_values),
            None => unreachable!("a buffer has its memory until it is dropped"),
        }
    }
}

impl fmt::Debug for TensorBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorBuffer").field("n_values", &self.n_values).finish_non_exhaustive()
    }
}

impl Drop for TensorBuffer {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.pool.max_free {
            free.push(memory);
        }
    }
}
