//! Values of one process: a fork copies their memory, but not the threads behind them.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

/// A value that belongs to the process that made it.
///
/// In a forked child the value's threads do not exist and its locks may be held for ever. So there
/// it is neither used nor dropped: its memory leaks, as the parent's whole memory is there anyway.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    pid: u32,
}

impl<T> OfProcess<T> {
    /// A value of this process.
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), pid: std::process::id() }
    }

    /// The value; `None` in a child of its process.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.is_here())
    }

    fn is_here(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl<T> Drop for OfProcess<T> {
    #[expect(clippy::mem_forget, reason = "a fork has no threads to join and may hold locks")]
    fn drop(&mut self) {
        if !self.is_here() {
            mem::forget(self.value.take());
        }
    }
}

/// A value that each process makes for itself when it needs it.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    // Never locked while other threads may run, so a fork never copies it locked.
    value: Mutex<OfProcess<T>>,
}

impl<T: Clone> PerProcess<T> {
    /// A value that this process has made.
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(OfProcess::new(value)) }
    }

    /// This process's value, made by `make` if the process was forked since.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let known = self.lock().get().cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let made = make()?;
        *self.lock() = OfProcess::new(made.clone());
        Ok(made)
    }

    /// Shows the value's memory in any process. In a forked one, `look` must use no thread and no
    /// lock of the value.
    pub(crate) fn with_memory<U>(&self, look: impl FnOnce(&T) -> U) -> PyResult<U> {
        let gone = || PyRuntimeError::new_err("the value is being dropped");
        self.lock().value.as_ref().map(look).ok_or_else(gone)
    }

    fn lock(&self) -> MutexGuard<'_, OfProcess<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
