//! Keyed random numbers of training: the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use shuffle::RandomKey;

/// Keeps our streams apart from other users of ChaCha with the same seed.
const DOMAIN: [u8; 16] = *b"somafeed doc2vec";

/// A random decision of training; it selects the generator's stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// The word vectors before training.
    Words,
    /// The document vectors before training.
    Documents,
    /// Noise, subsampling and windows of one document in one epoch: the number of documents that
    /// were trained on before it.
    Document(u64),
    /// The vector with which an inferred one begins.
    FirstInferred,
    /// Noise, subsampling and windows of any document in this epoch of its inference.
    Inferred(u64),
}

/// The generator for one decision.
pub(crate) fn generator(seed: u64, decision: Decision) -> ChaCha8Rng {
    let (number, stream) = match decision {
        Decision::Words => (0, 0),
        Decision::Documents => (0, 1),
        Decision::Document(number) => (0, 2 + number),
        Decision::FirstInferred => (1, 0),
        Decision::Inferred(epoch) => (1, 1 + epoch),
    };
    RandomKey { domain: DOMAIN, seed, number }.stream(stream)
}

/// A uniform number from -0.5 to less than 0.5, a multiple of 2^-24.
pub(crate) fn centred(generator: &mut ChaCha8Rng) -> f32 {
    (generator.next_u32() >> 8) as f32 / (1 << 24) as f32 - 0.5
}

/// A number below `bound` from 64 random bits. It is uniform but for a part of `bound / 2^64`.
pub(crate) fn below(random: u64, bound: usize) -> usize {
    ((u128::from(random) * bound as u128) >> 64) as usize
}
