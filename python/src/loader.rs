//! Loaders: a data set with settings, from which epochs start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use loader::{BatchForm, BlockForm, LoaderSpec, LoaderState, TokenSpec, Totals, Transform};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::Batch;
use crate::border::Element;
use crate::buffers::{SlotBuffer, SlotBuffers};
use crate::dataset::Dataset;
use crate::engine::{EpochOf, MadeBatch, RunStats, RunningEpoch, choice, pipeline_spec};
use crate::entropy::EntropyMeter;
use crate::epoch::Epoch;
use crate::errors::OrException as _;
use crate::experiment::unpicklable;
use crate::memory_limit::{KeptBatches, MemoryLimit};
use crate::process::PerProcess;
use crate::tokens::{Tokenizer, layout};
use crate::waiting::interruptible;

/// Delivers the cells of a data set in batches, epoch by epoch.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Loader {
    dataset: Py<Dataset>,
    /// The settings except `memory`.
    spec: LoaderSpec,
    memory: Option<MemoryLimit>,
    /// The GPU for which batches are pinned.
    gpu: Option<usize>,
    /// The type of X's values in batches; `None` for that of `form`.
    element: Option<Element>,
    /// Whether reading fails instead of rounding a value of X.
    is_exact: bool,
    n_batches: u64,
    here: PerProcess<Arc<Running>>,
}

/// A loader of this process.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) loader: loader::Loader<SlotBuffers>,
    pub(crate) kept: Arc<KeptBatches>,
    /// That of an epoch before its first batch.
    entropy: EntropyMeter,
}

impl Running {
    fn make(
        py: Python<'_>,
        dataset: &Dataset,
        spec: &LoaderSpec,
        memory: Option<&MemoryLimit>,
        gpu: Option<usize>,
        is_exact: bool,
    ) -> PyResult<Arc<Self>> {
        let (memory, kept) = MemoryLimit::budget(memory, gpu)?;
        let (dataset, mut spec) = (dataset.here(py)?, spec.clone());
        spec.pipeline.memory = memory;
        let made = interruptible(py, move || {
            let dataset = if is_exact { dataset.exact()? } else { dataset };
            let entropy = EntropyMeter::new(&dataset, spec.pipeline.batch_rows);
            let buffers = Arc::new(SlotBuffers::new(&dataset, &spec));
            let loader = loader::Loader::with_buffers(dataset, spec, buffers);
            loader.map(|loader| (loader, entropy))
        })?;
        let (loader, entropy) = made.or_exception()?;
        Ok(Arc::new(Self { loader, kept, entropy }))
    }
}

impl Loader {
    fn here(&self, py: Python<'_>) -> PyResult<Arc<Running>> {
        self.here.get_or_make(|| {
            let (dataset, memory) = (self.dataset.get(), self.memory.as_ref());
            Running::make(py, dataset, &self.spec, memory, self.gpu, self.is_exact)
        })
    }
}

impl Loader {
    /// Starts an epoch, in a thread.
    fn start(
        &self,
        py: Python<'_>,
        start: impl FnOnce(
            &loader::Loader<SlotBuffers>,
        ) -> Result<loader::Epoch<SlotBuffers>, loader::LoaderError>
        + Send
        + 'static,
    ) -> PyResult<Epoch> {
        let running = self.here(py)?;
        let of = EpochOf::new(&running.kept, running.entropy.clone());
        let epoch = interruptible(py, move || start(&running.loader))?.or_exception()?;
        Ok(Epoch::new(Box::new(CellEpoch { epoch, element: self.element }), of))
    }
}

/// An epoch of cells.
#[derive(Debug)]
struct CellEpoch {
    epoch: loader::Epoch<SlotBuffers>,
    /// The type of X's values in batches; `None` for that of the loader.
    element: Option<Element>,
}

impl RunningEpoch for CellEpoch {
    fn n_batches(&self) -> u64 {
        self.epoch.n_batches()
    }

    fn next_within(&mut self, limit: Duration) -> Poll<Option<PyResult<Box<dyn MadeBatch>>>> {
        let element = self.element;
        self.epoch.next_within(limit).map(|next| {
            let made = |batch| Box::new(CellBatch { batch, element }) as Box<dyn MadeBatch>;
            next.map(|batch| batch.map(made).or_exception())
        })
    }

    fn state(&self) -> LoaderState {
        self.epoch.state()
    }

    fn n_skipped(&self) -> u64 {
        self.epoch.n_skipped()
    }

    fn stats(&self) -> RunStats {
        let loader::EpochStats { engine, spec, reader, n_columns, neighbours, .. } =
            self.epoch.stats();
        let (reader, n_columns) = (Some(reader), Some(n_columns));
        RunStats { engine, spec: spec.pipeline, reader, n_columns, neighbours }
    }
}

