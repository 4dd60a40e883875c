//! The rate of a connection, or of all connections together.
//!
//! The state is one moment: when everything that was sent is paid for. A sender moves the moment
//! under a lock and waits for it outside, so senders are served in the order in which they came.
//! Each sends one piece and then asks again: those that wait take turns.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of this time may come at once after a pause, or after a late wake-up.
const MOST_CREDIT: Duration = Duration::from_millis(20);

/// A rate of bytes that senders share.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_sec: NonZeroU64,
    /// When all bytes so far are paid for.
    paid: Mutex<Instant>,
}

impl Pace {
    /// A rate without credit.
    pub(crate) fn new(bytes_per_sec: NonZeroU64) -> Self {
        Self { bytes_per_sec, paid: Mutex::new(Instant::now()) }
    }

    /// The rate.
    pub(crate) fn bytes_per_sec(&self) -> NonZeroU64 {
        self.bytes_per_sec
    }

    /// Returns when `n_bytes` may be sent, and counts them as sent.
    fn due(&self, n_bytes: u64, now: Instant) -> Instant {
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let least = now.checked_sub(MOST_CREDIT).unwrap_or(now);
        *paid = (*paid).max(least) + self.time_of(n_bytes);
        *paid
    }

    /// Waits until `n_bytes` may be sent.
    pub(crate) async fn wait(&self, n_bytes: u64) {
        let now = Instant::now();
        let due = self.due(n_bytes, now);
        if now < due {
            tokio::time::sleep_until(due.into()).await;
        }
    }

    fn time_of(&self, n_bytes: u64) -> Duration {
        let nanos = u128::from(n_bytes) * 1_000_000_000 / u128::from(self.bytes_per_sec.get());
        u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_due_at_the_rate_with_little_credit() {
        let pace = Pace::new(NonZeroU64::new(1_000_000).unwrap());
        let start = *pace.paid.lock().unwrap();
        let at = |millis: u64| start + Duration::from_millis(millis);
        assert_eq!(pace.due(5_000, start), at(5));
        assert_eq!(pace.due(5_000, start), at(10));
        // After a second of silence: 20 ms worth of bytes are due in the past.
        assert_eq!(pace.due(10_000, at(1_010)), at(1_000));
        assert_eq!(pace.due(10_000, at(1_010)), at(1_010));
        assert_eq!(pace.due(10_000, at(1_010)), at(1_020));
    }
}
