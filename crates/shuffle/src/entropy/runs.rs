//! Models of the order of labels, for data that is not available for counting.

use super::Error;

/// How labels come in runs. Each run's label is drawn independently, by the shares of the classes,
/// so neighbouring runs may have the same label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Runs {
    /// All runs have the same length; a chunk begins at a random place in a run.
    Fixed {
        /// Rows of a run.
        rows: u64,
    },
    /// The run ends after each row with the same probability, so lengths are geometric.
    Geometric {
        /// Mean rows of a run, at least 1.
        mean_rows: f64,
    },
}

impl Runs {
    /// Fails if runs of this length are not possible.
    pub fn check(self) -> Result<(), Error> {
        match self {
            Self::Fixed { rows: 0 } => Err(Error::Zero { size: "the run length" }),
            // Not `mean_rows < 1.0`: that lets NaN through.
            Self::Geometric { mean_rows } if !(1.0..f64::INFINITY).contains(&mean_rows) => {
                Err(Error::RunLength { mean_rows })
            }
            _ => Ok(()),
        }
    }

    /// The correlation `ρ` of the labels of two rows of a chunk: the probability that they belong
    /// to the same run. 0 for chunks of one row.
    ///
    /// Sums over the `c - d` pairs at each distance `d`. With `q = 1 - 1/mean` a geometric run goes
    /// on for `d` rows with probability `q^d`, and a fixed one of `r` rows with probability `1 -
    /// d/r`, so
    ///
    /// ```text
    /// geometric  ρ = 2 q (c - 1 - c q + q^c) / (c (c-1) (1-q)^2)
    /// fixed      ρ = Σ_{d < min(c, r)} 2 (c-d) (1 - d/r) / (c (c-1))
    /// ```
    ///
    /// # Errors
    /// The same as [`check`](Self::check).
    pub fn correlation(self, chunk_rows: u64) -> Result<f64, Error> {
        self.check()?;
        if chunk_rows <= 1 {
            return Ok(0.0);
        }
        let c = chunk_rows as f64;
        let pairs = c * (c - 1.0) / 2.0;
        let same_run = match self {
            Self::Fixed { rows } => {
                // Σ (c-d)(1-d/r) over d = 1..most, by the sums of d and of d².
                let (r, most) = (rows as f64, (chunk_rows.min(rows) - 1) as f64);
                let first = most * (most + 1.0) / 2.0;
                let second = first * (2.0 * most + 1.0) / 3.0;
                c * most - (1.0 + c / r) * first + second / r
            }
            Self::Geometric { mean_rows } => {
                let (ends, goes_on) = (1.0 / mean_rows, 1.0 - 1.0 / mean_rows);
                if c * ends < 1e-2 {
                    // The closed form would lose its digits: use the first terms of its series.
                    let second = (c + 1.0) * (c - 2.0) * ends * ends / 12.0;
                    let third = second * (c - 3.0) * ends / 5.0;
                    pairs * (1.0 - ends * (c + 1.0) / 3.0 + second - third)
                } else {
                    let last = (c * (-ends).ln_1p()).exp();
                    goes_on * (c - 1.0 - c * goes_on + last) / (ends * ends)
                }
            }
        };
        Ok(same_run / pairs)
    }

    /// The first three moments of the rows in a chunk of a class with this share of the data.
    pub(super) fn moments(self, share: f64, chunk_rows: u64) -> [f64; 3] {
        match self {
            Self::Fixed { rows } => fixed(share, chunk_rows, rows),
            Self::Geometric { mean_rows } => geometric(share, chunk_rows, 1.0 / mean_rows),
        }
    }
}

/// Averages over the chunk's place in a run, each equally likely. For a given place the chunk is
/// made of pieces of known lengths, each of the class or not independently, and cumulants of
/// independent pieces add.
fn fixed(share: f64, chunk_rows: u64, rows: u64) -> [f64; 3] {
    let mut moments = [0.0; 3];
    let mut add = |chance: f64, pieces: &[(f64, f64)]| {
        let [mut sum, mut squares, mut cubes] = [0.0; 3];
        for (rows, times) in pieces {
            sum += times * rows;
            squares += times * rows * rows;
            cubes += times * rows * rows * rows;
        }
        let mean = share * sum;
        let variance = share * (1.0 - share) * squares;
        let third = share * (1.0 - share) * (1.0 - 2.0 * share) * cubes;
        let raw = [mean, variance + mean * mean, third + 3.0 * variance * mean + mean.powi(3)];
        for (moment, value) in moments.iter_mut().zip(raw) {
            *moment += chance * value;
        }
    };
    let each = 1.0 / rows as f64;
    if rows > chunk_rows {
        add((rows - chunk_rows) as f64 * each, &[(chunk_rows as f64, 1.0)]);
    }
    for first in 1..=rows.min(chunk_rows) {
        let rest = chunk_rows - first;
        let pieces =
            [(first as f64, 1.0), (rows as f64, (rest / rows) as f64), ((rest % rows) as f64, 1.0)];
        add(each, &pieces);
    }
    moments
}

