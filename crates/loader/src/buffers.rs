//! Buffers that batches are written into, and the pool that lends them.
//!
//! [`BatchBuffers`] is a trait so that batches can be written straight into a framework's own
//! memory, for example a tensor's, without a copy.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;

use crate::element_type::ElementType;
#[cfg(feature = "sprs")]
use crate::elements::{ElementTypeError, wrong_type};
use crate::elements::{Elements, ElementsMut};

/// The [`BatchBuffers`] in use could not provide a buffer.
#[derive(Debug, thiserror::Error)]
#[error("cannot get a buffer of {n_values} values for a batch: make the batches smaller")]
pub struct BufferError {
    /// Number of values.
    pub n_values: usize,
    /// The reason.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A pool of buffers for batches. Dropping a buffer returns its memory to the pool.
pub trait BatchBuffers: Send + Sync + 'static {
    /// The values of a dense batch, or the rows, columns or values of a sparse batch.
    type Buffer: BatchBuffer;

    /// Takes a buffer of `n` elements of this type. Their values do not matter: all of them are
    /// overwritten.
    ///
    /// # Errors
    /// There is no memory for it.
    fn take(&self, n: usize, element_type: ElementType) -> Result<Self::Buffer, BufferError>;
}

/// The memory of a dense batch, or of a part of a sparse batch.
pub trait BatchBuffer: fmt::Debug + Send + 'static {
    /// All elements, for writing: exactly as many as were requested, and of the requested type.
    fn elements_mut(&mut self) -> ElementsMut<'_>;

    /// Keeps only the first `n` elements.
    fn truncate(&mut self, n: usize);
}

/// A buffer that can be read as a slice.
pub trait ReadableBuffer {
    /// All elements.
    fn elements(&self) -> Elements<'_>;
}

/// A pool of buffers on the heap. Cheap to clone; clones share the pool.
#[derive(Clone)]
pub struct HeapBuffers {
    free: Arc<Mutex<Free>>,
    max_free: usize,
}

/// Unused memory, by element type.
#[derive(Default)]
struct Free {
    f32: Vec<Vec<f32>>,
    f16: Vec<Vec<f16>>,
    u32: Vec<Vec<u32>>,
    u16: Vec<Vec<u16>>,
    u8: Vec<Vec<u8>>,
}

impl HeapBuffers {
    /// Makes a pool that keeps at most `max_free` unused buffers of each element type; further ones
    /// are freed when they come back.
    pub fn new(max_free: usize) -> Self {
        Self { free: Arc::default(), max_free }
    }

    /// Number of unused buffers in the pool.
    pub fn n_free(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.f32.len() + free.f16.len() + free.u32.len() + free.u16.len() + free.u8.len()
    }

    /// Memory of this type for `n` elements: the smallest that is large enough, so that the
    /// matrices of a batch keep memory of their own sizes. If none is, the largest of the too
    /// small ones.
    fn reused(&self, element_type: ElementType, n: usize) -> Memory {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match element_type {
            ElementType::F32 => Memory::F32(best_fitting(&mut free.f32, n)),
            ElementType::F16 => Memory::F16(best_fitting(&mut free.f16, n)),
            ElementType::U32 => Memory::U32(best_fitting(&mut free.u32, n)),
            ElementType::U16 => Memory::U16(best_fitting(&mut free.u16, n)),
            ElementType::U8 => Memory::U8(best_fitting(&mut free.u8, n)),
        }
    }
}

/// Removes the memory that fits `n` elements best: the most recent one of equals. New, empty memory
/// if there is none.
fn best_fitting<E>(free: &mut Vec<Vec<E>>, n: usize) -> Vec<E> {
    let unfitness = |elements: &Vec<E>| {
        let capacity = elements.capacity();
        if capacity >= n { (false, capacity) } else { (true, n - capacity) }
    };
    let best = (0..free.len()).rev().min_by_key(|idx| unfitness(&free[*idx]));
    best.map(|idx| free.remove(idx)).unwrap_or_default()
}

impl fmt::Debug for HeapBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapBuffers({} free, at most {} of a type)", self.n_free(), self.max_free)
    }
}

impl BatchBuffers for HeapBuffers {
    type Buffer = HeapBuffer;

