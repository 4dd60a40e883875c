//! Random numbers of a cell: the same on every machine, whatever batch, rank or thread it is in.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use shuffle::RandomKey;

/// Keeps these streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed  tokens";

/// The generator of one cell in one epoch.
pub(crate) fn generator(seed: u64, epoch: u64, cell: u64) -> ChaCha8Rng {
    RandomKey { domain: DOMAIN, seed, number: epoch }.stream(cell)
}

/// A uniform random number below `bound`, which is at least 1.
///
/// Takes the high half of a product and rejects the surplus: Lemire, "Fast Random Integer
/// Generation in an Interval" (2019).
#[inline]
pub(crate) fn below(generator: &mut ChaCha8Rng, bound: u32) -> u32 {
    loop {
        let product = u64::from(generator.next_u32()) * u64::from(bound);
        // The surplus is below the bound, so that it is seldom computed.
        let low = product as u32;
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 32) as u32;
        }
    }
}
