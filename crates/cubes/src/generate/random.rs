//! Random numbers of the cubes, keyed by the seed and the decision, so that any image can be made
//! by itself.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Keeps our streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed   cubes";

/// A random decision; its number selects a stream of ChaCha.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// The spectra of all classes.
    Spectra,
    /// The response of a domain.
    Response(u64),
    /// How a subject differs from the others.
    Subject(u64),
    /// What an image shows.
    Scene(u64),
    /// The noise of an image.
    Noise(u64),
}

/// Random choices for one decision.
#[derive(Debug)]
pub(crate) struct Choices(ChaCha8Rng);

impl Choices {
    pub(crate) fn new(seed: u64, decision: Decision) -> Self {
        let (kind, stream) = match decision {
            Decision::Spectra => (0_u64, 0),
            Decision::Response(domain) => (1, domain),
            Decision::Subject(subject) => (2, subject),
            Decision::Scene(image) => (3, image),
            Decision::Noise(image) => (4, image),
        };
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&kind.to_le_bytes());
        key[16..].copy_from_slice(&DOMAIN);
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// A number of 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    /// A uniform number between two.
    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + self.share() * (most - least)
    }

    /// A whole number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.0.next_u32()) * bound as u64) >> 32) as usize
    }

    /// `n` different numbers below `bound`, which is at least `n`.
    pub(crate) fn some_of(&mut self, n: usize, bound: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..bound).collect();
        for idx in 0..n {
            let other = idx + self.below(bound - idx);
            numbers.swap(idx, other);
        }
        numbers.truncate(n);
        numbers
    }
}

/// Noise of one image: a hash of the position, because a generator for each value would cost more
/// than the value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    before: u32,
    between: u32,
}

/// Mean of the sum of four uniform bytes.
const MEAN: i32 = 4 * 255 / 2;
/// One divided by the standard deviation of that sum, the root of 4 (256^2 - 1) / 12.
const SCALE: f32 = 1.0 / 147.801_2;

impl Noise {
    /// Keys the noise by 64 random bits.
    pub(crate) fn new(key: u64) -> Self {
        Self { before: key as u32, between: (key >> 32) as u32 }
    }

    /// A number with mean 0 and standard deviation 1 for each position: the sum of four uniform
    /// numbers, which is close to a normal distribution and never beyond 3.5.
    pub(crate) fn at(self, position: u32) -> f32 {
        // Two rounds of multiplying and shifting, with constants that mix well for 32 bits.
        let mut bits = position ^ self.before;
        bits = (bits ^ (bits >> 16)).wrapping_mul(0x7feb_352d);
        bits = (bits ^ (bits >> 15)).wrapping_add(self.between).wrapping_mul(0x846c_a68b);
        bits ^= bits >> 16;
        let pairs = (bits & 0x00ff_00ff) + ((bits >> 8) & 0x00ff_00ff);
        let sum = (pairs & 0xffff) + (pairs >> 16);
        (sum.cast_signed() - MEAN) as f32 * SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_do_not_share_numbers() {
        let decisions = [
            Decision::Spectra,
            Decision::Response(0),
            Decision::Response(1),
            Decision::Subject(0),
            Decision::Scene(0),
            Decision::Scene(1),
            Decision::Noise(0),
        ];
        let first = |seed| decisions.map(|decision| Choices::new(seed, decision).bits());
        let mut all = [first(5), first(6)].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * decisions.len());
    }

    #[test]
    fn noise_has_mean_0_and_deviation_1_and_differs_between_images() {
        let n = 20_000;
        let draws: [Vec<f64>; 2] = [7, 8_u64 << 32].map(|key| {
            let noise = Noise::new(key);
            (0..n).map(|position| f64::from(noise.at(position))).collect()
        });
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        for values in &draws {
            let squares: Vec<f64> = values.iter().map(|value| value * value).collect();
            // Five standard errors.
            assert!(mean(values).abs() < 0.036, "{}", mean(values));
            assert!((mean(&squares) - 1.0).abs() < 0.05, "{}", mean(&squares));
            assert!(values.iter().all(|value| value.abs() < 3.5));
        }
        let products: Vec<f64> = draws[0].iter().zip(&draws[1]).map(|(a, b)| a * b).collect();
        assert!(mean(&products).abs() < 0.036, "{}", mean(&products));
    }

    #[test]
    fn some_numbers_are_different() {
        let mut choices = Choices::new(1, Decision::Spectra);
        for n in 0..=5 {
            let mut numbers = choices.some_of(n, 5);
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), n);
            assert!(numbers.iter().all(|number| *number < 5));
        }
    }
}
