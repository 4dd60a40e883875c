//! Random choices.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

/// Random choices for one decision.
#[derive(Debug)]
pub struct Choices(pub ChaCha8Rng);

impl Choices {
    /// A number of 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number between 0 and 1.
    pub fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    /// A uniform number between two.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + self.share() * (most - least)
    }

    /// A whole number below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

/// Random bits by position: a hash, because a generator for each value would cost more than the
/// value.
#[derive(Debug, Clone, Copy)]
pub struct PositionHash {
    before: u32,
    between: u32,
}

impl PositionHash {
    /// Keys the hash by 64 random bits.
    pub fn new(key: u64) -> Self {
        Self { before: key as u32, between: (key >> 32) as u32 }
    }

    /// The bits of a position.
    pub fn at(self, position: u32) -> u32 {
        // Two rounds of multiplying and shifting, with constants that mix well for 32 bits.
        let mut bits = position ^ self.before;
        bits = (bits ^ (bits >> 16)).wrapping_mul(0x7feb_352d);
        bits = (bits ^ (bits >> 15)).wrapping_add(self.between).wrapping_mul(0x846c_a68b);
        bits ^ (bits >> 16)
    }
}
