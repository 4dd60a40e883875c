//! The border to C, and all `unsafe` of this crate: memory of ours that Python sees through the
//! buffer protocol, and Arrow's streams of other libraries.
#![expect(unsafe_code, reason = "C has no lifetimes; each block says why it is sound")]

use std::ffi::{CStr, c_int, c_long};
use std::fmt;
use std::ptr;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchReader as _};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, SchemaRef};
use half::f16;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use slots::SlotMemory;

use crate::memory_limit::Kept;
use crate::process::OfProcess;

/// The name of capsules with an Arrow stream.
pub(crate) const STREAM: &CStr = c"arrow_array_stream";

/// Whether C's `long` has 64 bits: numpy's `int64` is then a `long`, and prints no other type.
const IS_LONG: bool = size_of::<c_long>() == size_of::<i64>();

/// Types of elements, as numpy sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// A byte that is 0 or 1.
    Bool,
}

impl Element {
    /// Size in bytes.
    pub(crate) fn n_bytes(self) -> usize {
        self.size_and_code().0
    }

    /// The name of numpy's type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
        }
    }

    /// The type of this name in numpy, if batches can have it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        const ALL: [Element; 12] = [
            Element::F16,
            Element::F32,
            Element::F64,
            Element::I8,
            Element::I16,
            Element::I32,
            Element::I64,
            Element::U8,
            Element::U16,
            Element::U32,
            Element::U64,
            Element::Bool,
        ];
        ALL.into_iter().find(|element| element.name() == name)
    }

    /// Size in bytes, and the code of Python's module `struct`.
    fn size_and_code(self) -> (usize, &'static CStr) {
        match self {
            Self::F16 => (2, c"e"),
            Self::F32 => (4, c"f"),
            Self::F64 => (8, c"d"),
            Self::I8 => (1, c"b"),
            Self::I16 => (2, c"h"),
            Self::I32 => (4, c"i"),
            Self::I64 => (8, if IS_LONG { c"l" } else { c"q" }),
            Self::U8 => (1, c"B"),
            Self::U16 => (2, c"H"),
            Self::U32 => (4, c"I"),
            Self::U64 => (8, if IS_LONG { c"L" } else { c"Q" }),
            Self::Bool => (1, c"?"),
        }
    }
}

/// What owns the memory of a view, and gives it back when it is dropped.
trait Owner: Send + Sync {}

impl<T: Send + Sync> Owner for T {}

/// Memory of ours that Python sees as an array. The arrays that numpy makes of it keep it alive.
#[pyclass(frozen, module = "somafeed._somafeed", name = "_Memory")]
pub(crate) struct Memory {
    start: *mut u8,
    n_bytes: usize,
    element: Element,
    is_read_only: bool,
    shape: Box<[isize]>,
    /// Bytes from one element to the next of each dimension, in C order.
    strides: Box<[isize]>,
    _owner: OfProcess<Box<dyn Owner>>,
}

