//! Keys of random numbers.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Selects random numbers: the same key and stream give the same numbers on every machine, and
/// whatever differs in either gives independent ones. So anything can be drawn by itself, in any
/// order and in any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomKey {
    /// Whose numbers they are. Keeps users of equal seeds apart; changing it changes every number.
    pub domain: [u8; 16],
    /// The seed.
    pub seed: u64,
    /// The epoch, or the kind of decision.
    pub number: u64,
}

impl RandomKey {
    /// The generator of one of the key's streams.
    pub fn stream(self, stream: u64) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.number.to_le_bytes());
        key[16..].copy_from_slice(&self.domain);
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        generator
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::Rng as _;

    use super::*;

    #[test]
    fn keys_and_streams_do_not_share_numbers() {
        let mut all = Vec::new();
        for domain in [*b"somafeed weather", *b"somafeed letters"] {
            for seed in [5, 6] {
                for (number, stream) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
                    all.push(RandomKey { domain, seed, number }.stream(stream).next_u64());
                }
            }
        }
        let n = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), n);
    }

    #[test]
    fn numbers_stay_those_of_earlier_versions() {
        let key = RandomKey { domain: *b"somafeed shuffle", seed: 1, number: 2 };
        let drawn = [0, 3].map(|stream| key.stream(stream).next_u64());
        assert_eq!(drawn, [0x91ac_da6b_4fa3_e47a, 0x974d_a0e7_6ccd_1d0e]);
    }
}
