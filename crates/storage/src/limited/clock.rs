//! The clock that a limit goes by: the system's, or one that tests drive.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

/// A clock, and waiting for it.
pub(super) trait Clock: Debug + Send + Sync {
    /// The time since a fixed moment in the past; never goes back.
    fn now(&self) -> Duration;

    /// Returns when it is `time`, or somewhat later.
    fn wait_until(&self, time: Duration);
}

/// The system's monotonic clock.
#[derive(Debug)]
pub(super) struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait_until(&self, time: Duration) {
        while let Some(left) = time.checked_sub(self.now()).filter(|left| !left.is_zero()) {
            thread::sleep(left);
        }
    }
}
