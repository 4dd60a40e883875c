//! Opens the cubes of a point.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use images::{ImageBatch, ImageSamples};
use pipeline::Pipeline;
use slots::{Allocate, Mapped};
use storage::ReadLimit;

use super::point::Point;
use super::task::CubeData;

/// Memory of a ring where there is no device.
pub(crate) fn plain_memory() -> Arc<dyn Allocate> {
    Arc::new(Mapped)
}

/// The engine over the cubes, with `memory` for a ring.
pub(crate) fn pipeline(
    data: &CubeData,
    point: &Point,
    (bucket, memory): (Option<&Arc<ReadLimit>>, Arc<dyn Allocate>),
) -> anyhow::Result<Pipeline<ImageSamples>> {
    let set = data
        .open(bucket, point.evicts())
        .with_context(|| format!("cannot open {}", data.path().display()))?;
    let samples = ImageSamples::open(&set, &point.image_spec(memory))?;
    let pipeline = Pipeline::new(Arc::new(samples), point.pipeline_spec(), ImageBatch::n_planned)?;
    ensure!(0 < pipeline.n_batches(), "{} has no cubes", data.path().display());
    Ok(pipeline)
}
