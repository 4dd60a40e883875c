//! What is asked of the thread that reads, and its answers.

use std::fmt;

use crossbeam_channel::{Receiver, Sender};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::border::Element;
use crate::numpy::array_of;

/// The requests of a source, until it is dropped.
#[pyclass(frozen, module = "somafeed._somafeed", name = "_Requests")]
#[derive(Debug)]
pub(super) struct Requests(pub(super) Receiver<Request>);

#[pymethods]
impl Requests {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Request> {
        py.detach(|| self.0.recv().ok())
    }
}

/// What is asked of the thread. Without an answer it fails when it is dropped.
#[pyclass(frozen, module = "somafeed._somafeed", name = "_Request")]
#[derive(Debug)]
pub(super) struct Request {
    pub(super) wanted: Wanted,
    pub(super) answer: Sender<PyResult<Answer>>,
}

#[derive(Debug, Clone)]
pub(super) enum Wanted {
    NRows,
    Rows(Vec<i64>),
}

#[derive(Debug)]
pub(super) enum Answer {
    NRows(u64),
    Arrays(Vec<(ArrayOfSample, Vec<u8>)>),
}

#[pymethods]
impl Request {
    /// The rows to read; `None` if their number is asked for.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.wanted {
            Wanted::NRows => Ok(None),
            Wanted::Rows(rows) => array_of(py, rows.clone()).map(Some),
        }
    }

    /// Takes what the source returned.
    fn answer(&self, returned: &Bound<'_, PyAny>) {
        let answer = match &self.wanted {
            Wanted::NRows => returned.extract().map(Answer::NRows),
            Wanted::Rows(rows) => arrays_in(returned, rows.len()).map(Answer::Arrays),
        };
        // The epoch may have been closed.
        let _nobody_waits = self.answer.send(answer);
    }

    /// Takes what the source raised.
    fn fail(&self, error: Bound<'_, PyAny>) {
        let _nobody_waits = self.answer.send(Err(PyErr::from_value(error)));
    }
}

/// An array of each sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArrayOfSample {
    pub(super) name: String,
    pub(super) element: Element,
    pub(super) shape: Vec<usize>,
    pub(super) n_bytes: usize,
}

impl fmt::Display for ArrayOfSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} of shape {:?}", self.name, self.element.name(), self.shape)
    }
}

/// The arrays that the source returned for some rows, as bytes.
fn arrays_in(
    returned: &Bound<'_, PyAny>,
    n_rows: usize,
) -> PyResult<Vec<(ArrayOfSample, Vec<u8>)>> {
    let Ok(arrays) = returned.cast::<PyMapping>() else {
        let class = returned.get_type().qualname()?;
        let problem = format!("read returned a {class}, and not a dictionary of arrays");
        return Err(PyTypeError::new_err(problem));
    };
    let items = arrays.items()?;
    let arrays = items.iter().map(|item| {
        let (name, array) = item.extract::<(String, Bound<'_, PyAny>)>()?;
        array_bytes(name, &array, n_rows)
    });
    arrays.collect()
}

/// What one sample of an array is, and the bytes of all.
fn array_bytes(
    name: String,
    array: &Bound<'_, PyAny>,
    n_rows: usize,
) -> PyResult<(ArrayOfSample, Vec<u8>)> {
    let numpy = array.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    let element = native.getattr("name")?.extract::<String>()?;
    let Some(element) = Element::named(&element) else {
        let problem = format!(
            "array {name:?} has elements of type {element}: a batch holds numbers and Booleans"
        );
        return Err(PyTypeError::new_err(problem));
    };
    let array = numpy.call_method1("require", (array, native, "CA"))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let Some((_, shape)) = shape.split_first().filter(|(first, _)| **first == n_rows) else {
        let problem = format!(
            "array {name:?} has the shape {shape:?}, but {n_rows} samples were asked for: its \
             first dimension is theirs"
        );
        return Err(PyValueError::new_err(problem));
    };
    let n_bytes = element.n_bytes() * shape.iter().product::<usize>();
    let of_sample = ArrayOfSample { name, element, shape: shape.to_vec(), n_bytes };
    let bytes = array.call_method1("reshape", (-1,))?.call_method1("view", ("u1",))?;
    Ok((of_sample, PyBuffer::<u8>::get(&bytes)?.to_vec(array.py())?))
}
