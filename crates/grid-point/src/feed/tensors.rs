//! Batches as tensors.

use std::borrow::Cow;

use anyhow::Context as _;
use arrow_array::RecordBatch;
use loader::{Dataset, Loader, LoaderSpec};
use torch_feed::{LinearClassifier, TensorBuffers};

pub(crate) use torch_feed::{
    Error, LIBTORCH_VERSION, TCH_VERSION, TensorBatch as PointBatch, TensorEpoch as PointEpoch,
    TensorLoader as PointLoader,
};

/// Learning rate of the classifier; does not change the cost of a step.
const LEARNING_RATE: f64 = 1e-3;

pub(crate) fn loader(dataset: Dataset, spec: LoaderSpec) -> Result<PointLoader, Error> {
    PointLoader::new(dataset, spec)
}

pub(crate) fn inner(loader: &PointLoader) -> &Loader<TensorBuffers> {
    loader.loader()
}

pub(crate) fn n_padding(batch: &PointBatch) -> usize {
    batch.n_padding()
}

pub(crate) fn obs(batch: &PointBatch) -> &RecordBatch {
    batch.obs()
}

pub(crate) fn codes<'a>(batch: &'a PointBatch, encoder: &str) -> anyhow::Result<Cow<'a, [i64]>> {
    let codes = batch.codes(encoder).context("a batch lacks codes")?;
    Ok(Cow::Owned(Vec::try_from(codes)?))
}

pub(crate) fn joinids(batch: &PointBatch) -> anyhow::Result<Cow<'_, [i64]>> {
    let joinids = Vec::try_from(batch.joinids()).context("the joinids cannot be read")?;
    Ok(Cow::Owned(joinids))
}

/// The model of `--consumer linear`.
#[derive(Debug)]
pub(crate) struct Classifier(LinearClassifier);

impl Classifier {
    #[expect(clippy::unnecessary_wraps, reason = "it cannot be made without torch")]
    pub(crate) fn new(loader: &PointLoader, n_classes: usize) -> anyhow::Result<Self> {
        Ok(Self(LinearClassifier::for_loader(loader, n_classes, LEARNING_RATE)))
    }

    pub(crate) fn step_on(&mut self, batch: &PointBatch, classes: &str) -> anyhow::Result<()> {
        self.0.step_on(batch, classes).context("--consumer linear could not train on a batch")?;
        Ok(())
    }
}
