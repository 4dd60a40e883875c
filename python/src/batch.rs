//! Batches, whose arrays are views over their memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use loader::{BatchForm, CooBatch, CsrBatch, Matrix, ReadableBuffer as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow_table::ArrowTable;
use crate::border::Memory;
use crate::errors::SomafeedError;
use crate::experiment::unpicklable;
use crate::memory_limit::KeptBatches;
use crate::numpy;

type Array<'py> = PyResult<Bound<'py, PyAny>>;
type Arrays<'py> = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Rows of X with the obs row and joinid of each.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Batch {
    idx: u64,
    n_padding: usize,
    shape: (usize, usize),
    form: BatchForm,
    /// Number of stored values of a sparse batch.
    nnz: Option<usize>,
    /// The values of a dense batch; offsets, columns and values in CSR; rows, columns and values in
    /// COO.
    parts: Vec<Py<Memory>>,
    obs: RecordBatch,
    codes: RecordBatch,
    joinids: Py<Memory>,
    experiments: Py<Memory>,
}

impl Batch {
    /// Takes over a batch of the loader. Its buffers count as `kept` while they live.
    pub(crate) fn new(
        py: Python<'_>,
        batch: loader::Batch,
        kept: &Arc<KeptBatches>,
    ) -> PyResult<Self> {
        let shape = batch.x.shape();
        let parts = Parts::new(batch.x, kept)?;
        kept.lease(parts.n_bytes);
        let own = |memory| Py::new(py, memory);
        Ok(Self {
            idx: batch.batch_idx,
            n_padding: batch.n_padding,
            shape,
            form: parts.form,
            nnz: parts.nnz,
            parts: parts.memory.into_iter().map(own).collect::<PyResult<_>>()?,
            obs: batch.obs,
            codes: batch.codes,
            joinids: own(Memory::of_vec(batch.joinids))?,
            experiments: own(Memory::of_vec(batch.experiments))?,
        })
    }

    fn sparse<'py>(&self, py: Python<'py>, form: BatchForm) -> Arrays<'py> {
        match self.parts.as_slice() {
            [first, columns, values] if self.form == form => Ok((
                numpy::array(py, first)?,
                numpy::array(py, columns)?,
                numpy::array(py, values)?,
            )),
            _ => Err(self.other_form(form.name())),
        }
    }

    fn other_form(&self, asked: &str) -> PyErr {
        let found = self.form.name();
        let problem = format!("this batch has form {found:?}: make the loader with form={asked:?}");
        PyValueError::new_err(problem)
    }
}

/// The memory of a batch's values.
struct Parts {
    memory: Vec<Memory>,
    form: BatchForm,
    nnz: Option<usize>,
    n_bytes: u64,
}

impl Parts {
    fn new(x: Matrix, kept: &Arc<KeptBatches>) -> PyResult<Self> {
        let mut n_bytes = 0;
        let mut counted = |buffer: loader::HeapBuffer| {
            let elements = buffer.elements();
            let bytes = elements.len() as u64 * elements.element_type().bytes() as u64;
            n_bytes += bytes;
            Memory::of_buffer(buffer, kept.keep(bytes))
        };
        let (memory, form, nnz) = match x {
            Matrix::Dense { values, n_rows, n_columns } => {
                let is_f32 = values.elements().element_type() == loader::ElementType::F32;
                let form = if is_f32 { BatchForm::Dense } else { BatchForm::F16 };
                (vec![counted(values)?.with_rows(n_rows, n_columns)], form, None)
            }
            Matrix::Csr(CsrBatch { row_offsets, columns, values, .. }) => {
                let nnz = row_offsets.last().copied().unwrap_or(0);
                let offsets = Memory::of_vec(offsets(&row_offsets)?);
                (vec![offsets, counted(columns)?, counted(values)?], BatchForm::Csr, Some(nnz))
            }
            Matrix::Coo(CooBatch { rows, columns, values, .. }) => {
                let nnz = values.elements().len();
                let memory = vec![counted(rows)?, counted(columns)?, counted(values)?];
                (memory, BatchForm::Coo, Some(nnz))
            }
            _ => return Err(SomafeedError::new_err("a batch of an unknown form")),
        };
        Ok(Self { memory, form, nnz, n_bytes })
    }
}

/// Row offsets as scipy and torch take them.
fn offsets(row_offsets: &[usize]) -> PyResult<Vec<i32>> {
    let too_many = |nnz: usize| {
        let problem =
            format!("a batch of {nnz} values, more than 32 bits can number: make batches smaller");
        PyValueError::new_err(problem)
    };
    let offset = |offset: &usize| i32::try_from(*offset).map_err(|_| too_many(*offset));
    row_offsets.iter().map(offset).collect()
}

#[pymethods]
impl Batch {
    #[getter]
    fn n_rows(&self) -> usize {
        self.shape.0
    }

    #[getter]
    fn n_columns(&self) -> usize {
        self.shape.1
    }

    #[getter]
    fn batch_idx(&self) -> u64 {
        self.idx
    }

    #[getter]
    fn n_padding(&self) -> usize {
        self.n_padding
    }

    #[getter]
    fn form(&self) -> &'static str {
        self.form.name()
    }

    #[getter]
    fn nnz(&self) -> Option<usize> {
        self.nnz
    }

    fn dense<'py>(&self, py: Python<'py>) -> Array<'py> {
        match self.parts.as_slice() {
            [values] => numpy::array(py, values),
            _ => Err(self.other_form("dense")),
        }
    }

    fn csr<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        self.sparse(py, BatchForm::Csr)
    }

    fn coo<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        self.sparse(py, BatchForm::Coo)
    }

    #[getter]
    fn obs(&self) -> ArrowTable {
        ArrowTable::new(self.obs.clone())
    }

    #[getter]
    fn codes(&self) -> ArrowTable {
        ArrowTable::new(self.codes.clone())
    }

    #[getter]
    fn joinids<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.joinids)
    }

    #[getter]
    fn experiments<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.experiments)
    }

    fn __len__(&self) -> usize {
        self.shape.0
    }

    fn __repr__(&self) -> String {
        let ((n_rows, n_columns), form) = (self.shape, self.form.name());
        format!("Batch({}: {n_rows} x {n_columns}, {form})", self.idx)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Batch", "pickle its arrays"))
    }
}
