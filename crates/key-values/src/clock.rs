//! How long things take, and how long they may take.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// First pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Measures the time since it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// How long attempts that fail go on: until a time without any success is over.
#[derive(Debug)]
pub(crate) struct Patience {
    allowed: Duration,
    since: Stopwatch,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(allowed: Duration) -> Self {
        Self { allowed, since: Stopwatch::start(), pause: FIRST_PAUSE }
    }

    /// Counts from now on: something succeeded.
    pub(crate) fn renew(&mut self) {
        *self = Self::new(self.allowed);
    }

    /// Pauses before the next attempt. Returns the time without a success if it is over.
    pub(crate) fn pause(&mut self) -> Result<(), Duration> {
        let waited = self.since.elapsed();
        let Some(left) = self.allowed.checked_sub(waited).filter(|left| !left.is_zero()) else {
            return Err(waited);
        };
        sleep(self.pause.min(left));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_and_is_renewed() {
        let mut patience = Patience::new(Duration::ZERO);
        assert!(patience.pause().is_err());
        let mut patience = Patience::new(Duration::from_hours(1));
        patience.pause().unwrap();
        patience.pause().unwrap();
        assert_eq!(patience.pause, FIRST_PAUSE * 4);
        patience.renew();
        assert_eq!(patience.pause, FIRST_PAUSE);
    }
}
