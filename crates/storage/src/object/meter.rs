//! Measures a link by the requests that it carries anyway.
//!
//! The latency is that of the quicker answers, and the rates are those of the faster moments: the
//! others had to wait for each other, or for a busy processor. All estimates follow a link that
//! becomes slower, only more slowly.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use super::clock::Clock;
use super::late::Late;
use super::pace::Link;

/// Part of the way to a new value: in the direction in which estimates move fast, and in the other.
const FAST: f64 = 0.5;
const SLOW: f64 = 0.02;

/// Shorter bodies say little of the rate: much of one lies in buffers before its first byte is
/// seen.
const LEAST_BODY_BYTES: usize = 1 << 20;

/// The time over which the rate in all is measured.
const WINDOW: Duration = Duration::from_millis(100);

/// If this process uses a larger share of the processors, bytes wait for them, not for the link.
const BUSY_SHARE: f64 = 0.6;

/// Measures requests of all storages of a client.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Clock,
    n_processors: f64,
    measured: Mutex<Measured>,
}

#[derive(Debug, Default)]
struct Measured {
    link: Link,
    has_latency: bool,
    has_connection_rate: bool,
    under_way: usize,
    /// `None` if nothing is under way.
    window: Option<Window>,
    /// Whether as much is requested now as fills the link.
    is_full: bool,
    late: Late,
}

/// The bytes that arrive in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    start: Duration,
    /// Processor time used by its start.
    processors: Duration,
    bytes: u64,
    /// Whether as much was requested as fills the link, all the time.
    is_full: bool,
}

/// A request that is measured, until it is dropped.
#[derive(Debug)]
pub(super) struct Measure<'a> {
    meter: &'a Meter,
    sent: Duration,
    first_byte: Option<Duration>,
}

impl Meter {
    pub(super) fn new() -> Self {
        let n_processors = available_parallelism().map_or(1.0, |n| n.get() as f64);
        Self { clock: Clock::start(), n_processors, measured: Mutex::default() }
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The link as far as it was measured.
    pub(super) fn link(&self) -> Link {
        self.measured().link
    }

    /// Begins to measure a request that is sent now.
    pub(super) fn send(&self) -> Measure<'_> {
        let sent = self.now();
        let mut measured = self.measured();
        measured.under_way += 1;
        measured.late.sent();
        Measure { meter: self, sent, first_byte: None }
    }

    /// The time after which a request for `n_bytes` is late, if known.
    pub(super) fn late_after(&self, n_bytes: u64) -> Option<Duration> {
        self.measured().late.after(n_bytes)
    }

    /// Whether a late request may be repeated, which is counted as done.
    pub(super) fn repeats(&self) -> bool {
        self.measured().late.take()
    }

    /// Notes whether as much is requested now as fills the link.
    pub(super) fn filled(&self, is_full: bool) {
        self.measured().filled(is_full);
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Measure<'_> {
    /// Notes that the answer begins.
    pub(super) fn first_byte(&mut self) {
        let now = self.meter.now();
        self.first_byte = Some(now);
        let latency = now.saturating_sub(self.sent);
        self.meter.measured().add_latency(latency.as_secs_f64());
    }

    /// Notes that bytes arrived.
    pub(super) fn arrived(&self, n_bytes: usize) {
        let now = self.meter.now();
        let n_processors = self.meter.n_processors;
        self.meter
            .measured()
            .add_bytes(n_bytes as u64, now, || (Clock::processors(), n_processors));
    }

    /// Notes that the answer of `n_bytes` is complete.
    pub(super) fn complete(self, n_bytes: usize) {
        let now = self.meter.now();
        let first_byte = self.first_byte.unwrap_or(now);
        let first = first_byte.saturating_sub(self.sent).as_secs_f64();
        let body = now.saturating_sub(first_byte).as_secs_f64();
        let mut measured = self.meter.measured();
        measured.late.answered(first, body, n_bytes);
        // A busy processor sees the first byte late, when others lie behind it already.
        let all = now.saturating_sub(self.sent).as_secs_f64();
        let latency = measured.link.latency_secs;
        measured.add_body(body.max(all - latency), n_bytes);
    }
}

impl Drop for Measure<'_> {
    fn drop(&mut self) {
        let mut measured = self.meter.measured();
        measured.under_way -= 1;
        if measured.under_way == 0 {
            (measured.window, measured.is_full) = (None, false);
        }
    }
}

impl Measured {
    fn filled(&mut self, is_full: bool) {
        self.is_full = is_full;
        if let Some(window) = &mut self.window {
            window.is_full &= is_full;
        }
    }

    fn add_latency(&mut self, secs: f64) {
        let latency = &mut self.link.latency_secs;
        let part = if secs < *latency { FAST } else { SLOW };
        approach(latency, secs, if self.has_latency { part } else { 1.0 });
        self.has_latency = true;
    }

    fn add_body(&mut self, secs: f64, n_bytes: usize) {
        if n_bytes < LEAST_BODY_BYTES || secs <= 0.0 {
            return;
        }
        // The beginning of a body often comes at once; no connection is faster than all of them.
        let of_body = (n_bytes as f64 / secs).min(self.link.total_rate);
        let rate = &mut self.link.connection_rate;
        let part = if of_body > *rate { FAST } else { SLOW };
        approach(rate, of_body, if self.has_connection_rate { part } else { 1.0 });
        self.has_connection_rate = true;
    }

