//! The loader: a data set, settings, and where batches are written. Starts epochs.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use pipeline::Pipeline;

use crate::LoaderState;
use crate::batch::Batch;
use crate::block::Block;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cell_source::CellSource;
use crate::dataset::Dataset;
use crate::epoch::{Epoch, Epochs};
use crate::error::Error;
use crate::spec::{BlockForm, LoaderSpec, Totals};

/// Delivers the cells of a data set in batches, epoch by epoch.
pub struct Loader<B: BatchBuffers = HeapBuffers> {
    pipeline: Pipeline<CellSource<B>>,
}

impl Loader<HeapBuffers> {
    /// A loader whose dense batches lie on the heap.
    ///
    /// # Errors
    /// Sizes of zero, `np.array` with sparse batches, transforms that would change zeros, totals of obs
    /// that the data set does not have, a dense block larger than memory can address, memory that is too
    /// little for a block, ranks, lanes and remainder that do not fit together, a sampling of other rows.
    /// No cell is read yet.
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, Error> {
        // As many as are on their way at once: ready, in the making, and with the consumer. A COO batch takes
        // two of one type.
        let buffers = HeapBuffers::new(2 * spec.prefetch_batches.saturating_add(2));
        Self::with_buffers(dataset, spec, Arc::new(buffers))
    }
}

impl<B: BatchBuffers> Loader<B> {
    /// A loader whose dense batches are written into buffers of `buffers`.
    ///
    /// # Errors
    /// Those of [`Loader::new`].
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
        let engine = spec.pipeline();
        check_dense(&dataset, &spec, engine.default_lanes())?;
        let source = CellSource::new(dataset, spec, buffers);
        Ok(Self { pipeline: Pipeline::new(Arc::new(source), engine, Batch::n_rows)? })
    }

    fn source(&self) -> &CellSource<B> {
        self.pipeline.source()
    }

    /// The data set.
    pub fn dataset(&self) -> &Dataset {
        &self.source().dataset
    }

    /// The settings.
    pub fn spec(&self) -> &LoaderSpec {
        &self.source().spec
    }

    /// Where dense batches are written.
    pub fn buffers(&self) -> &Arc<B> {
        &self.source().buffers
    }

    /// The number of batches of each epoch, the same on every rank.
    pub fn n_batches(&self) -> u64 {
        self.pipeline.n_batches()
    }

    /// Starts an epoch. The same number gives the same batches again, another number another order.
    ///
    /// # Errors
    /// The system gives no thread; there is no memory for a sample, or not enough left in a budget that is
    /// shared; X does not tell how many values it has.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch<B>, Error> {
        Ok(self.running(self.pipeline.epoch(epoch)?))
    }

    /// A range of epochs, `0..10` or `3..`, without a gap between them: blocks of the next epoch are read
    /// while the last batches of this one are consumed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::{ArrayRef, Int32Array, RecordBatch};
    /// # use loader::{Cells, Dataset, GeneSelection, Loader, LoaderSpec};
    /// # use soma_io::{CsrBuffers, MemoryReader};
    /// # let x = MemoryReader::new(CsrBuffers {
    /// #     row_offsets: vec![0, 1, 1], columns: vec![0], values: vec![1.0], n_columns: 2,
    /// # })?;
    /// # let donors: ArrayRef = Arc::new(Int32Array::from(vec![7, 8]));
    /// # let obs = RecordBatch::try_from_iter([("donor", donors)])?;
    /// # let dataset = Dataset::new(Arc::new(x), Cells::Range(0..2), obs, GeneSelection::All)?;
    /// let loader = Loader::new(dataset, LoaderSpec::default())?;
    /// for epoch in loader.epochs(0..3) {
    ///     for batch in epoch? {
    ///         assert_eq!(batch?.n_rows(), 2);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn epochs(&self, numbers: impl RangeBounds<u64>) -> Epochs<'_, B> {
        self.running_on(self.pipeline.epochs(numbers))
    }

    /// Continues an epoch where a state was taken: with the batches that would have come then, bit for
    /// bit.
    ///
    /// The world size may differ, if batch size times world size does not: then the same global batches
    /// come. This loader keeps the lanes of the state for the epochs that follow. Resume first, then
    /// start those.
    ///
    /// # Errors
    /// The state is of other cells, another order or another global batch size; epochs of this loader
    /// have begun with other lanes.
    pub fn resume(&self, state: &LoaderState) -> Result<Epoch<B>, Error> {
        check_dense(self.dataset(), self.spec(), state.lanes())?;
        Ok(self.running(self.pipeline.resume(state)?))
    }

    /// Continues an epoch as [`resume`](Self::resume) does, and then those that follow, up to but not
    /// including `end`, as [`epochs`](Self::epochs) does.
    ///
    /// # Errors
    /// Those of [`resume`](Self::resume).
    pub fn resume_epochs(&self, state: &LoaderState, end: u64) -> Result<Epochs<'_, B>, Error> {
        check_dense(self.dataset(), self.spec(), state.lanes())?;
        Ok(self.running_on(self.pipeline.resume_epochs(state, end)?))
    }

    fn running(&self, running: pipeline::Epoch<CellSource<B>>) -> Epoch<B> {
        Epoch::of(running, self.dataset(), self.spec())
    }

    fn running_on<'a>(&'a self, running: pipeline::Epochs<'a, CellSource<B>>) -> Epochs<'a, B> {
        Epochs { running, dataset: self.dataset(), spec: self.spec() }
    }
}

/// Fails if a dense block of an order with these lanes is larger than memory can address.
fn check_dense(dataset: &Dataset, spec: &LoaderSpec, lanes: u64) -> Result<(), Error> {
    if spec.block_form != BlockForm::Dense {
        return Ok(());
    }
    let n_rows = dataset.n_rows();
    let rows = spec.pipeline().block_rows(n_rows, lanes)?;
    Block::dense_len(rows.min(n_rows), dataset.n_columns()).map(drop)
}

impl<B: BatchBuffers> fmt::Debug for Loader<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loader({:?}, {:?})", self.dataset(), self.pipeline)
    }
}
