//! A torch tensor's memory as a Rust slice: the one place of this crate that needs `unsafe`.
#![expect(unsafe_code, reason = "torch gives the address of a tensor's memory and nothing safer")]

use std::slice;

use half::f16;
use loader::{ElementType, ElementsMut};
use tch::{Device, Kind, TchError, Tensor};

/// The type of the values of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    F32,
    F16,
    /// Held as torch's int32, which ends at half of it.
    U32,
    I64,
}

impl ValueType {
    /// torch's name of it.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::F16 => Kind::Half,
            Self::U32 => Kind::Int,
            Self::I64 => Kind::Int64,
        }
    }
}

impl From<ElementType> for ValueType {
    fn from(element_type: ElementType) -> Self {
        match element_type {
            ElementType::F32 => Self::F32,
            ElementType::F16 => Self::F16,
            ElementType::U32 => Self::U32,
        }
    }
}

/// The values of a [`Memory`], to be written.
#[derive(Debug)]
pub(crate) enum ValuesMut<'a> {
    F32(&'a mut [f32]),
    F16(&'a mut [f16]),
    U32(&'a mut [u32]),
    I64(&'a mut [i64]),
}

impl<'a> ValuesMut<'a> {
    /// The first `n` of them as a batch's elements; a batch has no 64-bit numbers.
    pub(crate) fn elements(self, n: usize) -> ElementsMut<'a> {
        match self {
            Self::F32(values) => ElementsMut::F32(&mut values[..n]),
            Self::F16(values) => ElementsMut::F16(&mut values[..n]),
            Self::U32(values) => ElementsMut::U32(&mut values[..n]),
            Self::I64(_) => unreachable!("the memory of batches is made for other types"),
        }
    }
}

/// A one-dimensional tensor on the CPU, contiguous and initialized, whose values Rust may write. Pinned for a GPU or not.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Never resized or replaced, nor given out but as views of it.
    tensor: Tensor,
    n_values: usize,
    value_type: ValueType,
}

impl Memory {
    /// New memory for `n_values` values, all zero; pinned for this device where one is given.
    ///
    /// # Errors
    /// torch's, where there is not enough memory, or none that can be pinned.
    pub(crate) fn zeros(
        n_values: usize,
        value_type: ValueType,
        pinned_for: Option<Device>,
    ) -> Result<Self, TchError> {
        let size =
            i64::try_from(n_values).map_err(|_| TchError::Convert(format!("{n_values} values")))?;
        let empty = Tensor::f_empty([size], (value_type.kind(), Device::Cpu))?;
        let tensor = match pinned_for {
            Some(device) if n_values > 0 => empty.f_pin_memory(device)?,
            _ => empty,
        };
        // What `values_mut` rests on, were torch to pin in some other way.
        let is_as_made = tensor.device() == Device::Cpu
            && tensor.f_kind()? == value_type.kind()
            && tensor.size() == [size]
            && tensor.is_contiguous();
        if !is_as_made {
            return Err(TchError::Convert(format!("pinning {size} values gave {tensor:?}")));
        }
        if n_values > 0 {
            let n_bytes = n_values * value_type.kind().elt_size_in_bytes();
            // Not by torch, which has threads for it: they would go on waiting for more to do, on processors that read and decode.
            // SAFETY: torch laid out so many values contiguously, as was made sure of, and nobody else has the tensor yet.
            unsafe { tensor.data_ptr().cast::<u8>().write_bytes(0, n_bytes) };
        }
        Ok(Self { tensor, n_values, value_type })
    }

    /// What its values are.
    pub(crate) fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// How many values it holds.
    pub(crate) fn n_values(&self) -> usize {
        self.n_values
    }

    /// A view of the first `n` values; shares the memory.
    pub(crate) fn first(&self, n: usize) -> Result<Tensor, TchError> {
        let n = i64::try_from(n).map_err(|_| TchError::Convert(format!("{n} values")))?;
        self.tensor.f_narrow(0, 0, n)
    }

    /// All values, to be written.
    ///
    /// Views of the tensor see what is written. torch lets any number of tensors share memory and does not order
    /// their reads and writes; who keeps a view while it is written may see a mixture, of values that are all valid.
    pub(crate) fn values_mut(&mut self) -> ValuesMut<'_> {
        // SAFETY, of all four: the type is that of `value_type`, torch's Half is IEEE binary16, as `f16` is, and `u32` has int32's layout.
        match self.value_type {
            // SAFETY: as above.
            ValueType::F32 => ValuesMut::F32(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::F16 => ValuesMut::F16(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::U32 => ValuesMut::U32(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::I64 => ValuesMut::I64(unsafe { self.slice_mut() }),
        }
    }

    /// All values.
    ///
    /// # Safety
    /// `T` has the layout of `self.value_type`, and is valid for all bits.
    unsafe fn slice_mut<T>(&mut self) -> &mut [T] {
        if self.n_values == 0 {
            return &mut [];
        }
        // SAFETY: `zeros` made the tensor with `n_values` values of the type that the caller vouches for, on the CPU, which
        // torch lays out contiguously and aligned and which `zeros` initialized, and which live as long as
        // `self.tensor`. The tensor is never resized, as it is given out only by shared reference. `&mut self` keeps Rust from
        // making a second slice of it meanwhile; that no device still reads it is the pool's matter, and harms values alone.
        unsafe { slice::from_raw_parts_mut(self.tensor.data_ptr().cast::<T>(), self.n_values) }
    }
}
