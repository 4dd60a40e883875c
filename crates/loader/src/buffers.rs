//! Where the values of dense batches are written: memory that is owned elsewhere, and comes back when a batch is
//! dropped.
//!
//! A trait, so that a framework's own memory (a tensor's) is written directly instead of being copied into.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

/// Gives buffers for dense batches. A buffer goes back to where it came from when it is dropped.
pub trait BatchBuffers: Send + Sync + 'static {
    /// A row-major f32 buffer; `as_mut` gives exactly as many values as were asked for.
    type Buffer: AsMut<[f32]> + fmt::Debug + Send + 'static;

    /// A buffer of `n_values` values, whatever they are: all of them are overwritten.
    ///
    /// # Errors
    /// [`Error::Buffer`] or [`Error::OutOfMemory`] where there is none to be had.
    fn take(&self, n_values: usize) -> Result<Self::Buffer, Error>;
}

type FreeList = Mutex<Vec<Vec<f32>>>;

/// Buffers on the heap, kept for reuse when they come back.
#[derive(Clone)]
pub struct HeapBuffers {
    free: Arc<FreeList>,
    max_free: usize,
}

impl HeapBuffers {
    /// A pool that keeps at most `max_free` buffers that nobody uses; more than that are freed as they come back.
    pub fn new(max_free: usize) -> Self {
        Self { free: Arc::default(), max_free }
    }

    /// How many buffers lie in the pool now.
    pub fn n_free(&self) -> usize {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl fmt::Debug for HeapBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBuffers")
            .field("n_free", &self.n_free())
            .field("max_free", &self.max_free)
            .finish_non_exhaustive()
    }
}

impl BatchBuffers for HeapBuffers {
    type Buffer = HeapBuffer;

    fn take(&self, n_values: usize) -> Result<HeapBuffer, Error> {
        let reused = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // One that is too small is no help: to grow it would copy what is overwritten anyway.
        let mut values = reused.filter(|values| n_values <= values.capacity()).unwrap_or_default();
        let missing = n_values.saturating_sub(values.len());
        values
            .try_reserve_exact(missing)
            .map_err(|source| Error::Buffer { n_values, source: Box::new(source) })?;
        values.resize(n_values, 0.0);
        Ok(HeapBuffer { values, pool: self.clone() })
    }
}

/// Values on the heap; reads as a slice. Dropping it gives its memory back to its [`HeapBuffers`].
pub struct HeapBuffer {
    values: Vec<f32>,
    pool: HeapBuffers,
}

impl Deref for HeapBuffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values
    }
}

impl AsRef<[f32]> for HeapBuffer {
    fn as_ref(&self) -> &[f32] {
        &self.values
    }
}

impl AsMut<[f32]> for HeapBuffer {
    fn as_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }
}

impl fmt::Debug for HeapBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBuffer").field("n_values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Drop for HeapBuffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.pool.max_free {
            free.push(std::mem::take(&mut self.values));
        }
    }
}
