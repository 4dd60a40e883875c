//! The clock of a measurement.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Time since some moment, and sleep.
pub(crate) trait Clock: Debug + Send + Sync {
    fn now(&self) -> Duration;

    /// Sleeps until `at`; returns at once if that has passed.
    fn sleep_until(&self, at: Duration);
}

/// The system's clock, since it was made.
#[derive(Debug)]
pub(crate) struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, at: Duration) {
        if let Some(left) = at.checked_sub(self.now()) {
            std::thread::sleep(left);
        }
    }
}

/// A clock that a test sets.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct ManualClock {
    now: std::sync::Mutex<Duration>,
    changed: std::sync::Condvar,
}

#[cfg(test)]
impl ManualClock {
    pub(crate) fn set(&self, now: Duration) {
        *self.now.lock().unwrap() = now;
        self.changed.notify_all();
    }
}

#[cfg(test)]
impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep_until(&self, at: Duration) {
        let now = self.now.lock().unwrap();
        drop(self.changed.wait_while(now, |now| *now < at).unwrap());
    }
}
