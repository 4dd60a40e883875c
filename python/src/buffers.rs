//! Memory of cells' batches in slots, which Python sees as arrays and which can be pinned.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use loader::{
    BatchBuffer, BatchBuffers, BufferError, ElementType, Elements, ElementsMut, ReadableBuffer,
};
use pyo3::PyResult;
use slots::{Pool, PooledSlot, SlotMemory as _};

use crate::border::{Element, Memory};
use crate::memory_limit::Kept;

/// Dropped slots that are kept for reuse: those of the batches that are ready and in the making,
/// with a few layers each.
const MOST_FREE: usize = 32;

/// A pool of the memory of batches.
#[derive(Debug)]
pub(crate) struct SlotBuffers(Arc<Pool>);

impl Default for SlotBuffers {
    fn default() -> Self {
        Self(Arc::new(Pool::new(MOST_FREE)))
    }
}

impl BatchBuffers for SlotBuffers {
    type Buffer = SlotBuffer;

    fn take(&self, n: usize, element_type: ElementType) -> Result<SlotBuffer, BufferError> {
        let failed =
            |kind: ErrorKind| BufferError { n_values: n, source: Box::new(Error::from(kind)) };
        let element = match element_type {
            ElementType::F32 => Element::F32,
            ElementType::F16 => Element::F16,
            // Columns and rows, which are below 2^31 here.
            ElementType::U32 => Element::I32,
            _ => return Err(failed(ErrorKind::Unsupported)),
        };
        let slot = n.checked_mul(element_type.bytes()).and_then(|n_bytes| self.0.take(n_bytes));
        Ok(SlotBuffer { slot: slot.ok_or_else(|| failed(ErrorKind::OutOfMemory))?, element })
    }
}

/// The elements of a part of a batch.
#[derive(Debug)]
pub(crate) struct SlotBuffer {
    slot: PooledSlot,
    /// As Python sees the elements: of float32, float16 or int32.
    element: Element,
}

impl BatchBuffer for SlotBuffer {
    fn elements_mut(&mut self) -> ElementsMut<'_> {
        // Slots begin at multiples of 64 bytes.
        let bytes = self.slot.bytes_mut();
        match self.element {
            Element::F16 => ElementsMut::F16(bytemuck::cast_slice_mut(bytes)),
            Element::I32 => ElementsMut::U32(bytemuck::cast_slice_mut(bytes)),
            _ => ElementsMut::F32(bytemuck::cast_slice_mut(bytes)),
        }
    }

    fn truncate(&mut self, n: usize) {
        let n_bytes = n.saturating_mul(self.element.n_bytes()).min(self.slot.bytes().len());
        let _fits = self.slot.resize(n_bytes);
    }
}

impl ReadableBuffer for SlotBuffer {
    fn elements(&self) -> Elements<'_> {
        let bytes = self.slot.bytes();
        match self.element {
            Element::F16 => Elements::F16(bytemuck::cast_slice(bytes)),
            Element::I32 => Elements::U32(bytemuck::cast_slice(bytes)),
            _ => Elements::F32(bytemuck::cast_slice(bytes)),
        }
    }
}

impl SlotBuffer {
    /// The elements as Python sees them.
    ///
    /// # Errors
    /// None: the slot has these elements.
    pub(crate) fn into_memory(self, kept: Kept) -> PyResult<Memory> {
        let n = self.elements().len();
        Memory::of_slot(self.slot, n, self.element, kept)
    }
}
