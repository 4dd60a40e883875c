//! Memory of batches: owned elsewhere, and returned when a batch is dropped.
//!
//! A trait, so that batches can be written directly into a framework's own memory (a tensor's).

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;

use crate::error::Error;

/// Type of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// 32-bit floats: values.
    F32,
    /// 16-bit floats: values.
    F16,
    /// 32-bit whole numbers: the rows and columns of sparse batches.
    U32,
}

impl ElementType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::F16 => size_of::<f16>(),
            Self::U32 => size_of::<u32>(),
        }
    }

    /// `f32`, `f16` or `u32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::U32 => "u32",
        }
    }

    /// The error for elements of this type if `wanted` was asked for.
    pub(crate) fn is_not(self, wanted: Self) -> Error {
        Error::ElementType { found: self.name(), wanted: wanted.name() }
    }
}

/// Elements, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 16-bit floats.
    F16(&'a [f16]),
    /// 32-bit whole numbers.
    U32(&'a [u32]),
}

impl<'a> Elements<'a> {
    /// Their type.
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::F32(_) => ElementType::F32,
            Self::F16(_) => ElementType::F16,
            Self::U32(_) => ElementType::U32,
        }
    }

    /// The elements as 32-bit floats.
    ///
    /// # Errors
    /// [`Error::ElementType`] if they are of another type.
    pub fn as_f32(self) -> Result<&'a [f32], Error> {
        match self {
            Self::F32(values) => Ok(values),
            other => Err(other.element_type().is_not(ElementType::F32)),
        }
    }

    /// The elements as 32-bit whole numbers.
    ///
    /// # Errors
    /// [`Error::ElementType`] if they are of another type.
    pub fn as_u32(self) -> Result<&'a [u32], Error> {
        match self {
            Self::U32(numbers) => Ok(numbers),
            other => Err(other.element_type().is_not(ElementType::U32)),
        }
    }
}

/// Elements, to be written.
#[derive(Debug)]
pub enum ElementsMut<'a> {
    /// 32-bit floats.
    F32(&'a mut [f32]),
    /// 16-bit floats.
    F16(&'a mut [f16]),
    /// 32-bit whole numbers.
    U32(&'a mut [u32]),
}

impl<'a> ElementsMut<'a> {
    /// Some of the elements.
    ///
    /// # Panics
    /// Where there are fewer.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&mut values[range]),
            Self::F16(values) => Self::F16(&mut values[range]),
            Self::U32(numbers) => Self::U32(&mut numbers[range]),
        }
    }

    /// The first `n` elements, and the others.
    ///
    /// # Panics
    /// Where there are fewer.
    #[must_use]
    pub fn split_at(self, n: usize) -> (Self, Self) {
        match self {
            Self::F32(values) => {
                let (first, rest) = values.split_at_mut(n);
                (Self::F32(first), Self::F32(rest))
            }
            Self::F16(values) => {
                let (first, rest) = values.split_at_mut(n);
                (Self::F16(first), Self::F16(rest))
            }
            Self::U32(numbers) => {
                let (first, rest) = numbers.split_at_mut(n);
                (Self::U32(first), Self::U32(rest))
            }
        }
    }

    /// Their type.
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::F32(_) => ElementType::F32,
            Self::F16(_) => ElementType::F16,
            Self::U32(_) => ElementType::U32,
        }
    }

    /// The elements as 32-bit floats.
    ///
    /// # Errors
    /// [`Error::ElementType`] if they are of another type.
    pub fn into_f32(self) -> Result<&'a mut [f32], Error> {
        match self {
            Self::F32(values) => Ok(values),
            other => Err(other.element_type().is_not(ElementType::F32)),
        }
    }

    /// The elements as 32-bit whole numbers.
    ///
    /// # Errors
    /// [`Error::ElementType`] if they are of another type.
    pub fn into_u32(self) -> Result<&'a mut [u32], Error> {
        match self {
            Self::U32(numbers) => Ok(numbers),
            other => Err(other.element_type().is_not(ElementType::U32)),
        }
    }
}

/// Provides buffers for batches. A buffer returns its memory when it is dropped.
pub trait BatchBuffers: Send + Sync + 'static {
    /// Memory of a dense batch, or of one part of a sparse one.
    type Buffer: BatchBuffer;

    /// A buffer of `n` elements of this type, with any content: all of it is overwritten. A buffer
    /// of another type is an [`Error::ElementType`] of the batch.
    ///
    /// # Errors
    /// [`Error::Buffer`] or [`Error::OutOfMemory`] if there is no memory.
    fn take(&self, n: usize, element_type: ElementType) -> Result<Self::Buffer, Error>;
}

/// Memory of one dense batch, or of one part of a sparse one.
pub trait BatchBuffer: fmt::Debug + Send + 'static {
    /// All its elements: as many, and of the type, that were asked for.
    fn elements_mut(&mut self) -> ElementsMut<'_>;

    /// Shortens it to its first `n` elements.
    fn truncate(&mut self, n: usize);
}

/// A buffer that can be read as a slice.
pub trait ReadableBuffer {
    /// Its elements.
    fn elements(&self) -> Elements<'_>;
}

