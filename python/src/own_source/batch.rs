//! Batches of samples that Python code read.

use std::sync::Arc;

use pipeline::BatchPlace;
use pyo3::prelude::*;

use super::requests::ArrayOfSample;
use crate::border::{AlignedBytes, Memory};
use crate::engine::{EpochOf, MadeBatch};
use crate::experiment::unpicklable;
use crate::memory_limit::KeptBatches;
use crate::numpy;

/// A batch, outside of Python.
#[derive(Debug)]
pub(crate) struct OwnBatch {
    pub(super) place: BatchPlace,
    pub(super) arrays: Arc<[ArrayOfSample]>,
    pub(super) samples: Vec<u64>,
    pub(super) values: Vec<AlignedBytes>,
}

impl MadeBatch for OwnBatch {
    fn batch_idx(&self) -> u64 {
        self.place.batch_idx
    }

    fn n_samples(&self) -> usize {
        self.samples.len()
    }

    fn into_python(self: Box<Self>, py: Python<'_>, epoch: &EpochOf) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, SampleBatch::new(py, *self, &epoch.kept)?)?.into_any())
    }
}

/// An array of each name, whose first dimension is the samples'.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct SampleBatch {
    place: BatchPlace,
    n_samples: usize,
    samples: Py<Memory>,
    values: Vec<(String, Py<Memory>)>,
}

impl SampleBatch {
    fn new(py: Python<'_>, batch: OwnBatch, kept: &Arc<KeptBatches>) -> PyResult<Self> {
        let OwnBatch { place, arrays, samples, values } = batch;
        let (n_samples, mut n_bytes) = (samples.len(), 0);
        let values = arrays.iter().zip(values).map(|(array, bytes)| {
            let of_array = (array.n_bytes * n_samples) as u64;
            n_bytes += of_array;
            let shape = [&[n_samples], array.shape.as_slice()].concat();
            let memory = Memory::of_bytes(bytes, array.element, kept.keep(of_array));
            Ok((array.name.clone(), Py::new(py, memory.with_shape(&shape)?)?))
        });
        let values = values.collect::<PyResult<_>>()?;
        kept.lease(n_bytes);
        let samples = Py::new(py, Memory::of_vec(samples))?;
        Ok(Self { place, n_samples, samples, values })
    }
}

#[pymethods]
impl SampleBatch {
    #[getter]
    fn batch_idx(&self) -> u64 {
        self.place.batch_idx
    }

    #[getter]
    fn n_padding(&self) -> usize {
        self.place.n_padding
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::array(py, &self.samples)
    }

    /// The arrays by their names.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&str, Bound<'py, PyAny>)>> {
        let arrays = self.values.iter();
        arrays.map(|(name, values)| Ok((name.as_str(), numpy::array(py, values)?))).collect()
    }

    fn __len__(&self) -> usize {
        self.n_samples
    }

    fn __repr__(&self) -> String {
        format!("SampleBatch({}: {} samples)", self.place.batch_idx, self.n_samples)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("SampleBatch", "pickle its arrays"))
    }
}
