//! The random numbers of plans, samples and splits: keyed, and the same on every machine.
//!
//! The permutation and the bounded draw are written here, and not taken from a library, so that no release of one can change the
//! order that a seed stands for.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Sets our use of ChaCha apart from others with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed shuffle";

/// As [`DOMAIN`], for splits: another key, so that no stream of a split is one of a plan, whatever seed and epoch.
const SPLIT_DOMAIN: [u8; 16] = *b"somafeed  splits";

/// As [`DOMAIN`], for samples.
const SAMPLE_DOMAIN: [u8; 16] = *b"somafeed samples";

/// As [`DOMAIN`], for the order in which rows are stored.
const STORAGE_DOMAIN: [u8; 16] = *b"somafeed storage";

/// The lanes whose streams are kept apart.
pub(crate) const MOST_LANES: u64 = 1 << 20;

/// What is decided, as the stream of the generator.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// The order of the chunks.
    ChunkOrder,
    /// The order of the rows of a window of a lane.
    RowOrder {
        /// Which lane, below [`MOST_LANES`].
        lane: u64,
        /// Which of its windows, below 2^40.
        window: u64,
    },
}

/// What is decided for a split, as the stream of the generator. The numbers are part of what a seed stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SplitDecision {
    /// Which rows come into which split.
    Rows = 0,
    /// Which splits, or which splits of which labels, are rounded up.
    Sizes = 1,
    /// The order in which groups are given to splits.
    GroupOrder = 2,
}

/// What is decided for a sample, as the stream of the generator. The numbers are part of what a seed stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SampleDecision {
    /// Draws with replacement.
    Draws = 0,
    /// The keys of draws without replacement.
    Keys = 1,
    /// Which rows of each class.
    OfClass = 2,
}

/// The generator for one decision of one epoch.
pub(crate) fn generator(seed: u64, epoch: u64, decision: Decision) -> ChaCha8Rng {
    let stream = match decision {
        Decision::ChunkOrder => 0,
        Decision::RowOrder { lane, window } => 1 + window + (lane << 40),
    };
    keyed(seed, epoch, DOMAIN, stream)
}

/// The generator for one decision of a split; a split has no epoch.
pub(crate) fn split_generator(seed: u64, decision: SplitDecision) -> ChaCha8Rng {
    keyed(seed, 0, SPLIT_DOMAIN, decision as u64)
}

/// The generator for the sample of one epoch.
pub(crate) fn sample_generator(seed: u64, epoch: u64, decision: SampleDecision) -> ChaCha8Rng {
    keyed(seed, epoch, SAMPLE_DOMAIN, decision as u64)
}

/// The generator for the order in which rows are stored; there is no epoch yet.
pub(crate) fn storage_generator(seed: u64) -> ChaCha8Rng {
    keyed(seed, 0, STORAGE_DOMAIN, 0)
}

fn keyed(seed: u64, epoch: u64, domain: [u8; 16], stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&epoch.to_le_bytes());
    key[16..].copy_from_slice(&domain);
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(stream);
    generator
}

/// A number below `bound`, each as likely; `bound` is at least 1.
///
/// The high half of a product with rejection of the surplus: Lemire, "Fast Random Integer Generation in an Interval" (2019).
pub(crate) fn below(generator: &mut ChaCha8Rng, bound: u64) -> u64 {
    let surplus = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        if product as u64 >= surplus {
            return (product >> 64) as u64;
        }
    }
}

/// Puts `items` into random order, each order as likely: Fisher and Yates, from the last to the first.
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
        // Chi-squared of 60,000 draws over 6 faces: 5 degrees of freedom, 20.5 is passed once in a thousand.
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
        // 24,000 orders of 4 items: 23 degrees of freedom, 49.7 is passed once in a thousand.
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
    fn bounds_at_the_edges() {
        let mut generator = generator(0, 0, Decision::ChunkOrder);
        assert_eq!(below(&mut generator, 1), 0);
        assert!((0..100).all(|_| below(&mut generator, u64::MAX) < u64::MAX));
    }
}
