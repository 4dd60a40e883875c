//! A source with settings, from which epochs start.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crossbeam_channel::bounded;
use shuffle::{Order, Stop};

use crate::budget::{Grant, next_holder};
use crate::cut::Cutter;
use crate::epoch::{Epoch, Idle, Run};
use crate::error::Error;
use crate::memory::{Ahead, BlocksMade, LargestBlock};
use crate::read::{Current, Dispatch, Later, Plans, Queued, Reading};
use crate::skip::WhenDamaged;
use crate::source::Source;
use crate::spec::PipelineSpec;
use crate::state::LoaderState;

/// Delivers the samples of a source in batches, epoch by epoch.
pub struct Pipeline<S: Source> {
    source: Arc<S>,
    spec: PipelineSpec,
    n_batches: u64,
    n_rows_of: fn(&S::Batch) -> usize,
    /// Number of lanes of the order, set when the first epoch starts.
    lanes: OnceLock<u64>,
    /// The fields that a saved state must match.
    state: LoaderState,
    /// The largest block of all epochs so far.
    largest: Arc<LargestBlock>,
    /// The source's share of the budget for values that it keeps between reads.
    grant: Arc<Grant>,
}

impl<S: Source> Pipeline<S> {
    /// Makes a pipeline over a source. `n_rows_of` counts the rows of a batch. Reads nothing but
    /// the estimate of [`Source::need`].
    ///
    /// # Errors
    /// A size is zero; rank, lanes and remainder do not fit together; the sampling draws from other
    /// rows, or does not fit the order or the batch size; the budget is too small for one block and
    /// its batches.
    pub fn new(
        source: Arc<S>,
        spec: PipelineSpec,
        n_rows_of: fn(&S::Batch) -> usize,
    ) -> Result<Self, S::Error> {
        spec.check()?;
        let n_rows = source.n_rows();
        if let Some(sampling) = &spec.sampling
            && sampling.n_rows() != n_rows
        {
            return Err(Error::SamplingLength { sampled: sampling.n_rows(), n_rows }.into());
        }
        let lanes = spec.default_lanes();
        let batches = spec.batches(lanes);
        let state = LoaderState::new((n_rows, source.fingerprint()), &spec, &batches)?;
        let limit = spec.memory.limit().unwrap_or(u64::MAX);
        fitting(&*source, &spec, lanes, limit)?;
        let n_batches = batches.n_batches(spec.epoch_rows(n_rows)).map_err(Error::Plan)?;
        let keeper = (Arc::clone(&source), next_holder());
        let keep = Arc::new(move |bytes| keeper.0.keep(keeper.1, bytes));
        let left = if spec.memory.limit().is_some() { u64::MAX } else { 0 };
        let grant = spec.memory.grant(spec.keep_bytes.unwrap_or(left), keep);
        Ok(Self {
            source,
            spec,
            n_batches,
            n_rows_of,
            lanes: OnceLock::new(),
            state,
            largest: Arc::default(),
            grant: Arc::new(grant),
        })
    }

    /// The source.
    pub fn source(&self) -> &Arc<S> {
        &self.source
    }

    /// The settings.
    pub fn spec(&self) -> &PipelineSpec {
        &self.spec
    }

    /// Number of batches in each epoch, the same on every rank.
    pub fn n_batches(&self) -> u64 {
        self.n_batches
    }

