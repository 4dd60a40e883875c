//! Threads that each take the next item until none is left, and their buffers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::DataError;

/// Threads to use, and the flag that ends the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads {
    /// Name of the threads; a number follows.
    pub name: &'static str,
    /// Number of threads; 0 for one per processor.
    pub n_threads: usize,
    /// Set by the caller to end the run.
    pub interrupted: Option<&'static AtomicBool>,
}

impl Threads {
    /// Fails if the caller interrupted the run.
    pub fn check_interrupted(&self) -> Result<(), DataError> {
        check_interrupted(self.interrupted)
    }

    /// Does the items `0..n_items`, several at once: `worker` makes what a thread needs, `work`
    /// does an item, and `done` gets each outcome on the calling thread, in the order of
    /// completion. If `done` fails, no further item is begun, and its error is returned.
    pub fn each<W, T: Send>(
        &self,
        n_items: u64,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, u64) -> T + Sync,
        done: &mut dyn FnMut(u64, T) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let take = || {
            let item = next.fetch_add(1, Ordering::Relaxed);
            (item < n_items && !stop.load(Ordering::Relaxed)).then_some(item)
        };
        let mut outcome = Ok(());
        thread::scope(|scope| {
            // Without a buffer, no thread is more than an item ahead of what is reported.
            let (sender, receiver) = sync_channel(0);
            for idx in 0..n_threads(self.n_threads, n_items) {
                let sender: SyncSender<(u64, T)> = sender.clone();
                let (take, worker, work) = (&take, &worker, &work);
                let run = move || {
                    let mut worker = worker();
                    while let Some(item) = take() {
                        if sender.send((item, work(&mut worker, item))).is_err() {
                            return;
                        }
                    }
                };
                let named = thread::Builder::new().name(format!("{}-{idx}", self.name));
                if let Err(source) = named.spawn_scoped(scope, run) {
                    outcome = Err(DataError::Thread { source });
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            drop(sender);
            for (item, result) in receiver {
                if outcome.is_ok() {
                    outcome = done(item, result);
                    stop.store(outcome.is_err(), Ordering::Relaxed);
                }
            }
        });
        outcome
    }
}

/// The number of threads for `n_items`, if `n_threads` were asked for, or 0 for one per processor.
pub fn n_threads(n_threads: usize, n_items: u64) -> usize {
    let all = match n_threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        n_threads => n_threads,
    };
    all.min(n_items as usize)
}

/// Fails if the caller interrupted the run.
pub fn check_interrupted(interrupted: Option<&AtomicBool>) -> Result<(), DataError> {
    if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
        return Err(DataError::Interrupted);
    }
    Ok(())
}

/// The first `len` elements of a buffer, which grows if needed. Fails if memory is short.
pub fn reserved<'a, T: Copy + Default>(
    buffer: &'a mut Vec<T>,
    len: usize,
    what: &'static str,
) -> Result<&'a mut [T], DataError> {
    if let Some(more) = len.checked_sub(buffer.len()) {
        let n_bytes = len.saturating_mul(size_of::<T>());
        buffer.try_reserve_exact(more).map_err(|_| DataError::Memory { what, n_bytes })?;
        buffer.resize(len, T::default());
    }
    Ok(&mut buffer[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once() {
        for n_threads in [1, 3, 50] {
            let threads = Threads { n_threads, ..Threads::default() };
            let mut done = vec![0; 20];
            let outcome = threads.each(
                20,
                || 0,
                |n_done: &mut u64, item| {
                    *n_done += 1;
                    item * 2
                },
                &mut |item, result| {
                    assert_eq!(result, item * 2);
                    done[item as usize] += 1;
                    Ok(())
                },
            );
            outcome.unwrap();
            assert_eq!(done, [1; 20]);
        }
    }

    #[test]
    fn a_failure_ends_the_others() {
        let threads = Threads { n_threads: 2, ..Threads::default() };
        let mut n_done = 0;
        let outcome = threads.each(1_000, || (), |(), item| item, &mut |_, _| {
            n_done += 1;
            Err(DataError::Interrupted)
        });
        assert!(matches!(outcome, Err(DataError::Interrupted)));
        assert_eq!(n_done, 1);
        Threads::default().each(0, || (), |(), _| (), &mut |_, ()| Ok(())).unwrap();
    }
}
