//! Samples of any kind, and one loader for all of them. A kind says how its samples are opened and
//! what becomes of a batch (`MadeBatch`); ranks, epochs, budget and forks are here.

use std::fmt::Debug;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bench_run::Secrets;
use loader::{LoaderState, PipelineSpec, RowSet};
use pipeline::{Pipeline, Selected, Source};
use pyo3::PyClass;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use storage::{Config, OpenOptions, Storage};

use crate::engine::{EpochOf, MadeBatch, RunStats, RunningEpoch, pipeline_spec};
use crate::entropy::{DescribedLabels, EntropyMeter};
use crate::epoch::Epoch;
use crate::errors::{IntoException, OrException as _};
use crate::experiment::unpicklable;
use crate::memory_limit::{KeptBatches, MemoryLimit};
use crate::numpy::{Integers, array_of};
use crate::process::PerProcess;
use crate::waiting::{computed, interruptible};

/// The address of a store, and how it is reached.
#[derive(Debug)]
pub(crate) struct StoreAddress {
    uri: String,
    config: Config,
}

impl StoreAddress {
    /// The store at this address.
    pub(crate) fn new(uri: String, config: Option<Config>) -> Self {
        Self { uri, config: config.unwrap_or_default() }
    }

    /// Its files.
    pub(crate) fn storage(&self) -> PyResult<Arc<dyn Storage>> {
        let opened = storage::open(&self.uri, &OpenOptions::new(&self.config));
        Ok(self.hiding(opened)?.storage)
    }

    /// The value, or the exception without what must not be in a message.
    pub(crate) fn hiding<T, E: IntoException>(&self, result: Result<T, E>) -> PyResult<T> {
        Self::hiding_all(std::slice::from_ref(self), result)
    }

    /// Like [`hiding`](Self::hiding), of several addresses.
    pub(crate) fn hiding_all<T, E: IntoException>(
        all: &[Self],
        result: Result<T, E>,
    ) -> PyResult<T> {
        let secrets = || Secrets::in_tasks(all.iter().map(|of| (&*of.uri, &of.config)), Vec::new());
        result.map_err(|error| error.without_secrets(&secrets()))
    }
}

/// A kind of samples: how all of them are opened.
pub(crate) trait Kind: Debug + Send + Sync + 'static {
    type Source: Source<Batch: MadeBatch, Error: IntoException> + Debug;
    /// Python's class of its samples.
    type Class: PyClass<BaseType = Samples>;
    /// Opens them, in a thread that Ctrl-C can leave behind.
    fn open(&self) -> PyResult<Self::Source>;
    /// Some of them as Python's class.
    fn class(chosen: Arc<Chosen<Self>>) -> Self::Class
    where
        Self: Sized;
}

/// Some samples of a kind, which each process opens anew.
#[derive(Debug)]
pub(crate) struct Chosen<K: Kind> {
    kind: Arc<K>,
    /// The samples, of all that there are.
    rows: Arc<RowSet>,
    opened: PerProcess<Selected<K::Source>>,
}

impl<K: Kind> Chosen<K> {
    /// All samples, as Python's class makes them.
    pub(crate) fn open(py: Python<'_>, kind: K) -> PyResult<PyClassInitializer<K::Class>> {
        let kind = Arc::new(kind);
        let of_thread = Arc::clone(&kind);
        let source = interruptible(py, move || of_thread.open())??;
        Ok(Self::class(kind, Selected::all(Arc::new(source))))
    }

    /// The samples that were opened, as Python's class.
    pub(crate) fn class(kind: Arc<K>, opened: Selected<K::Source>) -> PyClassInitializer<K::Class> {
        let rows = Arc::new(opened.rows().clone());
        let chosen = Arc::new(Self { kind, rows, opened: PerProcess::new(opened) });
        let samples = Arc::<Self>::clone(&chosen);
        PyClassInitializer::from(Samples(samples)).add_subclass(K::class(chosen))
    }

    /// Their kind.
    pub(crate) fn kind(&self) -> &K {
        &self.kind
    }

