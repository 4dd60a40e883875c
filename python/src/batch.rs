//! Batches, whose arrays are views over their memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use loader::{BatchForm, CooBatch, CsrBatch, ReadableBuffer as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

use crate::arrow_table::ArrowTable;
use crate::border::{Element, Memory};
use crate::buffers::SlotBuffer;
use crate::errors::{OrException as _, SomafeedError, value_error};
use crate::experiment::unpicklable;
use crate::memory_limit::KeptBatches;
use crate::numpy;
use crate::tokens::Tokens;
use crate::values::of_values;

type Array<'py> = PyResult<Bound<'py, PyAny>>;
type Arrays<'py> = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Rows of X with the obs row and joinid of each.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Batch {
    idx: u64,
    n_padding: usize,
    n_rows: usize,
    /// Stored values of its own rows, if it is sparse.
    nnz: Option<usize>,
    /// With neighbours, the rows of further cells come after those of the batch.
    x: Py<Matrix>,
    neighbours: Option<Py<Neighbours>>,
    layers: Vec<(String, Py<Matrix>)>,
    obsm: Vec<(String, Py<Matrix>)>,
    modalities: Vec<(String, Py<Matrix>)>,
    /// Whether X has each cell; and each modality, by name.
    present: Py<Memory>,
    present_in: Vec<(String, Py<Memory>)>,
    tokens: Option<Tokens>,
    obs: RecordBatch,
    codes: RecordBatch,
    joinids: Py<Memory>,
    experiments: Py<Memory>,
}

impl Batch {
    /// Takes over a batch of the loader, with values of X of type `element`. Its buffers count as
    /// `kept` while they live.
    pub(crate) fn new(
        py: Python<'_>,
        batch: loader::Batch<SlotBuffer>,
        element: Option<Element>,
        kept: &Arc<KeptBatches>,
    ) -> PyResult<Self> {
        let mut n_bytes = 0;
        let n_rows = batch.n_rows();
        let nnz = nnz_of(&batch.x, n_rows).or_exception()?;
        let x = Py::new(py, Matrix::new(py, batch.x, element, kept, &mut n_bytes)?)?;
        let of_batch = |of| Py::new(py, Neighbours::new(py, of, &x)?);
        let neighbours = batch.neighbours.map(of_batch).transpose()?;
        let mut named = |matrices: Vec<(String, loader::Matrix<SlotBuffer>)>| {
            let matrices = matrices.into_iter().map(|(name, matrix)| {
                let matrix = Matrix::new(py, matrix, None, kept, &mut n_bytes)?;
                Ok((name, Py::new(py, matrix)?))
            });
            matrices.collect::<PyResult<Vec<_>>>()
        };
        let (layers, obsm) = (named(batch.layers)?, named(batch.obsm)?);
        let own = |memory| Py::new(py, memory);
        let (mut modalities, mut present_in) = (Vec::new(), Vec::new());
        for (name, loader::Modality { x, present, .. }) in batch.modalities {
            present_in.push((name.clone(), own(Memory::of_vec(present))?));
            modalities.push((name, x));
        }
        let modalities = named(modalities)?;
        let of_tokens = |tokens| Tokens::new(py, tokens, kept, &mut n_bytes);
        let tokens = batch.tokens.map(of_tokens).transpose()?;
        kept.lease(n_bytes);
        Ok(Self {
            idx: batch.batch_idx,
            n_padding: batch.n_padding,
            n_rows,
            nnz,
            x,
            neighbours,
            layers,
            obsm,
            modalities,
            present: own(Memory::of_vec(batch.present))?,
            present_in,
            tokens,
            obs: batch.obs,
            codes: batch.codes,
            joinids: own(Memory::of_vec(batch.joinids))?,
            experiments: own(Memory::of_vec(batch.experiments))?,
        })
    }
}

/// The neighbours of a batch's cells, as rows of a table.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Neighbours {
    table: Py<Matrix>,
    positions: Py<Memory>,
    values: Py<Memory>,
    present: Py<Memory>,
    joinids: Py<Memory>,
    experiments: Py<Memory>,
}

