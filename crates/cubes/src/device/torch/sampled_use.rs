//! The use of a device from samples of it.
//!
//! A sample is the share of the time before it in which the device computed. It holds since the
//! sample before it, and the last one holds on.

use std::time::Duration;

use crate::device::steps::shares;

/// What was read before the first sample, then each sample with its time. Times ascend.
type SampledUse<'a> = (f64, &'a [(Duration, f64)]);

/// Seconds of compute between `from` and `to`.
pub(super) fn busy_secs((before, samples): SampledUse<'_>, from: Duration, to: Duration) -> f64 {
    let mut begin = Duration::ZERO;
    let mut busy = 0.0;
    let last = (Duration::MAX, samples.last().map_or(before, |sample| sample.1));
    for (end, share) in samples.iter().chain([&last]) {
        let inside = to.min(*end).saturating_sub(from.max(begin));
        busy += inside.as_secs_f64() * share;
        begin = *end;
    }
    busy
}

/// Share of each whole interval between two times in which the device computed.
pub(super) fn busy_shares(
    sampled: SampledUse<'_>,
    (from, to): (Duration, Duration),
    interval: Duration,
) -> Vec<f64> {
    shares(from, to, interval, |begin, end| busy_secs(sampled, begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_sample_holds_since_the_one_before() {
        let samples = [(2 * SECOND, 1.0), (4 * SECOND, 0.5), (5 * SECOND, 0.0), (6 * SECOND, 0.25)];
        let busy = |from: u32, to: u32| busy_secs((0.0, &samples), from * SECOND, to * SECOND);
        assert_eq!(busy(0, 2), 2.0);
        assert_eq!(busy(1, 3), 1.5);
        assert_eq!(busy(0, 6), 2.0 + 1.0 + 0.25);
        assert_eq!(busy(5, 10), 0.25 * 5.0, "the last one holds on");
        assert_eq!(busy(3, 3), 0.0);
        let shares = busy_shares((0.0, &samples), (SECOND, 6 * SECOND + SECOND / 2), 2 * SECOND);
        assert_eq!(shares, [0.75, 0.25], "the last 1.5 s are not an interval");
    }

    #[test]
    fn without_a_sample_the_first_reading_holds() {
        assert_eq!(busy_secs((0.5, &[]), SECOND, 3 * SECOND), 1.0);
        let late = [(2 * SECOND, 1.0)];
        assert_eq!(busy_secs((0.0, &late), SECOND, 2 * SECOND), 1.0);
    }
}
