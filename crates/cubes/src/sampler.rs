//! Samples that a thread takes at an interval.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use crate::device::Clock;

/// Time from one sample to the next: that of htc's monitor.
pub(crate) const INTERVAL: Duration = Duration::from_millis(150);

/// Takes samples until it is dropped.
#[derive(Debug)]
pub(crate) struct Sampler<T> {
    taken: Arc<Mutex<Taken<T>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The samples so far, each with the time at which it was taken.
#[derive(Debug)]
struct Taken<T> {
    samples: Vec<(Duration, T)>,
    failure: Option<String>,
}

impl<T: Send + 'static> Sampler<T> {
    /// Starts a thread called `name`, which calls `read` after each `interval` until that fails.
    pub(crate) fn start(
        name: &str,
        clock: Arc<dyn Clock>,
        interval: Duration,
        mut read: impl FnMut() -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let taken = Arc::new(Mutex::new(Taken { samples: Vec::new(), failure: None }));
        let of_thread = Arc::clone(&taken);
        let (stop, stopped) = channel();
        let take = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let sample = read();
                let mut taken = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                match sample {
                    Ok(sample) => taken.samples.push((clock.now(), sample)),
                    Err(error) => {
                        taken.failure = Some(format!("{error:#}"));
                        return;
                    }
                }
            }
        };
        let thread = Builder::new().name(name.to_owned()).spawn(take);
        let thread = thread.with_context(|| format!("cannot start the thread {name}"))?;
        Ok(Self { taken, stop: Some(stop), thread: Some(thread) })
    }

    /// Calls `look` with all samples so far. Fails if a sample could not be taken.
    pub(crate) fn samples<R>(&self, look: impl FnOnce(&[(Duration, T)]) -> R) -> anyhow::Result<R> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match &taken.failure {
            Some(failure) => Err(anyhow!("{failure}")),
            None => Ok(look(&taken.samples)),
        }
    }
}

impl<T> Drop for Sampler<T> {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::SystemClock;

    #[test]
    fn samples_are_taken_in_order_until_one_fails() {
        let mut left = vec![3, 2, 1];
        let (failing, failed) = channel();
        let read = move || {
            let sample = left.pop();
            if sample.is_none() {
                failing.send(()).unwrap();
            }
            sample.context("there are no more")
        };
        let clock = Arc::new(SystemClock::default());
        let sampler = Sampler::start("samples", clock, Duration::from_millis(1), read).unwrap();
        failed.recv().unwrap();
        // The thread ends after it has noted the failure.
        failed.recv().unwrap_err();
        let error = sampler.samples(<[_]>::len).unwrap_err();
        assert_eq!(error.to_string(), "there are no more");
        let taken = sampler.taken.lock().unwrap();
        let samples: Vec<i32> = taken.samples.iter().map(|(_, sample)| *sample).collect();
        assert_eq!(samples, [1, 2, 3]);
        assert!(taken.samples.is_sorted_by_key(|(at, _)| *at));
    }
}
