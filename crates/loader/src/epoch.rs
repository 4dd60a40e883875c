//! Iterators over the batches of an epoch, and over epochs.

use std::fmt;
use std::task::Poll;
use std::time::Duration;

use crate::batch::Batch;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cell_source::CellSource;
use crate::error::LoaderError;
use crate::neighbours::RowCounts;
use crate::spec::LoaderSpec;
use crate::stats::EpochStats;
use crate::{Dataset, LoaderState};

/// Iterates the batches of one epoch. Made by [`Loader::epoch`](crate::Loader::epoch).
///
/// An error ends it: it returns the error once, then `None`. Dropping it stops its threads and
/// waits for them, at most until the current read returns.
pub struct Epoch<B: BatchBuffers = HeapBuffers> {
    pub(crate) running: pipeline::Epoch<CellSource<B>>,
    pub(crate) dataset: Dataset,
    pub(crate) spec: LoaderSpec,
    row_counts: RowCounts,
}

impl<B: BatchBuffers> Epoch<B> {
    pub(crate) fn wrap(running: pipeline::Epoch<CellSource<B>>, source: &CellSource<B>) -> Self {
        let spec = LoaderSpec { pipeline: running.spec().clone(), ..source.spec.clone() };
        let (dataset, row_counts) = (source.dataset.clone(), source.row_counts.clone());
        Self { running, dataset, spec, row_counts }
    }

    /// Counts and times of the epoch so far.
    pub fn stats(&self) -> EpochStats {
        let engine = self.running.stats();
        let neighbours = self.dataset.neighbours().map(|_| self.row_counts.of(engine.epoch));
        EpochStats {
            neighbours,
            engine,
            spec: self.spec.clone(),
            reader: self.dataset.reader_name(),
            n_columns: self.dataset.n_columns(),
        }
    }

    /// Number of cells that the batches so far lack, because they could not be read.
    pub fn n_skipped(&self) -> u64 {
        self.running.n_skipped()
    }

    /// The consumer's place in the order: [`Loader::resume`](crate::Loader::resume) continues after
    /// the last delivered batch. Batches that were only made ahead come again.
    pub fn state(&self) -> LoaderState {
        self.running.state()
    }

    /// The next batch like [`next`](Iterator::next), or `Pending` if it is not ready within
    /// `limit`. The next call then goes on waiting for the same batch, so that a consumer can do
    /// something else in between, for example look for signals.
    ///
    /// Only waiting is limited: with [`prefetch_batches`](crate::PipelineSpec::prefetch_batches) 0
    /// the batch is made within the call, and with
    /// [`read_threads`](crate::PipelineSpec::read_threads) 0, too, its blocks are read there.
    pub fn next_within(
        &mut self,
        limit: Duration,
    ) -> Poll<Option<Result<Batch<B::Buffer>, LoaderError>>> {
        self.running.next_within(limit)
    }

    /// The next batch like [`next`](Iterator::next), as what `make` makes of it or of its error.
    ///
    /// The batch counts as delivered only if `make` succeeds. If it fails or panics, the epoch ends
    /// and [`state`](Self::state) is the place before that batch, so that a resumed epoch has it.
    pub fn next_made<T, E>(
        &mut self,
        make: impl FnOnce(Result<Batch<B::Buffer>, LoaderError>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        self.running.next_made(make)
    }

    /// The next batch like [`next_made`](Self::next_made), or `Pending` if it is not ready within
    /// `limit`, like [`next_within`](Self::next_within); `make` is then not called.
    pub fn next_made_within<T, E>(
        &mut self,
        limit: Duration,
        make: impl FnOnce(Result<Batch<B::Buffer>, LoaderError>) -> Result<T, E>,
    ) -> Poll<Option<Result<T, E>>> {
        self.running.next_made_within(limit, make)
    }

    /// Number of batches in the whole epoch, including those before the place where it was resumed.
    pub fn n_batches(&self) -> u64 {
        self.running.n_batches()
    }
}

impl<B: BatchBuffers> Iterator for Epoch<B> {
    type Item = Result<Batch<B::Buffer>, LoaderError>;

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

/// Iterates epochs without a gap: blocks of the next epoch are read while the last batches of this
/// one are consumed. Made by [`Loader::epochs`](crate::Loader::epochs).
pub struct Epochs<'a, B: BatchBuffers = HeapBuffers> {
    pub(crate) running: pipeline::Epochs<'a, CellSource<B>>,
    pub(crate) source: &'a CellSource<B>,
}

impl<B: BatchBuffers> Iterator for Epochs<'_, B> {
    type Item = Result<Epoch<B>, LoaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let running = self.running.next()?;
        Some(running.map(|running| Epoch::wrap(running, self.source)))
    }
}

impl<B: BatchBuffers> fmt::Debug for Epochs<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.running.fmt(f)
    }
}
