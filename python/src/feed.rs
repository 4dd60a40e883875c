//! Samples of any source as Python sees them: opened once in each process, selected, and delivered
//! in batches. A kind of samples adds how it is opened, and what its batches are in Python.

use std::fmt::Debug;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use loader::{LoaderState, PipelineSpec, RowSet};
use pipeline::{Pipeline, Selected, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::engine::{EpochOf, MadeBatch, RunStats, RunningEpoch, pipeline_spec};
use crate::entropy::EntropyMeter;
use crate::epoch::Epoch;
use crate::errors::{IntoException, OrException as _};
use crate::memory_limit::{KeptBatches, MemoryLimit};
use crate::numpy::Integers;
use crate::process::PerProcess;
use crate::waiting::{computed, interruptible};

/// A source that each process opens for itself, and the samples of it that are selected.
#[derive(Debug)]
pub(crate) struct Samples<S> {
    rows: Arc<RowSet>,
    opened: PerProcess<Selected<S>>,
}

impl<S: Source> Samples<S> {
    /// All samples of a source that `open` opens, which may wait for a store.
    pub(crate) fn open(
        py: Python<'_>,
        open: impl FnOnce() -> PyResult<S> + Send + 'static,
    ) -> PyResult<Self> {
        let opened = interruptible(py, move || open().map(|source| Selected::all(source.into())))?;
        Ok(Self::of(opened?))
    }

    fn of(opened: Selected<S>) -> Self {
        Self { rows: Arc::new(opened.rows().clone()), opened: PerProcess::new(opened) }
    }

    /// The selected samples in this process, opened by `open` if it was forked since.
    pub(crate) fn here(
        &self,
        py: Python<'_>,
        open: impl FnOnce() -> PyResult<S> + Send + 'static,
    ) -> PyResult<Selected<S>> {
        self.opened.get_or_make(|| {
            let rows = Arc::clone(&self.rows);
            interruptible(py, move || Selected::all(Arc::new(open()?)).at(&rows).or_exception())?
        })
    }

    /// Number of selected samples.
    pub(crate) fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Those of the samples `here` that are at these places, ascending.
    pub(crate) fn select(py: Python<'_>, here: Selected<S>, places: Integers) -> PyResult<Self> {
        let selected = computed(py, move || {
            let (places, n_samples) =
                (RowSet::from_ascending(places.0).or_exception()?, here.n_rows());
            if let Some(outside) = places.last().filter(|last| n_samples <= *last) {
                let problem = format!("there is no sample {outside}: there are {n_samples}");
                return Err(PyValueError::new_err(problem));
            }
            here.at(&places).or_exception()
        })?;
        selected.map(Self::of)
    }
}

/// Where an epoch begins.
#[derive(Debug)]
pub(crate) enum Beginning<'a> {
    /// At its first batch.
    Epoch(u64),
    /// At a saved state.
    State(&'a str),
}

/// The engine over a source, with its settings and budget, as each process runs it for itself.
#[derive(Debug)]
pub(crate) struct Feed<S: Source> {
    /// The settings except `memory`.
    spec: PipelineSpec,
    memory: Option<MemoryLimit>,
    n_rows_of: fn(&S::Batch) -> usize,
    n_batches: u64,
    here: PerProcess<Arc<Running<S>>>,
}

/// The engine in one process.
#[derive(Debug)]
struct Running<S: Source> {
    pipeline: Pipeline<S>,
    kept: Arc<KeptBatches>,
}

impl<S> Feed<S>
where
    S: Source<Batch: MadeBatch, Error: IntoException> + Debug,
{
    /// The engine over a source, with the keyword arguments that are left to it. `n_rows_of` counts
    /// the samples of a batch.
    pub(crate) fn new(
        source: S,
        n_rows_of: fn(&S::Batch) -> usize,
        memory: Option<MemoryLimit>,
        engine: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let spec = pipeline_spec(engine)?;
        let running = Running::make(source, n_rows_of, &spec, memory.as_ref())?;
        let (n_batches, here) = (running.pipeline.n_batches(), PerProcess::new(running));
        Ok(Self { spec, memory, n_rows_of, n_batches, here })
    }

    /// Batches of each epoch.
    pub(crate) fn n_batches(&self) -> u64 {
        self.n_batches
    }

    /// Starts an epoch, in a thread. `source` makes the source of a process that was forked.
    pub(crate) fn start(
        &self,
        py: Python<'_>,
        beginning: Beginning<'_>,
        source: impl FnOnce() -> PyResult<S>,
    ) -> PyResult<Epoch> {
        let running = self.here.get_or_make(|| {
            Running::make(source()?, self.n_rows_of, &self.spec, self.memory.as_ref())
        })?;
        let of = EpochOf::new(&running.kept, EntropyMeter::default());
        let epoch = match beginning {
            Beginning::Epoch(number) => interruptible(py, move || running.pipeline.epoch(number)),
            Beginning::State(state) => {
                let state = LoaderState::from_json(state).or_exception()?;
                interruptible(py, move || running.pipeline.resume(&state))
            }
        };
        Ok(Epoch::new(Box::new(SourceEpoch(epoch?.or_exception()?)), of))
    }
}

impl<S: Source<Error: IntoException>> Running<S> {
    fn make(
        source: S,
        n_rows_of: fn(&S::Batch) -> usize,
        spec: &PipelineSpec,
        memory: Option<&MemoryLimit>,
    ) -> PyResult<Arc<Self>> {
        let (memory, kept) = MemoryLimit::budget(memory)?;
        let spec = PipelineSpec { memory, ..spec.clone() };
        let pipeline = Pipeline::new(Arc::new(source), spec, n_rows_of).or_exception()?;
        Ok(Arc::new(Self { pipeline, kept }))
    }
}

/// An epoch of a source.
#[derive(Debug)]
struct SourceEpoch<S: Source>(pipeline::Epoch<S>);

impl<S> RunningEpoch for SourceEpoch<S>
where
    S: Source<Batch: MadeBatch, Error: IntoException> + Debug,
{
    fn n_batches(&self) -> u64 {
        self.0.n_batches()
    }

    fn next_within(&mut self, limit: Duration) -> Poll<Option<PyResult<Box<dyn MadeBatch>>>> {
        let made = |batch| Box::new(batch) as Box<dyn MadeBatch>;
        self.0.next_within(limit).map(|next| next.map(|batch| batch.map(made).or_exception()))
    }

    fn state(&self) -> LoaderState {
        self.0.state()
    }

    fn stats(&self) -> RunStats {
        RunStats {
            engine: self.0.stats(),
            spec: self.0.spec().clone(),
            reader: None,
            n_columns: None,
        }
    }
}
