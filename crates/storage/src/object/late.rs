//! When an answer is late, by the answers before it, and how often a late one is asked for again.

use std::time::Duration;

/// Answers before which none is late.
const LEAST_ANSWERS: f64 = 32.0;

/// Answers after which earlier ones count half.
const KEPT_ANSWERS: f64 = 1000.0;

/// An answer is late after this many times the median, or twice the time within which nine of ten
/// come, whichever is more.
const MEDIANS: f64 = 4.0;
const NINTHS: f64 = 2.0;

/// The least time after which an answer is late; a busy machine wakes a thread that late.
const LEAST_SECS: f64 = 0.02;

/// Repetitions for each request.
const REPEATED_SHARE: f64 = 0.05;

/// The most repetitions at once: if many answers are late together, so will be their repetitions.
const MOST_AT_ONCE: f64 = 8.0;

/// Classes of times, each a fifth longer than the one before, from 10 microseconds on.
const N_CLASSES: usize = 96;
const LEAST_CLASS_SECS: f64 = 1e-5;
const CLASS_RATIO: f64 = 1.2;

/// How long answers took, the latest ones counting most.
#[derive(Debug)]
struct Times {
    counts: [f64; N_CLASSES],
    n: f64,
}

impl Default for Times {
    fn default() -> Self {
        Self { counts: [0.0; N_CLASSES], n: 0.0 }
    }
}

impl Times {
    fn add(&mut self, secs: f64) {
        if self.n >= KEPT_ANSWERS {
            self.counts.iter_mut().for_each(|count| *count /= 2.0);
            self.n /= 2.0;
        }
        let class = ((secs / LEAST_CLASS_SECS).max(1.0).ln() / CLASS_RATIO.ln()) as usize;
        self.counts[class.min(N_CLASSES - 1)] += 1.0;
        self.n += 1.0;
    }

    /// The time within which this share of the answers came, rounded up to its class's end.
    fn within(&self, share: f64) -> f64 {
        let mut left = share * self.n;
        let class = self.counts.iter().position(|count| {
            left -= count;
            left <= 0.0
        });
        LEAST_CLASS_SECS * CLASS_RATIO.powi(class.unwrap_or(N_CLASSES - 1) as i32 + 1)
    }

    /// The time after which an answer is late; `None` before there are enough.
    fn late_secs(&self) -> Option<f64> {
        (self.n >= LEAST_ANSWERS)
            .then(|| (MEDIANS * self.within(0.5)).max(NINTHS * self.within(0.9)))
    }
}

/// Judges which requests are late, and which of them are repeated.
#[derive(Debug)]
pub(super) struct Late {
    first_bytes: Times,
    /// Seconds for each MiB of a body.
    bodies: Times,
    allowed: f64,
}

impl Default for Late {
    fn default() -> Self {
        Self { first_bytes: Times::default(), bodies: Times::default(), allowed: 1.0 }
    }
}

impl Late {
    /// Notes an answer: its first byte after `first_secs`, all `n_bytes` after `body_secs` more.
    pub(super) fn answered(&mut self, first_secs: f64, body_secs: f64, n_bytes: usize) {
        self.first_bytes.add(first_secs);
        // The time of a short body is mostly latency.
        if n_bytes >= 64 << 10 {
            self.bodies.add(body_secs / mebibytes(n_bytes as u64));
        }
    }

    /// Notes a request, which allows a part of a repetition.
    pub(super) fn sent(&mut self) {
        self.allowed = (self.allowed + REPEATED_SHARE).min(MOST_AT_ONCE);
    }

    /// The time after which a request for `n_bytes` is late; `None` if too little is known.
    pub(super) fn after(&self, n_bytes: u64) -> Option<Duration> {
        let first = self.first_bytes.late_secs()?;
        let body = match self.bodies.late_secs() {
            Some(secs) => secs * mebibytes(n_bytes),
            None if n_bytes < 64 << 10 => 0.0,
            None => return None,
        };
        Duration::try_from_secs_f64((first + body).max(LEAST_SECS)).ok()
    }

    /// Takes a repetition, if one is allowed.
    pub(super) fn take(&mut self) -> bool {
        let is_allowed = self.allowed >= 1.0;
        self.allowed -= f64::from(u8::from(is_allowed));
        is_allowed
    }
}

fn mebibytes(n_bytes: u64) -> f64 {
    n_bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn late(times: &[f64]) -> Late {
        let mut late = Late::default();
        for secs in times {
            late.answered(*secs, 0.0, 0);
        }
        late
    }

    #[test]
    fn late_is_far_beyond_the_usual() {
        assert_eq!(late(&[0.03; 31]).after(10), None);
        let after = late(&[0.03; 40]).after(10).unwrap().as_secs_f64();
        assert!((0.12..0.15).contains(&after), "{after}");
        // A few that are late do not change that; many do.
        let mut times = [0.03; 40];
        times[3] = 2.0;
        assert!((late(&times).after(10).unwrap().as_secs_f64() - after).abs() < 1e-9);
        times[10..20].fill(2.0);
        assert!(late(&times).after(10).unwrap() > Duration::from_secs(4));
        assert_eq!(late(&[1e-4; 40]).after(10).unwrap(), Duration::from_secs_f64(LEAST_SECS));
    }

    #[test]
    fn a_body_may_take_longer_the_longer_it_is() {
        let mut late = late(&[0.03; 40]);
        assert_eq!(late.after(1 << 20), None);
        for _ in 0..40 {
            late.answered(0.03, 0.01, 1 << 20);
        }
        let [short, long] = [1, 8 << 20].map(|n_bytes| late.after(n_bytes).unwrap().as_secs_f64());
        assert!((0.32..0.40).contains(&(long - short)), "{short} {long}");
    }

    proptest! {
        #[test]
        fn few_are_repeated(sent in prop::collection::vec(any::<bool>(), 0..600)) {
            let mut late = Late::default();
            let (mut n_sent, mut n_repeated) = (0_u32, 0_u32);
            for is_late in sent {
                late.sent();
                n_sent += 1;
                n_repeated += u32::from(is_late && late.take());
                prop_assert!(f64::from(n_repeated) <= 1.0 + REPEATED_SHARE * f64::from(n_sent) + 1e-6);
            }
            let at_once = std::iter::repeat_with(|| late.take()).take_while(|taken| *taken).count();
            prop_assert!(at_once as f64 <= MOST_AT_ONCE);
        }

        #[test]
        fn shares_of_times_ascend(times in prop::collection::vec(1e-6..50.0_f64, 1..400)) {
            let mut all = Times::default();
            for secs in &times {
                all.add(*secs);
            }
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            for share in [0.1, 0.5, 0.9] {
                let exact = sorted[((share * times.len() as f64).ceil() as usize).max(1) - 1];
                let found = all.within(share);
                prop_assert!(found >= exact * 0.999, "{share}: {found} {exact}");
                prop_assert!(found <= exact.max(LEAST_CLASS_SECS) * 1.45, "{share}: {found} {exact}");
            }
        }
    }
}
