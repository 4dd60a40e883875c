//! The times of a stand-in for a device: when each copy and each step begins and ends.
//!
//! Everything here is arithmetic on times; no clock is read.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::steps::Steps;

/// The stand-in's name in rows, tables and pictures.
pub(crate) const NAME: &str = "stand-in";

/// Batches that the device has room for: one to compute on, one that is copied meanwhile.
const ROOM: usize = 2;

/// The speed of a stand-in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceSpec {
    /// Milliseconds of the compute on a full batch.
    pub(crate) step_millis: f64,
    /// Cubes of a full batch. A batch with fewer takes less time, in proportion.
    pub(crate) full_batch: u64,
    /// Bytes copied in a second.
    pub(crate) copy_rate: u64,
    /// Whether a copy runs beside the compute; else it waits for the compute before it.
    pub(crate) copies_beside: bool,
}

impl DeviceSpec {
    /// Time of the compute on a batch.
    pub(crate) fn step(&self, n_cubes: u64) -> Duration {
        let share = n_cubes as f64 / self.full_batch.max(1) as f64;
        Duration::from_secs_f64(self.step_millis / 1e3 * share)
    }

    /// Time of a copy.
    pub(crate) fn copy(&self, n_bytes: u64) -> Duration {
        Duration::from_secs_f64(n_bytes as f64 / self.copy_rate.max(1) as f64)
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step_millis, full_batch, copy_rate, copies_beside } = self;
        let order = if *copies_beside { "beside compute" } else { "in order" };
        let rate = ByteSize(*copy_rate).display().si();
        write!(f, "{NAME}:{step_millis}ms for {full_batch}, copies at {rate}/s {order}")
    }
}

/// When a batch is copied, and when the compute on it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub(crate) copied: Duration,
    pub(crate) computed: Duration,
}

/// The work of a device so far.
#[derive(Debug)]
pub(crate) struct Timeline {
    spec: DeviceSpec,
    copied: Duration,
    /// The compute on each batch.
    steps: Steps,
}

impl Timeline {
    pub(crate) fn new(spec: DeviceSpec) -> Self {
        Self { spec, copied: Duration::ZERO, steps: Steps::default() }
    }

    /// The time from which there is room for another batch.
    pub(crate) fn room_at(&self) -> Duration {
        let n_before = (self.steps.len() + 1).saturating_sub(ROOM);
        self.steps.end_of(n_before).unwrap_or_default()
    }

    /// Appends a batch that is handed over at `now`.
    pub(crate) fn submit(&mut self, now: Duration, n_bytes: u64, n_cubes: u64) -> Scheduled {
        let mut begin = now.max(self.copied);
        if !self.spec.copies_beside {
            begin = begin.max(self.idle_at());
        }
        self.copied = begin + self.spec.copy(n_bytes);
        let start = self.copied.max(self.idle_at());
        let computed = start + self.spec.step(n_cubes);
        self.steps.push(start, computed);
        Scheduled { copied: self.copied, computed }
    }

    /// The end of all work so far.
    pub(crate) fn idle_at(&self) -> Duration {
        self.steps.idle_at()
    }

    /// The compute so far.
    pub(crate) fn steps(&self) -> &Steps {
        &self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A step of 60 ms for 6 cubes; 1 byte is copied in 1 ms.
    fn timeline(copies_beside: bool) -> Timeline {
        let spec = DeviceSpec { step_millis: 60.0, full_batch: 6, copy_rate: 1000, copies_beside };
        Timeline::new(spec)
    }

    fn scheduled(copied: u32, computed: u32) -> Scheduled {
        Scheduled { copied: copied * MS, computed: computed * MS }
    }

    #[test]
    fn copies_in_order_wait_for_the_compute_before_them() {
        let mut device = timeline(false);
        assert_eq!(device.submit(5 * MS, 10, 6), scheduled(15, 75));
        assert_eq!(device.submit(20 * MS, 10, 6), scheduled(85, 145));
        // Two cubes of six.
        assert_eq!(device.submit(200 * MS, 10, 2), scheduled(210, 230));
    }

    #[test]
    fn copies_beside_hide_behind_the_compute() {
        let mut device = timeline(true);
        assert_eq!(device.submit(5 * MS, 10, 6), scheduled(15, 75));
        assert_eq!(device.submit(12 * MS, 10, 6), scheduled(25, 135));
        assert_eq!(device.submit(140 * MS, 10, 6), scheduled(150, 210));
    }

    #[test]
    fn there_is_room_for_a_batch_beside_the_one_in_use() {
        let mut device = timeline(true);
        assert_eq!(device.room_at(), Duration::ZERO);
        device.submit(Duration::ZERO, 10, 6);
        assert_eq!(device.room_at(), Duration::ZERO);
        device.submit(Duration::ZERO, 10, 6);
        assert_eq!(device.room_at(), 70 * MS, "the end of the first step");
    }

    #[test]
    fn rows_say_that_it_is_a_stand_in() {
        let spec = DeviceSpec {
            step_millis: 183.0,
            full_batch: 6,
            copy_rate: 25_000_000_000,
            copies_beside: false,
        };
        assert_eq!(spec.to_string(), "stand-in:183ms for 6, copies at 25.0 GB/s in order");
    }
}
