//! Words of `k` letters, and the frames in which they follow each other.

use crate::alphabet::{Alphabet, NO_CODE};
use crate::error::Error;

/// How a sequence is cut into k-mers: words of `k` consecutive letters.
///
/// A sequence is first padded with `padding * k` letters at each end, one kind before it and
/// another one after it. Frame `f` has the k-mers that begin at `f`, `f + stride`, `f + 2 * stride`
/// ... of the padded sequence, as long as they are whole. A window of context never crosses from
/// one frame to the next.
///
/// The default is that of [Dragon's Doc2Vec example]: all four frames of 4-mers that do not
/// overlap, with padding for a context of three words.
///
/// A sequence of fewer than `k` letters has no k-mers, and empty frames.
///
/// ```
/// use sequences::KmerSpec;
///
/// let dragon = KmerSpec::default();
/// assert_eq!(dragon, KmerSpec::all_frames(4, 3));
/// // 262 + 261 + 261 + 261 words, of which 24 are only context.
/// assert_eq!(dragon.n_words(1024), 1045);
/// assert_eq!(KmerSpec::overlapping(4, 0).n_words(1024), 1021);
/// ```
///
/// [Dragon's Doc2Vec example]: https://github.com/DragonHPC/dragon/tree/main/examples/dragon_ai/dna_rna_dataloader
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KmerSpec {
    /// Letters of a word.
    pub k: usize,
    /// Letters from the beginning of a word to that of the next one in its frame.
    pub stride: usize,
    /// Number of frames, which begin one letter after the other. At most `stride`.
    pub n_frames: usize,
    /// Words of padding at each end of a sequence.
    pub padding: usize,
}

impl Default for KmerSpec {
    fn default() -> Self {
        Self::all_frames(4, 3)
    }
}

impl KmerSpec {
    /// Words that do not overlap, in all `k` frames.
    pub fn all_frames(k: usize, padding: usize) -> Self {
        Self { k, stride: k, n_frames: k, padding }
    }

    /// All words of a sequence in one frame: each begins one letter after the one before.
    pub fn overlapping(k: usize, padding: usize) -> Self {
        Self { k, stride: 1, n_frames: 1, padding }
    }

    /// Number of words of a sequence of `n_letters`, over all frames.
    pub fn n_words(&self, n_letters: usize) -> usize {
        (0..self.n_frames).map(|frame| self.frame(frame, n_letters).n_words()).sum()
    }

    /// Checks the settings for an alphabet.
    ///
    /// # Errors
    /// One is 0, there are more frames than the stride has letters, or there are too many possible
    /// words to number them all.
    pub fn check(&self, alphabet: &Alphabet) -> Result<(), Error> {
        if self.k == 0 || self.stride == 0 || self.n_frames == 0 {
            return Err(Error::settings("k, the stride and the number of frames must not be 0"));
        }
        if self.stride < self.n_frames {
            return Err(Error::settings(format!(
                "{} frames of stride {} would repeat words: there can be at most as many frames \
                 as letters of the stride",
                self.n_frames, self.stride
            )));
        }
        let most = (MAX_CODE_BITS / alphabet.bits()) as usize;
        if most < self.k {
            return Err(Error::settings(format!(
                "k = {} is too large for the {} letters {alphabet}: the largest is {most}",
                self.k,
                alphabet.letters().len()
            )));
        }
        if self.padding.checked_mul(self.k).is_none_or(|letters| MAX_PADDING < letters) {
            return Err(Error::settings(format!(
                "{} words of padding are too many: {MAX_PADDING} letters are the most",
                self.padding
            )));
        }
        Ok(())
    }

    /// The words of a frame.
    pub(crate) fn frame(&self, frame: usize, n_letters: usize) -> Frame {
        let padding = self.padding * self.k;
        let padded = n_letters + 2 * padding;
        let n_words = match padded.checked_sub(frame + self.k) {
            Some(rest) if self.k <= n_letters => rest / self.stride + 1,
            _ => 0,
        };
        // A word begins within the sequence if it begins at `padding` or later.
        let n_before = padding.saturating_sub(frame).div_ceil(self.stride).min(n_words);
        let first = frame + n_before * self.stride - padding.min(frame + n_before * self.stride);
        let n_within = match (n_letters + 1).checked_sub(self.k + first) {
            Some(room) => room.div_ceil(self.stride).min(n_words - n_before),
            None => 0,
        };
        Frame { n_before, first, n_within, n_after: n_words - n_before - n_within }
    }
}

/// Bits of a word's code at most: tables of all codes have this many entries.
const MAX_CODE_BITS: u32 = 24;

/// Letters of padding at most: more is surely a typo.
const MAX_PADDING: usize = 1 << 16;

