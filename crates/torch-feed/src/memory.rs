//! A torch tensor's memory as a Rust slice: the one place of this crate that needs `unsafe`.
#![expect(unsafe_code, reason = "torch gives the address of a tensor's memory and nothing safer")]

use std::slice;

use tch::{Device, Kind, TchError, Tensor};

/// A one-dimensional f32 tensor on the CPU, contiguous and initialized, whose values Rust may write.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Never resized or replaced, nor given out but as views of it.
    tensor: Tensor,
    n_values: usize,
}

impl Memory {
    /// New memory for `n_values` values, all zero.
    ///
    /// # Errors
    /// torch's, where there is not enough memory.
    pub(crate) fn zeros(n_values: usize) -> Result<Self, TchError> {
        let size =
            i64::try_from(n_values).map_err(|_| TchError::Convert(format!("{n_values} values")))?;
        Ok(Self { tensor: Tensor::f_zeros([size], (Kind::Float, Device::Cpu))?, n_values })
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
    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        if self.n_values == 0 {
            return &mut [];
        }
        let start = self.tensor.data_ptr().cast::<f32>();
        // SAFETY: `zeros` made the tensor with `n_values` f32 values on the CPU, which torch lays out contiguously,
        // aligned and initialized, and which live as long as `self.tensor`. The tensor is never resized, as it is
        // given out only by shared reference. `&mut self` keeps Rust from making a second slice of it meanwhile.
        unsafe { slice::from_raw_parts_mut(start, self.n_values) }
    }
}
