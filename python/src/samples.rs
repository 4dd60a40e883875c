//! Samples of any source of the engine as Python sees them: opened by each process, selected, and
//! loaded. A kind of samples adds the description of its source and its batch.

use std::fmt;
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

/// Opens a source, in any process.
type Open<S> = dyn Fn() -> PyResult<S> + Send + Sync;

/// Samples of a source, or some of them. Each process opens the source for itself.
pub(crate) struct OpenedSamples<S: Source> {
    open: Arc<Open<S>>,
    /// The samples, of all that there are.
    rows: Arc<RowSet>,
    opened: PerProcess<Selected<S>>,
}

impl<S: Source> fmt::Debug for OpenedSamples<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedSamples").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<S: Source> OpenedSamples<S> {
    /// Opens the source, in a thread, and takes all of its samples.
    pub(crate) fn all(
        py: Python<'_>,
        open: impl Fn() -> PyResult<S> + Send + Sync + 'static,
    ) -> PyResult<Arc<Self>> {
        let open: Arc<Open<S>> = Arc::new(open);
        let of_thread = Arc::clone(&open);
        let opened = Selected::all(Arc::new(interruptible(py, move || of_thread())??));
        Ok(Self::of(open, opened))
    }

    fn of(open: Arc<Open<S>>, opened: Selected<S>) -> Arc<Self> {
        let rows = Arc::new(opened.rows().clone());
        Arc::new(Self { open, rows, opened: PerProcess::new(opened) })
    }

    /// The samples as this process has opened them.
    pub(crate) fn here(&self, py: Python<'_>) -> PyResult<Selected<S>> {
        self.opened.get_or_make(|| {
            let (open, rows) = (Arc::clone(&self.open), Arc::clone(&self.rows));
            interruptible(py, move || Selected::all(Arc::new(open()?)).at(&rows).or_exception())?
        })
    }

    /// The number of samples.
    pub(crate) fn n_samples(&self) -> u64 {
        self.rows.len()
    }

    /// Those at `places`, ascending.
    pub(crate) fn at(&self, py: Python<'_>, places: Integers) -> PyResult<Arc<Self>> {
        let (here, n_samples) = (self.here(py)?, self.n_samples());
        let opened = computed(py, move || {
            let places = RowSet::from_ascending(places.0).or_exception()?;
            if let Some(outside) = places.last().filter(|last| n_samples <= *last) {
                let problem = format!("there is no sample {outside}: there are {n_samples}");
                return Err(PyValueError::new_err(problem));
            }
            here.at(&places).or_exception()
        })??;
        Ok(Self::of(Arc::clone(&self.open), opened))
    }
}

/// A batch of a source.
pub(crate) trait SourceBatch: MadeBatch {
    /// The number of samples that the plan has for it.
    fn n_planned(&self) -> usize;
}

/// Delivers samples in batches, epoch by epoch.
#[derive(Debug)]
pub(crate) struct SampleLoader<S: Source> {
    samples: Arc<OpenedSamples<S>>,
    /// The settings except `memory`.
    spec: PipelineSpec,
    memory: Option<MemoryLimit>,
    n_batches: u64,
    here: PerProcess<Arc<Running<S>>>,
}

/// A loader of this process.
#[derive(Debug)]
struct Running<S: Source> {
    pipeline: Pipeline<Selected<S>>,
    kept: Arc<KeptBatches>,
}

impl<S> Running<S>
where
    S: Source<Batch: SourceBatch, Error: IntoException>,
{
    fn make(
        py: Python<'_>,
        samples: &OpenedSamples<S>,
        spec: &PipelineSpec,
        memory: Option<&MemoryLimit>,
    ) -> PyResult<Arc<Self>> {
        let (memory, kept) = MemoryLimit::budget(memory)?;
        let (source, spec) = (Arc::new(samples.here(py)?), PipelineSpec { memory, ..spec.clone() });
        let pipeline = Pipeline::new(source, spec, S::Batch::n_planned).or_exception()?;
        Ok(Arc::new(Self { pipeline, kept }))
    }
}