    /// The samples in this process.
    pub(crate) fn here(&self, py: Python<'_>) -> PyResult<Selected<K::Source>> {
        self.opened.get_or_make(|| {
            let (kind, rows) = (Arc::clone(&self.kind), Arc::clone(&self.rows));
            interruptible(py, move || {
                let all = Selected::all(Arc::new(kind.open()?));
                let here = all.at(&rows).or_exception()?;
                if here.rows().len() != rows.len() {
                    let problem = format!(
                        "the samples have changed since another process opened them: {} of {} are \
                         there now",
                        here.rows().len(),
                        rows.len()
                    );
                    return Err(PyValueError::new_err(problem));
                }
                Ok(here)
            })?
        })
    }
}

/// Samples whose kind does not matter.
trait AnySamples: Debug + Send + Sync {
    fn rows(&self) -> &Arc<RowSet>;
    fn answers_late(&self, py: Python<'_>) -> PyResult<bool>;
    fn select(&self, py: Python<'_>, places: Integers) -> PyResult<Py<PyAny>>;
    fn pipeline(&self, py: Python<'_>, spec: PipelineSpec) -> PyResult<Arc<dyn AnyPipeline>>;
}

impl<K: Kind> AnySamples for Chosen<K> {
    fn rows(&self) -> &Arc<RowSet> {
        &self.rows
    }

    fn answers_late(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.here(py)?.answers_late())
    }

    fn select(&self, py: Python<'_>, places: Integers) -> PyResult<Py<PyAny>> {
        let (here, n_samples) = (self.here(py)?, self.rows.len());
        let opened = computed(py, move || {
            let places = RowSet::from_ascending(places.0).or_exception()?;
            if let Some(outside) = places.last().filter(|last| n_samples <= *last) {
                let problem = format!("there is no sample {outside}: there are {n_samples}");
                return Err(PyValueError::new_err(problem));
            }
            here.at(&places).or_exception()
        })??;
        Ok(Py::new(py, Self::class(Arc::clone(&self.kind), opened))?.into_any())
    }

    fn pipeline(&self, py: Python<'_>, spec: PipelineSpec) -> PyResult<Arc<dyn AnyPipeline>> {
        let n_samples = |batch: &<K::Source as Source>::Batch| batch.n_samples();
        let pipeline = Pipeline::new(Arc::new(self.here(py)?), spec, n_samples).or_exception()?;
        Ok(Arc::new(pipeline))
    }
}

/// A pipeline of samples whose kind does not matter.
trait AnyPipeline: Debug + Send + Sync {
    fn n_batches(&self) -> u64;
    fn epoch(&self, number: u64) -> PyResult<Box<dyn RunningEpoch>>;
    fn resume(&self, state: &LoaderState) -> PyResult<Box<dyn RunningEpoch>>;
}

impl<S: Source<Batch: MadeBatch, Error: IntoException>> AnyPipeline for Pipeline<S> {
    fn n_batches(&self) -> u64 {
        self.n_batches()
    }

    fn epoch(&self, number: u64) -> PyResult<Box<dyn RunningEpoch>> {
        Ok(Box::new(self.epoch(number).or_exception()?))
    }

    fn resume(&self, state: &LoaderState) -> PyResult<Box<dyn RunningEpoch>> {
        Ok(Box::new(self.resume(state).or_exception()?))
    }
}

impl<S: Source<Batch: MadeBatch, Error: IntoException>> RunningEpoch for pipeline::Epoch<S> {
    fn n_batches(&self) -> u64 {
        self.n_batches()
    }

    fn next_within(&mut self, limit: Duration) -> Poll<Option<PyResult<Box<dyn MadeBatch>>>> {
        let made = |batch| Box::new(batch) as Box<dyn MadeBatch>;
        self.next_within(limit).map(|next| next.map(|batch| batch.map(made).or_exception()))
    }

    fn state(&self) -> LoaderState {
        self.state()
    }

    fn n_skipped(&self) -> u64 {
        self.n_skipped()
    }

    fn stats(&self) -> RunStats {
        RunStats {
            engine: self.stats(),
            spec: self.spec().clone(),
            reader: None,
            n_columns: None,
            neighbours: None,
        }
    }
}

/// Samples of some kind; the classes of kinds derive from it.
#[pyclass(frozen, subclass, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Samples(Arc<dyn AnySamples>);

#[pymethods]
impl Samples {
    #[getter]
    fn n_samples(&self) -> u64 {
        self.0.rows().len()
    }

    #[getter]
    fn answers_late(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.answers_late(py)
    }

    /// The number of each sample, of all that there are: ascending.
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = Arc::clone(self.0.rows());
        array_of(py, computed(py, move || rows.iter().collect::<Vec<u64>>())?)
    }

    /// The samples at these places, ascending.
    fn select(&self, py: Python<'_>, places: Integers) -> PyResult<Py<PyAny>> {
        self.0.select(py, places)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("{}({} samples)", slf.get_type().name()?, slf.get().0.rows().len()))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let class = slf.get_type().name()?.to_string();
        Err(unpicklable(&class, "pickle the arguments it was made with"))
    }
}

