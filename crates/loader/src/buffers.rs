//! Where the values of dense batches are written: memory that is owned elsewhere, and comes back when a batch is
//! dropped.
//!
//! A trait, so that a framework's own memory (a tensor's) is written directly instead of being copied into.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;

use crate::error::Error;

/// The type of the values of a dense batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenseType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
}

impl DenseType {
    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::F16 => size_of::<f16>(),
        }
    }
}

/// Dense values, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum DenseValues<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 16-bit floats.
    F16(&'a [f16]),
}

impl DenseValues<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Dense values, to be written.
#[derive(Debug)]
pub enum DenseValuesMut<'a> {
    /// 32-bit floats.
    F32(&'a mut [f32]),
    /// 16-bit floats.
    F16(&'a mut [f16]),
}

impl DenseValuesMut<'_> {
    /// Some of the values.
    ///
    /// # Panics
    /// Where there are fewer.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&mut values[range]),
            Self::F16(values) => Self::F16(&mut values[range]),
        }
    }
}

/// Gives buffers for dense batches. A buffer goes back to where it came from when it is dropped.
pub trait BatchBuffers: Send + Sync + 'static {
    /// Row-major values of a batch.
    type Buffer: DenseBuffer;

    /// A buffer of `n_values` values of this type, whatever they are: all of them are overwritten.
    ///
    /// # Errors
    /// [`Error::Buffer`] or [`Error::OutOfMemory`] where there is none to be had.
    fn take(&self, n_values: usize, dense_type: DenseType) -> Result<Self::Buffer, Error>;
}

/// The memory of one dense batch.
pub trait DenseBuffer: fmt::Debug + Send + 'static {
    /// Exactly as many values as were asked for, of the type that was asked for.
    fn values_mut(&mut self) -> DenseValuesMut<'_>;
}

/// A dense buffer that can be read as a slice.
pub trait ReadableBuffer {
    /// Its values.
    fn values(&self) -> DenseValues<'_>;
}

/// Buffers on the heap, kept for reuse when they come back.
#[derive(Clone)]
pub struct HeapBuffers {
    free: Arc<Mutex<Free>>,
    max_free: usize,
}

/// Buffers that nobody uses.
#[derive(Default)]
struct Free {
    f32: Vec<Vec<f32>>,
    f16: Vec<Vec<f16>>,
}

impl HeapBuffers {
    /// A pool that keeps at most `max_free` buffers of each type that nobody uses; more than that are freed as they come back.
    pub fn new(max_free: usize) -> Self {
        Self { free: Arc::default(), max_free }
    }

    /// How many buffers lie in the pool now.
    pub fn n_free(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.f32.len() + free.f16.len()
    }

    /// The last buffer that came back, if one did.
    fn reused(&self, dense_type: DenseType) -> Values {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match dense_type {
            DenseType::F32 => Values::F32(free.f32.pop().unwrap_or_default()),
            DenseType::F16 => Values::F16(free.f16.pop().unwrap_or_default()),
        }
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

    fn take(&self, n_values: usize, dense_type: DenseType) -> Result<HeapBuffer, Error> {
        let values = match self.reused(dense_type) {
            Values::F32(values) => Values::F32(fitting(values, n_values)?),
            Values::F16(values) => Values::F16(fitting(values, n_values)?),
        };
        Ok(HeapBuffer { values, pool: self.clone() })
    }
}

/// The vector with `n_values` values, in the same memory where that is enough.
fn fitting<V: Copy + Default>(values: Vec<V>, n_values: usize) -> Result<Vec<V>, Error> {
    // One that is too small is no help: to grow it would copy what is overwritten anyway.
    let mut values = if n_values <= values.capacity() { values } else { Vec::new() };
    let missing = n_values.saturating_sub(values.len());
    values
        .try_reserve_exact(missing)
        .map_err(|source| Error::Buffer { n_values, source: Box::new(source) })?;
    values.resize(n_values, V::default());
    Ok(values)
}

/// Values on the heap. Dropping it gives its memory back to its [`HeapBuffers`].
pub struct HeapBuffer {
    values: Values,
    pool: HeapBuffers,
}

enum Values {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl DenseBuffer for HeapBuffer {
    fn values_mut(&mut self) -> DenseValuesMut<'_> {
        match &mut self.values {
            Values::F32(values) => DenseValuesMut::F32(values),
            Values::F16(values) => DenseValuesMut::F16(values),
        }
    }
}

impl ReadableBuffer for HeapBuffer {
    fn values(&self) -> DenseValues<'_> {
        match &self.values {
            Values::F32(values) => DenseValues::F32(values),
            Values::F16(values) => DenseValues::F16(values),
        }
    }
}

impl fmt::Debug for HeapBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dense_type, n_values) = match &self.values {
            Values::F32(values) => (DenseType::F32, values.len()),
            Values::F16(values) => (DenseType::F16, values.len()),
        };
        f.debug_struct("HeapBuffer")
            .field("dense_type", &dense_type)
            .field("n_values", &n_values)
            .finish_non_exhaustive()
    }
}

impl Drop for HeapBuffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        let max_free = self.pool.max_free;
        match &mut self.values {
            Values::F32(values) if free.f32.len() < max_free => {
                free.f32.push(std::mem::take(values));
            }
            Values::F16(values) if free.f16.len() < max_free => {
                free.f16.push(std::mem::take(values));
            }
            _ => {}
        }
    }
}