    /// Starts an epoch. The same number gives the same batches again; another number gives another
    /// order.
    ///
    /// # Errors
    /// A thread cannot be started; memory for the sampling is lacking, or the budget is used up;
    /// the source fails to make an assembler.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch<S>, S::Error> {
        let lanes = *self.lanes.get_or_init(|| self.spec.default_lanes());
        self.start(self.state.at(epoch, lanes, 0))
    }

    /// Starts a range of epochs, `0..10` or `3..`, without a gap between them: blocks of the next
    /// epoch are read while the last batches of this one are consumed ([`Epochs`]).
    pub fn epochs(&self, numbers: impl RangeBounds<u64>) -> Epochs<'_, S> {
        let lanes = *self.lanes.get_or_init(|| self.spec.default_lanes());
        let first = match numbers.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match numbers.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let next = self.state.at(first, lanes, 0);
        Epochs { pipeline: self, next, end, idle: Arc::default() }
    }

    /// Continues an epoch from a saved state, with bit for bit the batches that would have come
    /// next.
    ///
    /// The world size may differ as long as batch size times world size stays the same: then the
    /// global batches are the same. This loader uses the state's lanes for all later epochs, so
    /// call `resume` before starting any other epoch.
    ///
    /// # Errors
    /// The state belongs to other samples, another order or another global batch size; epochs of
    /// this loader have already started with other lanes.
    pub fn resume(&self, state: &LoaderState) -> Result<Epoch<S>, S::Error> {
        self.adopt(state)?;
        self.start(state.clone())
    }

    /// Continues an epoch like [`resume`](Self::resume), and then runs the following epochs, up to
    /// but not including `end`, like [`epochs`](Self::epochs).
    ///
    /// # Errors
    /// Those of [`resume`](Self::resume).
    pub fn resume_epochs(&self, state: &LoaderState, end: u64) -> Result<Epochs<'_, S>, S::Error> {
        self.adopt(state)?;
        Ok(Epochs { pipeline: self, next: state.clone(), end, idle: Arc::default() })
    }

    /// Checks a saved state and adopts its lanes.
    fn adopt(&self, state: &LoaderState) -> Result<(), S::Error> {
        let saved = self.lanes_to_resume(state)?;
        let lanes = *self.lanes.get_or_init(|| saved);
        // Another thread may have started an epoch in between.
        if saved == lanes { Ok(()) } else { Err(differs("number of lanes", saved, lanes).into()) }
    }

    /// Number of lanes of a saved state, after checking that this pipeline can resume it.
    pub(crate) fn lanes_to_resume(&self, state: &LoaderState) -> Result<u64, S::Error> {
        self.state.check_saved(state)?;
        if state.batches_delivered() > self.n_batches {
            let (saved, here) = (state.batches_delivered(), self.n_batches);
            return Err(differs("number of batches", saved, here).into());
        }
        let saved = state.lanes();
        let here = self.spec.lanes.or_else(|| self.lanes.get().copied()).unwrap_or(saved);
        if saved != here {
            return Err(differs("number of lanes", saved, here).into());
        }
        let limit = self.spec.memory.limit().unwrap_or(u64::MAX);
        fitting(&*self.source, &self.spec, saved, limit)?;
        Ok(saved)
    }

    /// The state at the beginning of epoch 0.
    #[cfg(any(test, somafeed_fuzz))]
    pub(crate) fn beginning(&self) -> &LoaderState {
        &self.state
    }

    #[cfg(any(test, somafeed_fuzz))]
    pub(crate) fn plan(&self, from: &LoaderState) -> Result<shuffle::EpochPlan, Error> {
        Plans { spec: self.spec.clone(), n_rows: self.source.n_rows() }.plan(from)
    }

    fn start(&self, from: LoaderState) -> Result<Epoch<S>, S::Error> {
        let asked = worktime::now();
        let end = from.epoch().saturating_add(1);
        Epoch::from_run(self.run(from, end)?, Weak::new(), self.n_rows_of, asked)
    }

    /// Starts the threads, which read from `from` up to but not including epoch `end`.
    fn run(&self, from: LoaderState, end: u64) -> Result<Run<S>, S::Error> {
        let spec = &self.spec;
        let plans = Plans { spec: spec.clone(), n_rows: self.source.n_rows() };
        let (start, plan) = plans.start(from)?;
        let later = Later::after(&start.from, end);
        let goes_on = !later.is_empty();
        let lanes = start.from.lanes();
        // The settings as they run: with less read ahead if memory is short.
        let mut ahead = fitting(&*self.source, spec, lanes, spec.memory.available())?;
        // More blocks than the plan has are useless: one to cut, the others to read ahead into. In
        // order, the first block is read in pieces, so two are useful even if the plan has only
        // one.
        let is_in_order = spec.order == Order::InOrder;
        let of_use = if goes_on {
            // Blocks of the next epoch count, too.
            plan.len().saturating_mul(2).max(2)
        } else {
            plan.len().max(if is_in_order { 2 } else { 1 })
        };
        let n_blocks = ahead.blocks.saturating_add(1).min(of_use);
        let as_run = PipelineSpec {
            read_threads: ahead.read_threads.min(n_blocks),
            lanes: Some(lanes),
            prefetch_blocks: ahead.blocks,
            prefetch_batches: ahead.batches,
            ..spec.clone()
        };
        ahead.blocks = n_blocks - 1;
        let blocks = BlocksMade::new(&ahead, Arc::clone(&self.largest), spec)?;
        let (n_left, first_rows) = (start.n_left(), is_in_order.then_some(spec.batch_rows));
        let n_of_use = if goes_on { self.n_batches.saturating_mul(2).max(1) } else { n_left };
        let epochs = start.from.epoch()..=end.saturating_sub(1).max(start.from.epoch());
        let current = Current::new(&plans, &start, plan, first_rows);
        let assembler = self.source.assembler(spec.batch_rows)?;
        let (to_queue, queue) = bounded(n_blocks.saturating_add(1));
        // The channel has room, and its other end is still here.
        let _sent = to_queue.send(Queued::Epoch(Box::new(start)));
        let (used, free) = bounded(n_blocks);
        let dispatch = Dispatch { plans, current: Some(current), later, queue: Some(to_queue) };
        let reading = Reading {
            source: Arc::clone(&self.source),
            dispatch: Mutex::new(dispatch),
            blocks: Arc::new(Mutex::new(blocks)),
            free,
            is_one_thread: as_run.read_threads <= 1,
            skips: as_run.when_damaged == WhenDamaged::Skip,
            stop: Stop::default(),
        };
        let batch_rows = spec.batch_rows;
        let cutter = move |starts| Cutter::new(assembler, batch_rows, (queue, used), starts);
        let grant = Arc::clone(&self.grant);
        Run::start(reading, cutter, (as_run, grant), (epochs, n_of_use))
    }
}

