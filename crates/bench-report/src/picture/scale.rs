//! Axes: linear ones from 0 with round ticks, and the choice between those and logarithmic ones.

use std::ops::Range;

use super::log_scale::LogAxis;
use crate::table::decimal;

/// What an axis says and how it goes.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    pub(super) label: String,
    /// The base of a logarithmic axis; others are linear from 0.
    pub(super) log: Option<f64>,
    /// What the axis reaches at least to.
    pub(super) reach: f64,
}

impl Dimension {
    pub(super) fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: None, reach: 0.0 }
    }

    pub(super) fn log(label: impl Into<String>, base: f64) -> Self {
        Self { label: label.into(), log: Some(base), reach: 0.0 }
    }

    pub(super) fn percent(label: impl Into<String>) -> Self {
        // A tick more than the axis's own room above.
        Self { label: label.into(), log: None, reach: 96.0 }
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
        if let Some(base) = dimension.log {
            return Self::Log(LogAxis::new(values, base, from..to, steps as usize));
        }
        let most = values.iter().copied().fold(dimension.reach, f64::max);
        Self::Linear(Axis::new(most, from..to, steps))
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

/// An axis from 0 to a round number, over a range of picture units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    step: f64,
    n_steps: u32,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that holds `largest` with some room above, cut into at most `most_steps` steps of 1, 2, 2.5 or 5 times
    /// a power of ten. `units` may run downward, as y does.
    pub(super) fn new(largest: f64, units: Range<f64>, most_steps: u32) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest * 1.04 } else { 1.0 };
        let rough = largest / f64::from(most_steps);
        let power = 10_f64.powf(rough.log10().floor());
        let factor =
            [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
        let step = factor * power;
        let n_steps = ((largest / step).ceil() as u32).max(1);
        Self { step, n_steps, from: units.start, to: units.end }
    }

    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=self.n_steps).map(|idx| f64::from(idx) * self.step)
    }

    /// Where `value` lies, in picture units.
    pub(super) fn position(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * value / (self.step * f64::from(self.n_steps))
    }

    /// Digits after the point that tell ticks apart.
    pub(super) fn digits(&self) -> usize {
        (0..6)
            .find(|&digits| {
                let scaled = self.step * 10_f64.powi(digits);
                (scaled - scaled.round()).abs() < 1e-6 * scaled && scaled >= 0.5
            })
            .map_or(6, |digits| digits as usize)
    }
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
    }
}
