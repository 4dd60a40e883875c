//! Curves of a device's use over the progress of an epoch, made as htc's notebook makes them.
//!
//! The samples of an epoch are smoothed by a moving mean. The epochs of a repetition are stretched
//! to the longest of them and averaged; repetitions are stretched and averaged in the same way.

use crate::statistics::mean;

/// Samples of the moving mean.
pub(crate) const WINDOW: usize = 5;

/// Mean and spread over repetitions, along the progress of an epoch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    pub(crate) mean: Vec<f64>,
    /// Standard deviation at each place, divided by the number of repetitions: the notebook's band,
    /// other than its bars.
    pub(crate) std: Vec<f64>,
}

impl Curve {
    /// The curve of repetitions, each the samples of its epochs. `None` if there are no samples.
    pub(crate) fn from_repetitions(repetitions: &[Vec<&[f64]>]) -> Option<Self> {
        let of_repetition = |epochs: &Vec<&[f64]>| {
            let smooth = epochs.iter().map(|samples| moving_mean(samples, WINDOW)).collect();
            Some(columns(&stretched(smooth)?).map(|column| mean_of(&column)).collect())
        };
        let all = stretched(repetitions.iter().filter_map(of_repetition).collect())?;
        let (mean, std) = columns(&all)
            .map(|column| {
                let mean = mean_of(&column);
                let squares: Vec<f64> = column.iter().map(|at| (at - mean).powi(2)).collect();
                (mean, mean_of(&squares).sqrt())
            })
            .unzip();
        Some(Self { mean, std })
    }
}

fn mean_of(values: &[f64]) -> f64 {
    mean(values).unwrap_or_default()
}

/// The mean of each `window` neighbors that lie inside of `values`; nothing if there are fewer.
fn moving_mean(values: &[f64], window: usize) -> Vec<f64> {
    values.windows(window).map(mean_of).collect()
}

/// All curves, stretched to the longest; `None` if all are empty. Empty ones are left out.
fn stretched(curves: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let longest = curves.iter().map(Vec::len).max().filter(|n| 0 < *n)?;
    let is_there = |curve: &Vec<f64>| !curve.is_empty();
    Some(curves.into_iter().filter(is_there).map(|curve| resampled(&curve, longest)).collect())
}

/// `n` values along a curve, linearly between its values; first and last stay. The curve must not
/// be empty.
fn resampled(curve: &[f64], n: usize) -> Vec<f64> {
    let last = curve.len() - 1;
    let at = |idx: usize| {
        let place = if n < 2 { 0.0 } else { idx as f64 * last as f64 / (n - 1) as f64 };
        let below = (place.floor() as usize).min(last);
        let above = (below + 1).min(last);
        curve[below] + (curve[above] - curve[below]) * (place - below as f64)
    };
    (0..n).map(at).collect()
}

/// The values of all curves at each place. All have the same length.
fn columns(curves: &[Vec<f64>]) -> impl Iterator<Item = Vec<f64>> + '_ {
    let n = curves.first().map_or(0, Vec::len);
    (0..n).map(|idx| curves.iter().map(|curve| curve[idx]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(one: &[f64], other: &[f64]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    /// From numpy: `np.interp(np.linspace(0, 3, 6), range(4), [0, 3, 1, 2])`, and
    /// `np.convolve([0, 1, 1, 0, 1, 0.5, 1], np.ones(5) / 5, mode="valid")`.
    #[test]
    fn curves_are_stretched_and_smoothed_like_numpy_does() {
        let stretched = resampled(&[0.0, 3.0, 1.0, 2.0], 6);
        assert!(close(&stretched, &[0.0, 1.8, 2.6, 1.4, 1.4, 2.0]), "{stretched:?}");
        let smooth = moving_mean(&[0.0, 1.0, 1.0, 0.0, 1.0, 0.5, 1.0], WINDOW);
        assert!(close(&smooth, &[0.6, 0.7, 0.7]), "{smooth:?}");
    }

    /// From numpy, in the notebook's steps, for two repetitions of two epochs.
    #[test]
    fn repetitions_make_a_mean_and_a_band() {
        let epochs: [&[f64]; 4] = [
            &[0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0],
            &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            &[0.5, 0.5, 0.5, 1.0, 1.0, 0.5],
            &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
        ];
        let curve = Curve::from_repetitions(&[epochs[..2].to_vec(), epochs[2..].to_vec()]).unwrap();
        assert!(close(&curve.mean, &[0.7, 0.8, 0.875]), "{curve:?}");
        assert!(close(&curve.std, &[0.05, 0.1, 0.125]), "{curve:?}");
    }

    #[test]
    fn epochs_without_samples_are_left_out() {
        let long: &[f64] = &[1.0; 9];
        let curve = Curve::from_repetitions(&[vec![&[1.0, 0.0][..], long], vec![&[][..]]]).unwrap();
        assert_eq!(curve, Curve { mean: vec![1.0; 5], std: vec![0.0; 5] });
        assert_eq!(
            Curve::from_repetitions(&[vec![&[1.0; 4][..]]]),
            None,
            "four samples have no mean of five"
        );
        assert_eq!(Curve::from_repetitions(&[]), None);
    }

    /// The value at `place` by its definition: the line between the two neighbors.
    fn naive(curve: &[f64], place: f64) -> f64 {
        for (idx, pair) in curve.windows(2).enumerate() {
            let (from, to) = (idx as f64, idx as f64 + 1.0);
            if (from..=to).contains(&place) {
                return pair[0] * (to - place) + pair[1] * (place - from);
            }
        }
        curve[curve.len() - 1]
    }

    proptest! {
        #[test]
        fn a_stretched_curve_lies_on_the_lines_between_the_values(
            curve in prop::collection::vec(0.0_f64..1.0, 1..20),
            n in 2_usize..50,
        ) {
            let found = resampled(&curve, n);
            let step = (curve.len() - 1) as f64 / (n - 1) as f64;
            let expected: Vec<f64> = (0..n).map(|idx| naive(&curve, idx as f64 * step)).collect();
            prop_assert!(close(&found, &expected), "{found:?} {expected:?}");
            prop_assert_eq!(found[0], curve[0]);
        }
    }
}