fn differs(field: &'static str, saved: u64, here: u64) -> Error {
    Error::State { field, saved: saved.to_string(), here: here.to_string() }
}

/// Decides how much is read and made ahead within `available` bytes of memory.
fn fitting<S: Source>(
    source: &S,
    spec: &PipelineSpec,
    lanes: u64,
    available: u64,
) -> Result<Ahead, S::Error> {
    Ahead::fitting(source, spec, spec.block_rows(source.n_rows(), lanes)?, available)
}

/// Consecutive epochs without a gap. Made by [`Pipeline::epochs`].
///
/// The threads of one epoch go on with the next once the consumer has taken the last batch. The
/// next epoch starts threads of its own if it is asked for earlier, or if the first one is dropped
/// early or ends with an error. How much is read ahead is decided when threads start.
pub struct Epochs<'a, S: Source> {
    pipeline: &'a Pipeline<S>,
    next: LoaderState,
    /// The epoch after the last.
    end: u64,
    idle: Arc<Idle<S>>,
}

impl<S: Source> Iterator for Epochs<'_, S> {
    type Item = Result<Epoch<S>, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.end <= self.next.epoch() {
            return None;
        }
        let asked = worktime::now();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let from = self.next.clone();
        self.next = from.at(from.epoch().saturating_add(1), from.lanes(), 0);
        let run = match idle.filter(|run| run.next_epoch() == from.epoch()) {
            Some(run) => Ok(run),
            None => self.pipeline.run(from, self.end),
        };
        let (idle, n_rows_of) = (Arc::downgrade(&self.idle), self.pipeline.n_rows_of);
        Some(run.and_then(|run| Epoch::from_run(run, idle, n_rows_of, asked)))
    }
}

impl<S: Source> fmt::Debug for Epochs<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epochs({}..{})", self.next.epoch(), self.end)
    }
}

impl<S: Source> fmt::Debug for Pipeline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_rows, n_batches) = (self.source.n_rows(), self.n_batches);
        write!(f, "Pipeline({n_rows} rows in {n_batches} batches an epoch)")
    }
}
