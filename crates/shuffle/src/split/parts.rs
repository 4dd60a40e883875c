//! Fractions as integers, and the shares of a number of rows.

use super::Error;

/// Parts of a whole. A power of ten, so that 0.7 of ten rows is exactly seven rows.
pub(super) const WHOLE: u64 = 1_000_000_000_000;

/// Largest number of splits: keeps the rounding of parts far below the largest fraction, and
/// rounding of tables fast.
const MAX_SPLITS: usize = 256;

/// How far from 1 the sum of the fractions may be.
const TOLERANCE: f64 = 1e-9;

/// The fractions of the splits as parts of [`WHOLE`]; they sum to it.
#[derive(Debug)]
pub(super) struct Parts(Vec<u64>);

impl Parts {
    pub(super) fn new(fractions: &[f64]) -> Result<Self, Error> {
        if fractions.len() > MAX_SPLITS {
            return Err(Error::TooManySplits { n_splits: fractions.len(), most: MAX_SPLITS });
        }
        if let Some(split_idx) =
            fractions.iter().position(|fraction| !(0.0..=1.0).contains(fraction))
        {
            return Err(Error::Fraction { split_idx, fraction: fractions[split_idx] });
        }
        let sum: f64 = fractions.iter().sum();
        if (sum - 1.0).abs() > TOLERANCE {
            return Err(Error::FractionSum { n_splits: fractions.len(), sum });
        }
        let mut parts: Vec<u64> =
            fractions.iter().map(|fraction| (fraction * WHOLE as f64).round() as u64).collect();
        let others = |parts: &[u64], largest: usize| -> u64 {
            parts.iter().enumerate().filter(|(idx, _)| *idx != largest).map(|(_, part)| part).sum()
        };
        if let Some(largest) = (0..parts.len()).rev().max_by_key(|idx| parts[*idx]) {
            parts[largest] = WHOLE - others(&parts, largest);
        }
        Ok(Self(parts))
    }

    pub(super) fn n_splits(&self) -> usize {
        self.0.len()
    }

    /// The fraction of each split, in parts.
    pub(super) fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The share of each split in `n` rows, as whole rows and parts of a row.
    pub(super) fn shares(&self, n: u64) -> Shares {
        let exact = self.0.iter().map(|part| u128::from(*part) * u128::from(n));
        let whole = u128::from(WHOLE);
        Shares {
            rows: exact.clone().map(|share| (share / whole) as u64).collect(),
            remainders: exact.map(|share| (share % whole) as u64).collect(),
        }
    }
}

/// The shares of the splits in a number of rows.
#[derive(Debug)]
pub(super) struct Shares {
    /// Whole rows.
    pub(super) rows: Vec<u64>,
    /// Parts of one more row. Their sum is a whole number of rows.
    pub(super) remainders: Vec<u64>,
}

impl Shares {
    /// The rows that the remainders add up to; fewer than the remainders above 0.
    pub(super) fn n_left(&self) -> usize {
        (self.remainders.iter().map(|part| u128::from(*part)).sum::<u128>() / u128::from(WHOLE))
            as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_whole() {
        for fractions in [
            &[0.7, 0.2, 0.1][..],
            &[1.0 / 3.0; 3],
            &[1.0],
            &[0.0, 1.0],
            &[0.1; 10],
            &[1.0 / 7.0; 7],
        ] {
            let parts = Parts::new(fractions).unwrap();
            assert_eq!(parts.as_slice().iter().sum::<u64>(), WHOLE, "{fractions:?}");
        }
        // The first of the largest gets the rest.
        assert_eq!(
            Parts::new(&[1.0 / 3.0; 3]).unwrap().as_slice(),
            [333_333_333_334, 333_333_333_333, 333_333_333_333]
        );
    }

    #[test]
    fn decimal_fractions_are_exact() {
        let shares = Parts::new(&[0.7, 0.2, 0.1]).unwrap().shares(10);
        assert_eq!(shares.rows, [7, 2, 1]);
        assert_eq!(shares.remainders, [0, 0, 0]);
    }

    #[test]
    fn sums_within_the_tolerance_are_taken() {
        assert!(Parts::new(&[0.5, 0.5 + 0.9e-9]).is_ok());
        assert!(Parts::new(&[0.5, 0.5 - 0.9e-9]).is_ok());
        assert!(matches!(
            Parts::new(&[0.5, 0.5 + 1.1e-9]),
            Err(Error::FractionSum { n_splits: 2, .. })
        ));
        assert!(matches!(Parts::new(&[]), Err(Error::FractionSum { n_splits: 0, .. })));
    }
}