impl Neighbours {
    /// Takes over the neighbours of a batch whose rows are in `table`.
    fn new(py: Python<'_>, of: loader::Neighbours, table: &Py<Matrix>) -> PyResult<Self> {
        let loader::Neighbours { k, positions, values, present, joinids, experiments, .. } = of;
        let shape = [positions.len() / k.max(1), k];
        let positions: Vec<i64> = positions.into_iter().map(i64::from).collect();
        let shaped = |memory: Memory| Py::new(py, memory.with_shape(&shape)?);
        Ok(Self {
            table: table.clone_ref(py),
            positions: shaped(Memory::of_vec(positions))?,
            values: shaped(Memory::of_vec(values))?,
            present: shaped(Memory::of_vec(present))?,
            joinids: Py::new(py, Memory::of_vec(joinids))?,
            experiments: Py::new(py, Memory::of_vec(experiments))?,
        })
    }
}

#[pymethods]
impl Neighbours {
    #[getter]
    fn table(&self, py: Python<'_>) -> Py<Matrix> {
        self.table.clone_ref(py)
    }

    #[getter]
    fn positions<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.positions)
    }

    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.values)
    }

    #[getter]
    fn present<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.present)
    }

    #[getter]
    fn joinids<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.joinids)
    }

    #[getter]
    fn experiments<'py>(&self, py: Python<'py>) -> Array<'py> {
        numpy::array(py, &self.experiments)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Neighbours", "pickle its arrays"))
    }
}

/// A matrix of a batch in one of the forms.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Matrix {
    shape: (usize, usize),
    form: BatchForm,
    /// Number of stored values of a sparse matrix.
    nnz: Option<usize>,
    /// The values of a dense matrix; offsets, columns and values in CSR; rows, columns and values
    /// in COO.
    parts: Vec<Py<Memory>>,
}

impl Matrix {
    /// Takes over a matrix of the loader, and adds its bytes to `n_bytes`. Its values become those
    /// of type `element`; `None` leaves them as they are.
    fn new(
        py: Python<'_>,
        matrix: loader::Matrix<SlotBuffer>,
        element: Option<Element>,
        kept: &Arc<KeptBatches>,
        n_bytes: &mut u64,
    ) -> PyResult<Self> {
        use loader::Matrix as M;
        let shape = matrix.shape();
        let mut counted = |buffer: SlotBuffer, element: Option<Element>| {
            let elements = buffer.elements();
            let own = elements.element_type().bytes();
            let bytes = elements.len() as u64 * element.map_or(own, Element::n_bytes) as u64;
            *n_bytes += bytes;
            of_values(py, buffer, element, kept.keep(bytes))
        };
        let (parts, form, nnz) = match matrix {
            M::Dense { values, n_rows, n_columns } => {
                let is_f32 = values.elements().element_type() == loader::ElementType::F32;
                let form = if is_f32 { BatchForm::Dense } else { BatchForm::F16 };
                (vec![counted(values, element)?.with_shape(&[n_rows, n_columns])?], form, None)
            }
            M::Csr(CsrBatch { row_offsets, columns, values, .. }) => {
                let nnz = row_offsets.last().copied().unwrap_or(0);
                let offsets = Memory::of_vec(offsets(&row_offsets)?);
                let parts = vec![offsets, counted(columns, None)?, counted(values, element)?];
                (parts, BatchForm::Csr, Some(nnz))
            }
            M::Coo(CooBatch { rows, columns, values, .. }) => {
                let nnz = values.elements().len();
                let places = [counted(rows, None)?, counted(columns, None)?];
                let parts = places.into_iter().chain([counted(values, element)?]).collect();
                (parts, BatchForm::Coo, Some(nnz))
            }
            _ => return Err(SomafeedError::new_err("a batch of an unknown form")),
        };
        let parts = parts.into_iter().map(|memory| Py::new(py, memory));
        Ok(Self { shape, form, nnz, parts: parts.collect::<PyResult<_>>()? })
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

#[pymethods]
impl Matrix {
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.shape
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

    fn __repr__(&self) -> String {
        let ((n_rows, n_columns), form) = (self.shape, self.form.name());
        format!("Matrix({n_rows} x {n_columns}, {form})")
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Matrix", "pickle its arrays"))
    }
}

/// The matrix or mask with this name among those of a batch.
fn named<T>(py: Python<'_>, of: &[(String, Py<T>)], kind: &str, name: &str) -> PyResult<Py<T>> {
    let found = of.iter().find(|(one, _)| one == name).map(|(_, matrix)| matrix.clone_ref(py));
    found.ok_or_else(|| {
        let names: Vec<&str> = of.iter().map(|(name, _)| name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        value_error(&format!("this batch has no {kind} {name:?}; it has {names}"))
    })
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

/// Number of stored values of the first rows of a sparse matrix.
fn nnz_of(
    x: &loader::Matrix<SlotBuffer>,
    n_rows: usize,
) -> Result<Option<usize>, loader::LoaderError> {
    Ok(match x {
        loader::Matrix::Csr(csr) => csr.row_offsets.get(n_rows).copied(),
        // Values come row by row.
        loader::Matrix::Coo(coo) => {
            Some(coo.rows()?.partition_point(|row| (*row as usize) < n_rows))
        }
        _ => None,
    })
}

/// The first elements of an array with others of each value.
fn first<'py>(
    (first, columns, values): (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>),
    [n_first, nnz]: [usize; 2],
) -> Arrays<'py> {
    let to = |n: usize| PySlice::new(values.py(), 0, n as isize, 1);
    Ok((first.get_item(to(n_first))?, columns.get_item(to(nnz))?, values.get_item(to(nnz))?))
}

#[pymethods]
impl Batch {
    #[getter]
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    #[getter]
    fn n_columns(&self) -> usize {
        self.x.get().shape.1
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
        self.x.get().form()
    }

    #[getter]
    fn nnz(&self) -> Option<usize> {
        self.nnz
    }

    fn dense<'py>(&self, py: Python<'py>) -> Array<'py> {
        let all = self.x.get().dense(py)?;
        match &self.neighbours {
            Some(_) => all.get_item(PySlice::new(py, 0, self.n_rows as isize, 1)),
            None => Ok(all),
        }
    }