/// Numbers of words in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Words that begin in the padding before the sequence.
    pub(crate) n_before: usize,
    /// Position in the sequence at which the first word after those begins.
    pub(crate) first: usize,
    /// Words of which every letter is of the sequence.
    pub(crate) n_within: usize,
    /// Words that end in the padding after it.
    pub(crate) n_after: usize,
}

impl Frame {
    pub(crate) fn n_words(&self) -> usize {
        self.n_before + self.n_within + self.n_after
    }
}

/// The code of a word that has an unknown letter.
pub(crate) const NO_WORD: u32 = u32::MAX;

/// Writes the code of the word at each position of `letters` into `codes`; [`NO_WORD`] where a
/// letter is unknown. A code has the letters' codes in groups of bits, the last letter lowest.
pub(crate) fn codes_into(letters: &[u8], k: usize, alphabet: &Alphabet, codes: &mut Vec<u32>) {
    codes.clear();
    if letters.len() < k {
        return;
    }
    let (of_letter, bits) = (alphabet.codes(), alphabet.bits());
    let mask = (1_u32 << (bits * k as u32)) - 1;
    let (mut code, mut n_known) = (0_u32, 0);
    let mut push = |letter: &u8| {
        let next = of_letter[usize::from(*letter)];
        code = ((code << bits) | u32::from(next)) & mask;
        n_known = if next == NO_CODE { 0 } else { n_known + 1 };
        if n_known < k { NO_WORD } else { code }
    };
    let (before, rest) = letters.split_at(k - 1);
    for letter in before {
        push(letter);
    }
    codes.extend(rest.iter().map(push));
}

/// The word of a code.
pub(crate) fn letters_of(code: u32, k: usize, alphabet: &Alphabet) -> Vec<u8> {
    let bits = alphabet.bits();
    let letter = |at: usize| {
        let of_letter = (code >> (bits as usize * (k - 1 - at))) & ((1 << bits) - 1);
        alphabet.letters().get(of_letter as usize).copied().unwrap_or(b'?')
    };
    (0..k).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the definition: all words of the padded sequence.
        #[test]
        fn frames_are_those_of_the_padded_sequence(
            n_letters in 0_usize..40,
            k in 1_usize..6,
            stride in 1_usize..6,
            frames in 1_usize..6,
            padding in 0_usize..4,
        ) {
            let spec = KmerSpec { k, stride, n_frames: frames.min(stride), padding };
            let ends = padding * k;
            let mut all = 0;
            for frame in 0..spec.n_frames {
                let begins = (frame..).step_by(stride);
                let begins: Vec<usize> = begins
                    .take_while(|begin| k <= n_letters && begin + k <= n_letters + 2 * ends)
                    .collect();
                let before = begins.iter().filter(|begin| **begin < ends).count();
                let within: Vec<usize> = begins
                    .iter()
                    .filter(|begin| ends <= **begin && **begin + k <= ends + n_letters)
                    .map(|begin| begin - ends)
                    .collect();
                let found = spec.frame(frame, n_letters);
                prop_assert_eq!(found.n_before, before);
                prop_assert_eq!(found.n_within, within.len());
                prop_assert_eq!(found.n_words(), begins.len());
                if let Some(first) = within.first() {
                    prop_assert_eq!(found.first, *first);
                }
                all += begins.len();
            }
            prop_assert_eq!(spec.n_words(n_letters), all);
        }

        #[test]
        fn a_code_is_its_word(letters in "[ACGTUN]{0,40}", k in 1_usize..6) {
            let mut codes = Vec::new();
            codes_into(letters.as_bytes(), k, &Alphabet::NUCLEIC, &mut codes);
            let words: Vec<&[u8]> = letters.as_bytes().windows(k).collect();
            prop_assert_eq!(codes.len(), words.len());
            for (code, word) in codes.into_iter().zip(words) {
                match code {
                    NO_WORD => prop_assert!(word.contains(&b'N')),
                    code => prop_assert_eq!(letters_of(code, k, &Alphabet::NUCLEIC), word),
                }
            }
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let ok = KmerSpec::default();
        for spec in [
            KmerSpec { k: 0, ..ok },
            KmerSpec { stride: 0, ..ok },
            KmerSpec { n_frames: 0, ..ok },
            KmerSpec { n_frames: 5, ..ok },
            KmerSpec { padding: usize::MAX, ..ok },
            KmerSpec::overlapping(13, 0),
        ] {
            assert!(spec.check(&Alphabet::DNA).is_err(), "{spec:?}");
        }
        KmerSpec::overlapping(12, 0).check(&Alphabet::DNA).unwrap();
    }
}
