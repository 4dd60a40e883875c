//! Example experiments.

use std::sync::atomic::{AtomicBool, Ordering};

use example_data::GenerateSpec;
use pyo3::prelude::*;

use crate::errors::OrException as _;
use crate::libtiledb;
use crate::waiting::stoppable;

/// Writes a Census-shaped experiment.
#[pyfunction]
#[pyo3(signature = (uri, *, n_cells = 20_000, n_genes = 20_000, seed = 0))]
pub(crate) fn generate_example(
    py: Python<'_>,
    uri: String,
    n_cells: u64,
    n_genes: u64,
    seed: u64,
) -> PyResult<u64> {
    libtiledb::suggest(py)?;
    // One byte for each call lives on: the threads that write look at it.
    let interrupted: &'static AtomicBool = Box::leak(Box::default());
    let spec = GenerateSpec {
        n_cells,
        n_genes,
        seed,
        interrupted: Some(interrupted),
        ..GenerateSpec::default()
    };
    let write = move || example_data::generate(&uri, &spec, &mut |_| ());
    let written = stoppable(py, write, || interrupted.store(true, Ordering::Relaxed))?;
    Ok(written.or_exception()?.nnz)
}
