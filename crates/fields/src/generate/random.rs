//! Random numbers of the fields, keyed by the seed and the decision, so that any part can be made
//! by itself.

use bench_run::{Choices, PositionHash};
use shuffle::RandomKey;

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

impl Decision {
    /// Random choices for this decision.
    pub(crate) fn choices(self, seed: u64) -> Choices {
        let (number, stream) = match self {
            Self::Channel(channel) => (0, channel),
            Self::Group(group) => (1, group),
            Self::Noise(group) => (2, group),
        };
        Choices(RandomKey { domain: DOMAIN, seed, number }.stream(stream))
    }
}

/// Noise of one group of channels at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise(PositionHash);

impl Noise {
    /// Keys the noise by the group's own 64 random bits and the time.
    pub(crate) fn new(group_key: u64, time: u64) -> Self {
        let key = mixed(group_key ^ mixed(time.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        Self(PositionHash::new(key))
    }

    /// A uniform whole number, for each position another one.
    pub(crate) fn at(self, position: u32) -> i32 {
        self.0.at(position).cast_signed()
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
