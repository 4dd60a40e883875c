//! Epochs: iterators over batches.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use loader::{LoaderState, Skipped};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyDict};

use crate::engine::{EpochOf, MadeBatch, RunStats, RunningEpoch, warn_skipped};
use crate::errors::{OrException as _, SomafeedError, hidden};
use crate::experiment::unpicklable;
use crate::process::OfProcess;
use crate::waiting::{SIGNAL_INTERVAL, detached, drop_in_thread, interruptible, unpanicked};

/// Iterates the batches of one epoch.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Epoch {
    number: u64,
    n_batches: u64,
    here: OfProcess<Shared>,
}

/// What the threads that use an epoch share. Locked while other Python threads run.
#[derive(Debug)]
struct Shared {
    stage: Mutex<Stage>,
    of: EpochOf,
}

#[derive(Debug)]
enum Stage {
    Running(Box<dyn RunningEpoch>),
    Closed { state: LoaderState, stats: Box<RunStats> },
}

impl Stage {
    fn state(&self) -> LoaderState {
        match self {
            Self::Running(epoch) => epoch.state(),
            Self::Closed { state, .. } => state.clone(),
        }
    }

    fn stats(&self) -> RunStats {
        match self {
            Self::Running(epoch) => epoch.stats(),
            Self::Closed { stats, .. } => stats.as_ref().clone(),
        }
    }

    /// Closes it, and returns the epoch that still runs.
    fn close(&mut self) -> Option<Box<dyn RunningEpoch>> {
        let closed = Self::Closed { state: self.state(), stats: Box::new(self.stats()) };
        match std::mem::replace(self, closed) {
            Self::Running(epoch) => Some(epoch),
            already @ Self::Closed { .. } => {
                *self = already;
                None
            }
        }
    }

    /// Closes it at the place before this batch, and returns the epoch that still runs.
    fn close_before(&mut self, batch_idx: u64) -> Option<Box<dyn RunningEpoch>> {
        let running = self.close();
        if let Self::Closed { state, .. } = self {
            *state = state.before(batch_idx);
        }
        running
    }
}

/// A batch, and the first sample that was skipped unless Python was warned before.
type Next = (Box<dyn MadeBatch>, Option<Skipped>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self) -> Poll<Option<PyResult<Next>>> {
        match &mut *self.lock() {
            Stage::Running(epoch) => {
                let next = epoch.next_within(SIGNAL_INTERVAL);
                let first_skipped = || self.of.first_skipped(epoch.as_ref());
                next.map(|next| next.map(|batch| batch.map(|batch| (batch, first_skipped()))))
            }
            Stage::Closed { .. } => Poll::Ready(None),
        }
    }

    /// Makes Python's batch. If that fails, the epoch ends before that batch, so that a resumed one
    /// has it.
    fn make(&self, py: Python<'_>, (batch, first_skipped): Next) -> PyResult<Py<PyAny>> {
        let batch_idx = batch.batch_idx();
        let made = unpanicked(|| {
            first_skipped.map_or(Ok(()), |skipped| warn_skipped(py, &skipped))?;
            batch.into_python(py, &self.of)
        });
        let made = made.flatten();
        if made.is_err()
            && let Some(epoch) = detached(py, || self.lock().close_before(batch_idx))?
        {
            drop_in_thread(epoch);
        }
        made
    }
}

impl Epoch {
    /// An epoch whose batches have this in common.
    pub(crate) fn new(epoch: Box<dyn RunningEpoch>, of: EpochOf) -> Self {
        let (number, n_batches) = (epoch.state().epoch(), epoch.n_batches());
        let shared = Shared { stage: Mutex::new(Stage::Running(epoch)), of };
        Self { number, n_batches, here: OfProcess::new(shared) }
    }

    fn shared(&self) -> PyResult<&Shared> {
        self.here.get().ok_or_else(|| {
            SomafeedError::new_err(format!(
                "epoch {} was started by the process that forked this one, whose threads are not \
                 here: start one in this process with Loader.epoch or Loader.resume",
                self.number
            ))
        })
    }
}