/// Buffers on the heap, kept for reuse when they are returned.
#[derive(Clone)]
pub struct HeapBuffers {
    free: Arc<Mutex<Free>>,
    max_free: usize,
}

/// Memory that is not in use.
#[derive(Default)]
struct Free {
    f32: Vec<Vec<f32>>,
    f16: Vec<Vec<f16>>,
    u32: Vec<Vec<u32>>,
}

impl HeapBuffers {
    /// A pool that keeps at most `max_free` unused buffers of each type. Others are freed when they
    /// are returned.
    pub fn new(max_free: usize) -> Self {
        Self { free: Arc::default(), max_free }
    }

    /// Number of unused buffers in the pool.
    pub fn n_free(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.f32.len() + free.f16.len() + free.u32.len()
    }

    /// The memory of a type that was returned last, else empty memory.
    fn reused(&self, element_type: ElementType) -> Memory {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match element_type {
            ElementType::F32 => Memory::F32(free.f32.pop().unwrap_or_default()),
            ElementType::F16 => Memory::F16(free.f16.pop().unwrap_or_default()),
            ElementType::U32 => Memory::U32(free.u32.pop().unwrap_or_default()),
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

    fn take(&self, n: usize, element_type: ElementType) -> Result<HeapBuffer, Error> {
        let memory = match self.reused(element_type) {
            Memory::F32(values) => Memory::F32(fitting(values, n)?),
            Memory::F16(values) => Memory::F16(fitting(values, n)?),
            Memory::U32(numbers) => Memory::U32(fitting(numbers, n)?),
        };
        Ok(HeapBuffer { memory, pool: self.clone() })
    }
}

/// The vector with `n` elements, in the same memory if that is large enough.
fn fitting<E: Copy + Default>(elements: Vec<E>, n: usize) -> Result<Vec<E>, Error> {
    // Growing would copy elements that are overwritten anyway.
    let mut elements = if n <= elements.capacity() { elements } else { Vec::new() };
    let missing = n.saturating_sub(elements.len());
    elements
        .try_reserve_exact(missing)
        .map_err(|source| Error::Buffer { n_values: n, source: Box::new(source) })?;
    elements.resize(n, E::default());
    Ok(elements)
}

/// Elements on the heap. Dropping it returns its memory to its [`HeapBuffers`].
pub struct HeapBuffer {
    memory: Memory,
    pool: HeapBuffers,
}

enum Memory {
    F32(Vec<f32>),
    F16(Vec<f16>),
    U32(Vec<u32>),
}

impl HeapBuffer {
    /// The 32-bit floats, taken from the pool for good; an error if it has another type.
    #[cfg(feature = "sprs")]
    pub(crate) fn into_f32(mut self) -> Result<Vec<f32>, Error> {
        match &mut self.memory {
            Memory::F32(values) => Ok(std::mem::take(values)),
            _ => Err(self.elements().element_type().is_not(ElementType::F32)),
        }
    }

    /// The 32-bit whole numbers, taken from the pool for good; an error if it has another type.
    #[cfg(feature = "sprs")]
    pub(crate) fn into_u32(mut self) -> Result<Vec<u32>, Error> {
        match &mut self.memory {
            Memory::U32(numbers) => Ok(std::mem::take(numbers)),
            _ => Err(self.elements().element_type().is_not(ElementType::U32)),
        }
    }
}

impl BatchBuffer for HeapBuffer {
    fn elements_mut(&mut self) -> ElementsMut<'_> {
        match &mut self.memory {
            Memory::F32(values) => ElementsMut::F32(values),
            Memory::F16(values) => ElementsMut::F16(values),
            Memory::U32(numbers) => ElementsMut::U32(numbers),
        }
    }

    fn truncate(&mut self, n: usize) {
        match &mut self.memory {
            Memory::F32(values) => values.truncate(n),
            Memory::F16(values) => values.truncate(n),
            Memory::U32(numbers) => numbers.truncate(n),
        }
    }
}

impl ReadableBuffer for HeapBuffer {
    fn elements(&self) -> Elements<'_> {
        match &self.memory {
            Memory::F32(values) => Elements::F32(values),
            Memory::F16(values) => Elements::F16(values),
            Memory::U32(numbers) => Elements::U32(numbers),
        }
    }
}

impl fmt::Debug for HeapBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (element_type, n) = match &self.memory {
            Memory::F32(values) => (ElementType::F32, values.len()),
            Memory::F16(values) => (ElementType::F16, values.len()),
            Memory::U32(numbers) => (ElementType::U32, numbers.len()),
        };
        f.debug_struct("HeapBuffer")
            .field("element_type", &element_type)
            .field("n", &n)
            .finish_non_exhaustive()
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
        }
    }
}

/// Keeps memory for reuse, unless it is empty or enough is kept already.
fn keep<E>(memory: &mut Vec<E>, free: &mut Vec<Vec<E>>, max_free: usize) {
    if memory.capacity() > 0 && free.len() < max_free {
        free.push(std::mem::take(memory));
    }
}

#[cfg(test)]
mod tests;
