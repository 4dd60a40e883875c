//! The loader: a data set, settings, and where batches are written. Starts epochs.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crossbeam_channel::bounded;
use shuffle::{EpochPlan, Order};
use soma_io::clock;

use crate::block::Block;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cut::Cutter;
use crate::dataset::Dataset;
use crate::epoch::Epoch;
use crate::error::Error;
use crate::memory::{Ahead, Densest};
use crate::read::BlockReading;
use crate::spec::{LoaderSpec, Method, Totals};
use crate::state::LoaderState;
use crate::stats::Counters;

/// Gives the batches of a data set, epoch by epoch.
pub struct Loader<B: BatchBuffers = HeapBuffers> {
    dataset: Dataset,
    spec: LoaderSpec,
    buffers: Arc<B>,
    n_batches: u64,
    /// The lanes of the order, once something was started.
    lanes: OnceLock<u64>,
    /// What a state must say to be of this loader.
    state: LoaderState,
    /// Of all epochs.
    densest: Arc<Densest>,
    row_nnz: OnceLock<f64>,
}

impl Loader<HeapBuffers> {
    /// A loader whose dense batches lie on the heap.
    ///
    /// # Errors
    /// Sizes of zero, `np.array` with sparse batches, transforms that would change zeros, totals of obs that the data set does
    /// not have, a dense block larger than memory can address, memory that is too little for a block, ranks, lanes and remainder that do
    /// not fit together, a sampling of other rows. Nothing is read yet.
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, Error> {
        // As many as are on their way at once: ready, in the making, and with the consumer. A COO batch takes two of one type.
        let buffers = HeapBuffers::new(2 * spec.prefetch_batches.saturating_add(2));
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
        if let Some(sampling) = &spec.sampling
            && sampling.n_rows() != dataset.n_rows()
        {
            let (n_rows, n_cells) = (sampling.n_rows(), dataset.n_rows());
            return Err(Error::SamplingLength { n_rows, n_cells });
        }
        let lanes = spec.default_lanes();
        let state = LoaderState::new(&dataset, &spec, &spec.batches(lanes))?;
        let loader = Self {
            dataset,
            spec,
            buffers,
            n_batches: 0,
            lanes: OnceLock::new(),
            state,
            densest: Arc::default(),
            row_nnz: OnceLock::new(),
        };
        loader.ahead(lanes)?;
        let rows = loader.spec.epoch_rows(loader.dataset.n_rows());
        let n_batches = loader.spec.batches(lanes).n_batches(rows);
        let n_batches = n_batches.map_err(|source| Error::Plan { source })?;
        Ok(Self { n_batches, ..loader })
    }

    /// How much is read and made ahead. Fails where a rank's block is larger than can be addressed, or than memory allows.
    fn ahead(&self, lanes: u64) -> Result<Ahead, Error> {
        let n_rows = self.dataset.n_rows();
        let rows = self
            .spec
            .plan(n_rows)
            .rank_block_rows(&self.spec.batches(lanes), self.spec.epoch_rows(n_rows))
            .map_err(|source| Error::Plan { source })?;
        if self.spec.method == Method::NpArray {
            Block::dense_len(rows.min(n_rows), self.dataset.n_columns())?;
        }
        Ahead::fitting(&self.dataset, &self.spec, rows)
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

    /// The number of batches of each epoch, the same on every rank.
    pub fn n_batches(&self) -> u64 {
        self.n_batches
    }

    /// Starts an epoch. The same number gives the same batches again, another number another order.
    ///
    /// # Errors
    /// Where the system gives no thread, there is no memory for a sample, or X does not tell how many values it has.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch<B>, Error> {
        let lanes = *self.lanes.get_or_init(|| self.spec.default_lanes());
        self.start(self.state.at(epoch, lanes, 0))
    }

