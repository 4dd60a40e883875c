//! Keyed random numbers for plans, samples and splits: the same on every machine.
//!
//! The permutation and the bounded draw are our own, so that no release of a library can change the
//! order that a seed gives.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::random_key::RandomKey;

/// Keeps our streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed shuffle";

/// Like [`DOMAIN`], for splits: another key, so that no stream of a split equals one of a plan, for
/// any seed and epoch.
const SPLIT_DOMAIN: [u8; 16] = *b"somafeed  splits";

/// Like [`DOMAIN`], for samples.
const SAMPLE_DOMAIN: [u8; 16] = *b"somafeed samples";

/// Like [`DOMAIN`], for the order in which rows are stored.
const STORAGE_DOMAIN: [u8; 16] = *b"somafeed storage";

/// Largest number of lanes that have streams of their own.
pub(crate) const MAX_LANES: u64 = 1 << 20;

/// A random decision of a plan; it selects the generator's stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// The order of the chunks.
    ChunkOrder,
    /// The order of the rows in a window of a lane.
    RowOrder {
        /// The lane, below [`MAX_LANES`].
        lane: u64,
        /// The lane's window, below 2^40.
        window: u64,
    },
}

/// A random decision of a split; it selects the generator's stream. Changing a number would change
/// the splits that a seed gives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SplitDecision {
    /// Which rows go into which split.
    Rows = 0,
    /// Which splits, or which splits of which labels, are rounded up.
    Sizes = 1,
    /// The order in which groups are assigned to splits.
    GroupOrder = 2,
}

/// A random decision of a sample; it selects the generator's stream. Changing a number would change
/// the samples that a seed gives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SampleDecision {
    /// Draws with replacement.
    Draws = 0,
    /// The keys of draws without replacement.
    Keys = 1,
    /// The rows drawn from each class.
    OfClass = 2,
    /// Draws of equally likely rows with replacement.
    Uniform = 3,
    /// Draws of whole batches.
    Batches = 4,
    /// The order and the controls of batches of one group each.
    GroupBatches = 5,
}

/// The generator for one decision in one epoch.
pub(crate) fn generator(seed: u64, epoch: u64, decision: Decision) -> ChaCha8Rng {
    let stream = match decision {
        Decision::ChunkOrder => 0,
        Decision::RowOrder { lane, window } => 1 + window + (lane << 40),
    };
    RandomKey { domain: DOMAIN, seed, number: epoch }.stream(stream)
}

/// The generator for one decision of a split; a split has no epoch.
pub(crate) fn split_generator(seed: u64, decision: SplitDecision) -> ChaCha8Rng {
    RandomKey { domain: SPLIT_DOMAIN, seed, number: 0 }.stream(decision as u64)
}

/// What the sample of an epoch is drawn by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleSeed {
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
}

impl SampleSeed {
    /// The generator for one decision.
    pub(crate) fn generator(self, decision: SampleDecision) -> ChaCha8Rng {
        let key = RandomKey { domain: SAMPLE_DOMAIN, seed: self.seed, number: self.epoch };
        key.stream(decision as u64)
    }
}

/// The generator for the order in which rows are stored; it has no epoch.
pub(crate) fn storage_generator(seed: u64) -> ChaCha8Rng {
    RandomKey { domain: STORAGE_DOMAIN, seed, number: 0 }.stream(0)
}

/// A uniform random number below `bound`, which is at least 1.
///
/// Takes the high half of a product and rejects the surplus: Lemire, "Fast Random Integer
/// Generation in an Interval" (2019).
pub(crate) fn below(generator: &mut ChaCha8Rng, bound: u64) -> u64 {
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        // The surplus is below the bound, so that it is seldom computed.
        let low = product as u64;
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

impl RandomKey {
    /// Uniform random numbers of one of the key's streams, the first of which is below the first
    /// bound, and so on. Below a bound of 0 is 0.
    pub fn draws_below(
        self,
        stream: u64,
        bounds: impl IntoIterator<Item = u64>,
    ) -> impl Iterator<Item = u64> {
        let mut generator = self.stream(stream);
        bounds.into_iter().map(move |bound| below(&mut generator, bound.max(1)))
    }
}

/// Permutes `items` uniformly: Fisher-Yates, from the last item to the first.
pub(crate) fn permute(generator: &mut ChaCha8Rng, items: &mut [u32]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(generator, last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform() {
        // Chi-squared of 60,000 draws over 6 faces with 5 degrees of freedom: above 20.5 once in a
        // thousand.
        for seed in 0..5 {
            let mut generator = generator(seed, 0, Decision::ChunkOrder);
            let mut counts = [0_u32; 6];
            for _ in 0..60_000 {
                counts[below(&mut generator, 6) as usize] += 1;
            }
            let chi_squared: f64 =
                counts.iter().map(|count| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0).sum();
            assert!(chi_squared < 20.5, "seed {seed}: {chi_squared}");
        }
    }

    #[test]
    fn every_order_is_as_likely() {
        // 24,000 orders of 4 items with 23 degrees of freedom: above 49.7 once in a thousand.
        let mut generator = generator(1, 2, Decision::RowOrder { lane: 0, window: 3 });
        let mut counts = std::collections::HashMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            permute(&mut generator, &mut items);
            *counts.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi_squared: f64 =
            counts.values().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_squared < 49.7, "{chi_squared}");
    }

    #[test]
    fn draws_of_a_key_are_below_their_bounds() {
        let key = RandomKey { domain: DOMAIN, seed: 1, number: 2 };
        let draws: Vec<u64> = key.draws_below(3, [10, 0, 1, 1 << 40]).collect();
        assert_eq!(draws, key.draws_below(3, [10, 0, 1, 1 << 40]).collect::<Vec<_>>());
        assert!(draws[0] < 10 && draws[1..3] == [0, 0] && draws[3] < 1 << 40, "{draws:?}");
        let all: std::collections::HashSet<u64> =
            (0..200).flat_map(|stream| key.draws_below(stream, [7])).collect();
        assert_eq!(all, (0..7).collect());
    }

    #[test]
    fn bounds_at_the_edges() {
        let mut generator = generator(0, 0, Decision::ChunkOrder);
        assert_eq!(below(&mut generator, 1), 0);
        assert!((0..100).all(|_| below(&mut generator, u64::MAX) < u64::MAX));
    }
}
