//! Axes: linear ones with round ticks, and the choice between linear and logarithmic ones.

use std::ops::Range;

use super::log_scale::LogAxis;
use crate::table::decimal;

/// Title, kind and range of an axis.
#[derive(Clone, Debug)]
pub struct Dimension {
    pub(super) label: String,
    /// Values at which a line is drawn, with its words.
    pub(super) lines: Vec<(f64, &'static str)>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    FromZero,
    /// Linear, not starting at 0.
    AroundValues,
    Percent,
    Log {
        base: f64,
    },
    /// Logarithmic, with a tick at each of a few values.
    LogOfValues,
}

impl Dimension {
    fn new(label: impl Into<String>, kind: Kind) -> Self {
        Self { label: label.into(), lines: Vec::new(), kind }
    }

    /// An axis from 0 on.
    pub fn linear(label: impl Into<String>) -> Self {
        Self::new(label, Kind::FromZero)
    }

    /// An axis somewhat wider than its values, with lines at some of them.
    pub(super) fn around(label: impl Into<String>, lines: Vec<(f64, &'static str)>) -> Self {
        Self { lines, ..Self::new(label, Kind::AroundValues) }
    }

    /// An axis from 0 to 100 percent.
    pub fn percent(label: impl Into<String>) -> Self {
        Self::new(label, Kind::Percent)
    }

    /// A logarithmic axis with ticks at powers of `base`.
    pub fn log(label: impl Into<String>, base: f64) -> Self {
        Self::new(label, Kind::Log { base })
    }

    /// A logarithmic axis with a tick at each of a few values.
    pub fn log_of_values(label: impl Into<String>) -> Self {
        Self::new(label, Kind::LogOfValues)
    }
}

/// An axis of either kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scale {
    Linear(Axis),
    Log(LogAxis),
}

impl Scale {
    pub(super) fn new(
        dimension: &Dimension,
        values: &[f64],
        from: f64,
        to: f64,
        steps: u32,
    ) -> Self {
        let units = from..to;
        let [least, most] =
            [f64::min, f64::max].map(|either| values.iter().copied().fold(f64::NAN, either));
        match dimension.kind {
            Kind::FromZero => Self::Linear(Axis::new(most, units, steps)),
            Kind::AroundValues => Self::Linear(Axis::around(least..most, units, steps)),
            Kind::Percent => Self::Linear(Axis::percent(units)),
            Kind::Log { base } => Self::Log(LogAxis::new(values, base, units, steps as usize)),
            Kind::LogOfValues => Self::Log(LogAxis::of_values(values, units, steps as usize)),
        }
    }

    pub(super) fn position(&self, value: f64) -> f64 {
        match self {
            Self::Linear(axis) => axis.position(value),
            Self::Log(axis) => axis.position(value),
        }
    }

    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(axis) => {
                axis.ticks().map(|tick| (tick, decimal(tick, axis.digits()))).collect()
            }
            Self::Log(axis) => axis
                .ticks()
                .iter()
                .map(|&tick| {
                    let digits = if tick >= 1.0 { 0 } else { -tick.log10().floor() as usize };
                    (tick, decimal(tick, digits))
                })
                .collect(),
        }
    }
}

/// A linear axis between round numbers, mapped to a range of picture units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    first: f64,
    step: f64,
    n_steps: u32,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from 0 to somewhat above `largest`, with at most `most_steps` steps. `units` may run
    /// downward, like for y.
    pub(crate) fn new(largest: f64, units: Range<f64>, most_steps: u32) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest * 1.04 } else { 1.0 };
        let step = round_step(largest / f64::from(most_steps));
        let n_steps = ((largest / step).ceil() as u32).max(1);
        Self { first: 0.0, step, n_steps, from: units.start, to: units.end }
    }

    /// An axis somewhat wider than `values`.
    fn around(values: Range<f64>, units: Range<f64>, most_steps: u32) -> Self {
        let Range { start, end } = values;
        if !(start.is_finite() && end.is_finite()) {
            return Self::new(1.0, units, most_steps);
        }
        let room = (0.04 * (end - start)).max(1e-3 * end.abs()).max(1e-9);
        let (start, end) = (start - room, end + room);
        // One step less, because the first tick is rounded down.
        let step = round_step((end - start) / f64::from(most_steps.max(2) - 1));
        let first = (start / step).floor() * step;
        let n_steps = (((end - first) / step).ceil() as u32).max(1);
        Self { first, step, n_steps, from: units.start, to: units.end }
    }

    fn percent(units: Range<f64>) -> Self {
        Self { first: 0.0, step: 20.0, n_steps: 5, from: units.start, to: units.end }
    }

    pub(crate) fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=self.n_steps).map(|idx| self.first + f64::from(idx) * self.step)
    }

    /// Position of `value`, in picture units.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let share = (value - self.first) / (self.step * f64::from(self.n_steps));
        self.from + (self.to - self.from) * share
    }

    /// Decimals that distinguish the ticks.
    pub(crate) fn digits(&self) -> usize {
        (0..6)
            .find(|&digits| {
                let scaled = self.step * 10_f64.powi(digits);
                (scaled - scaled.round()).abs() < 1e-6 * scaled && scaled >= 0.5
            })
            .map_or(6, |digits| digits as usize)
    }
}

/// The smallest of 1, 2, 2.5 or 5 times a power of ten that is at least `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let factor =
        [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    factor * power
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::decimal;

    #[track_caller]
    fn check(largest: f64, expected: &[&str]) {
        let axis = Axis::new(largest, 0.0..100.0, 6);
        let ticks: Vec<String> = axis.ticks().map(|tick| decimal(tick, axis.digits())).collect();
        assert_eq!(ticks, expected);
    }

    #[test]
    fn ticks_are_round() {
        check(0.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        check(11_770.0, &["0", "2,500", "5,000", "7,500", "10,000", "12,500"]);
        check(62_000.0, &["0", "20,000", "40,000", "60,000", "80,000"]);
        check(1.27, &["0.00", "0.25", "0.50", "0.75", "1.00", "1.25", "1.50"]);
        check(f64::NAN, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let percents: Vec<f64> = Axis::percent(0.0..1.0).ticks().collect();
        assert_eq!(percents, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let around: Vec<f64> = Axis::around(2.4..2.5, 0.0..1.0, 8).ticks().collect();
        assert_eq!(around.len(), 8, "{around:?}");
        assert!(around[0] < 2.4 && 2.5 < around[7] && around[7] < 2.53, "{around:?}");
    }

    proptest! {
        #[test]
        fn everything_lies_on_the_axis(largest in 1e-6_f64..1e12, share in 0.0_f64..=1.0) {
            let axis = Axis::new(largest, 500.0..100.0, 6);
            let at = axis.position(largest * share);
            prop_assert!((100.0..=500.0).contains(&at), "{at}");
            prop_assert!(axis.ticks().count() <= 7);
            let labels: std::collections::BTreeSet<String> =
                axis.ticks().map(|tick| decimal(tick, axis.digits())).collect();
            prop_assert_eq!(labels.len(), axis.ticks().count());
        }

        #[test]
        fn values_lie_on_an_axis_around_them(least in -1e3_f64..1e6, span in 0.0_f64..1e6, share in 0.0_f64..=1.0) {
            let axis = Axis::around(least..least + span, 100.0..500.0, 8);
            let at = axis.position(least + span * share);
            prop_assert!((100.0..=500.0).contains(&at), "{at} {axis:?}");
            prop_assert!((2..=9).contains(&axis.ticks().count()), "{axis:?}");
        }
    }
}
