//! The clock by which answers are measured.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

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

    /// Processor time that this process has used since it began.
    pub(super) fn processors() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }
}
