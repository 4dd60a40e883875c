//! Least-squares line through points, and its largest deviation.

/// Line `y = intercept + slope x`, fitted by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) intercept: f64,
    pub(crate) slope: f64,
    /// Largest deviation of a point, as a share of the point's own value.
    pub(crate) farthest: f64,
}

impl Line {
    /// Fits a line. Returns `None` unless the points have at least two different `x`.
    pub(crate) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |value: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / n;
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let covered = mean(&|point| (point.0 - x) * (point.1 - y));
        let spread = mean(&|point| (point.0 - x).powi(2));
        if points.len() < 2 || spread == 0.0 {
            return None;
        }
        let slope = covered / spread;
        let intercept = y - slope * x;
        let beside = |point: &(f64, f64)| {
            let off = (intercept + slope * point.0 - point.1).abs();
            if off == 0.0 { 0.0 } else { off / point.1.abs() }
        };
        let farthest = points.iter().map(beside).fold(0.0, f64::max);
        Some(Self { intercept, slope, farthest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_line_goes_through_one_size() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn what_is_beside_the_line_is_told() {
        let line = Line::through(&[(1.0, 1.0), (2.0, 4.0), (3.0, 1.0)]).unwrap();
        assert_eq!((line.intercept, line.slope, line.farthest), (2.0, 0.0, 1.0));
    }

    proptest! {
        #[test]
        fn points_of_a_line_give_it_back(
            intercept in -100.0_f64..100.0,
            slope in -10.0_f64..10.0,
            xs in proptest::collection::btree_set(0_u32..1_000_000, 2..10),
        ) {
            let points: Vec<(f64, f64)> =
                xs.iter().map(|x| (f64::from(*x), intercept + slope * f64::from(*x))).collect();
            let line = Line::through(&points).unwrap();
            prop_assert!((line.slope - slope).abs() <= 1e-6 * (1.0 + slope.abs()));
            prop_assert!((line.intercept - intercept).abs() <= 1e-3 * (1.0 + slope.abs()));
        }
    }
}
