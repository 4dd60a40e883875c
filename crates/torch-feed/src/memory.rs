//! Memory that Rust writes and tensors then borrow.
//!
//! Torch allocates the memory of cells ([`Memory`]), crates `arrays` and `images` that of arrays
//! (`OwnedValues`) and images (`ImageMemory`, in memory that torch pinned or in any other).
//! A piece of memory either belongs to Rust or is lent to torch as a tensor ([`Memory::lend`],
//! `lend_values`), never both. torch counts the users of a tensor's storage: clones, views, slices,
//! autograd. When the last of them is dropped, torch calls the storage's deleter, and the memory
//! belongs to Rust again. So a consumer may keep any tensor for any time, and no order of safe
//! calls makes two owners of one piece.
//!
//! A lent storage has a fixed size, so `resize_` beyond it is torch's error. After that error torch
//! 2.11 leaves the rejected shape on the tensor, as for any storage that cannot grow, and using
//! such a tensor is out of bounds. That hole is in torch, and in tch for calling it safe.
#![expect(unsafe_code, reason = "torch gives the address of a tensor's memory and nothing safer")]

use std::ffi::c_void;
use std::fmt;
#[cfg(feature = "images")]
use std::sync::{Arc, Mutex};
use std::{ptr, slice};

#[cfg(feature = "arrays")]
use arrays::OwnedValues;
use half::f16;
#[cfg(feature = "images")]
use images::ImageMemory;
use loader::{ElementType, ElementsMut};
#[cfg(feature = "arrays")]
use slots::SlotMemory;
use tch::{Device, Kind, TchError, Tensor};
use torch_sys::C_tensor;

// From torch's header torch/csrc/stable/c/shim.h and the one that it includes: functions with a C
// interface that stays stable from their first release on, which is 2.11 for `torch_from_blob`.
unsafe extern "C" {
    /// Makes a tensor over foreign memory, and calls `deleter` when its storage has no users any
    /// more. Returns 0 on success.
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
    /// Makes a tensor in pinned memory, with any contents. Returns 0 on success.
    fn aoti_torch_empty_strided_pinned(
        n_dimensions: i64,
        sizes: *const i64,
        strides: *const i64,
        dtype: i32,
        device_type: i32,
        device_index: i32,
        tensor: *mut *mut C_tensor,
    ) -> i32;
    safe fn aoti_torch_device_type_cpu() -> i32;
    safe fn aoti_torch_layout_strided() -> i32;
    safe fn aoti_torch_dtype_float64() -> i32;
    safe fn aoti_torch_dtype_float32() -> i32;
    safe fn aoti_torch_dtype_float16() -> i32;
    safe fn aoti_torch_dtype_bfloat16() -> i32;
    safe fn aoti_torch_dtype_int64() -> i32;
    safe fn aoti_torch_dtype_int32() -> i32;
    safe fn aoti_torch_dtype_int16() -> i32;
    safe fn aoti_torch_dtype_int8() -> i32;
    safe fn aoti_torch_dtype_uint8() -> i32;
    safe fn aoti_torch_dtype_bool() -> i32;
}

/// torch's number of a type; `None` for types that are not lent.
fn dtype(kind: Kind) -> Option<i32> {
    match kind {
        Kind::Double => Some(aoti_torch_dtype_float64()),
        Kind::Float => Some(aoti_torch_dtype_float32()),
        Kind::Half => Some(aoti_torch_dtype_float16()),
        Kind::BFloat16 => Some(aoti_torch_dtype_bfloat16()),
        Kind::Int64 => Some(aoti_torch_dtype_int64()),
        Kind::Int => Some(aoti_torch_dtype_int32()),
        Kind::Int16 => Some(aoti_torch_dtype_int16()),
        Kind::Int8 => Some(aoti_torch_dtype_int8()),
        Kind::Uint8 => Some(aoti_torch_dtype_uint8()),
        Kind::Bool => Some(aoti_torch_dtype_bool()),
        _ => None,
    }
}

/// The type of the values of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    F32,
    F16,
    /// Stored as torch's int32, whose largest value is half of u32's.
    U32,
    /// Stored as torch's int16: what is above its largest value is negative there.
    U16,
    U8,
    I64,
}

impl ValueType {
    /// torch's name of the type.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::F16 => Kind::Half,
            Self::U32 => Kind::Int,
            Self::U16 => Kind::Int16,
            Self::U8 => Kind::Uint8,
            Self::I64 => Kind::Int64,
        }
    }
}