// SAFETY: the pointer is to memory that `_owner`, which is Send, owns; only Python uses it.
unsafe impl Send for Memory {}
// SAFETY: no method reads or writes the memory; Python's arrays are as racy as any of numpy's.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(start: *mut u8, n: usize, element: Element, owner: Box<dyn Owner>) -> Self {
        let (size, _) = element.size_and_code();
        Self {
            start,
            n_bytes: n * size,
            element,
            is_read_only: false,
            // No memory has more than isize::MAX bytes.
            shape: [n as isize].into(),
            strides: [size as isize].into(),
            _owner: OfProcess::new(owner),
        }
    }

    /// The elements of a vector.
    pub(crate) fn of_vec<T: ViewedElement>(values: Vec<T>) -> Self {
        Self::of_kept_vec(values, ())
    }

    /// The elements of a vector, which `keep` accompanies.
    pub(crate) fn of_kept_vec<T: ViewedElement>(
        mut values: Vec<T>,
        keep: impl Send + Sync + 'static,
    ) -> Self {
        let (start, n) = (values.as_mut_ptr().cast(), values.len());
        Self::new(start, n, T::ELEMENT, Box::new((values, keep)))
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    /// The types differ in size.
    pub(crate) fn seen_as(self, element: Element) -> PyResult<Self> {
        if element.n_bytes() != self.element.n_bytes() {
            let (found, asked) = (self.element.name(), element.name());
            return Err(PyBufferError::new_err(format!("{found} cannot be seen as {asked}")));
        }
        Ok(Self { element, ..self })
    }

    /// The first elements of a slot, pinned if the batches are wanted so.
    ///
    /// # Errors
    /// The slot is too small.
    pub(crate) fn of_slot(
        mut slot: impl SlotMemory + 'static,
        n: usize,
        element: Element,
        kept: Kept,
    ) -> PyResult<Self> {
        kept.pin(&mut slot);
        let bytes = slot.bytes_mut();
        if n.checked_mul(element.n_bytes()).is_none_or(|n_bytes| bytes.len() < n_bytes) {
            let problem = format!("{} bytes are too few for {n} elements", bytes.len());
            return Err(PyBufferError::new_err(problem));
        }
        let start = bytes.as_mut_ptr();
        // The address of a slot's bytes never changes, and nothing in Rust uses them again until
        // it is dropped.
        Ok(Self::new(start, n, element, Box::new((slot, kept))))
    }

    /// Elements of an Arrow array, which others share: they are read-only.
    pub(crate) fn of_arrow(buffer: &Buffer, element: Element) -> Self {
        let (size, _) = element.size_and_code();
        let (start, n) = (buffer.as_ptr().cast_mut(), buffer.len() / size);
        Self { is_read_only: true, ..Self::new(start, n, element, Box::new(buffer.clone())) }
    }

    /// The same memory as an array of this shape, in C order.
    ///
    /// # Errors
    /// There are more or fewer elements than the shape has.
    pub(crate) fn with_shape(self, shape: &[usize]) -> PyResult<Self> {
        let size = self.element.n_bytes();
        let n_bytes = shape.iter().try_fold(size, |n: usize, length| n.checked_mul(*length));
        if n_bytes != Some(self.n_bytes) {
            let found = self.n_bytes / size;
            let problem = format!("{found} elements are not an array of shape {shape:?}");
            return Err(PyBufferError::new_err(problem));
        }
        let mut strides: Vec<isize> = Vec::with_capacity(shape.len());
        let mut stride = size;
        for length in shape.iter().rev() {
            strides.push(stride as isize);
            // Beyond the memory only if a dimension is empty, and then no element has it.
            stride = stride.saturating_mul((*length).max(1));
        }
        strides.reverse();
        let shape = shape.iter().map(|length| *length as isize).collect();
        Ok(Self { shape, strides: strides.into(), ..self })
    }

    /// Whether it has several dimensions of several elements, so that their order matters.
    fn is_matrix(&self) -> bool {
        self.shape.iter().filter(|length| **length > 1).count() > 1
    }
}

/// An element type of Rust.
pub(crate) trait ViewedElement: Send + Sync + 'static {
    /// The type as numpy sees it.
    const ELEMENT: Element;
}

macro_rules! viewed {
    ($($rust:ty => $element:ident),+) => {$(
        impl ViewedElement for $rust { const ELEMENT: Element = Element::$element; }
    )+};
}

viewed!(
    bool => Bool, f16 => F16, f32 => F32, f64 => F64, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64
);

#[pymethods]
impl Memory {
    /// Fills in Python's description of the memory, which borrows shape and strides of `slf`.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let memory = slf.get();
        if memory.is_read_only && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("this memory is read-only"));
        }
        let asked = |flag: c_int| flags & flag == flag;
        // Rows lie one after another, which is Fortran's order only of a vector.
        if asked(ffi::PyBUF_F_CONTIGUOUS) && memory.is_matrix() {
            return Err(PyBufferError::new_err("this memory is in C's order, not in Fortran's"));
        }
        let (size, code) = memory.element.size_and_code();
        // SAFETY: `view` is Python's and valid for writes. Every pointer stays valid while the
        // view exists, because `obj` keeps `slf` alive, a frozen class: it owns the memory, and
        // shape and strides, whose place does not change. Python only reads format, shape and
        // strides, although it declares them as mutable.
        unsafe {
            (*view).buf = memory.start.cast();
            (*view).len = memory.n_bytes as isize;
            (*view).itemsize = size as isize;
            (*view).readonly = c_int::from(memory.is_read_only);
            // Without a shape, it is a row of bytes.
            let n_dimensions = if asked(ffi::PyBUF_ND) { memory.shape.len() } else { 1 };
            (*view).ndim = n_dimensions as c_int;
            let code = code.as_ptr().cast_mut();
            (*view).format = if asked(ffi::PyBUF_FORMAT) { code } else { ptr::null_mut() };
            let shape = memory.shape.as_ptr().cast_mut();
            (*view).shape = if asked(ffi::PyBUF_ND) { shape } else { ptr::null_mut() };
            let strides = memory.strides.as_ptr().cast_mut();
            (*view).strides = if asked(ffi::PyBUF_STRIDES) { strides } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.clone().into_any().into_ptr();
        }
        Ok(())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.n_bytes)
    }
}

/// The schema and the batches of an Arrow stream in a capsule, which is empty afterwards.
pub(crate) fn read_stream(
    capsule: &Bound<'_, PyCapsule>,
) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by Arrow's PyCapsule interface, a capsule of this name points to a valid stream,
    // which `from_raw` moves out, leaving a released one behind.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    let invalid =
        |error: ArrowError| PyValueError::new_err(format!("cannot read the Arrow stream: {error}"));
    let reader = reader.map_err(invalid)?;
    let schema = reader.schema();
    Ok((schema, reader.collect::<Result<_, _>>().map_err(invalid)?))
}
