//! Rows of Zarr arrays through the engine, against stores that zarr-python wrote and a naive
//! oracle.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod damaged;
mod epochs;
mod zarr_python;

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayRows, Element, Error, RowBatch};
use pipeline::{Pipeline, PipelineSpec};
use shuffle::Order;
use storage::LocalStorage;

fn open<T: Element>(folder: &Path, array: &str) -> Result<ArrayRows<T>, Error> {
    ArrayRows::open(Arc::new(LocalStorage::new(folder)), array)
}

/// The values of all rows in their order.
fn read_all<T: Element>(folder: &Path, array: &str) -> Result<Vec<T>, Error> {
    let spec =
        PipelineSpec { order: Order::InOrder, chunk_rows: 2, batch_rows: 3, ..Default::default() };
    let pipeline = Pipeline::new(Arc::new(open::<T>(folder, array)?), spec, RowBatch::n_rows)?;
    let mut all = Vec::new();
    for batch in pipeline.epoch(0)? {
        all.extend_from_slice(batch?.values());
    }
    Ok(all)
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
