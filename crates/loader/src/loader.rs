//! The loader: a data set, settings, and where batches are written. Starts epochs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crossbeam_channel::bounded;
use shuffle::BatchLengths;

use crate::block::Block;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cut::Cutter;
use crate::dataset::Dataset;
use crate::epoch::Epoch;
use crate::error::Error;
use crate::read::BlockReading;
use crate::spec::{LoaderSpec, Method, Totals};
use crate::stats::Counters;

/// Gives the batches of a data set, epoch by epoch.
pub struct Loader<B: BatchBuffers = HeapBuffers> {
    dataset: Dataset,
    spec: LoaderSpec,
    buffers: Arc<B>,
    lengths: BatchLengths,
}

impl Loader<HeapBuffers> {
    /// A loader whose dense batches lie on the heap.
    ///
    /// # Errors
    /// Sizes of zero, `np.array` with sparse batches, transforms that would change zeros, totals of obs that the data set does
    /// not have, a dense block larger than memory can address. Nothing is read yet.
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, Error> {
        // As many as are on their way at once: ready, in the making, and with the consumer.
        let buffers = HeapBuffers::new(spec.prefetch_batches.saturating_add(2));
        Self::with_buffers(dataset, spec, Arc::new(buffers))
    }
}

impl<B: BatchBuffers> Loader<B> {
    /// A loader whose dense batches are written into buffers of `buffers`.
    ///
    /// # Errors
    /// As those of [`Loader::new`].
    pub fn with_buffers(
        dataset: Dataset,
        spec: LoaderSpec,
        buffers: Arc<B>,
    ) -> Result<Self, Error> {
        spec.check()?;
        if spec.transform.target_sum.is_some()
            && spec.totals == Totals::Obs
            && dataset.totals().is_none()
        {
            return Err(Error::NoTotals);
        }
        let plan = spec.plan(dataset.n_rows());
        plan.check().map_err(|source| Error::Plan { source })?;
        if spec.method == Method::NpArray {
            let block_rows = plan.block_rows().map_err(|source| Error::Plan { source })?;
            Block::dense_len(block_rows.min(dataset.n_rows()), dataset.n_columns())?;
        }
        let n_dropped = if spec.drop_last { dataset.n_rows() % spec.batch_rows } else { 0 };
        let lengths = BatchLengths::new(dataset.n_rows() - n_dropped, spec.batch_rows);
        Ok(Self { dataset, spec, buffers, lengths })
    }

    /// The source of samples.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The settings.
    pub fn spec(&self) -> &LoaderSpec {
        &self.spec
    }

    /// Where dense batches are written.
    pub fn buffers(&self) -> &Arc<B> {
        &self.buffers
    }

    /// The number of batches of each epoch.
    pub fn n_batches(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Starts an epoch. The same number gives the same batches again, another number another order.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch<B>, Error> {
        let dataset = self.dataset.clone();
        let plan = self
            .spec
            .plan(dataset.n_rows())
            .epoch(epoch)
            .map_err(|source| Error::Plan { source })?;
        let counters =
            Counters::new(epoch, self.spec.clone(), dataset.reader_name(), dataset.n_columns());

        // All the blocks there ever are: one to cut, the others to read ahead into.
        let n_blocks = self.spec.prefetch_blocks.saturating_add(1).min(plan.len().max(1));
        let (used, free) = bounded(n_blocks);
        let (full, blocks) = bounded(n_blocks);
        for _ in 0..n_blocks {
            // Cannot fail: `free` is here, and there is room.
            drop(used.send(Block::default()));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let reading = BlockReading {
            dataset: dataset.clone(),
            method: self.spec.method,
            epoch,
            n_rows_wanted: self.lengths.n_rows(),
            free,
            full,
            stop: Arc::clone(&stop),
            counters: counters.clone(),
        };
        let buffers = Arc::clone(&self.buffers);
        let lengths = self.lengths.clone();
        let cutter =
            Cutter::new(dataset, buffers, &self.spec, (blocks, used), lengths, counters.clone());
        let prefetch_batches = self.spec.prefetch_batches.min(self.lengths.len());
        Epoch::start(move || reading.run(plan), cutter, prefetch_batches, stop, counters)
    }
}

impl<B: BatchBuffers> fmt::Debug for Loader<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("dataset", &self.dataset)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}
