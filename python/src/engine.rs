//! The engine as Python sees it, whatever the samples are: settings, epochs and their batches.

use std::ffi::CString;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use loader::{LoaderState, Order, PipelineSpec, Remainder, Skipped, WhenDamaged, World};
use pipeline::BatchPlace;
use pyo3::PyClass;
use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::border::{Element, Memory};
use crate::entropy::EntropyMeter;
use crate::errors::{hidden, value_error};
use crate::experiment::unpicklable;
use crate::memory_limit::KeptBatches;
use crate::numpy;
use crate::splits::Sampling;

/// An epoch of some kind of samples.
pub(crate) trait RunningEpoch: Debug + Send {
    /// Number of batches of the whole epoch.
    fn n_batches(&self) -> u64;
    /// The next batch, or `Pending` if it is not ready within `limit`.
    fn next_within(&mut self, limit: Duration) -> Poll<Option<PyResult<Box<dyn MadeBatch>>>>;
    /// The place after the last batch.
    fn state(&self) -> LoaderState;
    /// What ran so far.
    fn stats(&self) -> RunStats;
    /// Number of samples that the batches so far lack.
    fn n_skipped(&self) -> u64;
}

/// A batch of some kind of samples on its way to Python.
pub(crate) trait MadeBatch: Send {
    /// Its number in the epoch.
    fn batch_idx(&self) -> u64;
    /// How many samples it has.
    fn n_samples(&self) -> usize;
    /// Python's batch, whose memory counts as kept while it lives.
    fn into_python(self: Box<Self>, py: Python<'_>, epoch: &EpochOf) -> PyResult<Py<PyAny>>;
}

/// A batch of a kind whose samples have numbers.
pub(crate) trait NumberedBatch: Send {
    /// Python's class of it.
    type Class: PyClass<BaseType = PlacedBatch>;
    /// Its place in the epoch.
    fn place(&self) -> BatchPlace;
    /// The numbers of its samples.
    fn samples(&self) -> &[u64];
    /// Its arrays as Python's class, whose memory counts as kept while it lives.
    fn into_class(self, py: Python<'_>, kept: &Arc<KeptBatches>) -> PyResult<Self::Class>;
}

impl<B: NumberedBatch> MadeBatch for B {
    fn batch_idx(&self) -> u64 {
        self.place().batch_idx
    }

    fn n_samples(&self) -> usize {
        self.samples().len()
    }

    fn into_python(self: Box<Self>, py: Python<'_>, epoch: &EpochOf) -> PyResult<Py<PyAny>> {
        let samples = Memory::of_vec(self.samples().to_vec()).seen_as(Element::I64)?;
        let n_samples = self.n_samples();
        epoch.lock_entropy().add_samples(self.samples(), self.place().n_padding);
        let placed = PlacedBatch { place: self.place(), n_samples, samples: Py::new(py, samples)? };
        let class = PyClassInitializer::from(placed);
        Ok(Py::new(py, class.add_subclass((*self).into_class(py, &epoch.kept)?))?.into_any())
    }
}

/// A batch's place in its epoch, and the numbers of its samples; the classes of batches derive from
/// it.
#[pyclass(frozen, subclass, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct PlacedBatch {
    place: BatchPlace,
    n_samples: usize,
    samples: Py<Memory>,
}

#[pymethods]
impl PlacedBatch {
    #[getter]
    fn batch_idx(&self) -> u64 {
        self.place.batch_idx
    }

    #[getter]
    fn n_padding(&self) -> usize {
        self.place.n_padding
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::array(py, &self.samples)
    }

    fn __len__(&self) -> usize {
        self.n_samples
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let Self { place, n_samples, .. } = slf.get();
        Ok(format!("{}({}: {n_samples} samples)", slf.get_type().name()?, place.batch_idx))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        Err(unpicklable(&slf.get_type().name()?.to_string(), "pickle its arrays"))
    }
}

/// What an epoch's batches have in common.
#[derive(Debug)]
pub(crate) struct EpochOf {
    pub(crate) kept: Arc<KeptBatches>,
    /// Counts labels, if the samples have any.
    entropy: Mutex<EntropyMeter>,
    /// Whether Python was warned of samples that were left out.
    has_warned: AtomicBool,
}

impl EpochOf {
    /// An epoch of batches of this budget, whose labels are counted by `entropy`.
    pub(crate) fn new(kept: &Arc<KeptBatches>, entropy: EntropyMeter) -> Self {
        let has_warned = AtomicBool::new(false);
        Self { kept: Arc::clone(kept), entropy: Mutex::new(entropy), has_warned }
    }

