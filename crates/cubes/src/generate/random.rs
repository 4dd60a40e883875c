//! Random numbers of the cubes, keyed by the seed and the decision, so that any image can be made
//! by itself.

use bench_run::{Choices, PositionHash};
use shuffle::RandomKey;

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

impl Decision {
    /// Random choices for this decision.
    pub(crate) fn choices(self, seed: u64) -> Choices {
        let (number, stream) = match self {
            Self::Spectra => (0, 0),
            Self::Response(domain) => (1, domain),
            Self::Subject(subject) => (2, subject),
            Self::Scene(image) => (3, image),
            Self::Noise(image) => (4, image),
        };
        Choices(RandomKey { domain: DOMAIN, seed, number }.stream(stream))
    }
}

/// `n` different numbers below `bound`, which is at least `n`.
pub(crate) fn some_of(choices: &mut Choices, n: usize, bound: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..bound).collect();
    for idx in 0..n {
        let other = idx + choices.below((bound - idx) as u32) as usize;
        numbers.swap(idx, other);
    }
    numbers.truncate(n);
    numbers
}

/// Noise of one image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise(PositionHash);

/// Mean of the sum of four uniform bytes.
const MEAN: i32 = 4 * 255 / 2;
/// One divided by the standard deviation of that sum, the root of 4 (256^2 - 1) / 12.
const SCALE: f32 = 1.0 / 147.801_2;

impl Noise {
    /// Keys the noise by 64 random bits.
    pub(crate) fn new(key: u64) -> Self {
        Self(PositionHash::new(key))
    }

    /// A number with mean 0 and standard deviation 1 for each position: the sum of four uniform
    /// numbers, which is close to a normal distribution and never beyond 3.5.
    pub(crate) fn at(self, position: u32) -> f32 {
        let bits = self.0.at(position);
        let pairs = (bits & 0x00ff_00ff) + ((bits >> 8) & 0x00ff_00ff);
        let sum = (pairs & 0xffff) + (pairs >> 16);
        (sum.cast_signed() - MEAN) as f32 * SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut choices = Decision::Spectra.choices(1);
        for n in 0..=5 {
            let mut numbers = some_of(&mut choices, n, 5);
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), n);
            assert!(numbers.iter().all(|number| *number < 5));
        }
    }
}
