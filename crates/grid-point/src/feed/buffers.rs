//! Batches as the loader makes them.

use std::borrow::Cow;

use anyhow::{Context as _, bail};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use loader::{Dataset, LoaderSpec};

use super::NO_TORCH;

pub(crate) use loader::{Batch as PointBatch, Epoch as PointEpoch, Loader as PointLoader};

/// Not linked.
pub(crate) const LIBTORCH_VERSION: Option<&str> = None;
pub(crate) const TCH_VERSION: Option<&str> = None;

/// The error of a loader, named as among those of tensors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Loader(#[from] loader::LoaderError),
}

pub(crate) fn loader(dataset: Dataset, spec: LoaderSpec) -> Result<PointLoader, Error> {
    Ok(PointLoader::new(dataset, spec)?)
}

pub(crate) fn inner(loader: &PointLoader) -> &PointLoader {
    loader
}

pub(crate) fn n_padding(batch: &PointBatch) -> usize {
    batch.n_padding
}

pub(crate) fn obs(batch: &PointBatch) -> &RecordBatch {
    &batch.obs
}

pub(crate) fn codes<'a>(batch: &'a PointBatch, encoder: &str) -> anyhow::Result<Cow<'a, [i64]>> {
    let codes = batch.codes.column_by_name(encoder).context("a batch lacks codes")?;
    // The loader makes every column of codes Int64.
    Ok(Cow::Borrowed(codes.as_primitive::<Int64Type>().values()))
}

#[expect(clippy::unnecessary_wraps, reason = "those of a tensor are converted")]
pub(crate) fn joinids(batch: &PointBatch) -> anyhow::Result<Cow<'_, [i64]>> {
    Ok(Cow::Borrowed(&batch.joinids))
}

/// Stands where a build with torch has the model of `--consumer linear`; cannot be made.
#[derive(Debug)]
pub(crate) enum Classifier {}

impl Classifier {
    pub(crate) fn new(_: &PointLoader, _: usize) -> anyhow::Result<Self> {
        bail!("--consumer linear: {NO_TORCH}")
    }

    pub(crate) fn step_on(&mut self, _: &PointBatch, _: &str) -> anyhow::Result<()> {
        match *self {}
    }
}
