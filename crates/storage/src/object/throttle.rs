//! Limits requests to a number in a second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// This part of a second's requests may be sent at once after a pause.
const BURSTS_A_SECOND: u32 = 10;

/// Spreads requests over time: in any window at most the rate times its length, and one burst.
#[derive(Debug)]
pub(super) struct Throttle {
    /// Time between two requests.
    interval: Duration,
    burst: Duration,
    /// When the next request is due if none may come early.
    due: Mutex<Duration>,
}

impl Throttle {
    pub(super) fn new(max_requests_per_sec: u32) -> Self {
        let interval = Duration::from_secs(1) / max_requests_per_sec.max(1);
        let burst = (Duration::from_secs(1) / BURSTS_A_SECOND).max(interval);
        Self { interval, burst, due: Mutex::default() }
    }

    /// Takes a turn: how long after `now` the request may be sent.
    pub(super) fn turn(&self, now: Duration) -> Duration {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*due).max(now);
        *due = turn + self.interval;
        turn.saturating_sub(now + self.burst)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_window_has_more_than_the_rate_and_a_burst(
            rate in 1_u32..8000, pauses in prop::collection::vec(0_u64..5_000_000, 1..300),
        ) {
            let throttle = Throttle::new(rate);
            let mut now = Duration::ZERO;
            let mut sent = Vec::new();
            for pause in pauses {
                now += Duration::from_nanos(pause);
                sent.push(now + throttle.turn(now));
            }
            let allowed = |window: Duration| {
                let burst = Duration::from_millis(100);
                ((window + burst).as_secs_f64() * f64::from(rate)).ceil() + 2.0
            };
            for (idx, first) in sent.iter().enumerate() {
                for (more, last) in sent[idx..].iter().enumerate() {
                    let window = last.saturating_sub(*first);
                    prop_assert!((more + 1) as f64 <= allowed(window), "{more} in {window:?}");
                }
            }
        }

        #[test]
        fn requests_at_the_rate_never_wait(rate in 1_u32..8000, n in 1_u32..200) {
            let throttle = Throttle::new(rate);
            let interval = Duration::from_secs(1) / rate;
            for idx in 0..n {
                prop_assert_eq!(throttle.turn(interval * idx), Duration::ZERO);
            }
        }
    }
}
