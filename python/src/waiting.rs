//! Calls that take long: other Python threads run meanwhile, and Ctrl-C ends them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;
use shuffle::Stop;

use crate::errors::SomafeedError;

/// Time between two looks for signals.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Most looks for signals from one line of progress to the next: ten seconds.
const LOOKS_BETWEEN_LINES: u64 = 200;

/// How long a call waits for its thread after a signal, so that its memory is usually free.
const PATIENCE: Duration = Duration::from_millis(500);

/// The number of rows at which each call's loops stop; 0 in all but tests.
static STOP_AT_ROW: AtomicU64 = AtomicU64::new(0);
/// Rows that the loops of the last call began to handle.
static N_ROWS: AtomicU64 = AtomicU64::new(0);

/// Stops each later call within this many rows, for tests; 0 ends that. Returns the number of rows
/// that the last call began to handle.
#[pyfunction]
#[pyo3(name = "_stop_at_row")]
pub(crate) fn stop_at_row(at_row: u64) -> u64 {
    STOP_AT_ROW.store(at_row, Ordering::Relaxed);
    N_ROWS.load(Ordering::Relaxed)
}

/// Computes in a thread, in memory alone. A signal whose handler raises ends loops over rows within
/// [`STOP_ROWS`](shuffle::stop::STOP_ROWS) rows. Nothing goes on when this returns.
pub(crate) fn computed<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    in_thread(py, work, || (), Duration::MAX, |_| Ok(()))
}

/// Like [`computed`], for work that may wait for a store: after a signal, reading finishes in its
/// thread, and its result is dropped there.
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
    in_thread(py, work, stop, PATIENCE, |_| Ok(()))
}

/// Like [`stoppable`], for work whose progress the logger `somafeed.sequences` has: `n_done` items,
/// after 50, 100, 200 milliseconds and so on, and then every ten seconds.
pub(crate) fn logged<T: Send + 'static>(
    py: Python<'_>,
    what: &str,
    n_done: &AtomicU64,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl FnOnce(),
) -> PyResult<T> {
    let (mut n_looks, mut next) = (0, 1);
    in_thread(py, work, stop, PATIENCE, |py| {
        n_looks += 1;
        if n_looks < next {
            return Ok(());
        }
        next = n_looks + n_looks.min(LOOKS_BETWEEN_LINES);
        log(py, &format!("{what}: {} sequences so far", n_done.load(Ordering::Relaxed)))
    })
}

/// Writes a line to the logger `somafeed.sequences`.
pub(crate) fn log(py: Python<'_>, line: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("somafeed.sequences",))?;
    logger.call_method1("info", ("%s", line)).map(drop)
}

/// Does `work` in a thread, and calls `look` again and again meanwhile. After a signal waits for it
/// no longer than `patience`.
fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl FnOnce(),
    patience: Duration,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let rows = Stop::at_row(STOP_AT_ROW.load(Ordering::Relaxed));
    let (done, result) = bounded(1);
    let of_thread = rows.clone();
    let thread = thread::Builder::new().name("somafeed-call".to_owned()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| of_thread.watch(work)));
        N_ROWS.store(of_thread.n_rows(), Ordering::Relaxed);
        // Nobody may wait any more if a signal came.
        let _nobody_waits = done.send(outcome);
    })?;
    loop {
        match py.detach(|| result.recv_timeout(SIGNAL_INTERVAL)) {
            Ok(outcome) => {
                drop(thread.join());
                return outcome.map_err(|panic| panicked(&*panic));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals().and_then(|()| look(py)) {
                    rows.set();
                    stop();
                    // Beyond that, it goes on to its end alone.
                    if py.detach(|| result.recv_timeout(patience)).is_ok() {
                        drop(thread.join());
                    }
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
