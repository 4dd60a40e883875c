//! Sequences as numbers of words.

use std::sync::Arc;

use crate::error::Error;
use crate::kmers::{Frame, KmerSpec, NO_WORD, codes_into, letters_of};
use crate::tokens::TokenFrames;
use crate::unknown::WhenUnknown;
use crate::vocabulary::{Vocabulary, unknown_letter};

/// Turns sequences into words of a vocabulary.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    spec: KmerSpec,
    vocabulary: Arc<Vocabulary>,
    when_unknown: WhenUnknown,
}

/// Memory that a tokenizer uses again for the next sequence.
#[derive(Debug, Default)]
pub struct TokenScratch {
    codes: Vec<u32>,
}

impl Tokenizer {
    /// Combines a vocabulary with the way in which sequences are cut.
    ///
    /// # Errors
    /// The vocabulary was made for another `k`, without padding, or without the unknown word, and
    /// the settings need it.
    pub fn new(
        spec: KmerSpec,
        vocabulary: Arc<Vocabulary>,
        when_unknown: WhenUnknown,
    ) -> Result<Self, Error> {
        spec.check(vocabulary.alphabet())?;
        let lacks = |what: &str| {
            Err(Error::settings(format!(
                "the vocabulary {what}: count one with the settings of the tokenizer"
            )))
        };
        if spec.k != vocabulary.k() {
            return lacks(&format!("has words of {} letters, not {}", vocabulary.k(), spec.k));
        }
        if 0 < spec.padding && vocabulary.padding_word(&[], true).is_none() {
            return lacks("has no words with padding");
        }
        if when_unknown == WhenUnknown::Word && vocabulary.unknown().is_none() {
            return lacks("has no unknown word");
        }
        Ok(Self { spec, vocabulary, when_unknown })
    }

    /// The way in which sequences are cut.
    pub fn spec(&self) -> &KmerSpec {
        &self.spec
    }

    /// The words.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// What becomes of unknown words.
    pub fn when_unknown(&self) -> WhenUnknown {
        self.when_unknown
    }

    /// Appends the frames of a sequence to `into`. `row` is the sequence's number, for errors.
    ///
    /// # Errors
    /// A word is unknown, and the settings say that this is an error.
    pub fn tokenize(
        &self,
        row: u64,
        letters: &[u8],
        into: &mut TokenFrames,
        scratch: &mut TokenScratch,
    ) -> Result<(), Error> {
        codes_into(letters, self.spec.k, self.vocabulary.alphabet(), &mut scratch.codes);
        for number in 0..self.spec.n_frames {
            let frame = self.spec.frame(number, letters.len());
            self.begin_of_frame(row, letters, (number, frame), into)?;
            self.within(row, letters, (frame, &scratch.codes), into)?;
            self.end_of_frame(row, letters, (number, frame), into)?;
            into.end_frame();
        }
        Ok(())
    }

    fn within(
        &self,
        row: u64,
        letters: &[u8],
        (frame, codes): (Frame, &[u32]),
        into: &mut TokenFrames,
    ) -> Result<(), Error> {
        let codes = codes.get(frame.first..).unwrap_or_default();
        let codes = codes.iter().step_by(self.spec.stride).take(frame.n_within);
        let start = into.n_tokens();
        // Words that are known need no branch each; the few others are looked at afterwards.
        let mut all_known = true;
        into.extend(codes.clone().map(|code| {
            let word = self.vocabulary.word_or_none(*code);
            all_known &= word != NO_WORD;
            word
        }));
        if all_known {
            return Ok(());
        }
        into.truncate(start);
        for (number, code) in codes.enumerate() {
            let position = frame.first + number * self.spec.stride;
            match self.vocabulary.word_of(*code) {
                Some(word) => into.push(word),
                None => self.unknown(row, letters, (position, *code), into)?,
            }
        }
        Ok(())
    }

    /// Appends the words that begin in the padding before the sequence.
    fn begin_of_frame(
        &self,
        row: u64,
        letters: &[u8],
        (number, frame): (usize, Frame),
        into: &mut TokenFrames,
    ) -> Result<(), Error> {
        let padding = self.spec.padding * self.spec.k;
        for word in 0..frame.n_before {
            // The word begins this many letters before the sequence.
            let before = padding - number - word * self.spec.stride;
            let part = &letters[..self.spec.k.saturating_sub(before)];
            match self.vocabulary.padding_word(part, true) {
                Some(word) => into.push(word),
                None => self.unknown(row, letters, (0, NO_WORD), into)?,
            }
        }
        Ok(())
    }

    /// Appends the words that end in the padding after the sequence.
    fn end_of_frame(
        &self,
        row: u64,
        letters: &[u8],
        (number, frame): (usize, Frame),
        into: &mut TokenFrames,
    ) -> Result<(), Error> {
        let padding = self.spec.padding * self.spec.k;
        for word in 0..frame.n_after {
            let word = frame.n_before + frame.n_within + word;
            let begin = number + word * self.spec.stride - padding;
            let part = letters.get(begin..).unwrap_or_default();
            match self.vocabulary.padding_word(part, false) {
                Some(word) => into.push(word),
                None => self.unknown(row, letters, (begin, NO_WORD), into)?,
            }
        }
        Ok(())
    }

    /// Treats the unknown word at a position.
    fn unknown(
        &self,
        row: u64,
        letters: &[u8],
        (position, code): (usize, u32),
        into: &mut TokenFrames,
    ) -> Result<(), Error> {
        match self.when_unknown {
            WhenUnknown::Skip => {}
            WhenUnknown::Word => into.extend(self.vocabulary.unknown()),
            WhenUnknown::Fail => {
                let alphabet = self.vocabulary.alphabet();
                if code == NO_WORD {
                    return Err(unknown_letter(row, letters, alphabet));
                }
                let word = letters_of(code, self.spec.k, alphabet);
                let word = String::from_utf8_lossy(&word).into_owned();
                return Err(Error::UnknownWord { row, position, word });
            }
        }
        Ok(())
    }
}