/// A batch of cells.
struct CellBatch {
    batch: loader::Batch<SlotBuffer>,
    element: Option<Element>,
}

impl MadeBatch for CellBatch {
    fn batch_idx(&self) -> u64 {
        self.batch.batch_idx
    }

    fn n_samples(&self) -> usize {
        self.batch.joinids.len()
    }

    fn into_python(self: Box<Self>, py: Python<'_>, epoch: &EpochOf) -> PyResult<Py<PyAny>> {
        let Self { batch, element } = *self;
        epoch.lock_entropy().add(&batch.obs, &batch.codes, batch.n_padding);
        Ok(Py::new(py, Batch::new(py, batch, element, &epoch.kept)?)?.into_any())
    }
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (
        dataset, *, form = "dense", block_form = "csr", target_sum = None, log1p = false,
        clip = None, totals = "genes", dtype = "float32", memory = None, gpu = None,
        batch_threads = None,
        tokens = None, token_layout = "padded", modality_forms = None, **engine
    ))]
    fn new(
        py: Python<'_>,
        dataset: Py<Dataset>,
        form: &str,
        block_form: &str,
        target_sum: Option<f64>,
        log1p: bool,
        clip: Option<(f32, f32)>,
        totals: &str,
        dtype: &str,
        memory: Option<MemoryLimit>,
        gpu: Option<usize>,
        batch_threads: Option<usize>,
        tokens: Option<&Tokenizer>,
        token_layout: &str,
        modality_forms: Option<BTreeMap<String, String>>,
        engine: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let layout = layout(token_layout)?;
        let tokens = tokens.map(|of| TokenSpec { tokenizer: Arc::clone(&of.made), layout });
        let form_of = |(name, form): (String, String)| Ok((name, form.parse().or_exception()?));
        let modality_forms = modality_forms.unwrap_or_default().into_iter().map(form_of);
        let spec = LoaderSpec {
            modality_forms: modality_forms.collect::<PyResult<_>>()?,
            pipeline: pipeline_spec(engine)?,
            block_form: block_form.parse::<BlockForm>().or_exception()?,
            batch_form: form.parse::<BatchForm>().or_exception()?,
            transform: Transform { target_sum, log1p, clip },
            tokens,
            totals: choice("totals", totals, &[("genes", Totals::Genes), ("obs", Totals::Obs)])?,
            batch_threads,
        };
        check(&spec, dataset.get())?;
        let is_stored = choice("dtype", dtype, &[("float32", false), ("stored", true)])?;
        let element = if is_stored { element(&spec, dataset.get())? } else { None };
        // Transforms make other values of those that are stored.
        let is_exact = is_stored && spec.transform == Transform::default();
        let running = Running::make(py, dataset.get(), &spec, memory.as_ref(), gpu, is_exact)?;
        let n_batches = running.loader.n_batches();
        let here = PerProcess::new(running);
        Ok(Self { dataset, spec, memory, gpu, element, is_exact, n_batches, here })
    }

    #[getter]
    fn dataset(&self, py: Python<'_>) -> Py<Dataset> {
        self.dataset.clone_ref(py)
    }

    #[getter]
    fn n_batches(&self) -> u64 {
        self.n_batches
    }

    fn epoch(&self, py: Python<'_>, number: u64) -> PyResult<Epoch> {
        self.start(py, move |loader| loader.epoch(number))
    }

    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<Epoch> {
        let state = LoaderState::from_json(state).or_exception()?;
        self.start(py, move |loader| loader.resume(&state))
    }

    fn __repr__(&self) -> String {
        format!("Loader({} batches an epoch)", self.n_batches)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Loader", "pickle the arguments it was made with"))
    }
}

/// Checks what Python needs beyond the checks of the loader itself.
fn check(spec: &LoaderSpec, dataset: &Dataset) -> PyResult<()> {
    let n_columns = dataset.n_columns();
    if spec.batch_form.dense_type().is_none() && i32::try_from(n_columns).is_err() {
        let problem = format!(
            "{n_columns} genes are more than the 32-bit columns of sparse batches can number: \
             select fewer"
        );
        return Err(PyValueError::new_err(problem));
    }
    Ok(())
}

/// The type that `dtype="stored"` means; `None` if the loader's values have it.
fn element(spec: &LoaderSpec, dataset: &Dataset) -> PyResult<Option<Element>> {
    if let form @ (BatchForm::F16 | BatchForm::Packed) = spec.batch_form {
        let problem =
            format!("dtype=\"stored\" is for forms of float32, and form=\"{form}\" changes them");
        return Err(PyValueError::new_err(problem));
    }
    // Transforms make other values of those that are stored.
    if spec.transform != Transform::default() {
        return Ok(None);
    }
    Ok(Some(dataset.stored_type()?).filter(|element| *element != Element::F32))
}
