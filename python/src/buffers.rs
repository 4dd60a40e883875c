//! Memory of cells' batches in slots, which Python sees as arrays and which can be pinned.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use loader::{
    BatchBuffer, BatchBuffers, BatchForm, BufferError, Dataset, ElementType, Elements, ElementsMut,
    LoaderSpec, ReadableBuffer,
};
use pyo3::PyResult;
use slots::{Pool, PooledSlot, SlotMemory as _};

use crate::border::{Element, Memory};
use crate::memory_limit::Kept;

/// A pool of the memory of batches.
#[derive(Debug)]
pub(crate) struct SlotBuffers(Arc<Pool>);

impl SlotBuffers {
    /// A pool that keeps as much free memory as the loader has in use at once: that of the batches
    /// that are ready, one in the making, and one with the user.
    pub(crate) fn new(dataset: &Dataset, spec: &LoaderSpec) -> Self {
        let forms = spec.modality_forms.values().chain([&spec.batch_form]);
        let of_matrix = forms.map(|form| match form {
            BatchForm::Coo => 3,
            BatchForm::Csr | BatchForm::Packed => 2,
            _ => 1,
        });
        let of_tokens = if spec.tokens.is_some() { 2 } else { 0 };
        let of_batch = dataset.n_matrices() * of_matrix.max().unwrap_or(1) + of_tokens;
        let n_batches = spec.pipeline.prefetch_batches.saturating_add(2);
        Self(Arc::new(Pool::new(n_batches.saturating_mul(of_batch))))
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
            ElementType::U16 => Element::U16,
            ElementType::U8 => Element::U8,
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
    /// As Python sees the elements: of float32, float16, int32, uint16 or uint8.
    element: Element,
}

impl BatchBuffer for SlotBuffer {
    fn elements_mut(&mut self) -> ElementsMut<'_> {
        // Slots begin at multiples of 64 bytes.
        let bytes = self.slot.bytes_mut();
        match self.element {
            Element::F16 => ElementsMut::F16(bytemuck::cast_slice_mut(bytes)),
            Element::I32 => ElementsMut::U32(bytemuck::cast_slice_mut(bytes)),
            Element::U16 => ElementsMut::U16(bytemuck::cast_slice_mut(bytes)),
            Element::U8 => ElementsMut::U8(bytes),
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
            Element::U16 => Elements::U16(bytemuck::cast_slice(bytes)),
            Element::U8 => Elements::U8(bytes),
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
