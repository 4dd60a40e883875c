//! The clock by which answers are measured.

use std::time::{Duration, Instant};

/// The time since a fixed moment; never goes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }
}
