//! Memory limits: the budget of a loader, and the batches that its user keeps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pipeline::Lease;
use pyo3::prelude::*;
use slots::SlotMemory;

use crate::process::PerProcess;

/// Memory that several loaders share, in bytes.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    /// A fork copies leases of threads that do not exist in it, so it begins with none.
    here: PerProcess<pipeline::Budget>,
}

impl Budget {
    fn here(&self) -> PyResult<pipeline::Budget> {
        self.here.get_or_make(|| Ok(pipeline::Budget::new(self.bytes)))
    }
}

#[pymethods]
impl Budget {
    #[new]
    fn new(bytes: u64) -> Self {
        Self { bytes, here: PerProcess::new(pipeline::Budget::new(bytes)) }
    }

    #[getter]
    fn limit(&self) -> u64 {
        self.bytes
    }

    #[getter]
    fn leased(&self) -> PyResult<u64> {
        Ok(self.here()?.leased())
    }

    #[getter]
    fn available(&self) -> PyResult<u64> {
        Ok(self.here()?.available())
    }

    fn __repr__(&self) -> String {
        format!("Budget({})", self.bytes)
    }
}

/// The argument `memory` of a loader.
#[derive(Debug, FromPyObject)]
pub(crate) enum MemoryLimit {
    Shared(Py<Budget>),
    Bytes(u64),
}

impl MemoryLimit {
    /// The budget in this process, without a limit if there is none, and the batches kept of it,
    /// which are pinned for a GPU.
    pub(crate) fn budget(
        limit: Option<&Self>,
        gpu: Option<usize>,
    ) -> PyResult<(pipeline::Budget, Arc<KeptBatches>)> {
        let budget = match limit {
            Some(Self::Shared(budget)) => budget.get().here()?,
            Some(Self::Bytes(bytes)) => pipeline::Budget::new(*bytes),
            None => pipeline::Budget::unlimited(),
        };
        let kept = Arc::new(KeptBatches::new(&budget, gpu));
        Ok((budget, kept))
    }
}

/// Counts the memory of delivered batches that are still alive, and leases it from the budget, so
/// that less is left for reading ahead and for decoded values.
#[derive(Debug)]
pub(crate) struct KeptBatches {
    bytes: AtomicU64,
    /// `None` if the budget had nothing for it.
    lease: Mutex<Option<Lease>>,
    /// The GPU for which their memory is pinned.
    gpu: Option<usize>,
}

impl KeptBatches {
    /// Counts on this budget batches that are pinned for a GPU.
    pub(crate) fn new(budget: &pipeline::Budget, gpu: Option<usize>) -> Self {
        Self { bytes: AtomicU64::new(0), lease: Mutex::new(budget.lease(0)), gpu }
    }

    /// Bytes of batches that are alive.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts a part of a batch until the result is dropped.
    pub(crate) fn keep(self: &Arc<Self>, bytes: u64) -> Kept {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Kept { of: Arc::clone(self), bytes }
    }

    /// Leases what is alive beyond the batch of `batch_bytes` that just came and the one before it,
    /// which the engine has counted. A budget that is used up lends as much as it has: memory that
    /// the user keeps never stops the loader.
    pub(crate) fn lease(&self, batch_bytes: u64) {
        let beyond = self.bytes().saturating_sub(batch_bytes.saturating_mul(2));
        if let Some(lease) = &mut *self.lease.lock().unwrap_or_else(PoisonError::into_inner)
            && lease.bytes() != beyond
            && !lease.set(beyond)
        {
            // Fails only if another loader takes it in between; the next batch tries again.
            let _taken = lease.set(lease.most().min(beyond));
        }
    }
}

/// A part of a batch that is alive.
#[derive(Debug)]
pub(crate) struct Kept {
    of: Arc<KeptBatches>,
    bytes: u64,
}

impl Kept {
    /// Pins memory of the batch, if it goes to a GPU. Where that is not possible, it is copied to
    /// pinned memory on its way.
    pub(crate) fn pin(&self, memory: &mut impl SlotMemory) {
        if let Some(gpu) = self.of.gpu {
            memory.pin(gpu);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
