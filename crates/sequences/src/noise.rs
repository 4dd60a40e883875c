//! Words drawn at random in proportion to a power of their counts.

use crate::error::Error;

/// Draws words with probabilities proportional to `count ^ exponent`, each in constant time.
///
/// Negative sampling of word2vec draws its noise so, with exponent 0.75 ([Mikolov et al. 2013],
/// section 2.2). The table is Vose's form of Walker's alias method ([Vose 1991]).
///
/// [Mikolov et al. 2013]: https://arxiv.org/abs/1310.4546
/// [Vose 1991]: https://doi.org/10.1109/32.92917
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseTable {
    /// For each column: the share of it that is its own word's, in 2^-32, and the word that has the
    /// rest.
    columns: Vec<(u32, u32)>,
}

impl NoiseTable {
    /// The exponent of word2vec.
    pub const EXPONENT: f64 = 0.75;

    /// Makes the table of words with these counts. A word with count 0 is never drawn.
    ///
    /// # Errors
    /// All counts are 0, there are more than 2^32 of them, or the exponent is not a finite number
    /// or makes a probability infinite.
    pub fn new(counts: &[u64], exponent: f64) -> Result<Self, Error> {
        let weight = |count: &u64| match count {
            0 => 0.0,
            count => (*count as f64).powf(exponent),
        };
        let total: f64 = counts.iter().map(weight).sum();
        let is_finite = exponent.is_finite() && total.is_finite();
        if !(0.0 < total && is_finite) || u32::try_from(counts.len()).is_err() {
            return Err(Error::settings(format!(
                "no noise can be drawn from {} words with exponent {exponent}: a word must have \
                 been counted, and weights must be finite",
                counts.len()
            )));
        }
        let scale = counts.len() as f64 / total;
        let mut shares: Vec<f64> = counts.iter().map(|count| weight(count) * scale).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..shares.len()).partition(|word| shares[*word] < 1.0);
        // A column that nothing else fills is its own word's; rounding leaves such columns over.
        // A word of count 0 must not get one.
        let heaviest = (0..counts.len()).max_by_key(|word| counts[*word]).unwrap_or(0);
        let mut columns: Vec<(u32, u32)> = counts
            .iter()
            .enumerate()
            .map(|(word, count)| match count {
                0 => (0, heaviest as u32),
                _ => (u32::MAX, word as u32),
            })
            .collect();
        while let (Some(of_small), Some(of_large)) = (small.pop(), large.last().copied()) {
            let share = shares[of_small];
            columns[of_small] = ((share * 2_f64.powi(32)) as u32, of_large as u32);
            shares[of_large] -= 1.0 - share;
            if shares[of_large] < 1.0 {
                large.pop();
                small.push(of_large);
            }
        }
        Ok(Self { columns })
    }

    /// The word that 64 random bits choose.
    pub fn draw(&self, random: u64) -> u32 {
        let (column, threshold) = (random >> 32, random as u32);
        // The high half of the product is a number below the number of columns.
        let column = ((column * self.columns.len() as u64) >> 32) as u32;
        let (own, other) = self.columns[column as usize];
        // The largest share means the whole column.
        if threshold < own || own == u32::MAX { column } else { other }
    }

    /// The number of words.
    pub fn n_words(&self) -> usize {
        self.columns.len()
    }

    /// The probability of each word.
    pub fn probabilities(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.columns.len()];
        for (column, (own, other)) in self.columns.iter().enumerate() {
            let own = if *own == u32::MAX { 1.0 } else { f64::from(*own) / 2_f64.powi(32) };
            shares[column] += own;
            shares[*other as usize] += 1.0 - own;
        }
        shares.iter().map(|share| share / self.columns.len() as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use super::*;

    proptest! {
        #[test]
        fn probabilities_are_those_of_the_counts(
            counts in proptest::collection::vec(prop_oneof![Just(0_u64), 1_u64..1_000_000], 1..200),
            exponent in -1.0..2.0_f64,
        ) {
            let weight = |count: &u64| if *count == 0 { 0.0 } else { (*count as f64).powf(exponent) };
            let total: f64 = counts.iter().map(weight).sum();
            let table = NoiseTable::new(&counts, exponent);
            if total == 0.0 {
                prop_assert!(table.is_err());
                return Ok(());
            }
            for (count, probability) in counts.iter().zip(table.unwrap().probabilities()) {
                prop_assert!((weight(count) / total - probability).abs() < 1e-8);
                prop_assert!(*count != 0 || probability == 0.0);
            }
        }
    }

    /// Chi-square of a million draws; the bound is passed by chance once in 10^6 seeds, and the
    /// seed is fixed.
    #[test]
    fn draws_have_the_probabilities() {
        let counts = [0, 1, 5, 1000, 37, 0, 12_345, 8];
        let table = NoiseTable::new(&counts, NoiseTable::EXPONENT).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut drawn = [0_u64; 8];
        let n_draws = 1_000_000;
        for _ in 0..n_draws {
            drawn[table.draw(random.next_u64()) as usize] += 1;
        }
        let mut chi_square = 0.0;
        for (n, probability) in drawn.iter().zip(table.probabilities()) {
            let expected = probability * f64::from(n_draws);
            if expected == 0.0 {
                assert_eq!(*n, 0);
            } else {
                chi_square += (*n as f64 - expected).powi(2) / expected;
            }
        }
        assert!(chi_square < 36.0, "{chi_square} with 5 degrees of freedom: {drawn:?}");
    }

    #[test]
    fn without_words_there_is_no_noise() {
        for (counts, exponent) in
            [(&[][..], 0.75), (&[0, 0], 0.75), (&[1], f64::NAN), (&[2], f64::INFINITY)]
        {
            assert!(NoiseTable::new(counts, exponent).is_err());
        }
    }
}