impl ValueType {
    /// The type for a batch's elements; `None` if this crate does not know theirs.
    pub(crate) fn for_element(element_type: ElementType) -> Option<Self> {
        match element_type {
            ElementType::F32 => Some(Self::F32),
            ElementType::F16 => Some(Self::F16),
            ElementType::U32 => Some(Self::U32),
            ElementType::U16 => Some(Self::U16),
            ElementType::U8 => Some(Self::U8),
            _ => None,
        }
    }
}

/// The values of a [`Memory`], for writing.
#[derive(Debug)]
pub(crate) enum ValuesMut<'a> {
    F32(&'a mut [f32]),
    F16(&'a mut [f16]),
    U32(&'a mut [u32]),
    U16(&'a mut [u16]),
    U8(&'a mut [u8]),
    I64(&'a mut [i64]),
}

impl<'a> ValuesMut<'a> {
    /// The first `n` values as a batch's elements; a batch has no 64-bit numbers.
    pub(crate) fn elements(self, n: usize) -> ElementsMut<'a> {
        match self {
            Self::F32(values) => ElementsMut::F32(&mut values[..n]),
            Self::F16(values) => ElementsMut::F16(&mut values[..n]),
            Self::U32(values) => ElementsMut::U32(&mut values[..n]),
            Self::U16(values) => ElementsMut::U16(&mut values[..n]),
            Self::U8(values) => ElementsMut::U8(&mut values[..n]),
            Self::I64(_) => unreachable!("the memory of batches is made for other types"),
        }
    }
}

/// Initialized host memory that torch allocated and Rust may write, pinned for a GPU or not.
#[derive(Debug)]
pub(crate) struct Memory {
    /// One-dimensional, contiguous, on the CPU. It leaves this crate only as a source of copies
    /// ([`source`](Self::source)), so nobody resizes its storage.
    tensor: Tensor,
    n_values: usize,
    value_type: ValueType,
}

/// Memory that a tensor's storage borrows.
struct Loan {
    /// Owns the memory; called when the storage has no users any more.
    give_back: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").finish_non_exhaustive()
    }
}

/// The deleter of a lent storage.
///
/// # Safety
/// `context` comes from `Box::into_raw` of a [`Loan`], and is passed to this function once.
unsafe extern "C" fn end_loan(_data: *mut c_void, context: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    let loan = unsafe { Box::from_raw(context.cast::<Loan>()) };
    (loan.give_back)();
}

/// Lends values as a contiguous tensor. `give_back` is called when the last tensor that shares the
/// storage is dropped, on the thread that drops it; it must not panic.
///
/// # Safety
/// `strides` are those of a contiguous tensor of this shape, and `data` is the address of its
/// values on the CPU: at least one, all of them initialized, valid and aligned for `kind`. Until
/// `give_back` is called or dropped they stay there, and nobody else reads or writes them.
unsafe fn lend(
    data: *mut c_void,
    kind: Kind,
    shape: &[i64],
    strides: &[i64],
    give_back: impl FnOnce() + Send + 'static,
) -> Result<Tensor, TchError> {
    let dtype = dtype(kind).ok_or_else(|| TchError::Kind(format!("{kind:?} cannot be lent")))?;
    let loan = Box::new(Loan { give_back: Box::new(give_back) });
    let mut lent: *mut C_tensor = ptr::null_mut();
    // SAFETY: the caller guarantees that `shape` and `strides` have `shape.len()` numbers, and the
    // values at `data` as long as `loan` lives. torch calls `end_loan` with this context at most
    // once.
    let status = unsafe {
        torch_from_blob(
            data,
            shape.len() as i64,
            shape.as_ptr(),
            strides.as_ptr(),
            0,
            dtype,
            aoti_torch_device_type_cpu(),
            // The CPU has no device number.
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
        // Whether torch has called the deleter is unknown, so the loan stays allocated.
        return Err(TchError::Torch(format!("torch_from_blob({shape:?}) failed: {status}")));
    }
    // SAFETY: torch's handles are pointers to `at::Tensor` on the heap that the receiver must
    // delete, like tch's own.
    let lent = unsafe { Tensor::from_ptr(lent) };
    let is_as_asked = lent.f_kind()? == kind
        && lent.size() == shape
        && lent.is_contiguous()
        && lent.data_ptr() == data;
    if is_as_asked {
        Ok(lent)
    } else {
        Err(TchError::Torch(format!("torch_from_blob({shape:?}) gave {lent:?}")))
    }
}

/// A tensor of one dimension in memory that torch pins for its GPUs, with any contents.
///
/// Not by tch: its function for pinned memory copies, and names a device, for which torch warns.
fn pinned(size: i64, kind: Kind) -> Result<Tensor, TchError> {
    let failed = |why: &str| TchError::Torch(format!("pinned memory of {size} {kind:?}: {why}"));
    let dtype = dtype(kind).ok_or_else(|| failed("no such type"))?;
    let (stride, mut made): (i64, *mut C_tensor) = (1, ptr::null_mut());
    // SAFETY: there is one size and one stride, and `made` is a handle, which the call writes.
    let status = unsafe {
        aoti_torch_empty_strided_pinned(
            1,
            &raw const size,
            &raw const stride,
            dtype,
            aoti_torch_device_type_cpu(),
            // The CPU has no device number.
            -1,
            &raw mut made,
        )
    };
    if status != 0 || made.is_null() {
        return Err(failed(&format!("torch's error {status}")));
    }
    // SAFETY: as in `lend`.
    Ok(unsafe { Tensor::from_ptr(made) })
}

/// Lends the values of an array's variable as a contiguous tensor, without a copy. Their memory
/// returns to the arrays' pool when the last tensor that shares it is dropped.
///
/// # Errors
/// Other values share the memory ([`OwnedValues::into_slot`]); the tensor has another size;
/// torch's errors.
#[cfg(feature = "arrays")]
pub(crate) fn lend_values(
    values: OwnedValues,
    kind: Kind,
    shape: &[i64],
) -> Result<Tensor, TchError> {
    let mut slot = values.into_slot().map_err(|_shared| refused(kind, shape))?;
    let lendable = Lendable::new(slot.bytes_mut(), kind, shape)?;
    // SAFETY: a slot has one owner, and its bytes stay in their place when it moves. The closure
    // owns it from here on, so nobody can reach it in another way until it is dropped.
    unsafe { lendable.lend(move || drop(slot)) }
}

/// Lends the keys of a batch of images as contiguous tensors, without a copy: each has the first
/// bytes of its key. A slot is free when the last tensor of it is dropped.
///
/// # Errors
/// There are other numbers of keys and tensors; a tensor is larger than its key; torch's errors.
#[cfg(feature = "images")]
pub(crate) fn lend_images(
    memory: ImageMemory,
    tensors: &[(Kind, Vec<i64>)],
) -> Result<Vec<Tensor>, TchError> {
    match memory {
        ImageMemory::Slot(mut slot) => {
            let keys = slot.keys_mut().into_iter().zip(tensors);
            let lendable = keys.map(|(bytes, (kind, shape))| Lendable::first(bytes, *kind, shape));
            let lendable = lendable.collect::<Result<Vec<Lendable<'_>>, TchError>>()?;
            let slot = Arc::new(slot);
            let lent = lendable.into_iter().map(|key| {
                let slot = Arc::clone(&slot);
                // SAFETY: the slot had one owner, whose keys are disjoint and stay in their place.
                // Only the closures own it from here on, and they do nothing but drop it.
                unsafe { key.lend(move || drop(slot)) }
            });
            lent.collect()
        }
        ImageMemory::Owned(memory) => {
            let lent = memory.into_iter().zip(tensors).map(|(mut memory, (kind, shape))| {
                let key = Lendable::first(memory.bytes_mut(), *kind, shape)?;
                // SAFETY: the memory has one owner and stays in its place; the closure owns it from
                // here on, and does nothing but drop it.
                unsafe { key.lend(move || drop(memory)) }
            });
            lent.collect()
        }
        _ => Err(TchError::Kind(format!("{memory:?} cannot be lent"))),
    }
}

/// Bytes that are valid values of a tensor.
#[cfg(feature = "arrays")]
struct Lendable<'a> {
    /// The address of the values; null if there are none.
    data: *mut c_void,
    kind: Kind,
    shape: &'a [i64],
    strides: Vec<i64>,
}

#[cfg(feature = "arrays")]
impl<'a> Lendable<'a> {
    /// Checks that `bytes` are the values of a tensor, all of them.
    fn new(bytes: &mut [u8], kind: Kind, shape: &'a [i64]) -> Result<Self, TchError> {
        let (n_values, strides) = strides(shape).ok_or_else(|| refused(kind, shape))?;
        let size = kind.elt_size_in_bytes();
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(size);
        if n_values.checked_mul(size) != Some(bytes.len()) || !is_aligned {
            return Err(refused(kind, shape));
        }
        if kind == Kind::Bool {
            // Other numbers than these two are not values of C++'s bool.
            for byte in bytes.iter_mut() {
                *byte = u8::from(*byte != 0);
            }
        }
        let data = if bytes.is_empty() { ptr::null_mut() } else { bytes.as_mut_ptr().cast() };
        Ok(Self { data, kind, shape, strides })
    }

    /// Checks that `bytes` begin with the values of a tensor.
    #[cfg(feature = "images")]
    fn first(bytes: &mut [u8], kind: Kind, shape: &'a [i64]) -> Result<Self, TchError> {
        let n_bytes = strides(shape).and_then(|(n, _)| n.checked_mul(kind.elt_size_in_bytes()));
        let bytes = n_bytes.and_then(|n_bytes| bytes.get_mut(..n_bytes));
        Self::new(bytes.ok_or_else(|| refused(kind, shape))?, kind, shape)
    }

    /// Lends the bytes. `give_back` is called, or dropped, when the last tensor is.
    ///
    /// # Safety
    /// The bytes stay where they were until `give_back` is called or dropped, and nobody else reads
    /// or writes them.
    unsafe fn lend(self, give_back: impl FnOnce() + Send + 'static) -> Result<Tensor, TchError> {
        let Self { data, kind, shape, strides } = self;
        if data.is_null() {
            // torch never calls the deleter of memory without an address.
            return Tensor::f_empty(shape, (kind, Device::Cpu));
        }
        // SAFETY: `new` made the strides, and checked that the bytes are as many and aligned as the
        // tensor needs. Being bytes of a slice they are initialized, and the types that `lend`
        // accepts are numbers, for which all bits are valid, and bool, whose bytes are 0 or 1. The
        // caller guarantees the rest.
        unsafe { lend(data, kind, shape, &strides, give_back) }
    }
}

/// The error that memory is not what a tensor needs.
#[cfg(feature = "arrays")]
fn refused(kind: Kind, shape: &[i64]) -> TchError {
    TchError::Shape(format!("{shape:?} of {kind:?}: other memory"))
}

/// Pinned memory of torch, for the slots of a ring.
#[cfg(feature = "images")]
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    /// The bytes of the tensor.
    bytes: &'static mut [u8],
    is_pinned: bool,
    /// Owns the bytes; in a lock because tensors cannot be shared between threads.
    _tensor: Mutex<Tensor>,
}

#[cfg(feature = "images")]
impl PinnedMemory {
    /// Allocates `n_bytes` zeros, pinned for a GPU if one is given.
    ///
    /// # Errors
    /// torch's errors, if there is no memory, or none that can be pinned.
    pub(crate) fn zeros(n_bytes: usize, pinned_for: Option<Device>) -> Result<Self, TchError> {
        let n_values = n_bytes.div_ceil(size_of::<f32>()).max(1);
        let Memory { tensor, .. } = Memory::zeros(n_values, ValueType::F32, pinned_for)?;
        let n_bytes = n_values * size_of::<f32>();
        // SAFETY: `Memory::zeros` made a tensor on the CPU whose storage has this many contiguous,
        // initialized bytes, and nobody else has the tensor or a view of it. It is never used
        // again but to be dropped, together with the bytes, which leave this type only borrowed
        // from it.
        let bytes = unsafe { slice::from_raw_parts_mut(tensor.data_ptr().cast::<u8>(), n_bytes) };
        Ok(Self { bytes, is_pinned: pinned_for.is_some(), _tensor: Mutex::new(tensor) })
    }
}

#[cfg(feature = "images")]
impl SlotMemory for PinnedMemory {
    fn bytes(&self) -> &[u8] {
        self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    fn is_pinned(&self) -> bool {
        self.is_pinned
    }
}

impl Memory {
    /// Allocates memory for `n_values` values, all zero; pinned for `pinned_for`, if given.
    ///
    /// # Errors
    /// torch's errors, if there is no memory, or none that can be pinned.
    pub(crate) fn zeros(
        n_values: usize,
        value_type: ValueType,
        pinned_for: Option<Device>,
    ) -> Result<Self, TchError> {
        let size =
            i64::try_from(n_values).map_err(|_| TchError::Convert(format!("{n_values} values")))?;
        let tensor = match pinned_for {
            Some(_) if n_values > 0 => pinned(size, value_type.kind())?,
            _ => Tensor::f_empty([size], (value_type.kind(), Device::Cpu))?,
        };
        // Checks the assumptions of `values_mut`, in case torch pins in some other way.
        let is_as_made = tensor.device() == Device::Cpu
            && tensor.f_kind()? == value_type.kind()
            && tensor.size() == [size]
            && tensor.is_contiguous();
        if !is_as_made {
            return Err(TchError::Convert(format!("pinning {size} values gave {tensor:?}")));
        }
        if n_values > 0 {
            let n_bytes = n_values * value_type.kind().elt_size_in_bytes();
            // Not zeroed by torch: its threads would go on waiting for work, on processors that
            // read and decode.
            // SAFETY: torch laid out this many values contiguously, as checked above, and the
            // tensor has no other owner yet.
            unsafe { tensor.data_ptr().cast::<u8>().write_bytes(0, n_bytes) };
        }
        Ok(Self { tensor, n_values, value_type })
    }

    /// The type of its values.
    pub(crate) fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Number of values.
    pub(crate) fn n_values(&self) -> usize {
        self.n_values
    }

    /// A view of the first `n` values for a device to copy from. Nothing writes the memory until
    /// that copy is done: the pool keeps it by the copy's ticket. The view must not reach users of
    /// this crate; [`lend`](Self::lend) makes tensors for them.
    pub(crate) fn source(&self, n: usize) -> Result<Tensor, TchError> {
        let n = i64::try_from(n).map_err(|_| TchError::Convert(format!("{n} values")))?;
        self.tensor.f_narrow(0, 0, n)
    }

    /// Lends the first values as a contiguous tensor, which users may keep. `give_back` receives
    /// the memory when the last tensor that shares the storage is dropped, on the thread that drops
    /// it; it must not panic.
    ///
    /// # Errors
    /// The shape has more values than the memory; torch's errors.
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
        let (data, kind) = (self.tensor.data_ptr(), self.value_type.kind());
        // SAFETY: `strides` made the strides. `data` is the address of at least `n_lent`
        // contiguous, initialized values of this type on the CPU, which stay there as long as
        // `self`, which the closure owns. `self` was the only owner of their storage: views from
        // `source` are gone when their copy is done.
        unsafe { lend(data, kind, shape, &strides, move || give_back(self)) }
    }

    /// All values, for writing.
    pub(crate) fn values_mut(&mut self) -> ValuesMut<'_> {
        // SAFETY, for all six: the type is that of `value_type`, torch's Half is IEEE binary16, as
        // `f16` is, and `u32` and `u16` have the layouts of int32 and int16.
        match self.value_type {
            // SAFETY: as above.
            ValueType::F32 => ValuesMut::F32(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::F16 => ValuesMut::F16(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::U32 => ValuesMut::U32(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::U16 => ValuesMut::U16(unsafe { self.slice_mut() }),
            // SAFETY: as above.
            ValueType::U8 => ValuesMut::U8(unsafe { self.slice_mut() }),
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
        // SAFETY: `zeros` made the tensor on the CPU with `n_values` values of the type that the
        // caller guarantees. torch laid them out contiguously and aligned, `zeros` initialized
        // them, and they live as long as `self.tensor`, whose storage nobody resizes. Nobody else
        // reads or writes them while `&mut self` lives: users get tensors of this memory only from
        // `lend`, which takes `self` and returns it after the last of them; views from `source`
        // stay with this crate's devices, which have dropped them, or have copied from them, before
        // the pool hands out the memory again.
        unsafe { slice::from_raw_parts_mut(self.tensor.data_ptr().cast::<T>(), self.n_values) }
    }
}

/// The number of values of a contiguous tensor, and its strides. `None` if torch cannot count them.
fn strides(shape: &[i64]) -> Option<(usize, Vec<i64>)> {
    if shape.iter().any(|size| *size < 0) {
        return None;
    }
    let mut strides = vec![1; shape.len()];
    let mut n_values = 1_i64;
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = n_values.max(1);
        n_values = n_values.checked_mul(*size)?;
    }
    Some((usize::try_from(n_values).ok()?, strides))
}
