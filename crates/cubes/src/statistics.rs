//! The mean of some numbers.

/// The mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use bench_report::MeanStd;

    use super::*;
    use crate::published::PUBLISHED;

    /// The published rows are means and deviations of published repetitions.
    #[test]
    fn published_deviations_follow_from_the_published_repetitions() {
        for row in PUBLISHED {
            for (secs, std, repetitions) in row.durations() {
                let found = MeanStd::from_values(&repetitions).unwrap();
                // Repetitions are published to three digits.
                assert!((found.mean - secs).abs() < 0.0011, "{row:?}");
                assert!((found.std.unwrap() - std).abs() < 0.0015, "{row:?}: {found:?}");
            }
        }
    }

    #[test]
    fn nothing_has_no_mean() {
        assert_eq!((mean(&[]), mean(&[1.0, 2.0])), (None, Some(1.5)));
    }
}