/// Goes row by row and updates the moments, separately for whether the last row is in the class.
fn geometric(share: f64, chunk_rows: u64, ends: f64) -> [f64; 3] {
    // The probability that the last row is in the class and the first three moments in that case;
    // then the same for the case that it is not.
    let (mut within, mut outside) = ([share; 4], [1.0 - share, 0.0, 0.0, 0.0]);
    for _ in 1..chunk_rows {
        let (mut then_within, mut then_outside) = ([0.0; 4], [0.0; 4]);
        for power in 0..4 {
            let all = within[power] + outside[power];
            then_within[power] = (1.0 - ends) * within[power] + ends * share * all;
            then_outside[power] = (1.0 - ends) * outside[power] + ends * (1.0 - share) * all;
        }
        // One more row, in the case that it is in the class.
        let [zero, one, two, three] = then_within;
        within = [zero, one + zero, two + 2.0 * one + zero, three + 3.0 * (two + one) + zero];
        outside = then_outside;
    }
    [1, 2, 3].map(|power| within[power] + outside[power])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The probability that two rows of a chunk are in the same run, and the moments of a class,
    /// counted over all chunks of a long stretch of fixed runs with all labellings of the runs that
    /// a chunk meets.
    fn counted(share: f64, chunk_rows: usize, rows: usize) -> (f64, [f64; 3]) {
        let (mut same, mut pairs, mut moments) = (0.0, 0.0, [0.0; 3]);
        for start in 0..rows {
            let runs: Vec<usize> = (start..start + chunk_rows).map(|row| row / rows).collect();
            for (place, run) in runs.iter().enumerate() {
                pairs += place as f64;
                same += runs[..place].iter().filter(|other| *other == run).count() as f64;
            }
            let n_runs = runs[chunk_rows - 1] + 1;
            for labels in 0_u32..1 << n_runs {
                let of_class = labels.count_ones() as i32;
                let chance = share.powi(of_class) * (1.0 - share).powi(n_runs as i32 - of_class);
                let found = runs.iter().filter(|run| labels >> **run & 1 == 1).count() as f64;
                for (moment, power) in moments.iter_mut().zip(1..) {
                    *moment += chance * found.powi(power) / rows as f64;
                }
            }
        }
        (if pairs == 0.0 { 0.0 } else { same / pairs }, moments)
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 1e-9 * (1.0 + expected.abs())
    }

    proptest! {
        #[test]
        fn fixed_runs_are_as_counted(share in 0.0_f64..=1.0, chunk_rows in 1_usize..9, rows in 1_usize..12) {
            let runs = Runs::Fixed { rows: rows as u64 };
            let (correlation, moments) = counted(share, chunk_rows, rows);
            prop_assert!(close(runs.correlation(chunk_rows as u64).unwrap(), correlation));
            for (found, expected) in runs.moments(share, chunk_rows as u64).into_iter().zip(moments) {
                prop_assert!(close(found, expected), "{} {}", found, expected);
            }
        }

        #[test]
        fn geometric_runs_are_the_sum_over_all_pairs(
            share in 0.0_f64..=1.0, chunk_rows in 2_u64..300, mean_rows in 1.0_f64..1e7,
        ) {
            let runs = Runs::Geometric { mean_rows };
            let (c, goes_on) = (chunk_rows as f64, 1.0 - 1.0 / mean_rows);
            let same: f64 =
                (1..chunk_rows).map(|d| (c - d as f64) * goes_on.powi(d as i32)).sum();
            let correlation = runs.correlation(chunk_rows).unwrap();
            prop_assert!((correlation - 2.0 * same / (c * (c - 1.0))).abs() < 1e-6);
            // The variance of a class is that of independent rows plus the correlation of the
            // pairs.
            let [mean, second, _] = runs.moments(share, chunk_rows);
            let variance = c * share * (1.0 - share) * (1.0 + (c - 1.0) * correlation);
            prop_assert!(close(mean, c * share));
            prop_assert!((second - mean * mean - variance).abs() < 1e-5 * (1.0 + c * c));
        }
    }

    #[test]
    fn runs_of_one_row_are_independent() {
        for runs in [Runs::Fixed { rows: 1 }, Runs::Geometric { mean_rows: 1.0 }] {
            assert_eq!(runs.correlation(64).unwrap(), 0.0);
            // The binomial's moments, for 3 rows at probability 0.5.
            let moments = runs.moments(0.5, 3);
            assert!(
                moments
                    .iter()
                    .zip([1.5, 3.0, 6.75])
                    .all(|(found, expected)| close(*found, expected))
            );
        }
    }

    #[test]
    fn long_runs_fill_a_chunk() {
        for runs in [Runs::Fixed { rows: 1 << 40 }, Runs::Geometric { mean_rows: 1e12 }] {
            assert!((runs.correlation(64).unwrap() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn what_is_no_run_is_refused() {
        assert!(matches!(Runs::Fixed { rows: 0 }.correlation(4), Err(Error::Zero { .. })));
        for mean_rows in [0.5, -1.0, f64::NAN, f64::INFINITY] {
            let refused = Runs::Geometric { mean_rows }.check();
            assert!(matches!(refused, Err(Error::RunLength { .. })), "{mean_rows}");
        }
    }
}
