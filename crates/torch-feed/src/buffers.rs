//! Batches' buffers in memory that torch owns, kept for reuse.

use std::fmt;
use std::sync::Arc;

use loader::{BatchBuffer, BatchBuffers, ElementType, ElementsMut};
use tch::Tensor;

use crate::device::{CopyDevice, Ticket, TorchDevice};
use crate::error::Error;
use crate::memory::Memory;
use crate::pool::Pool;

/// A pool of tensors on the CPU that the loader writes batches into.
#[derive(Clone)]
pub struct TensorBuffers {
    pool: Arc<Pool>,
    max_free: usize,
}

impl TensorBuffers {
    /// A pool that keeps at most `max_free` tensors that no batch uses; more than that are freed as they come back.
    pub fn new(max_free: usize) -> Self {
        Self::copied_to(Arc::new(TorchDevice::cpu()), max_free)
    }

    /// A pool of tensors that are copied to this device, and pinned where that helps; at most `max_free` are free, and as many on
    /// their way.
    pub(crate) fn copied_to(device: Arc<dyn CopyDevice>, max_free: usize) -> Self {
        Self { pool: Arc::new(Pool::new(device, max_free)), max_free }
    }

    /// How many tensors lie in the pool now.
    pub fn n_free(&self) -> usize {
        self.pool.n_free()
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

    fn take(
        &self,
        n_values: usize,
        element_type: ElementType,
    ) -> Result<TensorBuffer, loader::Error> {
        let memory = self
            .pool
            .take(n_values, element_type.into())
            .map_err(|source| loader::Error::Buffer { n_values, source: Box::new(source) })?;
        Ok(TensorBuffer { memory: Some(memory), n_values, pool: Arc::clone(&self.pool) })
    }
}

/// The memory of one dense batch, or of a part of a sparse one. Goes back to its [`TensorBuffers`] when it is dropped.
pub struct TensorBuffer {
    /// There until it is dropped.
    memory: Option<Memory>,
    n_values: usize,
    pool: Arc<Pool>,
}

impl TensorBuffer {
    /// A view of the values as a matrix; shares the memory.
    pub(crate) fn matrix(&self, n_rows: usize, n_columns: usize) -> Result<Tensor, Error> {
        let shape = [size(n_rows)?, size(n_columns)?];
        let flat = self.flat()?;
        flat.f_view_(shape).map_err(Error::torch("a matrix of a batch's values"))
    }

    /// A view of the elements; shares the memory. Whole numbers are int32.
    pub(crate) fn flat(&self) -> Result<Tensor, Error> {
        match &self.memory {
            Some(memory) => {
                memory.first(self.n_values).map_err(Error::torch("a view of a batch's memory"))
            }
            None => unreachable!("a buffer has its memory until it is dropped"),
        }
    }

    /// Gives the memory back to the pool, to be used again when the copy with this ticket is done.
    pub(crate) fn give_back_after(mut self, ticket: Ticket) {
        if let Some(memory) = self.memory.take() {
            self.pool.give_back_after(memory, ticket);
        }
    }

    /// Takes the memory from the pool for good: views of it stay as they are.
    pub(crate) fn leave_pool(mut self) {
        self.memory = None;
    }
}

impl BatchBuffer for TensorBuffer {
    fn elements_mut(&mut self) -> ElementsMut<'_> {
        match &mut self.memory {
            Some(memory) => memory.values_mut().elements(self.n_values),
            None => unreachable!("a buffer has its memory until it is dropped"),
        }
    }

    fn truncate(&mut self, n: usize) {
        self.n_values = self.n_values.min(n);
    }
}

/// A size as torch counts.
pub(crate) fn size(n: usize) -> Result<i64, Error> {
    i64::try_from(n).map_err(|_| Error::TooLarge { n_values: n })
}

impl fmt::Debug for TensorBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorBuffer").field("n_values", &self.n_values).finish_non_exhaustive()
    }
}

impl Drop for TensorBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool.give_back(memory);
        }
    }
}