    /// Goes on with an epoch from where a state was taken: what comes is, bit for bit, what would have come then.
    ///
    /// The world size may be another than it was, as long as batch size times world size stays: then the same global batches come. So that
    /// this holds for the epochs that follow, too, this loader keeps to the lanes of the state. Resume first, then start those.
    ///
    /// # Errors
    /// The state is of other cells, another order or another global batch size; epochs of this loader have begun with other lanes.
    pub fn resume(&self, state: &LoaderState) -> Result<Epoch<B>, Error> {
        self.state.check_saved(state)?;
        let differs = |field, saved: u64, here: u64| Error::State {
            field,
            saved: saved.to_string(),
            here: here.to_string(),
        };
        if state.batches_delivered() > self.n_batches {
            return Err(differs("number of batches", state.batches_delivered(), self.n_batches));
        }
        let saved = state.lanes();
        let here = self.spec.lanes.or_else(|| self.lanes.get().copied()).unwrap_or(saved);
        if saved != here {
            return Err(differs("number of lanes", saved, here));
        }
        self.ahead(saved)?;
        let lanes = *self.lanes.get_or_init(|| saved);
        if saved != lanes {
            return Err(differs("number of lanes", saved, lanes));
        }
        self.start(state.clone())
    }

    /// The values that a row of a sparse batch is expected to have. Asked for once: a reader may have to read something to know.
    fn row_nnz(&self) -> Result<f64, Error> {
        if self.spec.form.dense_type().is_some() {
            return Ok(0.0);
        }
        if let Some(known) = self.row_nnz.get() {
            return Ok(*known);
        }
        let found = self.dataset.mean_row_nnz()?;
        Ok(*self.row_nnz.get_or_init(|| found))
    }

    fn plan(&self, from: &LoaderState) -> Result<EpochPlan, Error> {
        let (spec, epoch) = (self.spec.plan(self.dataset.n_rows()), from.epoch());
        let batches = self.spec.batches(from.lanes());
        let plan = match &self.spec.sampling {
            None => spec.dealt_epoch(epoch, &batches),
            Some(sampling) => sampling
                .rows(self.spec.seed, epoch)
                .and_then(|rows| spec.sampled_epoch(epoch, &batches, rows)),
        };
        let plan = plan.map_err(|source| Error::Plan { source })?;
        Ok(plan.starting_at(from.batches_delivered()))
    }

    fn start(&self, from: LoaderState) -> Result<Epoch<B>, Error> {
        let dataset = self.dataset.clone();
        let start = clock::now();
        let plan = self.plan(&from)?;
        let shuffled = clock::now() - start;
        let epoch = from.epoch();
        // As it runs, which is with less read ahead where memory is short.
        let ahead = self.ahead(from.lanes())?;
        let Ahead { blocks: prefetch_blocks, batches: prefetch_batches, .. } = ahead;
        let lanes = Some(from.lanes());
        let spec = LoaderSpec { lanes, prefetch_blocks, prefetch_batches, ..self.spec.clone() };
        let counters = Counters::new(epoch, spec, dataset.reader_name(), dataset.n_columns());
        counters.shuffled(shuffled);
        dataset.readers().for_each(|reader| reader.time_reads(clock::now));

        // Room for all the blocks there ever are: one to cut, the others to read ahead into.
        // In order the first block is read in pieces, so that two are of use where there is one block alone.
        let of_use = plan.len().max(if self.spec.order == Order::InOrder { 2 } else { 1 });
        let n_blocks = prefetch_blocks.saturating_add(1).min(of_use);
        let (used, free) = bounded(n_blocks);
        let (full, blocks) = bounded(n_blocks);
        let stop = Arc::new(AtomicBool::new(false));
        let reading = BlockReading {
            dataset: dataset.clone(),
            method: self.spec.method,
            epoch,
            n_rows_wanted: plan.n_rows(),
            first_rows: (self.spec.order == Order::InOrder).then_some(self.spec.batch_rows),
            ahead: Ahead { blocks: n_blocks - 1, ..ahead },
            densest: Arc::clone(&self.densest),
            free,
            full,
            stop: Arc::clone(&stop),
            counters: counters.clone(),
        };
        let buffers = Arc::clone(&self.buffers);
        let planned = (&plan, self.row_nnz()?);
        let cutter =
            Cutter::new(dataset, buffers, &self.spec, (blocks, used), planned, counters.clone());
        let n_left = plan.n_batches() - plan.first_batch();
        let prefetch_batches = prefetch_batches.min(n_left as usize);
        let place = (from, plan.n_batches());
        Epoch::start(move || reading.run(plan), cutter, prefetch_batches, stop, counters, place)
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
