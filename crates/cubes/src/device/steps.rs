//! The steps of a device so far, and the share of time in which one was under way.

use std::time::Duration;

/// Begin and end of each step, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(Duration, Duration)>);

impl Steps {
    /// Appends a step, which begins when the one before has ended, or later.
    pub(crate) fn push(&mut self, begin: Duration, end: Duration) {
        self.0.push((begin, end));
    }

    /// Number of steps.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The end of the first `n_steps` steps, 0 of none; `None` if there are fewer.
    pub(crate) fn end_of(&self, n_steps: usize) -> Option<Duration> {
        match n_steps.checked_sub(1) {
            Some(last) => self.0.get(last).map(|step| step.1),
            None => Some(Duration::ZERO),
        }
    }

    /// The end of all steps.
    pub(crate) fn idle_at(&self) -> Duration {
        self.end_of(self.len()).unwrap_or_default()
    }

    /// Time in which a step was under way between `from` and `to`.
    pub(crate) fn busy(&self, from: Duration, to: Duration) -> Duration {
        let first = self.0.partition_point(|step| step.1 <= from);
        let inside = self.0[first..].iter().take_while(|step| step.0 < to);
        inside.map(|step| step.1.min(to).saturating_sub(step.0.max(from))).sum()
    }

    /// Share of each whole interval between `from` and `to` in which a step was under way.
    pub(crate) fn busy_shares(&self, from: Duration, to: Duration, interval: Duration) -> Vec<f64> {
        shares(from, to, interval, |begin, end| self.busy(begin, end).as_secs_f64())
    }
}

/// Share of each whole interval between `from` and `to`, of the busy seconds between two times.
pub(crate) fn shares(
    from: Duration,
    to: Duration,
    interval: Duration,
    busy_secs: impl Fn(Duration, Duration) -> f64,
) -> Vec<f64> {
    let mut shares = Vec::new();
    let mut begin = from;
    while !interval.is_zero() && begin + interval <= to {
        shares.push(busy_secs(begin, begin + interval) / interval.as_secs_f64());
        begin += interval;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn busy_time_is_that_of_the_steps_inside_the_interval() {
        let mut steps = Steps::default();
        assert_eq!((steps.idle_at(), steps.end_of(0)), (Duration::ZERO, Some(Duration::ZERO)));
        steps.push(10 * MS, 70 * MS);
        steps.push(80 * MS, 140 * MS);
        for (from, to, busy) in
            [(0, 140, 120), (0, 10, 0), (40, 90, 40), (139, 500, 1), (70, 80, 0)]
        {
            assert_eq!(steps.busy(from * MS, to * MS), busy * MS, "{from} {to}");
        }
        let shares = steps.busy_shares(Duration::ZERO, 155 * MS, 40 * MS);
        assert_eq!(shares, [0.75, 0.75, 1.0], "the last 35 ms are not an interval");
        assert_eq!((steps.len(), steps.idle_at()), (2, 140 * MS));
        assert_eq!([1, 2, 3].map(|n| steps.end_of(n)), [Some(70 * MS), Some(140 * MS), None]);
    }
}