    /// Counts bytes. At the end of a window its rate is compared with that known: a higher one
    /// counts always, a lower one if it was the link that bytes waited for. `processors` returns
    /// the processor time used so far, and the number of processors.
    fn add_bytes(
        &mut self,
        n_bytes: u64,
        now: Duration,
        processors: impl FnOnce() -> (Duration, f64),
    ) {
        let Some(window) = &mut self.window else {
            let (processors, _) = processors();
            let is_full = self.is_full;
            self.window = Some(Window { start: now, processors, bytes: n_bytes, is_full });
            return;
        };
        window.bytes += n_bytes;
        let secs = now.saturating_sub(window.start).as_secs_f64();
        if secs < WINDOW.as_secs_f64() {
            return;
        }
        let (used, n_processors) = processors();
        let used_secs = used.saturating_sub(window.processors).as_secs_f64();
        let is_busy = used_secs > BUSY_SHARE * n_processors * secs;
        let rate = window.bytes as f64 / secs;
        let known = &mut self.link.total_rate;
        if *known < rate {
            approach(known, rate, FAST);
        } else if window.is_full && !is_busy {
            // There are fewer windows than requests, so each counts for more.
            approach(known, rate, FAST / 2.0);
        }
        let is_full = self.is_full;
        self.window = Some(Window { start: now, processors: used, bytes: 0, is_full });
    }
}

/// Moves an estimate a part of the way to a new value.
fn approach(estimate: &mut f64, value: f64, part: f64) {
    *estimate += part * (value - *estimate);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.05
    }

    #[test]
    fn the_latency_is_that_of_the_quicker_answers() {
        let mut measured = Measured::default();
        measured.add_latency(0.2);
        assert!(near(measured.link.latency_secs, 0.2));
        for idx in 0..200 {
            measured.add_latency(if idx % 4 == 0 { 0.08 } else { 0.11 });
        }
        assert!((0.079..0.1).contains(&measured.link.latency_secs), "{:?}", measured.link);
        // A link that becomes slower is followed.
        (0..300).for_each(|_| measured.add_latency(0.5));
        assert!(near(measured.link.latency_secs, 0.5), "{:?}", measured.link);
    }

    #[test]
    fn the_rate_of_a_connection_is_that_of_long_bodies() {
        let mut measured = Measured::default();
        measured.add_body(1e-6, LEAST_BODY_BYTES - 1);
        assert_eq!(measured.link, Link::default());
        for _ in 0..20 {
            measured.add_body(0.1, 9_000_000);
            measured.add_body(0.3, 9_000_000);
        }
        assert!((80e6..90.1e6).contains(&measured.link.connection_rate), "{:?}", measured.link);
        (0..20).for_each(|_| measured.add_body(1e-4, 9_000_000));
        assert!(near(measured.link.connection_rate, 1e9), "{:?}", measured.link);
    }

    /// Sends `rate` bytes a second for two seconds, in which one of two processors works for a
    /// share of the time.
    fn send(measured: &mut Measured, rate: u64, start: u64, (is_full, share): (bool, f64)) {
        for millis in start..start + 2000 {
            measured.filled(is_full);
            let now = Duration::from_millis(millis);
            measured.add_bytes(rate / 1000, now, || (now.mul_f64(share), 2.0));
        }
    }

    #[test]
    fn the_rate_in_all_is_that_of_full_windows() {
        let mut measured = Measured::default();
        send(&mut measured, 1_000_000_000, 0, (false, 0.5));
        assert!(near(measured.link.total_rate, 1e9), "{:?}", measured.link);
        // Less was asked for: that says nothing about the link.
        send(&mut measured, 10_000_000, 2000, (false, 0.5));
        // The processors were too slow, so this does not change the rate either.
        send(&mut measured, 10_000_000, 4000, (true, 1.9));
        assert!(near(measured.link.total_rate, 1e9), "{:?}", measured.link);
        send(&mut measured, 100_000_000, 6000, (true, 0.5));
        assert!(measured.link.total_rate < 120e6, "{:?}", measured.link);
    }

    #[test]
    fn a_request_is_under_way_until_it_is_dropped() {
        let meter = Meter::new();
        let mut one = meter.send();
        let other = meter.send();
        one.first_byte();
        one.arrived(10);
        assert_eq!(meter.measured().under_way, 2);
        one.complete(10);
        assert!(meter.measured().window.is_some());
        drop(other);
        let measured = meter.measured();
        assert_eq!((measured.under_way, measured.window), (0, None));
    }

    proptest! {
        #[test]
        fn estimates_stay_between_the_least_and_the_most(
            answers in prop::collection::vec((1e-4..10.0_f64, 1e-3..10.0_f64, LEAST_BODY_BYTES..9_000_000), 1..200),
        ) {
            let mut measured = Measured::default();
            for (latency, secs, n_bytes) in &answers {
                measured.add_latency(*latency);
                measured.add_body(*secs, *n_bytes);
            }
            let bounds = |values: Vec<f64>| {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(0.0, f64::max);
                least * 0.999..=most * 1.001
            };
            let latencies = bounds(answers.iter().map(|answer| answer.0).collect());
            let rates = bounds(answers.iter().map(|(_, secs, n)| *n as f64 / secs).collect());
            prop_assert!(latencies.contains(&measured.link.latency_secs));
            prop_assert!(rates.contains(&measured.link.connection_rate));
        }
    }
}
