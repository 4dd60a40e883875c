//! Mean and standard deviation of a few repetitions.

/// Mean and spread of repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeanStd {
    pub(crate) mean: f64,
    /// Standard deviation of a sample (divided by n - 1); `None` for a single repetition.
    pub(crate) std: Option<f64>,
}

impl MeanStd {
    /// Mean and standard deviation of `values`; `None` if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let std = (1 < values.len()).then(|| (squares / (values.len() - 1) as f64).sqrt());
        Some(Self { mean, std })
    }

    /// `58.534 ± 0.531`, or the mean alone.
    pub(crate) fn format(&self, digits: usize) -> String {
        let Self { mean, std } = self;
        match std {
            Some(std) => format!("{mean:.digits$} ± {std:.digits$}"),
            None => format!("{mean:.digits$}"),
        }
    }

    /// The same repetitions multiplied by `factor`, which must not be negative.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self { mean: self.mean * factor, std: self.std.map(|std| std * factor) }
    }
}

/// The mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::PUBLISHED;

    /// The published rows are means and deviations of published repetitions.
    #[test]
    fn published_deviations_follow_from_the_published_repetitions() {
        let ring_buffer = [24.239, 24.357, 24.249];
        let found = MeanStd::of(&ring_buffer).unwrap();
        assert_eq!(found.format(3), "24.282 ± 0.065");
        for row in PUBLISHED {
            for (secs, std, repetitions) in row.durations() {
                let found = MeanStd::of(&repetitions).unwrap();
                // Repetitions are published to three digits.
                assert!((found.mean - secs).abs() < 0.0011, "{row:?}");
                assert!((found.std.unwrap() - std).abs() < 0.0015, "{row:?}: {found:?}");
            }
        }
    }

    #[test]
    fn one_repetition_has_no_deviation() {
        assert_eq!(MeanStd::of(&[2.5]), Some(MeanStd { mean: 2.5, std: None }));
        assert_eq!(MeanStd::of(&[2.5]).unwrap().format(1), "2.5");
        assert_eq!(MeanStd::of(&[]), None);
        let both = MeanStd::of(&[1.0, 3.0]).unwrap();
        assert_eq!(both, MeanStd { mean: 2.0, std: Some(2.0_f64.sqrt()) });
        assert_eq!(both.scaled(2.0), MeanStd { mean: 4.0, std: Some(2.0 * 2.0_f64.sqrt()) });
    }
}
