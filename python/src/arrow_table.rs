//! Tables: Arrow record batches, which other libraries take without a copy.

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::border::{self, Element, Memory, STREAM};
use crate::dataset::Dataset;
use crate::errors::value_error;
use crate::numpy;
use crate::values::element_of;
use crate::waiting::detached;

/// Rows of named columns. Implements Arrow's PyCapsule interface.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct ArrowTable {
    pub(crate) rows: RecordBatch,
}

impl ArrowTable {
    /// A table of these rows.
    pub(crate) fn new(rows: RecordBatch) -> Self {
        Self { rows }
    }

    /// The column with this name.
    fn named(&self, name: &str) -> PyResult<&ArrayRef> {
        self.rows.column_by_name(name).ok_or_else(|| {
            let existing = self.column_names().join(", ");
            let problem = format!("there is no column {name:?}; there are {existing}");
            value_error(&problem)
        })
    }
}

/// The rows of a table of ours, of a data set's obs, or of any object with an Arrow stream.
pub(crate) fn rows_of(table: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    if let Ok(table) = table.cast::<ArrowTable>() {
        return Ok(table.get().rows.clone());
    }
    if let Ok(dataset) = table.cast::<Dataset>() {
        return Ok(dataset.get().obs_rows().clone());
    }
    let stream = table.call_method0("__arrow_c_stream__").map_err(|error| {
        PyTypeError::new_err(format!("a table with __arrow_c_stream__ is needed: {error}"))
    })?;
    let capsule = stream.cast_into::<PyCapsule>()?;
    let (schema, batches) = border::read_stream(&capsule)?;
    match batches.as_slice() {
        [one] => Ok(one.clone()),
        several => {
            let joined = || arrow_select::concat::concat_batches(&schema, several);
            detached(table.py(), joined)?.map_err(|error| {
                PyValueError::new_err(format!("cannot join the table's chunks: {error}"))
            })
        }
    }
}

#[pymethods]
impl ArrowTable {
    #[staticmethod]
    fn from_arrow(table: &Bound<'_, PyAny>) -> PyResult<Self> {
        rows_of(table).map(Self::new)
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.rows.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.named(name)?;
        if column.logical_null_count() > 0 {
            let problem = format!("column {name:?} has nulls: convert it with pyarrow.table(...)");
            return Err(PyValueError::new_err(problem));
        }
        // Booleans are bits in Arrow and bytes in numpy.
        if let Some(truths) = column.as_boolean_opt() {
            let bytes: Vec<u8> = truths.values().iter().map(u8::from).collect();
            let memory = Memory::of_vec(bytes).seen_as(Element::Bool)?;
            return numpy::array(py, &Py::new(py, memory)?);
        }
        let Some(element) = element_of(column.data_type()) else {
            let found = column.data_type();
            let problem = format!(
                "column {name:?} has type {found}, not a number: convert it with pyarrow.table(...)"
            );
            return Err(PyValueError::new_err(problem));
        };
        let data = column.to_data();
        let width = element.n_bytes();
        let values = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
        numpy::array(py, &Py::new(py, Memory::of_arrow(&values, element))?)
    }

    fn dictionary_codes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.named(name)?;
        let Some(dictionary) = column.as_any_dictionary_opt() else {
            let problem = format!("column {name:?} has type {}, no dictionary", column.data_type());
            return Err(PyValueError::new_err(problem));
        };
        if dictionary.values().is_empty() {
            return numpy::array_of(py, vec![-1_i32; column.len()]);
        }
        let code = |(row, code): (usize, usize)| {
            if column.is_null(row) { Ok(-1) } else { i32::try_from(code) }
        };
        let codes = || {
            let codes = dictionary.normalized_keys().into_iter().enumerate().map(code);
            codes.collect::<Result<Vec<i32>, _>>()
        };
        let codes = detached(py, codes)?.map_err(|_| {
            PyValueError::new_err(format!("column {name:?} has 2^31 categories or more"))
        })?;
        numpy::array_of(py, codes)
    }

    #[pyo3(signature = (requested_schema = None))]
    #[expect(unused_variables, reason = "a producer that does not convert may ignore the request")]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = RecordBatchIterator::new([Ok(self.rows.clone())], self.rows.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.rows.schema_ref().as_ref())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("ArrowTable({} rows: {})", self.rows.num_rows(), self.column_names().join(", "))
    }
}