    fn take(&self, n: usize, element_type: ElementType) -> Result<HeapBuffer, BufferError> {
        let memory = match self.reused(element_type, n) {
            Memory::F32(values) => Memory::F32(fitting(values, n)?),
            Memory::F16(values) => Memory::F16(fitting(values, n)?),
            Memory::U32(numbers) => Memory::U32(fitting(numbers, n)?),
            Memory::U16(numbers) => Memory::U16(fitting(numbers, n)?),
            Memory::U8(numbers) => Memory::U8(fitting(numbers, n)?),
        };
        Ok(HeapBuffer { memory, pool: self.clone() })
    }
}

/// Resizes a vector to `n` elements, in new memory if its own is too small.
fn fitting<E: Copy + Default>(elements: Vec<E>, n: usize) -> Result<Vec<E>, BufferError> {
    // Growing would copy elements that are overwritten anyway.
    let mut elements = if n <= elements.capacity() { elements } else { Vec::new() };
    let missing = n.saturating_sub(elements.len());
    elements
        .try_reserve_exact(missing)
        .map_err(|source| BufferError { n_values: n, source: Box::new(source) })?;
    elements.resize(n, E::default());
    Ok(elements)
}

/// A buffer on the heap. Dropping it returns its memory to its [`HeapBuffers`].
pub struct HeapBuffer {
    memory: Memory,
    pool: HeapBuffers,
}

enum Memory {
    F32(Vec<f32>),
    F16(Vec<f16>),
    U32(Vec<u32>),
    U16(Vec<u16>),
    U8(Vec<u8>),
}

impl HeapBuffer {
    /// The 32-bit floats; the memory does not return to the pool.
    ///
    /// # Errors
    /// The elements have another type.
    #[cfg(feature = "sprs")]
    pub(crate) fn into_f32(mut self) -> Result<Vec<f32>, ElementTypeError> {
        match &mut self.memory {
            Memory::F32(values) => Ok(std::mem::take(values)),
            _ => Err(wrong_type(ElementType::F32, self.elements().element_type())),
        }
    }

    /// The unsigned 32-bit integers; the memory does not return to the pool.
    ///
    /// # Errors
    /// The elements have another type.
    #[cfg(feature = "sprs")]
    pub(crate) fn into_u32(mut self) -> Result<Vec<u32>, ElementTypeError> {
        match &mut self.memory {
            Memory::U32(numbers) => Ok(std::mem::take(numbers)),
            _ => Err(wrong_type(ElementType::U32, self.elements().element_type())),
        }
    }
}

impl BatchBuffer for HeapBuffer {
    fn elements_mut(&mut self) -> ElementsMut<'_> {
        match &mut self.memory {
            Memory::F32(values) => ElementsMut::F32(values),
            Memory::F16(values) => ElementsMut::F16(values),
            Memory::U32(numbers) => ElementsMut::U32(numbers),
            Memory::U16(numbers) => ElementsMut::U16(numbers),
            Memory::U8(numbers) => ElementsMut::U8(numbers),
        }
    }

    fn truncate(&mut self, n: usize) {
        match &mut self.memory {
            Memory::F32(values) => values.truncate(n),
            Memory::F16(values) => values.truncate(n),
            Memory::U32(numbers) => numbers.truncate(n),
            Memory::U16(numbers) => numbers.truncate(n),
            Memory::U8(numbers) => numbers.truncate(n),
        }
    }
}

impl ReadableBuffer for HeapBuffer {
    fn elements(&self) -> Elements<'_> {
        match &self.memory {
            Memory::F32(values) => Elements::F32(values),
            Memory::F16(values) => Elements::F16(values),
            Memory::U32(numbers) => Elements::U32(numbers),
            Memory::U16(numbers) => Elements::U16(numbers),
            Memory::U8(numbers) => Elements::U8(numbers),
        }
    }
}

impl fmt::Debug for HeapBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapBuffer({} x {})", self.elements().len(), self.elements().element_type())
    }
}

impl Drop for HeapBuffer {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        let max_free = self.pool.max_free;
        match &mut self.memory {
            Memory::F32(values) => keep(values, &mut free.f32, max_free),
            Memory::F16(values) => keep(values, &mut free.f16, max_free),
            Memory::U32(numbers) => keep(numbers, &mut free.u32, max_free),
            Memory::U16(numbers) => keep(numbers, &mut free.u16, max_free),
            Memory::U8(numbers) => keep(numbers, &mut free.u8, max_free),
        }
    }
}

/// Puts memory into the pool, unless it is empty or the pool is full.
fn keep<E>(memory: &mut Vec<E>, free: &mut Vec<Vec<E>>, max_free: usize) {
    if memory.capacity() > 0 && free.len() < max_free {
        free.push(std::mem::take(memory));
    }
}

#[cfg(test)]
mod tests;
