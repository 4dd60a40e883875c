//! One pass over the selected cells, as the consumer sees it.

use std::fmt;

use crate::batch::Batch;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cell_source::CellSource;
use crate::error::Error;
use crate::spec::LoaderSpec;
use crate::stats::EpochStats;
use crate::{Dataset, LoaderState};

/// The batches of one epoch, in order. Made by [`Loader::epoch`](crate::Loader::epoch).
///
/// After an error it has ended: the error is given once, then `None`. Dropping it at any point stops its
/// threads and waits for them, at longest until the read that is under way returns.
pub struct Epoch<B: BatchBuffers = HeapBuffers> {
    pub(crate) running: pipeline::Epoch<CellSource<B>>,
    pub(crate) dataset: Dataset,
    pub(crate) spec: LoaderSpec,
}

impl<B: BatchBuffers> Epoch<B> {
    pub(crate) fn of(
        running: pipeline::Epoch<CellSource<B>>,
        dataset: &Dataset,
        spec: &LoaderSpec,
    ) -> Self {
        let spec = spec.as_run(running.spec());
        Self { running, dataset: dataset.clone(), spec }
    }

    /// What has been done so far; after the end, what the whole epoch did.
    pub fn stats(&self) -> EpochStats {
        EpochStats::new(self.running.stats(), self.spec.clone(), &self.dataset)
    }

    /// The consumer's place in the order: [`Loader::resume`](crate::Loader::resume) goes on behind the last
    /// batch that the consumer was given. What is made ahead does not count.
    pub fn state(&self) -> LoaderState {
        self.running.state()
    }

    /// The number of batches of the epoch, those before the place that it was resumed at included,
    /// unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.running.n_batches()
    }
}

impl<B: BatchBuffers> Iterator for Epoch<B> {
    type Item = Result<Batch<B::Buffer>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.running.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.running.size_hint()
    }
}

impl<B: BatchBuffers> std::iter::FusedIterator for Epoch<B> {}

impl<B: BatchBuffers> fmt::Debug for Epoch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.running.fmt(f)
    }
}

/// Epochs one after another, without a gap: blocks of the next epoch are read while the last batches of
/// this one are consumed. Made by [`Loader::epochs`](crate::Loader::epochs).
pub struct Epochs<'a, B: BatchBuffers = HeapBuffers> {
    pub(crate) running: pipeline::Epochs<'a, CellSource<B>>,
    pub(crate) dataset: &'a Dataset,
    pub(crate) spec: &'a LoaderSpec,
}

impl<B: BatchBuffers> Iterator for Epochs<'_, B> {
    type Item = Result<Epoch<B>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let running = self.running.next()?;
        Some(running.map(|running| Epoch::of(running, self.dataset, self.spec)))
    }
}

impl<B: BatchBuffers> fmt::Debug for Epochs<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.running.fmt(f)
    }
}
