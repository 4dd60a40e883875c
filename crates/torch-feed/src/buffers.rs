//! Batch buffers in memory that torch owns, kept for reuse.

use std::fmt;
use std::sync::Arc;

use loader::{BatchBuffer, BatchBuffers, BufferError, ElementType, ElementsMut};
use tch::Tensor;

use crate::device::{CopyDevice, Ticket, TorchDevice};
use crate::error::Error;
use crate::memory::{Memory, ValueType};
use crate::pool::Pool;

/// A pool of CPU tensors that the loader writes batches into.
#[derive(Clone)]
pub struct TensorBuffers {
    pool: Arc<Pool>,
    max_free: usize,
}

impl TensorBuffers {
    /// Makes a pool that keeps at most `max_free` unused tensors; further ones are freed when they
    /// come back.
    pub fn new(max_free: usize) -> Self {
        Self::copied_to(Arc::new(TorchDevice::cpu()), max_free)
    }

    /// Makes a pool of tensors that are copied to this device, pinned if that helps; at most
    /// `max_free` are free, and as many are being copied.
    pub(crate) fn copied_to(device: Arc<dyn CopyDevice>, max_free: usize) -> Self {
        Self { pool: Arc::new(Pool::new(device, max_free)), max_free }
    }

    /// Number of unused tensors in the pool.
    pub fn n_free(&self) -> usize {
        self.pool.n_free()
    }
}

impl fmt::Debug for TensorBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorBuffers({} free, at most {})", self.n_free(), self.max_free)
    }
}

impl BatchBuffers for TensorBuffers {
    type Buffer = TensorBuffer;

    fn take(
        &self,
        n_values: usize,
        element_type: ElementType,
    ) -> Result<TensorBuffer, BufferError> {
        let failed = |source| BufferError { n_values, source };
        let value_type = ValueType::for_element(element_type)
            .ok_or_else(|| failed(format!("no tensors have elements of {element_type}").into()))?;
        let memory =
            self.pool.take(n_values, value_type).map_err(|source| failed(Box::new(source)))?;
        Ok(TensorBuffer { memory: Some(memory), n_values, pool: Arc::clone(&self.pool) })
    }
}

/// The memory of a dense batch, or of a part of a sparse one. Dropping it returns the memory to its
/// [`TensorBuffers`].
pub struct TensorBuffer {
    /// Present until it is dropped.
    memory: Option<Memory>,
    n_values: usize,
    pool: Arc<Pool>,
}

impl TensorBuffer {
    /// The values as a matrix for a device to copy from, before
    /// [`give_back_after`](Self::give_back_after) returns the memory.
    pub(crate) fn source_matrix(&self, n_rows: usize, n_columns: usize) -> Result<Tensor, Error> {
        let shape = [size(n_rows)?, size(n_columns)?];
        self.source()?.f_view_(shape).map_err(Error::torch("a matrix of a batch's values"))
    }

    /// The elements for a device to copy from, before [`give_back_after`](Self::give_back_after)
    /// returns the memory. Whole numbers are int32, or of 16 or 8 bits.
    pub(crate) fn source(&self) -> Result<Tensor, Error> {
        match &self.memory {
            Some(memory) => {
                memory.source(self.n_values).map_err(Error::torch("a view of a batch's memory"))
            }
            None => unreachable!("a buffer has its memory until it is dropped"),
        }
    }

    /// The elements as a tensor of this shape, without a copy. The memory returns to the pool when
    /// no tensor shares it any more.
    pub(crate) fn into_tensor(mut self, shape: &[i64]) -> Result<Tensor, Error> {
        let Some(memory) = self.memory.take() else {
            unreachable!("a buffer has its memory until it is dropped")
        };
        let pool = Arc::clone(&self.pool);
        memory
            .lend(shape, move |memory| pool.give_back(memory))
            .map_err(Error::torch("a tensor of a batch's memory"))
    }

    /// The elements as a one-dimensional tensor, without a copy.
    pub(crate) fn into_flat(self) -> Result<Tensor, Error> {
        let shape = [size(self.n_values)?];
        self.into_tensor(&shape)
    }

    /// Returns the memory to the pool, for reuse when the copy with this ticket is done.
    pub(crate) fn give_back_after(mut self, ticket: Ticket) {
        if let Some(memory) = self.memory.take() {
            self.pool.give_back_after(memory, ticket);
        }
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

/// Converts a size to torch's type.
pub(crate) fn size(n: usize) -> Result<i64, Error> {
    i64::try_from(n).map_err(|_| Error::TooLarge { n_values: n })
}

impl fmt::Debug for TensorBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorBuffer({} values)", self.n_values)
    }
}

impl Drop for TensorBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool.give_back(memory);
        }
    }
}
