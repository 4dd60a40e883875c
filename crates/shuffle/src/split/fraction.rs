//! Splits of independent rows.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use super::parts::{Parts, Shares, WHOLE};
use super::{Error, deal, empty_splits, finished};
use crate::RowSet;
use crate::random::{SplitDecision, below, split_generator};
use crate::stop::ranges;

/// How the fractions become sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Sizes do not depend on the seed. Each split gets its share rounded down, and the splits with
    /// the largest remainders get one row more (of equal remainders, the later split). 0.7 and 0.3
    /// of 15 rows are 10 and 5.
    Deterministic,
    /// Each row's split is drawn independently, so sizes vary by about the square root of the
    /// expectation.
    Multinomial,
    /// Each share is rounded up or down at random, up with the probability of its remainder. Sizes
    /// are within one row of the share, and equal it on average over seeds.
    StochasticRounding,
}

impl Method {
    /// The name that [`FromStr`] parses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deterministic => "deterministic",
            Self::Multinomial => "multinomial",
            Self::StochasticRounding => "stochastic_rounding",
        }
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        [Self::Deterministic, Self::Multinomial, Self::StochasticRounding]
            .into_iter()
            .find(|method| method.name() == name)
            .ok_or_else(|| UnknownMethod { name: name.to_owned() })
    }
}

/// No split method has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no split method is named {name:?}: use deterministic, multinomial or stochastic_rounding")]
pub struct UnknownMethod {
    /// The name.
    pub name: String,
}

/// Splits the rows `0..n_rows` by `fractions`.
///
/// All divisions into splits of the resulting sizes are equally likely.
///
/// # Errors
/// A fraction is outside 0 to 1; the fractions do not sum to 1; the rows do not fit into memory.
///
/// ```
/// use shuffle::split::{Method, by_fraction};
///
/// let splits = by_fraction(10, &[0.7, 0.3], Method::Deterministic, 42)?;
/// assert_eq!([splits[0].len(), splits[1].len()], [7, 3]);
/// assert!(splits[1].iter().all(|row| !splits[0].contains(row)));
/// # Ok::<(), shuffle::split::Error>(())
/// ```
pub fn by_fraction(
    n_rows: u64,
    fractions: &[f64],
    method: Method,
    seed: u64,
) -> Result<Vec<RowSet>, Error> {
    let parts = Parts::new(fractions)?;
    let shares = parts.shares(n_rows);
    let mut places = match method {
        Method::Deterministic => largest_remainders(shares),
        Method::StochasticRounding => {
            rounded_at_random(&mut split_generator(seed, SplitDecision::Sizes), shares)
        }
        Method::Multinomial => return multinomial(n_rows, &parts, seed),
    };
    let mut splits = empty_splits(n_rows, places.len())?;
    let mut generator = split_generator(seed, SplitDecision::Rows);
    for rows in ranges(n_rows) {
        for row in rows? {
            splits[deal(&mut generator, &mut places)].add_row(row);
        }
    }
    Ok(finished(splits))
}

fn multinomial(n_rows: u64, parts: &Parts, seed: u64) -> Result<Vec<RowSet>, Error> {
    let mut splits = empty_splits(n_rows, parts.n_splits())?;
    let mut generator = split_generator(seed, SplitDecision::Rows);
    for rows in ranges(n_rows) {
        for row in rows? {
            let mut draw = below(&mut generator, WHOLE);
            let mut split_idx = 0;
            while parts.as_slice()[split_idx] <= draw {
                draw -= parts.as_slice()[split_idx];
                split_idx += 1;
            }
            splits[split_idx].add_row(row);
        }
    }
    Ok(finished(splits))
}

/// The shares with one more row for the largest remainders.
fn largest_remainders(shares: Shares) -> Vec<u64> {
    let n_left = shares.n_left();
    let mut by_remainder: Vec<usize> = (0..shares.rows.len()).collect();
    by_remainder.sort_unstable_by_key(|idx| std::cmp::Reverse((shares.remainders[*idx], *idx)));
    let mut sizes = shares.rows;
    for split_idx in &by_remainder[..n_left] {
        sizes[*split_idx] += 1;
    }
    sizes
}

/// The shares rounded at random, up with the probability of the remainder (systematic sampling).
///
/// Lays the remainders end to end and drops a grid of marks one row apart on them. No remainder can
/// get two marks, their number is that of the missing rows, and each gets one in proportion to its
/// length.
fn rounded_at_random(generator: &mut ChaCha8Rng, shares: Shares) -> Vec<u64> {
    let first_mark = u128::from(below(generator, WHOLE));
    let whole = u128::from(WHOLE);
    let marks_before = |end: u128| (end + (whole - 1 - first_mark)) / whole;
    let mut sizes = shares.rows;
    let mut start = 0;
    for (size, remainder) in sizes.iter_mut().zip(&shares.remainders) {
        let end = start + u128::from(*remainder);
        *size += (marks_before(end) - marks_before(start)) as u64;
        start = end;
    }
    sizes
}
