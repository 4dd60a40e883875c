//! The clock by which the stages of an epoch and the codecs of a relayout are timed: kept here, so that no other library looks at one.
//! Processor time is what other work on the machine does not lengthen by much.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::ThreadTime;

/// The moment on this thread: by the monotonic clock, and in the time that processors spent on it.
pub fn now() -> ThreadTime {
    ThreadTime {
        wall: duration(clock_gettime(ClockId::Monotonic)),
        cpu: duration(clock_gettime(ClockId::ThreadCPUTime)),
    }
}

/// Both clocks count from a moment in the past, so that neither part is negative.
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
