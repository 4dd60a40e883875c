//! A token bucket: bytes flow in at a rate, up to a burst, and whoever reads takes them out.
//!
//! The state is one moment: when the bucket will have paid for all that was taken. A taker advances
//! the moment under a lock and waits for it outside, so takers are served in the order in which
//! they came, and none starves.
//!
//! The moment is counted in *units*: a nanosecond has as many units as the rate has bytes per
//! second, and a byte has 10^9. These are whole numbers, so no rounding adds up however many bytes
//! pass.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock::Clock;

const UNITS_A_BYTE: u128 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct TokenBucket {
    bytes_per_second: NonZeroU64,
    burst_bytes: u64,
    clock: Arc<dyn Clock>,
    /// When all that was taken is paid for, in units, plus the units of a burst, so that a full
    /// bucket is not a negative number.
    paid: Mutex<u128>,
}

impl TokenBucket {
    /// A full bucket that holds `burst_bytes`.
    pub(super) fn new(
        bytes_per_second: NonZeroU64,
        burst_bytes: u64,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { bytes_per_second, burst_bytes: burst_bytes.max(1), clock, paid: Mutex::new(0) }
    }

    pub(super) fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second.get()
    }

    pub(super) fn burst_bytes(&self) -> u64 {
        self.burst_bytes
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Returns when `bytes` may be read; for more than a burst, when the last of them may. Bursts
    /// of several takers alternate.
    pub(super) fn take(&self, bytes: u64) {
        let mut left = bytes;
        while 0 < left {
            let part = left.min(self.burst_bytes);
            self.take_part(part);
            left -= part;
        }
    }

    fn take_part(&self, bytes: u64) {
        let burst = units(self.burst_bytes);
        let due = {
            let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
            // The clock is read under the lock, so that takes are in the order of their times.
            let now = self.clock.now().as_nanos() * u128::from(self.bytes_per_second.get());
            // A bucket that was full by then has overflowed.
            *paid = (*paid).max(now) + units(bytes);
            *paid
        };
        let nanos = due.saturating_sub(burst).div_ceil(u128::from(self.bytes_per_second.get()));
        self.clock.wait_until(nanos_duration(nanos));
    }
}

fn units(bytes: u64) -> u128 {
    u128::from(bytes) * UNITS_A_BYTE
}

fn nanos_duration(nanos: u128) -> Duration {
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
}
