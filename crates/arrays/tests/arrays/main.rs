//! Samples of Zarr arrays through the engine, against stores that zarr-python wrote and a naive
//! oracle.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod changed;
mod conversions;
mod coordinates;
mod damaged;
mod epochs;
mod far;
mod faults;
mod into;
mod oracle;
mod settings;
mod sharing;
mod zarr_python;

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, Element, Error, SampleSpec, Variable};
use pipeline::{Pipeline, PipelineSpec};
use shuffle::Order;
use storage::LocalStorage;

/// Samples of the steps of one array.
fn open(folder: &Path, array: &str) -> Result<ArraySamples, Error> {
    open_with(folder, &SampleSpec::new([Variable::new(array)]))
}

fn open_with(folder: &Path, spec: &SampleSpec) -> Result<ArraySamples, Error> {
    ArraySamples::open(Arc::new(LocalStorage::new(folder)), spec)
}

/// Samples in their own order, in blocks of two and batches of three.
fn in_order() -> PipelineSpec {
    PipelineSpec {
        order: Order::InOrder,
        chunk_rows: 2,
        chunks_per_block: 1,
        batch_rows: 3,
        ..PipelineSpec::default()
    }
}

/// The values of the first variable in all samples, in their order, and the shape of a sample.
fn values<T: Element>(samples: ArraySamples) -> Result<(Vec<T>, Vec<usize>), Error> {
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples)?;
    let (mut all, mut shape) = (Vec::new(), Vec::new());
    for batch in pipeline.epoch(0)? {
        let batch = batch?;
        let first = batch.variables().next().unwrap();
        all.extend_from_slice(first.values::<T>()?);
        shape = first.shape();
    }
    Ok((all, shape.split_off(1)))
}

/// The values of all steps of an array, in their order.
fn read_all<T: Element>(folder: &Path, array: &str) -> Result<Vec<T>, Error> {
    Ok(values(open(folder, array)?)?.0)
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
