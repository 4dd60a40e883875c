//! The letters of sequences, and their codes.

use std::fmt;

use crate::error::Error;

/// The code of a byte that is not a letter of the alphabet.
pub(crate) const NO_CODE: u8 = u8::MAX;

/// The letters that may occur in words, numbered from 0.
///
/// ```
/// use sequences::Alphabet;
///
/// assert_eq!(Alphabet::DNA.code(b'G'), Some(2));
/// assert_eq!(Alphabet::DNA.code(b'N'), None);
/// assert_eq!(Alphabet::DNA.code(b'g'), None);
/// assert_eq!(Alphabet::DNA.folding_case().code(b'g'), Some(2));
/// assert_eq!(Alphabet::new(b"ACGTU")?, Alphabet::NUCLEIC);
/// # Ok::<(), sequences::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Alphabet {
    /// The code of each byte.
    codes: [u8; 256],
    letters: [u8; Self::MAX_LETTERS],
    n_letters: u8,
}

impl Alphabet {
    /// The four bases of DNA.
    pub const DNA: Self = Self::from_letters(b"ACGT");
    /// The four bases of RNA.
    pub const RNA: Self = Self::from_letters(b"ACGU");
    /// The bases of DNA and RNA.
    pub const NUCLEIC: Self = Self::from_letters(b"ACGTU");
    /// The twenty amino acids of proteins.
    pub const PROTEIN: Self = Self::from_letters(b"ACDEFGHIKLMNPQRSTVWY");

    /// The largest number of letters.
    pub const MAX_LETTERS: usize = 64;

    /// `letters` must be different, and at most [`MAX_LETTERS`](Self::MAX_LETTERS).
    const fn from_letters(letters: &[u8]) -> Self {
        let mut codes = [NO_CODE; 256];
        let mut list = [0; Self::MAX_LETTERS];
        let mut code = 0;
        while code < letters.len() {
            codes[letters[code] as usize] = code as u8;
            list[code] = letters[code];
            code += 1;
        }
        Self { codes, letters: list, n_letters: letters.len() as u8 }
    }

    /// Numbers `letters` in their order.
    ///
    /// # Errors
    /// There are none or more than [`MAX_LETTERS`](Self::MAX_LETTERS), or one comes twice or is not
    /// a visible ASCII character.
    pub fn new(letters: &[u8]) -> Result<Self, Error> {
        let refused = |what: &str| {
            let letters = String::from_utf8_lossy(letters);
            Error::settings(format!("{letters:?} is not an alphabet: {what}"))
        };
        if letters.is_empty() || Self::MAX_LETTERS < letters.len() {
            return Err(refused(&format!("it needs 1 to {} letters", Self::MAX_LETTERS)));
        }
        if let Some(letter) = letters.iter().find(|letter| !letter.is_ascii_graphic()) {
            return Err(refused(&format!("{:?} is not a letter", char::from(*letter))));
        }
        let alphabet = Self::from_letters(letters);
        let is_twice =
            |(code, letter): (usize, &u8)| alphabet.code(*letter) != u8::try_from(code).ok();
        match letters.iter().enumerate().find(|letter| is_twice(*letter)) {
            Some((_, letter)) => Err(refused(&format!("{:?} comes twice", char::from(*letter)))),
            None => Ok(alphabet),
        }
    }

    /// The same alphabet, in which the other case of each letter is the letter, too, unless both
    /// cases are letters of their own.
    #[must_use]
    pub fn folding_case(mut self) -> Self {
        for (code, letter) in (0..).zip(self.letters().to_owned()) {
            for other in [letter.to_ascii_lowercase(), letter.to_ascii_uppercase()] {
                let of_other = &mut self.codes[usize::from(other)];
                if *of_other == NO_CODE {
                    *of_other = code;
                }
            }
        }
        self
    }

    /// The letters by their codes.
    pub fn letters(&self) -> &[u8] {
        &self.letters[..usize::from(self.n_letters)]
    }

    /// The code of a letter; `None` if it is not of this alphabet.
    pub fn code(&self, letter: u8) -> Option<u8> {
        Some(self.codes[usize::from(letter)]).filter(|code| *code != NO_CODE)
    }

    /// Number of bits of a code.
    pub(crate) fn bits(&self) -> u32 {
        (usize::BITS - (self.letters().len() - 1).leading_zeros()).max(1)
    }

    /// The codes of all bytes.
    pub(crate) fn codes(&self) -> &[u8; 256] {
        &self.codes
    }
}

impl fmt::Display for Alphabet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.letters()))
    }
}

impl fmt::Debug for Alphabet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alphabet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_hold_all_codes() {
        for (letters, bits) in
            [(&b"A"[..], 1), (b"AC", 1), (b"ACG", 2), (b"ACGT", 2), (b"ACGTU", 3)]
        {
            assert_eq!(Alphabet::new(letters).unwrap().bits(), bits);
        }
        assert_eq!(Alphabet::PROTEIN.bits(), 5);
    }

    #[test]
    fn what_is_not_an_alphabet_is_refused() {
        let many: Vec<u8> = (b'!'..=b'z').collect();
        for letters in [&b""[..], b"ACA", b"A C", "AÄ".as_bytes(), &many] {
            assert!(Alphabet::new(letters).is_err(), "{letters:?}");
        }
    }

    #[test]
    fn cases_are_folded_unless_both_are_letters() {
        let alphabet = Alphabet::new(b"Aab").unwrap().folding_case();
        assert_eq!(
            [b'A', b'a', b'b', b'B'].map(|letter| alphabet.code(letter)),
            [Some(0), Some(1), Some(2), Some(2)]
        );
    }
}
