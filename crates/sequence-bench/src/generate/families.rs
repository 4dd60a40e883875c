//! Families of related sequences.

use rand_chacha::rand_core::Rng as _;

use super::random::{Decision, FourLetters, generator};
use crate::Error;

/// Families of DNA: each has a random ancestor, and its members are copies of it in which each
/// letter is exchanged for another one with the same probability. Nothing is inserted or left out,
/// so all members have the ancestor's length.
///
/// Sequence `i` is member `i / n_families` of family `i % n_families`: relatives are never
/// neighbours in the file. It is named `family_F_member_M`, both from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Families {
    /// Number of families.
    pub n_families: u64,
    /// Number of members of each.
    pub n_members: u64,
    /// Share of the letters that differ from the ancestor's, 0 to 1.
    pub mutations: f64,
    /// Letters of a sequence.
    pub n_letters: usize,
}

/// Letters of the longest sequence: more is surely a typo.
const MOST_LETTERS: usize = 1 << 30;

impl Families {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { n_families, n_members, mutations, n_letters } = self;
        if !(0.0..=1.0).contains(mutations) {
            return Err(Error::settings(format!(
                "the share of mutations is {mutations}; it must be between 0 and 1"
            )));
        }
        if !(1..=MOST_LETTERS).contains(n_letters) {
            return Err(Error::settings(format!(
                "sequences have {n_letters} letters; expected 1 to {MOST_LETTERS}"
            )));
        }
        match n_families.checked_mul(*n_members) {
            Some(n) if 0 < n && u32::try_from(n).is_ok() => Ok(()),
            _ => Err(Error::settings(format!(
                "{n_families} families of {n_members} members are none, or more than 2^32 sequences"
            ))),
        }
    }

    /// Number of sequences.
    pub fn n_sequences(&self) -> u64 {
        self.n_families * self.n_members
    }

    /// Writes the letters and the name of a sequence.
    pub(super) fn sequence(&self, seed: u64, idx: u64, letters: &mut Vec<u8>) -> String {
        let (family, member) = (idx % self.n_families, idx / self.n_families);
        let alphabet = FourLetters::DNA;
        letters.clear();
        let mut of_ancestor = generator(seed, Decision::Ancestor(family));
        alphabet.fill(&mut of_ancestor, self.n_letters, letters);
        let mut random = generator(seed, Decision::Mutations(idx));
        // A share of 1 is all 2^32 numbers.
        let threshold = (self.mutations * 2_f64.powi(32)) as u64;
        for letter in letters {
            if u64::from(random.next_u32()) < threshold {
                *letter = alphabet.other(*letter, &mut random);
            }
        }
        format!("family_{family}_member_{member}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILIES: Families =
        Families { n_families: 3, n_members: 4, mutations: 0.1, n_letters: 5_000 };

    fn letters(families: &Families, idx: u64) -> (String, Vec<u8>) {
        let mut letters = Vec::new();
        let name = families.sequence(7, idx, &mut letters);
        (name, letters)
    }

    fn differ(one: &[u8], other: &[u8]) -> f64 {
        let n = one.iter().zip(other).filter(|(a, b)| a != b).count();
        n as f64 / one.len() as f64
    }

    #[test]
    fn members_differ_from_their_ancestor_by_the_share() {
        let unchanged = Families { mutations: 0.0, ..FAMILIES };
        let (name, ancestor) = letters(&unchanged, 1);
        assert_eq!(name, "family_1_member_0");
        for member in 0..4 {
            let (name, member_letters) = letters(&FAMILIES, 1 + 3 * member);
            assert_eq!(name, format!("family_1_member_{member}"));
            assert!((differ(&ancestor, &member_letters) - 0.1).abs() < 0.022);
        }
        let relatives = differ(&letters(&FAMILIES, 1).1, &letters(&FAMILIES, 4).1);
        // Both are mutated, and some letters became the same one.
        assert!((relatives - (2.0 * 0.1 - 0.01 - 0.01 / 3.0)).abs() < 0.03, "{relatives}");
        let strangers = differ(&letters(&FAMILIES, 1).1, &letters(&FAMILIES, 2).1);
        assert!((strangers - 0.75).abs() < 0.04, "{strangers}");
        let all = Families { mutations: 1.0, ..FAMILIES };
        assert_eq!(differ(&ancestor, &letters(&all, 4).1), 1.0);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for families in [
            Families { mutations: 1.5, ..FAMILIES },
            Families { mutations: f64::NAN, ..FAMILIES },
            Families { n_letters: 0, ..FAMILIES },
            Families { n_members: 0, ..FAMILIES },
            Families { n_families: u64::MAX, ..FAMILIES },
        ] {
            assert!(families.check().unwrap_err().is_usage(), "{families:?}");
        }
        FAMILIES.check().unwrap();
    }
}
