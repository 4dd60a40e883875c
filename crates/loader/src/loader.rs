//! The loader: a data set, settings and buffers, from which epochs are started.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use pipeline::Pipeline;

use crate::LoaderState;
use crate::batch::Batch;
use crate::block::BlockMatrix;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cell_source::CellSource;
use crate::dataset::Dataset;
use crate::epoch::{Epoch, Epochs};
use crate::error::LoaderError;
use crate::memory::CellMemory;
use crate::neighbours;
use crate::spec::{BlockForm, LoaderSpec, Totals};

/// Delivers the cells of a data set in batches, epoch by epoch.
pub struct Loader<B: BatchBuffers = HeapBuffers> {
    pipeline: Pipeline<CellSource<B>>,
}

impl Loader<HeapBuffers> {
    /// Makes a loader whose batches are on the heap. Reads no cells yet.
    ///
    /// # Errors
    /// - The settings do not fit together ([`LoaderSpec::check`]).
    /// - Values should be scaled by totals of obs, but the data set has no totals.
    /// - Tokens should be made of batches that are not in CSR, of other genes than the tokenizer
    ///   knows, or by rank of transformed values.
    /// - A form is that of a modality which the data set lacks.
    /// - Batches with neighbours should have tokens, be made of dense blocks, or be scaled by
    ///   totals in obs.
    /// - The sampling is of another number of rows.
    /// - A dense block is larger than memory can address, or the budget is too small for a block.
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, LoaderError> {
        // Batches in use at once: those that are ready, one in the making, one with the consumer. A
        // COO matrix has two buffers of one type.
        let of_batch = 2 * dataset.n_matrices();
        let n_batches = spec.pipeline.prefetch_batches.saturating_add(2);
        let buffers = HeapBuffers::new(n_batches.saturating_mul(of_batch));
        Self::with_buffers(dataset, spec, Arc::new(buffers))
    }
}

impl<B: BatchBuffers> Loader<B> {
    /// Makes a loader that writes batches into buffers of this pool.
    ///
    /// # Errors
    /// Like [`Loader::new`].
    pub fn with_buffers(
        dataset: Dataset,
        spec: LoaderSpec,
        buffers: Arc<B>,
    ) -> Result<Self, LoaderError> {
        spec.check()?;
        if spec.transform.target_sum.is_some()
            && spec.totals == Totals::Obs
            && dataset.totals().is_none()
        {
            return Err(LoaderError::NoTotals);
        }
        if let Some(tokens) = &spec.tokens {
            tokens.check(&spec, &dataset)?;
        }
        neighbours::check(&dataset, &spec)?;
        let is_missing = |name: &&String| !dataset.modalities().any(|(one, _)| one == *name);
        if let Some(name) = spec.modality_forms.keys().find(is_missing) {
            let existing = dataset.modalities().map(|(name, _)| name.to_owned()).collect();
            return Err(LoaderError::NoModality { name: name.clone(), existing });
        }
        let engine = spec.pipeline.clone();
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

    /// The requested settings. [`EpochStats::spec`](crate::EpochStats::spec) has those that ran.
    pub fn spec(&self) -> &LoaderSpec {
        &self.source().spec
    }

    /// The pool of buffers that batches are written into.
    pub fn buffers(&self) -> &Arc<B> {
        &self.source().buffers
    }

    /// Number of batches in each epoch; all ranks have the same number.
    pub fn n_batches(&self) -> u64 {
        self.pipeline.n_batches()
    }

    /// Bytes of memory of the parts that grow with the number of cells, at this moment.
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
    /// for (part, bytes) in loader.cell_memory().parts() {
    ///     println!("{part}: {} bytes per cell", bytes / loader.dataset().n_rows());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cell_memory(&self) -> CellMemory {
        let dataset = self.dataset();
        let order = self.spec().pipeline.order_bytes(dataset.n_rows());
        CellMemory { order, ..dataset.cell_memory() }
    }

    /// Starts an epoch. The same number gives the same batches again; every number has its own
    /// order.
    ///
    /// # Errors
    /// A thread cannot be started; a shared budget has too little left, or there is no memory for a
    /// sample; X's number of values cannot be read.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch<B>, LoaderError> {
        Ok(self.running(self.pipeline.epoch(epoch)?))
    }

    /// Starts a range of epochs, for example `0..10` or `3..`, without a gap between them: blocks
    /// of the next epoch are read while the last batches of this one are consumed.
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

    /// Continues an epoch from a saved state, with the same batches as without the interruption,
    /// bit for bit.
    ///
    /// The world size may change if batch size times world size does not; the global batches stay
    /// the same. The loader keeps the lanes of the state for later epochs, so resume before
    /// starting any.
    ///
    /// # Errors
    /// The state is of other cells, another order or another global batch size; epochs of this
    /// loader have already started with other lanes.
    pub fn resume(&self, state: &LoaderState) -> Result<Epoch<B>, LoaderError> {
        check_dense(self.dataset(), self.spec(), state.lanes())?;
        Ok(self.running(self.pipeline.resume(state)?))
    }

    /// Continues an epoch like [`resume`](Self::resume), then starts the following epochs below
    /// `end` like [`epochs`](Self::epochs).
    ///
    /// # Errors
    /// Like [`resume`](Self::resume).
    pub fn resume_epochs(
        &self,
        state: &LoaderState,
        end: u64,
    ) -> Result<Epochs<'_, B>, LoaderError> {
        check_dense(self.dataset(), self.spec(), state.lanes())?;
        Ok(self.running_on(self.pipeline.resume_epochs(state, end)?))
    }

    fn running(&self, running: pipeline::Epoch<CellSource<B>>) -> Epoch<B> {
        Epoch::wrap(running, self.source())
    }

    fn running_on<'a>(&'a self, running: pipeline::Epochs<'a, CellSource<B>>) -> Epochs<'a, B> {
        Epochs { running, source: self.source() }
    }
}

/// Fails if a dense block is larger than memory can address, given the number of lanes.
fn check_dense(dataset: &Dataset, spec: &LoaderSpec, lanes: u64) -> Result<(), LoaderError> {
    if spec.block_form != BlockForm::Dense {
        return Ok(());
    }
    let n_rows = dataset.n_rows();
    let rows = spec.pipeline.block_rows(n_rows, lanes)?;
    dataset
        .matrices()
        .try_for_each(|matrix| BlockMatrix::dense_len(rows.min(n_rows), matrix.n_columns).map(drop))
}

impl<B: BatchBuffers> fmt::Debug for Loader<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loader({:?}, {:?})", self.dataset(), self.pipeline)
    }
}
