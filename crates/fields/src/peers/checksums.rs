//! The batches that all read, and the checksums of their samples by our loader.

use std::sync::Arc;

use anyhow::ensure;
use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use bench_run::Checksums;
use pipeline::Pipeline;

use crate::bench::{FieldData, Point};

/// The number of epochs that have the first batches of `point`.
pub(crate) fn n_epochs(data: &FieldData, point: &Point, n_batches: u64) -> anyhow::Result<u64> {
    Ok(n_batches.div_ceil(n_samples(data, point)? / point.batch))
}

/// The number of samples, which fill a batch.
fn n_samples(data: &FieldData, point: &Point) -> anyhow::Result<u64> {
    let n_samples = data.samples_in(&data.storage()?, point)?.n_samples();
    ensure!(
        0 < point.batch && point.batch <= n_samples,
        "{n_samples} samples do not fill a batch of {}",
        point.batch
    );
    Ok(n_samples)
}

/// The samples of the first batches of `point`, as our loader delivers them over its epochs.
pub(crate) fn batches(
    data: &FieldData,
    point: &Point,
    n_batches: u64,
) -> anyhow::Result<Vec<Vec<u64>>> {
    let n_samples = n_samples(data, point)?;
    let spec = point.spec();
    let lanes = spec.batches(spec.default_lanes());
    let mut batches = Vec::new();
    for epoch in 0..point.epochs {
        let plan = spec.plan(n_samples).dealt_epoch(epoch, &lanes)?;
        let blocks = plan.map(|block| block.delivered_rows());
        batches.extend(blocks.filter(|rows| rows.len() as u64 == point.batch));
    }
    batches.truncate(n_batches as usize);
    Ok(batches)
}

/// Reads the first batches of `point` with our loader; returns the checksums of their samples.
pub(crate) fn ours(data: &FieldData, point: &Point, n_batches: u64) -> anyhow::Result<Checksums> {
    let variables = data.arrays.iter().map(|name| Variable::new(name).as_f32());
    let spec = SampleSpec { threads: point.threads, ..SampleSpec::new(variables) };
    let samples = Arc::new(ArraySamples::open(data.storage()?, &spec)?);
    let pipeline = Pipeline::new(samples, point.spec(), ArrayBatch::n_samples)?;
    let mut found = Checksums::new();
    let mut n_left = n_batches;
    for epoch in pipeline.epochs(0..point.epochs) {
        for batch in epoch?.take(n_left as usize) {
            found.extend(of_batch(&batch?));
            n_left -= 1;
        }
        if n_left == 0 {
            break;
        }
    }
    Ok(found)
}

/// Computes the checksums of a batch's samples.
fn of_batch(batch: &ArrayBatch) -> Checksums {
    let mut found = Checksums::new();
    let n_samples = batch.n_samples().max(1);
    for values in batch.variables() {
        let sample_bytes = (values.bytes().len() / n_samples).max(1);
        for (sample, bytes) in batch.samples().iter().zip(values.bytes().chunks(sample_bytes)) {
            found.entry(*sample).or_default().push(crc32fast::hash(bytes));
        }
    }
    found
}