#[pymethods]
impl Epoch {
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    #[getter]
    fn n_batches(&self) -> u64 {
        self.n_batches
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let shared = self.shared()?;
        loop {
            match detached(py, || shared.poll())? {
                Poll::Ready(Some(batch)) => {
                    return shared.make(py, batch?).map(Some);
                }
                Poll::Ready(None) => return Ok(None),
                Poll::Pending => py.check_signals()?,
            }
        }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = self.shared()?;
        let running = detached(py, || shared.lock().close())?;
        match running {
            Some(epoch) => interruptible(py, move || drop(epoch)),
            None => Ok(()),
        }
    }

    fn state(&self, py: Python<'_>) -> PyResult<String> {
        let shared = self.shared()?;
        detached(py, || shared.lock().state())?.to_json().or_exception()
    }

    fn utilization(&self, py: Python<'_>) -> PyResult<(usize, Option<f64>)> {
        let shared = self.shared()?;
        let stats = detached(py, || shared.lock().stats())?;
        Ok((stats.engine.wait_secs.len(), accelerator_utilization(&stats.engine)))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shared = self.shared()?;
        let stats = detached(py, || shared.lock().stats())?;
        let RunStats { engine, spec, reader, n_columns, neighbours } = &stats;
        let dict = PyDict::new(py);
        dict.set_item("epoch", engine.epoch)?;
        dict.set_item("n_rows", engine.n_rows)?;
        dict.set_item("n_batches", engine.n_batches)?;
        dict.set_item("n_blocks", engine.n_blocks)?;
        dict.set_item("max_block_rows", engine.max_block_rows)?;
        dict.set_item("bytes_read", engine.read.bytes_read)?;
        dict.set_item("requests", engine.read.requests)?;
        dict.set_item("bytes_decoded", engine.read.bytes_decoded)?;
        dict.set_item("read_secs", engine.read_secs)?;
        dict.set_item("convert_secs", engine.convert_secs)?;
        dict.set_item("batch_secs", engine.batch_secs)?;
        dict.set_item("wait_secs", engine.wait_secs.iter().sum::<f64>())?;
        dict.set_item("waits", &engine.wait_secs)?;
        dict.set_item("first_batch_secs", engine.first_batch_secs)?;
        dict.set_item("elapsed_secs", engine.elapsed_secs)?;
        dict.set_item("accelerator_utilization", accelerator_utilization(engine))?;
        dict.set_item("lanes", spec.lanes)?;
        dict.set_item("prefetch_blocks", spec.prefetch_blocks)?;
        dict.set_item("prefetch_batches", spec.prefetch_batches)?;
        dict.set_item("kept_bytes", shared.of.kept.bytes())?;
        // What cells have.
        if let Some(reader) = reader {
            dict.set_item("reader", reader)?;
            dict.set_item("n_columns", n_columns)?;
            dict.set_item("nnz", engine.read.values)?;
        }
        if let Some(rows) = neighbours {
            dict.set_item("neighbour_rows", rows.further)?;
            dict.set_item("read_amplification", rows.amplification())?;
        }
        let entropy = shared.of.lock_entropy();
        if reader.is_some() || !entropy.is_empty() {
            dict.set_item("entropy", entropy.to_dict(py)?)?;
        }
        dict.set_item("n_skipped", engine.n_skipped)?;
        let skipped = engine.skipped.iter().map(|row| (hidden(&row.name), hidden(&row.error)));
        dict.set_item("skipped", skipped.into_py_dict(py)?)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("Epoch({}: {} batches)", self.number, self.n_batches)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Epoch", "pickle its state() and resume it with Loader.resume"))
    }
}

/// The share of the time after the first batch in which the consumer did not wait, as MLPerf
/// Storage defines the accelerator utilisation (AU); `None` before the second batch.
fn accelerator_utilization(stats: &pipeline::EpochStats) -> Option<f64> {
    let secs = stats.elapsed_secs - stats.first_batch_secs?;
    let waited: f64 = stats.wait_secs.get(1..)?.iter().sum();
    (stats.wait_secs.len() > 1 && secs > 0.0).then(|| (1.0 - waited / secs).clamp(0.0, 1.0))
}

impl Drop for Epoch {
    fn drop(&mut self) {
        let running = self.here.get().and_then(|shared| shared.lock().close());
        if let Some(epoch) = running {
            drop_in_thread(epoch);
        }
    }
}
