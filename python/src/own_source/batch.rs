//! Batches of samples that Python code read.

use std::sync::Arc;

use pipeline::BatchPlace;
use pyo3::prelude::*;

use super::requests::ArrayOfSample;
use slots::PooledSlot;

use crate::border::Memory;
use crate::engine::{NumberedBatch, PlacedBatch};
use crate::memory_limit::KeptBatches;
use crate::numpy;

/// A batch, outside of Python.
#[derive(Debug)]
pub(crate) struct OwnBatch {
    pub(super) place: BatchPlace,
    pub(super) arrays: Arc<[ArrayOfSample]>,
    pub(super) samples: Vec<u64>,
    pub(super) values: Vec<PooledSlot>,
}

impl NumberedBatch for OwnBatch {
    type Class = SampleBatch;

    fn place(&self) -> BatchPlace {
        self.place
    }

    fn samples(&self) -> &[u64] {
        &self.samples
    }

    fn into_class(self, py: Python<'_>, kept: &Arc<KeptBatches>) -> PyResult<SampleBatch> {
        let Self { arrays, samples, values, .. } = self;
        let mut n_bytes = 0;
        let values = arrays.iter().zip(values).map(|(array, slot)| {
            let of_array = (array.n_bytes * samples.len()) as u64;
            n_bytes += of_array;
            let shape = [&[samples.len()], array.shape.as_slice()].concat();
            let n = shape.iter().product();
            let memory = Memory::of_slot(slot, n, array.element, kept.keep(of_array))?;
            Ok((array.name.clone(), Py::new(py, memory.with_shape(&shape)?)?))
        });
        let values = values.collect::<PyResult<_>>()?;
        kept.lease(n_bytes);
        Ok(SampleBatch(values))
    }
}

/// An array of each name, whose first dimension is the samples'.
#[pyclass(extends = PlacedBatch, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct SampleBatch(Vec<(String, Py<Memory>)>);

#[pymethods]
impl SampleBatch {
    /// The arrays by their names.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&str, Bound<'py, PyAny>)>> {
        let arrays = self.0.iter();
        arrays.map(|(name, values)| Ok((name.as_str(), numpy::array(py, values)?))).collect()
    }
}
