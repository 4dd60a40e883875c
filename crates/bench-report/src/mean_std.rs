//! Mean and standard deviation of a few repetitions.

/// Mean and spread of repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanStd {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of a sample (divided by n - 1); `None` for a single repetition.
    pub std: Option<f64>,
}

impl MeanStd {
    /// Mean and standard deviation of `values`; `None` if there are none.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let std = (1 < values.len()).then(|| (squares / (values.len() - 1) as f64).sqrt());
        Some(Self { mean, std })
    }

    /// `58.534 ± 0.531`, or the mean alone.
    pub fn format(&self, digits: usize) -> String {
        let Self { mean, std } = self;
        match std {
            Some(std) => format!("{mean:.digits$} ± {std:.digits$}"),
            None => format!("{mean:.digits$}"),
        }
    }

    /// The same repetitions multiplied by `factor`, which must not be negative.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { mean: self.mean * factor, std: self.std.map(|std| std * factor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repetition_has_no_deviation() {
        assert_eq!(MeanStd::from_values(&[2.5]), Some(MeanStd { mean: 2.5, std: None }));
        assert_eq!(MeanStd::from_values(&[2.5]).unwrap().format(1), "2.5");
        assert_eq!(MeanStd::from_values(&[]), None);
        let both = MeanStd::from_values(&[1.0, 3.0]).unwrap();
        assert_eq!(both, MeanStd { mean: 2.0, std: Some(2.0_f64.sqrt()) });
        assert_eq!(both.scaled(2.0), MeanStd { mean: 4.0, std: Some(2.0 * 2.0_f64.sqrt()) });
        let published = MeanStd::from_values(&[24.239, 24.357, 24.249]).unwrap();
        assert_eq!(published.format(3), "24.282 ± 0.065");
    }
}
