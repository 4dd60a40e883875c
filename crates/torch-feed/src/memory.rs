//! A torch tensor's memory as a Rust slice: the one place of this crate that needs `unsafe`.
#![expect(unsafe_code, reason = "torch gives the address of a tensor's memory and nothing safer")]

use std::slice;

use half::f16;
use loader::{ElementType, ElementsMut};
use tch::{Device, Kind, TchError, Tensor};

/// A one-dimensional tensor of f32, f16 or int32 on the CPU, contiguous and initialized, whose values Rust may write.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Never resized or replaced, nor given out but as views of it.
    tensor: Tensor,
    n_values: usize,
    element_type: ElementType,
}

impl Memory {
    /// New memory for `n_values` values, all zero.
    ///
    /// # Errors
    /// torch's, where there is not enough memory.
    pub(crate) fn zeros(n_values: usize, element_type: ElementType) -> Result<Self, TchError> {
        let size =
            i64::try_from(n_values).map_err(|_| TchError::Convert(format!("{n_values} values")))?;
        let kind = match element_type {
            ElementType::F32 => Kind::Float,
            ElementType::F16 => Kind::Half,
            ElementType::U32 => Kind::Int,
        };
        Ok(Self { tensor: Tensor::f_zeros([size], (kind, Device::Cpu))?, n_values, element_type })
    }

    /// What its elements are.
    pub(crate) fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// How many values it holds.
    pub(crate) fn n_values(&self) -> usize {
        self.n_values
    }

    /// The tensor that owns the memory.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// All values, to be written.
    ///
    /// Views of the tensor see what is written. torch lets any number of tensors share memory and does not order
    /// their reads and writes; who keeps a view while it is written may see a mixture, of values that are all valid.
    pub(crate) fn elements_mut(&mut self) -> ElementsMut<'_> {
        let start = self.tensor.data_ptr();
        match self.element_type {
            ElementType::F32 if self.n_values == 0 => ElementsMut::F32(&mut []),
            ElementType::F16 if self.n_values == 0 => ElementsMut::F16(&mut []),
            ElementType::U32 if self.n_values == 0 => ElementsMut::U32(&mut []),
            ElementType::F32 => {
                // SAFETY: `zeros` made the tensor with `n_values` f32 values on the CPU, which torch lays out contiguously,
                // aligned and initialized, and which live as long as `self.tensor`. The tensor is never resized, as it is
                // given out only by shared reference. `&mut self` keeps Rust from making a second slice of it meanwhile.
                ElementsMut::F32(unsafe {
                    slice::from_raw_parts_mut(start.cast::<f32>(), self.n_values)
                })
            }
            ElementType::F16 => {
                // SAFETY: as for f32, but that the tensor is of torch's Half: IEEE binary16, as `f16` is, which has its
                // layout and is valid for all bits.
                ElementsMut::F16(unsafe {
                    slice::from_raw_parts_mut(start.cast::<f16>(), self.n_values)
                })
            }
            ElementType::U32 => {
                // SAFETY: as for f32, but that the tensor is of torch's int32, which has the size and alignment of `u32`, and every
                // value of one is a value of the other.
                ElementsMut::U32(unsafe {
                    slice::from_raw_parts_mut(start.cast::<u32>(), self.n_values)
                })
            }
        }
    }
}
