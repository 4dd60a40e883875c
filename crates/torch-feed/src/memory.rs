//! Memory that torch allocates, Rust writes, and tensors then borrow: the one place of this crate
//! that needs `unsafe`.
//!
//! A piece of memory is either Rust's, as a [`Memory`], or lent to torch as a tensor
//! ([`Memory::lend`]), never both. torch counts who uses a tensor's storage: clones, views, slices,
//! what autograd keeps. When the last of them is dropped, torch calls the storage's deleter, and
//! the memory is Rust's again. So a consumer may keep any tensor as long as it likes, and no order
//! of safe calls makes two owners of one piece.
//!
//! A lent storage has a fixed size, so `resize_` beyond it is torch's error. torch 2.11 leaves the
//! refused shape on the tensor after that error, as on any tensor of a storage that cannot grow, and
//! going on with such a tensor is out of bounds. That hole is torch's, and tch's for calling it safe.
#![expect(unsafe_code, reason = "torch gives the address of a tensor's memory and nothing safer")]

use std::ffi::c_void;
use std::fmt;
use std::{ptr, slice};

use half::f16;
use loader::{ElementType, ElementsMut};
use tch::{Device, Kind, TchError, Tensor};
use torch_sys::C_tensor;

// From torch's header torch/csrc/stable/c/shim.h and the one that it includes: functions with a C
// interface that stays the same from the release on that brought them, which for `torch_from_blob`
// is 2.11.
unsafe extern "C" {
    /// Makes a tensor of memory that is not torch's, and calls `deleter` when its storage has no
    /// user any more. 0 when it could.
    fn torch_from_blob(
        data: *mut c_void,
        n_dimensions: i64,
        sizes: *const i64,
        strides: *const i64,
        storage_offset: i64,
        dtype: i32,
        device_type: i32,
        device_index: i32,
        tensor: *mut *mut C_tensor,
        layout: i32,
        opaque_metadata: *const u8,
        opaque_metadata_size: i64,
        deleter: Option<unsafe extern "C" fn(data: *mut c_void, context: *mut c_void)>,
        deleter_context: *mut c_void,
    ) -> i32;
    safe fn aoti_torch_device_type_cpu() -> i32;
    safe fn aoti_torch_layout_strided() -> i32;
    safe fn aoti_torch_dtype_float32() -> i32;
    safe fn aoti_torch_dtype_float16() -> i32;
    safe fn aoti_torch_dtype_int32() -> i32;
    safe fn aoti_torch_dtype_int64() -> i32;
}

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

    /// torch's number of it.
    fn dtype(self) -> i32 {
        match self {
            Self::F32 => aoti_torch_dtype_float32(),
            Self::F16 => aoti_torch_dtype_float16(),
            Self::U32 => aoti_torch_dtype_int32(),
            Self::I64 => aoti_torch_dtype_int64(),
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

/// Host memory that torch allocated, initialized, whose values Rust may write. Pinned for a GPU or
/// not.
#[derive(Debug)]
pub(crate) struct Memory {
    /// One-dimensional, contiguous, on the CPU. It leaves this crate as a source of copies alone
    /// ([`source`](Self::source)), so nobody resizes its storage.
    tensor: Tensor,
    n_values: usize,
    value_type: ValueType,
}

/// Memory that a tensor's storage borrows.
struct Loan {
    memory: Memory,
    /// What is done with the memory when the storage has no user any more.
    give_back: Box<dyn FnOnce(Memory) + Send>,
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// The deleter of a lent storage.
///
/// # Safety
/// `context` comes from `Box::into_raw` of a [`Loan`], and is handed to this function once.
unsafe extern "C" fn end_loan(_data: *mut c_void, context: *mut c_void) {
    // SAFETY: the caller vouches for it.
    let loan = unsafe { Box::from_raw(context.cast::<Loan>()) };
    (loan.give_back)(loan.memory);
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

    /// A view of the first `n` values for a device to copy from. Nothing writes the memory until
    /// that copy is done: the pool keeps it by the copy's ticket. The view must not be handed to
    /// users of this crate; [`lend`](Self::lend) makes tensors for them.
    pub(crate) fn source(&self, n: usize) -> Result<Tensor, TchError> {
        let n = i64::try_from(n).map_err(|_| TchError::Convert(format!("{n} values")))?;
        self.tensor.f_narrow(0, 0, n)
    }

    /// A contiguous tensor of the first values, which users may keep. `give_back` gets the memory
    /// when the last tensor that shares the storage is dropped, on the thread that drops it; it
    /// must not panic.
    ///
    /// # Errors
    /// A shape of more values than there are, and torch's errors.
    pub(crate) fn lend(
        self,
        shape: &[i64],
        give_back: impl FnOnce(Self) + Send + 'static,
    ) -> Result<Tensor, TchError> {
        let (n_lent, strides) = strides(shape)
            .filter(|(n_lent, _)| *n_lent <= self.n_values)
            .ok_or_else(|| TchError::Shape(format!("{shape:?} of {} values", self.n_values)))?;
        if n_lent == 0 {
            // torch never calls the deleter of memory without an address.
            let empty = Tensor::f_empty(shape, (self.value_type.kind(), Device::Cpu));
            give_back(self);
            return empty;
        }
        let (data, value_type) = (self.tensor.data_ptr(), self.value_type);
        let loan = Box::new(Loan { memory: self, give_back: Box::new(give_back) });
        let mut lent: *mut C_tensor = ptr::null_mut();
        // SAFETY: `shape` and `strides` have `shape.len()` numbers. `data` is the address of at
        // least `n_lent` contiguous values of this type on the CPU, which stay there as long as
        // `loan` does, whose storage nobody else has: `self` was its one owner, since views of
        // `source` are gone when their copy is done. torch calls `end_loan` with this context once
        // at most.
        let status = unsafe {
            torch_from_blob(
                data,
                shape.len() as i64,
                shape.as_ptr(),
                strides.as_ptr(),
                0,
                value_type.dtype(),
                aoti_torch_device_type_cpu(),
                // A processor has no number.
                -1,
                &raw mut lent,
                aoti_torch_layout_strided(),
                ptr::null(),
                0,
                Some(end_loan),
                Box::into_raw(loan).cast(),
            )
        };
        if status != 0 || lent.is_null() {
            // Whether torch has called the deleter is not known: the loan stays where it is.
            return Err(TchError::Torch(format!("torch_from_blob({shape:?}) failed: {status}")));
        }
        // SAFETY: torch's handles are pointers to `at::Tensor` on the heap that are the receiver's
        // to delete, as tch's are.
        let lent = unsafe { Tensor::from_ptr(lent) };
        let is_as_asked = lent.f_kind()? == value_type.kind()
            && lent.size() == shape
            && lent.is_contiguous()
            && lent.data_ptr() == data;
        if is_as_asked {
            Ok(lent)
        } else {
            Err(TchError::Torch(format!("torch_from_blob({shape:?}) gave {lent:?}")))
        }
    }

    /// All values, to be written.
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
        // SAFETY: `zeros` made the tensor with `n_values` values of the type that the caller
        // vouches for, on the CPU, which torch laid out contiguously and aligned and which `zeros`
        // initialized, and which live as long as `self.tensor`, whose storage nobody resizes.
        // Nobody else reads or writes them while `&mut self` lives: users get tensors of this
        // memory from `lend` alone, which takes `self` and gives it back after the last of them;
        // views of `source` are with this crate's devices, which have dropped them, or have copied
        // from them, before the pool lets the memory be taken again.
        unsafe { slice::from_raw_parts_mut(self.tensor.data_ptr().cast::<T>(), self.n_values) }
    }
}

/// The number of values of a contiguous tensor and its strides. None where torch cannot count them.
fn strides(shape: &[i64]) -> Option<(usize, Vec<i64>)> {
    let mut strides = vec![1; shape.len()];
    let mut n_values = 1_i64;
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = n_values.max(1);
        n_values = n_values.checked_mul(*size)?;
    }
    Some((usize::try_from(n_values).ok()?, strides))
}
