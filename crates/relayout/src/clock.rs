//! The clock by which codecs are compared: processor time, which other work on the machine does not lengthen by much.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use soma_io::ThreadTime;

/// The moment on this thread.
pub(crate) fn now() -> ThreadTime {
    ThreadTime {
        wall: duration(clock_gettime(ClockId::Monotonic)),
        cpu: duration(clock_gettime(ClockId::ThreadCPUTime)),
    }
}

/// Both clocks count from a moment in the past, so that neither part is negative.
fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
