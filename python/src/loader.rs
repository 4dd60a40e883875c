//! Loaders: a data set with settings, from which epochs start.

use std::sync::Arc;

use loader::{
    BatchForm, BlockForm, Budget, LoaderSpec, LoaderState, Order, PipelineSpec, Remainder,
    TokenSpec, Totals, Transform, World,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::border::Element;
use crate::dataset::Dataset;
use crate::entropy::EntropyMeter;
use crate::epoch::Epoch;
use crate::errors::{OrException as _, value_error};
use crate::experiment::unpicklable;
use crate::memory_limit::{KeptBatches, MemoryLimit};
use crate::process::PerProcess;
use crate::splits::Sampling;
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
    pub(crate) loader: loader::Loader,
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
        is_exact: bool,
    ) -> PyResult<Arc<Self>> {
        let memory = memory.map(MemoryLimit::budget).transpose()?;
        let memory = memory.unwrap_or_else(Budget::unlimited);
        let kept = Arc::new(KeptBatches::new(&memory));
        let (dataset, mut spec) = (dataset.here(py)?, spec.clone());
        spec.pipeline.memory = memory;
        let made = interruptible(py, move || {
            let dataset = if is_exact { dataset.exact()? } else { dataset };
            let entropy = EntropyMeter::new(&dataset, spec.pipeline.batch_rows);
            loader::Loader::new(dataset, spec).map(|loader| (loader, entropy))
        })?;
        let (loader, entropy) = made.or_exception()?;
        Ok(Arc::new(Self { loader, kept, entropy }))
    }
}

impl Loader {
    fn here(&self, py: Python<'_>) -> PyResult<Arc<Running>> {
        self.here.get_or_make(|| {
            Running::make(py, self.dataset.get(), &self.spec, self.memory.as_ref(), self.is_exact)
        })
    }
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (
        dataset, *, batch_size = 1024, shuffle = true, order = None, seed = 0, chunk_rows = 64,
        chunks_per_block = 1024, ramp_blocks = 0, form = "dense", block_form = "csr", rank = 0, world_size = 1,
        lanes = None, remainder = "keep", sampling = None, target_sum = None, log1p = false,
        clip = None, totals = "genes", dtype = "float32", memory = None, keep_decoded = None, prefetch_blocks = 1,
        prefetch_batches = 1, read_threads = 1, batch_threads = None,
        tokens = None, token_layout = "padded"
    ))]
    fn new(
        py: Python<'_>,
        dataset: Py<Dataset>,
        batch_size: u64,
        shuffle: bool,
        order: Option<&str>,
        seed: u64,
        chunk_rows: u64,
        chunks_per_block: u64,
        ramp_blocks: u32,
        form: &str,
        block_form: &str,
        rank: u64,
        world_size: u64,
        lanes: Option<u64>,
        remainder: &str,
        sampling: Option<&Sampling>,
        target_sum: Option<f64>,
        log1p: bool,
        clip: Option<(f32, f32)>,
        totals: &str,
        dtype: &str,
        memory: Option<MemoryLimit>,
        keep_decoded: Option<u64>,
        prefetch_blocks: usize,
        prefetch_batches: usize,
        read_threads: usize,
        batch_threads: Option<usize>,
        tokens: Option<&Tokenizer>,
        token_layout: &str,
    ) -> PyResult<Self> {
        let by_shuffle = if shuffle { Order::Shuffled } else { Order::InOrder };
        let orders = [
            ("shuffled", Order::Shuffled),
            ("in order", Order::InOrder),
            ("listed", Order::Listed),
        ];
        let remainders =
            [("keep", Remainder::Short), ("drop", Remainder::Drop), ("pad", Remainder::Pad)];
        let layout = layout(token_layout)?;
        let tokens = tokens.map(|of| TokenSpec { tokenizer: Arc::clone(&of.made), layout });
        let pipeline = PipelineSpec {
            chunk_rows,
            chunks_per_block,
            ramp_blocks,
            order: order.map_or(Ok(by_shuffle), |name| choice("order", name, &orders))?,
            seed,
            batch_rows: batch_size,
            world: World { rank, size: world_size },
            lanes,
            remainder: choice("remainder", remainder, &remainders)?,
            sampling: sampling.map(|sampling| sampling.drawn.clone()),
            prefetch_blocks,
            read_threads,
            prefetch_batches,
            memory: Budget::unlimited(),
            keep_bytes: keep_decoded,
        };
        let spec = LoaderSpec {
            pipeline,
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
        let running = Running::make(py, dataset.get(), &spec, memory.as_ref(), is_exact)?;
        let n_batches = running.loader.n_batches();
        let here = PerProcess::new(running);
        Ok(Self { dataset, spec, memory, element, is_exact, n_batches, here })
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
        let running = self.here(py)?;
        let (kept, entropy) = (Arc::clone(&running.kept), running.entropy.clone());
        let epoch = interruptible(py, move || running.loader.epoch(number))?.or_exception()?;
        Ok(Epoch::new(epoch, self.element, kept, entropy))
    }

    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<Epoch> {
        let state = LoaderState::from_json(state).or_exception()?;
        let running = self.here(py)?;
        let (kept, entropy) = (Arc::clone(&running.kept), running.entropy.clone());
        let epoch = interruptible(py, move || running.loader.resume(&state))?.or_exception()?;
        Ok(Epoch::new(epoch, self.element, kept, entropy))
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
    if spec.pipeline.read_threads == 0 {
        let problem = "read_threads is 0, but reading needs a thread of its own, so that Ctrl-C \
                       can end a wait: give at least 1";
        return Err(PyValueError::new_err(problem));
    }
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
    if spec.batch_form == BatchForm::F16 {
        let problem = "dtype=\"stored\" is for forms of float32, and form=\"f16\" rounds values";
        return Err(PyValueError::new_err(problem));
    }
    // Transforms make other values of those that are stored.
    if spec.transform != Transform::default() {
        return Ok(None);
    }
    Ok(Some(dataset.stored_type()?).filter(|element| *element != Element::F32))
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