/// Delivers samples of any kind in batches, epoch by epoch.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct SampleLoader {
    samples: Arc<dyn AnySamples>,
    /// The settings except `memory`.
    spec: PipelineSpec,
    memory: Option<MemoryLimit>,
    /// The GPU for which batches are pinned.
    gpu: Option<usize>,
    /// Counts labels, before the first batch.
    meter: EntropyMeter,
    n_batches: u64,
    here: PerProcess<Running>,
}

/// A loader of this process.
#[derive(Debug, Clone)]
struct Running {
    pipeline: Arc<dyn AnyPipeline>,
    kept: Arc<KeptBatches>,
}

impl Running {
    fn make(
        py: Python<'_>,
        samples: &dyn AnySamples,
        spec: &PipelineSpec,
        memory: Option<&MemoryLimit>,
        gpu: Option<usize>,
    ) -> PyResult<Self> {
        let (memory, kept) = MemoryLimit::budget(memory, gpu)?;
        let pipeline = samples.pipeline(py, PipelineSpec { memory, ..spec.clone() })?;
        Ok(Self { pipeline, kept })
    }
}

impl SampleLoader {
    /// Starts an epoch, in a thread.
    fn start<F>(&self, py: Python<'_>, start: F) -> PyResult<Epoch>
    where
        F: FnOnce(&dyn AnyPipeline) -> PyResult<Box<dyn RunningEpoch>> + Send + 'static,
    {
        let Running { pipeline, kept } = self.here.get_or_make(|| {
            Running::make(py, self.samples.as_ref(), &self.spec, self.memory.as_ref(), self.gpu)
        })?;
        let epoch = interruptible(py, move || start(pipeline.as_ref()))??;
        Ok(Epoch::new(epoch, EpochOf::new(&kept, self.meter.clone())))
    }
}

#[pymethods]
impl SampleLoader {
    #[new]
    #[pyo3(signature = (samples, *, memory = None, gpu = None, labels = Vec::new(), **engine))]
    fn new(
        py: Python<'_>,
        samples: &Bound<'_, Samples>,
        memory: Option<MemoryLimit>,
        gpu: Option<usize>,
        labels: Vec<DescribedLabels>,
        engine: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (samples, spec) = (Arc::clone(&samples.get().0), pipeline_spec(engine)?);
        let running = Running::make(py, samples.as_ref(), &spec, memory.as_ref(), gpu)?;
        let n_batches = running.pipeline.n_batches();
        let meter = EntropyMeter::of_samples(labels, spec.batch_rows)?;
        Ok(Self { samples, spec, memory, gpu, meter, n_batches, here: PerProcess::new(running) })
    }

    #[getter]
    fn n_batches(&self) -> u64 {
        self.n_batches
    }

    fn epoch(&self, py: Python<'_>, number: u64) -> PyResult<Epoch> {
        self.start(py, move |pipeline| pipeline.epoch(number))
    }

    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<Epoch> {
        let state = LoaderState::from_json(state).or_exception()?;
        self.start(py, move |pipeline| pipeline.resume(&state))
    }

    fn __repr__(&self) -> String {
        format!("SampleLoader({} batches an epoch)", self.n_batches)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("SampleLoader", "pickle the arguments it was made with"))
    }
}
