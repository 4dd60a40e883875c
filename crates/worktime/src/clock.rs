//! Reading the clocks of the calling thread.
//!
//! Processor time is reported beside wall time because other work on the machine lengthens it
//! little.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::ThreadTime;

/// Reads the monotonic clock and the processor time of the calling thread.
pub fn now() -> ThreadTime {
    ThreadTime {
        wall: duration(clock_gettime(ClockId::Monotonic)),
        cpu: duration(clock_gettime(ClockId::ThreadCPUTime)),
    }
}

/// Converts a reading; both clocks start in the past, so neither part is negative.
fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn a_thread_that_works_uses_its_processor_and_one_that_sleeps_does_not() {
        let start = now();
        let mut sum = 0_u64;
        while (now() - start).cpu < Duration::from_millis(5) {
            sum = black_box(sum.wrapping_add(1));
        }
        let worked = now() - start;
        assert!(worked.cpu <= worked.wall + Duration::from_millis(5), "{worked:?}");

        let start = now();
        std::thread::sleep(Duration::from_millis(30));
        let slept = now() - start;
        assert!(Duration::from_millis(30) <= slept.wall && slept.cpu < slept.wall, "{slept:?}");
    }
}
