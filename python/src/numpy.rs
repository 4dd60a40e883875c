//! numpy arrays over our memory, and arrays and lists of Python as arguments.

use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use shuffle::stop;

use crate::border::{Memory, ViewedElement};
use crate::errors::OrException as _;

/// A numpy array over the memory, which it keeps alive.
pub(crate) fn array<'py>(py: Python<'py>, memory: &Py<Memory>) -> PyResult<Bound<'py, PyAny>> {
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    AS_ARRAY.import(py, "numpy", "asarray")?.call1((memory,))
}

/// A numpy array of the elements of a vector.
pub(crate) fn array_of<T: ViewedElement>(
    py: Python<'_>,
    values: Vec<T>,
) -> PyResult<Bound<'_, PyAny>> {
    array(py, &Py::new(py, Memory::of_vec(values))?)
}

/// Integers from 0 on, of any array or sequence.
#[derive(Debug)]
pub(crate) struct Integers(pub(crate) Vec<u64>);

impl<'py> FromPyObject<'_, 'py> for Integers {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(buffer) = Numbers::get(&object)?
            && let Some(numbers) = buffer.integers()?
        {
            return Ok(Self(numbers));
        }
        let numbers = object.try_iter().and_then(|items| {
            items.map(|item| item.and_then(|item| item.extract::<i64>())).collect::<PyResult<_>>()
        });
        let wrong = |error: PyErr| {
            let problem = format!("integers are needed, as an array or a sequence: {error}");
            PyTypeError::new_err(problem)
        };
        signed::<i64>(numbers.map_err(wrong)?).map(Self)
    }
}

impl Integers {
    /// As 32-bit codes of groups or labels.
    pub(crate) fn codes(&self) -> PyResult<Vec<u32>> {
        let large = |number: &u64| u32::try_from(*number).is_err();
        if let Some(at) = stop::position(self.0.iter(), large).or_exception()? {
            return Err(PyValueError::new_err(format!("{} is not below 2^32", self.0[at])));
        }
        stop::map(&self.0, |number| *number as u32).or_exception()
    }
}

fn of_signed(number: i64) -> PyResult<u64> {
    u64::try_from(number).map_err(|_| PyValueError::new_err(format!("{number} is below 0")))
}

fn signed<T: Into<i64>>(numbers: Vec<T>) -> PyResult<Vec<u64>> {
    numbers.into_iter().map(|number| of_signed(number.into())).collect()
}

/// A buffer of one dimension whose elements are in this machine's byte order, each at a multiple of
/// its size. They may lie apart, and be read-only.
struct Numbers<'py> {
    py: Python<'py>,
    buffer: PyUntypedBuffer,
}

impl<'py> Numbers<'py> {
    /// The buffer of an object; `None` if it has none.
    fn get(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let Ok(mut buffer) = PyUntypedBuffer::get(object) else { return Ok(None) };
        // A code of one letter is of this machine's own order and alignment. PyO3 reads elements of
        // either order alike.
        if buffer.format().to_bytes().len() > 1 {
            buffer = PyUntypedBuffer::get(&natively(object)?)?;
        }
        match buffer.dimensions() {
            1 => Ok(Some(Self { py: object.py(), buffer })),
            n => Err(PyValueError::new_err(format!("an array of {n} dimensions instead of one"))),
        }
    }

    /// The elements, copied; `None` if they have another type.
    fn elements<T: Element>(&self) -> PyResult<Option<Vec<T>>> {
        self.buffer.as_typed::<T>().ok().map(|buffer| buffer.to_vec(self.py)).transpose()
    }

    /// The elements if they are integers, each checked to be from 0 on.
    fn integers(&self) -> PyResult<Option<Vec<u64>>> {
        macro_rules! first_of {
            ($($rust:ty => $convert:expr),+) => {$(
                if let Some(numbers) = self.elements::<$rust>()? {
                    return self.py.detach(|| $convert(numbers)).map(Some);
                }
            )+};
        }
        first_of!(
            i64 => signed, u64 => Ok, u32 => wide, i32 => signed, u16 => wide, i16 => signed,
            u8 => wide, i8 => signed
        );
        Ok(None)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "like the conversion of signed integers")]
fn wide<T: Into<u64>>(numbers: Vec<T>) -> PyResult<Vec<u64>> {
    Ok(numbers.into_iter().map(Into::into).collect())
}

/// An array with the same elements in this machine's byte order, aligned.
fn natively<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = object.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (object,))?;
    let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    numpy.call_method1("require", (array, native, "A"))
}

/// The elements of a buffer of this type, in either byte order, copied; `None` if it is not one.
pub(crate) fn elements<T: Element>(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<T>>> {
    Numbers::get(object)?.map_or(Ok(None), |numbers| numbers.elements())
}

/// Numbers, or a range `(start, stop)`.
#[derive(Debug)]
pub(crate) enum Rows {
    Range(u64, u64),
    List(Vec<u64>),
}

impl<'py> FromPyObject<'_, 'py> for Rows {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(tuple) = object.cast::<PyTuple>()
            && tuple.len() == 2
        {
            let end = |idx| tuple.get_item(idx).and_then(|end| end.extract::<i64>());
            return Ok(Self::Range(of_signed(end(0)?)?, of_signed(end(1)?)?));
        }
        object.extract::<Integers>().map(|numbers| Self::List(numbers.0))
    }
}
