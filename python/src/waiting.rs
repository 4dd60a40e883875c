//! Calls that take long: other Python threads run meanwhile, and Ctrl-C ends them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;

use crate::errors::SomafeedError;

/// Time between two looks for signals.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Does `work` in a thread, and waits for it. A signal whose handler raises ends the wait; the
/// thread then finishes on its own, and its result is dropped there.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    stoppable(py, work, || ())
}

/// Like [`interruptible`], and calls `stop` if a signal came, so that the work ends early.
pub(crate) fn stoppable<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl FnOnce(),
) -> PyResult<T> {
    let (done, result) = bounded(1);
    let thread = thread::Builder::new().name("somafeed-call".to_owned()).spawn(move || {
        // Nobody waits any more if a signal came.
        let _nobody_waits = done.send(catch_unwind(AssertUnwindSafe(work)));
    })?;
    loop {
        match py.detach(|| result.recv_timeout(SIGNAL_INTERVAL)) {
            Ok(outcome) => {
                drop(thread.join());
                return outcome.map_err(|panic| panicked(&*panic));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    stop();
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(panicked(&"no result")),
        }
    }
}

/// Does short work on this thread while other Python threads run. A panic becomes an exception.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| unpanicked(work))
}

/// Does work whose panic becomes an exception.
pub(crate) fn unpanicked<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(&*panic))
}

/// Ends a value whose drop may take long, as an epoch that waits for its reads does. Waits for it a
/// little, so that its memory is usually free afterwards; beyond that it ends on its own.
pub(crate) fn drop_in_thread<T: Send + 'static>(value: T) {
    const PATIENCE: Duration = Duration::from_millis(500);
    let (done, ended) = bounded::<()>(0);
    let spawned = thread::Builder::new().name("somafeed-close".to_owned()).spawn(move || {
        drop(value);
        drop(done);
    });
    // Without a thread the value was dropped here.
    if spawned.is_ok() {
        let wait = || {
            // Closed when the value is gone.
            let _closed = ended.recv_timeout(PATIENCE);
        };
        // The interpreter may be ending, and then nothing else waits for it.
        if Python::try_attach(|py| py.detach(wait)).is_none() {
            wait();
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message");
    SomafeedError::new_err(format!(
        "a bug in somafeed, please report it: it panicked with {text:?}"
    ))
}
