//! Logarithmic axes, with ticks at powers of the base, and at 2 and 5 between a few powers of ten.

use std::ops::Range;

/// Share of an axis that a tick's number needs.
const NEAREST: f64 = 0.1;

/// An axis over positive values, mapped to a range of picture units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogAxis {
    ticks: Vec<f64>,
    least: f64,
    most: f64,
    units: Range<f64>,
}

impl LogAxis {
    /// An axis with at most `most_ticks` ticks at powers of `base`; it covers just the values if no
    /// power lies among them.
    pub(super) fn new(values: &[f64], base: f64, units: Range<f64>, most_ticks: usize) -> Self {
        let positive = || values.iter().copied().filter(|value| *value > 0.0 && value.is_finite());
        let least = positive().fold(f64::INFINITY, f64::min);
        let most = positive().fold(0.0, f64::max);
        let (least, most) = if least <= most { (least, most) } else { (1.0, 1.0) };
        let (least, most) = (least / 1.25, most * 1.25);
        let first = (least.ln() / base.ln()).ceil() as i32;
        let last = (most.ln() / base.ln()).floor() as i32;
        let every = usize::try_from(last - first + 1).unwrap_or(0).div_ceil(most_ticks).max(1);
        let mut ticks: Vec<f64> =
            (first..=last).step_by(every).map(|power| base.powi(power)).collect();
        if base == 10.0 && ticks.len() < 4 {
            let between: Vec<f64> = (first - 1..=last)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)))
                .filter(|tick| (least..=most).contains(tick))
                .collect();
            if between.len() <= most_ticks {
                ticks = between;
            }
        }
        if ticks.is_empty() {
            ticks.push((least * most).sqrt());
        }
        Self { ticks, least, most, units }
    }

    /// An axis with a tick at each value, if they are few and not too close.
    pub(super) fn of_values(values: &[f64], units: Range<f64>, most_ticks: usize) -> Self {
        let mut axis = Self::new(values, 10.0, units, most_ticks);
        let mut ticks: Vec<f64> =
            values.iter().copied().filter(|value| *value > 0.0 && value.is_finite()).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let apart = |pair: &[f64]| {
            let width = axis.units.end - axis.units.start;
            axis.position(pair[1]) - axis.position(pair[0]) > NEAREST * width
        };
        if (1..=most_ticks).contains(&ticks.len()) && ticks.windows(2).all(apart) {
            axis.ticks = ticks;
        }
        axis
    }

    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Position of `value`; a value below the axis is put at its beginning.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = (value.max(self.least) / self.least).ln() / (self.most / self.least).ln();
        self.units.start + (self.units.end - self.units.start) * share.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_powers() {
        let axis = LogAxis::new(&[64.0, 4096.0], 2.0, 0.0..100.0, 10);
        assert_eq!(axis.ticks(), [64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0]);
        assert_eq!(
            LogAxis::new(&[64.0, 4096.0], 2.0, 0.0..100.0, 4).ticks(),
            [64.0, 256.0, 1024.0, 4096.0]
        );
        assert_eq!(LogAxis::new(&[], 10.0, 0.0..100.0, 4).ticks(), [1.0]);
        assert_eq!(LogAxis::new(&[0.0, f64::NAN], 10.0, 0.0..100.0, 4).ticks(), [1.0]);
    }

    #[test]
    fn few_values_have_ticks_of_their_own() {
        let ticks_of = |values: &[f64]| LogAxis::of_values(values, 0.0..100.0, 4).ticks().to_vec();
        assert_eq!(ticks_of(&[1e5, 1e6, 3e5, 1e5]), [1e5, 3e5, 1e6]);
        assert_eq!(ticks_of(&[1e5, 1.1e5, 1e6]), [1e5, 2e5, 5e5, 1e6]);
        assert_eq!(ticks_of(&[]), [1.0]);
    }

    proptest! {
        #[test]
        fn everything_lies_on_the_axis(values in prop::collection::vec(1e-9_f64..1e12, 1..20)) {
            let axis = LogAxis::new(&values, 10.0, 10.0..90.0, 5);
            prop_assert!((1..=5).contains(&axis.ticks().len()), "{:?}", axis);
            for value in values.iter().chain(axis.ticks()).chain(&[0.0]) {
                prop_assert!((9.999..=90.001).contains(&axis.position(*value)), "{value}");
            }
        }
    }
}
