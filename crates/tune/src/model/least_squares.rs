//! Least squares with non-negative coefficients, for a handful of columns.
//!
//! Costs add up, so no coefficient may be negative: one that a few noisy measurements put below
//! zero would make large settings look free. The best such fit equals the unconstrained fit over
//! the columns with positive coefficients. With few columns, every set of columns can be tried.

/// Coefficients and their error on the data they were fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit<const K: usize> {
    pub(crate) coefficients: [f64; K],
    /// Root mean square of `(fitted - y) / y`.
    pub(crate) error: f64,
}

/// Columns count as dependent if the squared sine of their angle is below this.
const SAME: f64 = 1e-10;

/// Returns the coefficients `b >= 0` with the least sum of `((x b - y) / y)²` over all rows `(x,
/// y)`.
///
/// Ignores rows whose `y` is not above zero; all coefficients are zero if no row is left.
pub(crate) fn non_negative<const K: usize>(rows: &[([f64; K], f64)]) -> Fit<K> {
    let weighted: Vec<[f64; K]> =
        rows.iter().filter(|(_, y)| 0.0 < *y).map(|(x, y)| x.map(|value| value / y)).collect();
    let mut lengths = [0.0_f64; K];
    for (length, idx) in lengths.iter_mut().zip(0..) {
        *length = weighted.iter().map(|x| x[idx].powi(2)).sum::<f64>().sqrt();
    }
    let mut best = Fit { coefficients: [0.0; K], error: error(&weighted, &[0.0; K]) };
    for set in 1..1_usize << K {
        let columns: Vec<usize> =
            (0..K).filter(|idx| set >> idx & 1 == 1 && 0.0 < lengths[*idx]).collect();
        let Some(solved) = solve(&weighted, &columns, &lengths) else { continue };
        if solved.iter().all(|value| 0.0 <= *value) {
            let mut coefficients = [0.0; K];
            for (idx, value) in columns.iter().zip(solved) {
                coefficients[*idx] = value;
            }
            let found = error(&weighted, &coefficients);
            if found < best.error {
                best = Fit { coefficients, error: found };
            }
        }
    }
    best
}

/// Returns the sum of products of coefficients and columns.
pub(crate) fn dot<const K: usize>(coefficients: &[f64; K], x: &[f64; K]) -> f64 {
    coefficients.iter().zip(x).map(|(one, other)| one * other).sum()
}

fn error<const K: usize>(weighted: &[[f64; K]], coefficients: &[f64; K]) -> f64 {
    let squares = weighted.iter().map(|x| (dot(coefficients, x) - 1.0).powi(2)).sum::<f64>();
    (squares / weighted.len().max(1) as f64).sqrt()
}

/// Solves the unconstrained least squares of these columns against ones.
///
/// Uses a Cholesky factorization of the normal equations. Returns `None` if the columns are
/// dependent.
fn solve<const K: usize>(
    weighted: &[[f64; K]],
    columns: &[usize],
    lengths: &[f64; K],
) -> Option<Vec<f64>> {
    let n = columns.len();
    let scaled = |x: &[f64; K], at: usize| x[columns[at]] / lengths[columns[at]];
    let mut factor = vec![vec![0.0; n]; n];
    for row in 0..n {
        for column in 0..=row {
            let product: f64 = weighted.iter().map(|x| scaled(x, row) * scaled(x, column)).sum();
            let known: f64 =
                (0..column).map(|at| factor[row][at] * factor[column][at]).sum::<f64>();
            let left = product - known;
            if row != column {
                factor[row][column] = left / factor[column][column];
            } else if left < SAME {
                return None;
            } else {
                factor[row][row] = left.sqrt();
            }
        }
    }
    let mut solved: Vec<f64> = Vec::with_capacity(n);
    for (row, of_row) in factor.iter().enumerate() {
        let target: f64 = weighted.iter().map(|x| scaled(x, row)).sum();
        let known: f64 = of_row.iter().zip(&solved).map(|(factor, value)| factor * value).sum();
        solved.push((target - known) / of_row[row]);
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|at| factor[at][row] * solved[at]).sum();
        solved[row] = (solved[row] - known) / factor[row][row];
    }
    Some(solved.iter().zip(columns).map(|(value, idx)| value / lengths[*idx]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_would_be_negative_is_zero() {
        // y = 3 - x falls, which no line with two positive coefficients does.
        let rows: Vec<([f64; 2], f64)> =
            [0.5, 1.0, 2.0].map(|x| ([1.0, x], 3.0 - x)).into_iter().collect();
        let fit = non_negative(&rows);
        assert_eq!(fit.coefficients[1], 0.0);
        assert!(0.0 < fit.coefficients[0] && 0.0 < fit.error);
    }

    #[test]
    fn columns_that_say_nothing_or_the_same_do_no_harm() {
        let rows: Vec<([f64; 3], f64)> =
            [1.0, 2.0, 5.0].map(|x| ([x, 0.0, x], 4.0 * x)).into_iter().collect();
        let fit = non_negative(&rows);
        assert!((fit.coefficients[0] + fit.coefficients[2] - 4.0).abs() < 1e-9, "{fit:?}");
        assert_eq!(non_negative::<2>(&[]).coefficients, [0.0; 2]);
        assert_eq!(non_negative(&[([1.0], 0.0)]).coefficients, [0.0]);
    }

    proptest! {
        #[test]
        fn planted_coefficients_are_found(
            planted in prop::array::uniform4(prop_oneof![Just(0.0), 0.01_f64..100.0]),
            columns in prop::collection::vec(prop::array::uniform4(0.1_f64..10.0), 8..20),
        ) {
            prop_assume!(planted.iter().any(|value| *value > 0.0));
            let rows: Vec<([f64; 4], f64)> = columns.iter().map(|x| (*x, dot(&planted, x))).collect();
            let fit = non_negative(&rows);
            prop_assert!(fit.error < 1e-6, "{:?}", fit);
            for (x, y) in &rows {
                prop_assert!((dot(&fit.coefficients, x) - y).abs() <= 1e-5 * y);
            }
            for (found, planted) in fit.coefficients.iter().zip(planted) {
                prop_assert!((found - planted).abs() <= 1e-3 * (1.0 + planted), "{:?}", fit);
            }
        }

        #[test]
        fn no_coefficients_fit_better(
            rows in prop::collection::vec((prop::array::uniform3(0.0_f64..5.0), 0.1_f64..9.0), 3..9),
            others in prop::collection::vec(prop::array::uniform3(0.0_f64..3.0), 50),
        ) {
            let fit = non_negative(&rows);
            prop_assert!(fit.coefficients.iter().all(|value| 0.0 <= *value));
            for other in others {
                let squares: f64 =
                    rows.iter().map(|(x, y)| ((dot(&other, x) - y) / y).powi(2)).sum();
                prop_assert!(fit.error <= (squares / rows.len() as f64).sqrt() + 1e-9);
            }
        }
    }
}
