//! Order statistics of a few numbers, shared by table, picture and page.

use serde::Serialize;

/// Median and spread of some measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Middle value, or mean of the two middle values.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Median of the distances to the median; 0 for a single measurement.
    pub median_absolute_deviation: f64,
    /// Number of measurements.
    pub n: usize,
}

impl Spread {
    /// The spread of `values`; `None` if there are none. NaN is left out.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = percentile(&sorted, 50.0)?;
        let mut distances: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        let median_absolute_deviation = percentile(&distances, 50.0)?;
        Some(Self { median, min, max, median_absolute_deviation, n: sorted.len() })
    }

    /// `4.00 (3.50 to 5.25)`: the median, and the range.
    pub fn format(&self, digits: usize) -> String {
        self.format_by(|value| format!("{value:.digits$}"))
    }

    /// The same, with numbers as `number` writes them.
    pub fn format_by(&self, number: impl Fn(f64) -> String) -> String {
        let [median, min, max] = [self.median, self.min, self.max].map(number);
        format!("{median} ({min} to {max})")
    }

    /// The same measurements multiplied by `factor`, which must not be negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            min: self.min * factor,
            max: self.max * factor,
            median_absolute_deviation: self.median_absolute_deviation * factor,
            n: self.n,
        }
    }
}

/// The percentile of `sorted` values, interpolated linearly between the two neighbors of position
/// `percent / 100 * (n - 1)`, like numpy's `linear`.
///
/// `None` if there are no values; `percent` is clamped to 0..=100. `sorted` must ascend.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    let below = position.floor() as usize;
    let share = position - below as f64;
    let low = sorted[below.min(last)];
    let high = sorted[(below + 1).min(last)];
    // The difference of two equal infinities would be NaN.
    let step = if share > 0.0 && low < high { (high - low) * share } else { 0.0 };
    Some(low + step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Number of `values` that are at most `bound`, up to rounding.
    fn n_up_to(values: &[f64], bound: f64) -> usize {
        values.iter().filter(|value| **value <= bound + 1e-9 * bound.abs()).count()
    }

    /// The k-th smallest, by counting for each value how many are smaller.
    fn kth(values: &[f64], k: usize) -> f64 {
        let is_kth = |value: &&f64| {
            let smaller = values.iter().filter(|other| *other < *value).count();
            let equal = values.iter().filter(|other| *other == *value).count();
            (smaller..smaller + equal).contains(&k)
        };
        *values.iter().find(is_kth).unwrap()
    }

    fn naive_median(values: &[f64]) -> f64 {
        f64::midpoint(kth(values, (values.len() - 1) / 2), kth(values, values.len() / 2))
    }

    #[test]
    fn percentiles_lie_between_neighbors() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(percentile(&sorted, 50.0), Some(3.0));
        assert_eq!(percentile(&sorted, 75.0), Some(5.0));
        assert_eq!(percentile(&sorted, 100.0), Some(8.0));
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(percentile(&[f64::INFINITY; 2], 25.0), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        assert_eq!(Spread::from_values([f64::NAN]), None);
        let spread = Spread::from_values([3.0, f64::NAN, 1.0, 10.0]).unwrap();
        let expected =
            Spread { median: 3.0, min: 1.0, max: 10.0, median_absolute_deviation: 2.0, n: 3 };
        assert_eq!(spread, expected);
        assert_eq!(spread.scaled(0.5).median_absolute_deviation, 1.0);
    }

    proptest! {
        #[test]
        fn a_spread_equals_the_naive_one(values in prop::collection::vec(-1e6_f64..1e6, 1..40)) {
            let spread = Spread::from_values(values.iter().copied()).unwrap();
            let median = naive_median(&values);
            let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
            prop_assert!(close(spread.median, median));
            prop_assert!(close(spread.median_absolute_deviation, naive_median(&distances)));
            prop_assert_eq!(spread.min, kth(&values, 0));
            prop_assert_eq!(spread.max, kth(&values, values.len() - 1));
        }

        #[test]
        fn a_percentile_has_its_share_below_it(
            mut values in prop::collection::vec(0.0_f64..1e6, 1..60),
            percent in 0.0_f64..=100.0,
        ) {
            values.sort_by(f64::total_cmp);
            let found = percentile(&values, percent).unwrap();
            let last = (values.len() - 1) as f64;
            // Position percent / 100 * (n - 1) from 0: that many values lie below, and at most one
            // more.
            let below = (percent / 100.0 * last).floor() as usize;
            prop_assert!(n_up_to(&values, found) > below);
            prop_assert!(values[below] <= found && found <= values[(below + 1).min(values.len() - 1)] + 1e-9);
        }
    }
}