impl<S> SampleLoader<S>
where
    S: Source<Batch: SourceBatch, Error: IntoException> + fmt::Debug,
{
    /// A loader with the settings in the arguments that are the engine's.
    pub(crate) fn new(
        py: Python<'_>,
        samples: &Arc<OpenedSamples<S>>,
        memory: Option<MemoryLimit>,
        engine: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (samples, spec) = (Arc::clone(samples), pipeline_spec(engine)?);
        let running = Running::make(py, &samples, &spec, memory.as_ref())?;
        let n_batches = running.pipeline.n_batches();
        Ok(Self { samples, spec, memory, n_batches, here: PerProcess::new(running) })
    }

    /// The number of batches of an epoch.
    pub(crate) fn n_batches(&self) -> u64 {
        self.n_batches
    }

    /// Starts an epoch.
    pub(crate) fn epoch(&self, py: Python<'_>, number: u64) -> PyResult<Epoch> {
        self.start(py, move |pipeline| pipeline.epoch(number))
    }

    /// Continues an epoch.
    pub(crate) fn resume(&self, py: Python<'_>, state: &str) -> PyResult<Epoch> {
        let state = LoaderState::from_json(state).or_exception()?;
        self.start(py, move |pipeline| pipeline.resume(&state))
    }

    /// Starts an epoch, in a thread.
    fn start(
        &self,
        py: Python<'_>,
        start: impl FnOnce(&Pipeline<Selected<S>>) -> Result<pipeline::Epoch<Selected<S>>, S::Error>
        + Send
        + 'static,
    ) -> PyResult<Epoch> {
        let running = self
            .here
            .get_or_make(|| Running::make(py, &self.samples, &self.spec, self.memory.as_ref()))?;
        let of = EpochOf::new(&running.kept, EntropyMeter::default());
        let epoch = interruptible(py, move || start(&running.pipeline))?.or_exception()?;
        Ok(Epoch::new(Box::new(SourceEpoch(epoch)), of))
    }
}

/// An epoch of a source.
#[derive(Debug)]
struct SourceEpoch<S: Source>(pipeline::Epoch<Selected<S>>);

impl<S> RunningEpoch for SourceEpoch<S>
where
    S: Source<Batch: SourceBatch, Error: IntoException> + fmt::Debug,
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

/// Makes Python's class of loaders of the samples in another one.
macro_rules! loader_class {
    ($name:ident of $samples:ident, $source:ty) => {
        /// Delivers samples in batches, epoch by epoch.
        #[pyclass(frozen, module = "somafeed._somafeed")]
        #[derive(Debug)]
        pub(crate) struct $name(crate::samples::SampleLoader<$source>);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (samples, *, memory = None, **engine))]
            fn new(
                py: Python<'_>,
                samples: &Bound<'_, $samples>,
                memory: Option<crate::memory_limit::MemoryLimit>,
                engine: Option<&Bound<'_, pyo3::types::PyDict>>,
            ) -> PyResult<Self> {
                let samples = &samples.get().samples;
                crate::samples::SampleLoader::new(py, samples, memory, engine).map(Self)
            }

            #[getter]
            fn n_batches(&self) -> u64 {
                self.0.n_batches()
            }

            fn epoch(&self, py: Python<'_>, number: u64) -> PyResult<crate::epoch::Epoch> {
                self.0.epoch(py, number)
            }

            fn resume(&self, py: Python<'_>, state: &str) -> PyResult<crate::epoch::Epoch> {
                self.0.resume(py, state)
            }

            fn __repr__(&self) -> String {
                format!("{}({} batches an epoch)", stringify!($name), self.0.n_batches())
            }

            #[expect(clippy::unused_self, reason = "Python calls it on an object")]
            fn __reduce__(&self) -> PyResult<()> {
                let instead = "pickle the arguments it was made with";
                Err(crate::experiment::unpicklable(stringify!($name), instead))
            }
        }
    };
}
pub(crate) use loader_class;