    /// The meter of labels.
    pub(crate) fn lock_entropy(&self) -> MutexGuard<'_, EntropyMeter> {
        self.entropy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first sample that batches lack, once.
    pub(crate) fn first_skipped(&self, epoch: &dyn RunningEpoch) -> Option<Skipped> {
        if epoch.n_skipped() == 0 || self.has_warned.swap(true, Ordering::Relaxed) {
            return None;
        }
        epoch.stats().engine.skipped.into_iter().next()
    }
}

/// Counts and times of an epoch, and the settings with which it ran.
#[derive(Debug, Clone)]
pub(crate) struct RunStats {
    pub(crate) engine: pipeline::EpochStats,
    pub(crate) spec: PipelineSpec,
    /// Name of the reader, if there are several.
    pub(crate) reader: Option<String>,
    /// Number of genes, the columns of every batch.
    pub(crate) n_columns: Option<usize>,
    /// Rows that were read for neighbours, if batches have them.
    pub(crate) neighbours: Option<loader::NeighbourRows>,
}

/// Warns that samples are left out.
///
/// # Errors
/// The user has made warnings errors.
pub(crate) fn warn_skipped(py: Python<'_>, first: &Skipped) -> PyResult<()> {
    let Skipped { name, error, .. } = first;
    let text = hidden(&format!(
        "{name} was skipped, because it cannot be read: {error}; stats() of the iterator counts \
         such samples and names the first"
    ));
    let text = CString::new(text.replace('\0', " ")).map_err(PyValueError::new_err)?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

/// The settings of the engine, from the keyword arguments that are left to it.
///
/// # Errors
/// A TypeError for an argument that it does not have, or of another type; a ValueError for a value
/// that it does not take.
pub(crate) fn pipeline_spec(arguments: Option<&Bound<'_, PyDict>>) -> PyResult<PipelineSpec> {
    let mut spec = PipelineSpec::default();
    let Some(arguments) = arguments else { return Ok(spec) };
    // `order` comes last, since it replaces `shuffle`.
    let order = arguments.get_item("order")?.map(|order| ("order".to_owned(), order));
    let named = arguments.iter().map(|(name, value)| Ok((name.extract()?, value)));
    for (name, value) in named.chain(order.map(Ok)).collect::<PyResult<Vec<(String, _)>>>()? {
        set(&mut spec, &name, &value).map_err(|error| of_argument(value.py(), &name, error))?;
    }
    if spec.read_threads == 0 {
        let problem = "read_threads is 0, but reading needs a thread of its own, so that Ctrl-C \
                       can end a wait: give at least 1";
        return Err(PyValueError::new_err(problem));
    }
    Ok(spec)
}

/// The error of an argument's type, with its name.
fn of_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyTypeError>(py) {
        return PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
    }
    error
}

/// Sets one setting.
fn set(spec: &mut PipelineSpec, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "batch_size" => spec.batch_rows = value.extract()?,
        "shuffle" if value.extract()? => {}
        "shuffle" => spec.order = Order::InOrder,
        "order" if value.is_none() => {}
        "order" => {
            let orders = [
                ("shuffled", Order::Shuffled),
                ("in order", Order::InOrder),
                ("listed", Order::Listed),
            ];
            spec.order = choice(name, value.extract()?, &orders)?;
        }
        "seed" => spec.seed = value.extract()?,
        "chunk_rows" => spec.chunk_rows = value.extract()?,
        "chunks_per_block" => spec.chunks_per_block = value.extract()?,
        "ramp_blocks" => spec.ramp_blocks = value.extract()?,
        "rank" => spec.world = World { rank: value.extract()?, ..spec.world },
        "world_size" => spec.world = World { size: value.extract()?, ..spec.world },
        "lanes" => spec.lanes = value.extract()?,
        "remainder" => {
            let remainders =
                [("keep", Remainder::Short), ("drop", Remainder::Drop), ("pad", Remainder::Pad)];
            spec.remainder = choice(name, value.extract()?, &remainders)?;
        }
        "sampling" => {
            let sampling: Option<Bound<'_, Sampling>> = value.extract()?;
            spec.sampling = sampling.map(|sampling| sampling.get().drawn.clone());
        }
        "keep_decoded" => spec.keep_bytes = value.extract()?,
        "prefetch_blocks" => spec.prefetch_blocks = value.extract()?,
        "prefetch_batches" => spec.prefetch_batches = value.extract()?,
        "read_threads" => spec.read_threads = value.extract()?,
        "on_error" => {
            let choices = [("raise", WhenDamaged::Fail), ("skip", WhenDamaged::Skip)];
            spec.when_damaged = choice(name, value.extract()?, &choices)?;
        }
        _ => return Err(PyTypeError::new_err("there is no such argument")),
    }
    Ok(())
}

/// The value of a name.
pub(crate) fn choice<T: Copy>(argument: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let found = choices.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        value_error(&format!("{argument} is {name:?}: take one of {names}"))
    })
}
