//! numpy arrays over our memory, and arrays and lists of Python as arguments.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::border::{Memory, ViewedElement};

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
        let signed =
            |numbers: Vec<i64>| numbers.into_iter().map(of_signed).collect::<PyResult<Vec<u64>>>();
        if let Some(numbers) = elements::<i64>(&object)? {
            return signed(numbers).map(Self);
        }
        if let Some(numbers) = elements::<u64>(&object)? {
            return Ok(Self(numbers));
        }
        if let Some(numbers) = elements::<u32>(&object)? {
            return Ok(Self(numbers.into_iter().map(u64::from).collect()));
        }
        if let Some(numbers) = elements::<i32>(&object)? {
            return signed(numbers.into_iter().map(i64::from).collect()).map(Self);
        }
        let numbers = object.try_iter().and_then(|items| {
            items.map(|item| item.and_then(|item| item.extract::<i64>())).collect::<PyResult<_>>()
        });
        let wrong = |error: PyErr| {
            let problem = format!("integers are needed, as an array or a sequence: {error}");
            PyTypeError::new_err(problem)
        };
        signed(numbers.map_err(wrong)?).map(Self)
    }
}

impl Integers {
    /// As 32-bit codes of groups or labels.
    pub(crate) fn codes(&self) -> PyResult<Vec<u32>> {
        let code = |number: &u64| {
            u32::try_from(*number)
                .map_err(|_| PyValueError::new_err(format!("{number} is not below 2^32")))
        };
        self.0.iter().map(code).collect()
    }
}

fn of_signed(number: i64) -> PyResult<u64> {
    u64::try_from(number).map_err(|_| PyValueError::new_err(format!("{number} is below 0")))
}

/// The elements of a buffer of this type, copied; `None` if it is not one.
pub(crate) fn elements<T: Element + Copy>(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<T>>> {
    let Ok(buffer) = PyBuffer::<T>::get(object) else { return Ok(None) };
    if buffer.dimensions() != 1 {
        let n = buffer.dimensions();
        return Err(PyValueError::new_err(format!("an array of {n} dimensions instead of one")));
    }
    buffer.to_vec(object.py()).map(Some)
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
