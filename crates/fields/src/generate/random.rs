//! Random numbers of the fields, keyed by the seed and the decision, so that any part can be made
//! by itself.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Keeps our streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed weather";

/// A random decision; its number selects a stream of ChaCha.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// The pattern of a channel.
    Channel(u64),
    /// The speeds of a group of channels.
    Group(u64),
    /// The noise of a group of channels in all samples.
    Noise(u64),
}

/// Random choices for one decision.
#[derive(Debug)]
pub(crate) struct Choices(ChaCha8Rng);

impl Choices {
    pub(crate) fn new(seed: u64, decision: Decision) -> Self {
        let (kind, stream) = match decision {
            Decision::Channel(channel) => (0_u64, channel),
            Decision::Group(group) => (1, group),
            Decision::Noise(group) => (2, group),
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
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

/// Noise of one group of channels at one time: a hash of the position, because a generator for
/// each value would cost more than the value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    before: u32,
    between: u32,
}

impl Noise {
    /// Keys the noise by the group's own 64 random bits and the time.
    pub(crate) fn new(group_key: u64, time: u64) -> Self {
        let key = mixed(group_key ^ mixed(time.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        Self { before: key as u32, between: (key >> 32) as u32 }
    }

    /// A uniform whole number, for each position another one.
    pub(crate) fn at(self, position: u32) -> i32 {
        // Two rounds of multiplying and shifting, with constants that mix well for 32 bits.
        let mut bits = position ^ self.before;
        bits = (bits ^ (bits >> 16)).wrapping_mul(0x7feb_352d);
        bits = (bits ^ (bits >> 15)).wrapping_add(self.between).wrapping_mul(0x846c_a68b);
        (bits ^ (bits >> 16)).cast_signed()
    }
}

/// Mixes 64 bits, so that neighbours become unlike each other: the last step of SplitMix64.
fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_do_not_share_numbers() {
        let decisions = [
            Decision::Channel(0),
            Decision::Channel(1),
            Decision::Group(0),
            Decision::Group(1),
            Decision::Noise(0),
            Decision::Noise(1),
        ];
        let first = |seed| decisions.map(|decision| Choices::new(seed, decision).bits());
        let mut all = [first(5), first(6)].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * decisions.len());
    }

    #[test]
    fn noise_is_uniform_and_differs_between_times() {
        let noise = [Noise::new(7, 0), Noise::new(7, 1)];
        let n = 20_000;
        let draws = noise.map(|noise| {
            (0..n).map(|position| f64::from(noise.at(position)) / f64::from(1_u32 << 31)).collect()
        });
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        for values in &draws {
            let values: &Vec<f64> = values;
            let squares: Vec<f64> = values.iter().map(|value| value * value).collect();
            // Five standard errors.
            assert!(mean(values).abs() < 0.021, "{}", mean(values));
            assert!((mean(&squares) - 1.0 / 3.0).abs() < 0.011, "{}", mean(&squares));
        }
        let products: Vec<f64> = draws[0].iter().zip(&draws[1]).map(|(a, b)| a * b).collect();
        assert!(mean(&products).abs() < 0.012, "{}", mean(&products));
    }
}
