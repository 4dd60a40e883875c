//! How far the thread that trains is.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::anyhow;
use torch_feed::ArrayTensors;

use crate::device::steps::Steps;

/// Shared by the thread that trains and the one that waits for it.
#[derive(Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    /// Notified after each step, and when the thread ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    steps: Steps,
    /// The host's memory of batches that is kept until the next wait for the device.
    kept: Vec<ArrayTensors>,
    failure: Option<anyhow::Error>,
    is_over: bool,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a step.
    pub(super) fn finish_step(&self, begin: Duration, end: Duration) {
        self.lock().steps.push(begin, end);
        self.changed.notify_all();
    }

    /// Keeps the host's memory of a batch until [`free_kept`](Self::free_kept).
    pub(super) fn keep(&self, host: ArrayTensors) {
        self.lock().kept.push(host);
    }

    /// Frees the memory of batches that was kept.
    pub(super) fn free_kept(&self) {
        let kept = std::mem::take(&mut self.lock().kept);
        drop(kept);
    }

    /// Notes the error that ends the thread.
    pub(super) fn fail(&self, error: anyhow::Error) {
        self.lock().failure = Some(error);
    }

    /// Notes that the thread has ended.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Waits until the first `n_steps` steps have ended, and returns when that was.
    ///
    /// # Errors
    /// The thread ended before.
    pub(super) fn wait_for(&self, n_steps: usize) -> anyhow::Result<Duration> {
        let is_on_the_way =
            |state: &mut State| state.steps.end_of(n_steps).is_none() && !state.is_over;
        let state = self.changed.wait_while(self.lock(), is_on_the_way);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.steps.end_of(n_steps).ok_or_else(|| failure(&mut state))
    }

    /// The error that ended the thread, once it has ended.
    pub(super) fn failure(&self) -> anyhow::Error {
        let state = self.changed.wait_while(self.lock(), |state| !state.is_over);
        failure(&mut state.unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `look` with the steps so far.
    pub(super) fn with_steps<R>(&self, look: impl FnOnce(&Steps) -> R) -> R {
        look(&self.lock().steps)
    }
}

/// The error that ended the thread. It is given out once.
fn failure(state: &mut State) -> anyhow::Error {
    let failure = state.failure.take();
    failure.unwrap_or_else(|| anyhow!("the thread that trains has ended before its last batch"))
}
