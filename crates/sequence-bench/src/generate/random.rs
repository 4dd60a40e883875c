//! Random letters, keyed by the seed and the sequence, so that any sequence can be made by itself.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use shuffle::RandomKey;

/// Keeps our streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed letters";

/// A random decision; its number selects a stream of ChaCha.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision {
    /// The letters of a sequence without relatives.
    Letters(u64),
    /// The ancestor of a family.
    Ancestor(u64),
    /// How a sequence differs from its ancestor.
    Mutations(u64),
}

/// The generator of a decision.
pub(crate) fn generator(seed: u64, decision: Decision) -> ChaCha8Rng {
    let (number, stream) = match decision {
        Decision::Letters(sequence) => (0, sequence),
        Decision::Ancestor(family) => (1, family),
        Decision::Mutations(sequence) => (2, sequence),
    };
    RandomKey { domain: DOMAIN, seed, number }.stream(stream)
}

/// Four letters, each with the same probability.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FourLetters(pub(crate) [u8; 4]);

impl FourLetters {
    /// In the order in which Dragon's generator lists them.
    pub(crate) const DNA: Self = Self(*b"ATCG");
    pub(crate) const RNA: Self = Self(*b"AUCG");

    /// Appends `n` random letters.
    pub(crate) fn fill(self, random: &mut ChaCha8Rng, n: usize, into: &mut Vec<u8>) {
        let end = into.len() + n;
        // 64 bits are 32 letters.
        while into.len() < end {
            let mut bits = random.next_u64();
            let letters: [u8; 32] = std::array::from_fn(|_| {
                let letter = self.0[(bits & 3) as usize];
                bits >>= 2;
                letter
            });
            into.extend_from_slice(&letters[..(end - into.len()).min(32)]);
        }
    }

    /// Another one than `letter`, each with the same probability.
    pub(crate) fn other(self, letter: u8, random: &mut ChaCha8Rng) -> u8 {
        let place = self.0.iter().position(|of| *of == letter).unwrap_or(0);
        // The high half of the product is 0, 1 or 2.
        let step = 1 + ((u64::from(random.next_u32()) * 3) >> 32) as usize;
        self.0[(place + step) % 4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_uniform() {
        let mut letters = Vec::new();
        FourLetters::RNA.fill(&mut generator(3, Decision::Letters(0)), 40_001, &mut letters);
        assert_eq!(letters.len(), 40_001);
        let text = String::from_utf8(letters).unwrap();
        for letter in ["A", "C", "G", "U"] {
            let n = text.matches(letter).count();
            // Five standard deviations around 10,000.
            assert!((9_567..=10_433).contains(&n), "{n}");
        }
    }

    #[test]
    fn another_letter_is_one_of_the_other_three() {
        let mut random = generator(3, Decision::Mutations(0));
        let mut counts = [0; 4];
        for _ in 0..3_000 {
            let other = FourLetters::DNA.other(b'C', &mut random);
            counts[b"ACGT".iter().position(|of| *of == other).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!([0, 2, 3].iter().all(|at| (870..1_130).contains(&counts[*at])), "{counts:?}");
    }
}