    fn csr<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        let all = self.x.get().csr(py)?;
        match (&self.neighbours, self.nnz) {
            (Some(_), Some(nnz)) => first(all, [self.n_rows + 1, nnz]),
            _ => Ok(all),
        }
    }

    fn coo<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        let all = self.x.get().coo(py)?;
        match (&self.neighbours, self.nnz) {
            (Some(_), Some(nnz)) => first(all, [nnz, nnz]),
            _ => Ok(all),
        }
    }

    #[getter]
    fn neighbours(&self, py: Python<'_>) -> Option<Py<Neighbours>> {
        self.neighbours.as_ref().map(|of| of.clone_ref(py))
    }

    fn layer(&self, py: Python<'_>, name: &str) -> PyResult<Py<Matrix>> {
        named(py, &self.layers, "layer", name)
    }

    fn obsm<'py>(&self, py: Python<'py>, name: &str) -> Array<'py> {
        named(py, &self.obsm, "array of obsm", name)?.get().dense(py)
    }

    fn modality(&self, py: Python<'_>, name: &str) -> PyResult<Py<Matrix>> {
        named(py, &self.modalities, "modality", name)
    }

    #[pyo3(signature = (modality = None))]
    fn present<'py>(&self, py: Python<'py>, modality: Option<&str>) -> Array<'py> {
        let Some(modality) = modality else { return numpy::array(py, &self.present) };
        numpy::array(py, &named(py, &self.present_in, "modality", modality)?)
    }

    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let missing =
            || PyValueError::new_err("this batch has no tokens: make the loader with tokens=");
        self.tokens.as_ref().ok_or_else(missing)?.arrays(py)
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
        self.n_rows
    }

    fn __repr__(&self) -> String {
        let (x, n_rows) = (self.x.get(), self.n_rows);
        let (n_columns, form) = (x.shape.1, x.form.name());
        format!("Batch({}: {n_rows} x {n_columns}, {form})", self.idx)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Batch", "pickle its arrays"))
    }
}
