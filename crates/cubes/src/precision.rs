//! The error of storing values in 16 bits.

use half::f16;

/// The error of 16-bit floating point against the 32-bit values that it was made of.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Precision {
    /// Number of finite values.
    pub n_values: u64,
    /// Sum of absolute errors.
    sum: f64,
    /// Largest absolute error.
    pub largest: f64,
    /// Number of values other than 0, which have a relative error.
    n_relative: u64,
    /// Sum of the errors in shares of the values.
    sum_relative: f64,
}

impl Precision {
    /// Compares values with what they became. Those that are not finite have no error.
    pub(crate) fn measure(values: &[f32], stored: &[f16]) -> Self {
        let mut precision = Self::default();
        for (value, stored) in values.iter().zip(stored).filter(|(value, _)| value.is_finite()) {
            let error = f64::from((stored.to_f32() - value).abs());
            precision.n_values += 1;
            precision.sum += error;
            precision.largest = precision.largest.max(error);
            if *value != 0.0 {
                precision.n_relative += 1;
                precision.sum_relative += error / f64::from(value.abs());
            }
        }
        precision
    }

    /// The errors of several parts together; `None` if there are none.
    pub(crate) fn sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|mut sum, part| {
            sum.add(&part);
            sum
        })
    }

    /// Adds the errors of further values.
    fn add(&mut self, other: &Self) {
        self.n_values += other.n_values;
        self.sum += other.sum;
        self.largest = self.largest.max(other.largest);
        self.n_relative += other.n_relative;
        self.sum_relative += other.sum_relative;
    }

    /// Mean absolute error; 0 without values.
    pub fn mean(&self) -> f64 {
        self.sum / self.n_values.max(1) as f64
    }

    /// Mean error in shares of the values other than 0.
    pub fn mean_relative(&self) -> f64 {
        self.sum_relative / self.n_relative.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_two_parts_add_up() {
        let values = [0.0, 0.01, -3.000_1, 65_000.0];
        let stored = values.map(f16::from_f32);
        let all = Precision::measure(&values, &stored);
        let mut parts = Precision::measure(&values[..1], &stored[..1]);
        parts.add(&Precision::measure(&values[1..], &stored[1..]));
        assert_eq!(parts, all);
        assert_eq!(all.n_values, 4);
        let infinite = Precision::measure(&[f32::INFINITY, 70_000.0], &[f16::INFINITY; 2]);
        assert_eq!((infinite.n_values, infinite.largest), (1, f64::INFINITY));
        // 65,000 lies between 64,992 and 65,024.
        assert_eq!(all.largest, 8.0);
        assert!((all.mean() - 2.0).abs() < 1e-3, "{}", all.mean());
        assert!(all.mean_relative() < 0.000_5, "{}", all.mean_relative());
    }
}
