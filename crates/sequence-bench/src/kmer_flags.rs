//! Flags of the words into which sequences are cut.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use sequences::{Alphabet, KmerSpec, SequenceStore, Tokenizer, Vocabulary, WhenUnknown};
use serde::{Deserialize, Serialize};

/// Flags of words.
#[derive(Debug, Clone, Args)]
pub(crate) struct KmerFlags {
    /// Letters of a word
    #[arg(short = 'k', long = "word-letters", value_name = "N", default_value_t = 4)]
    k: usize,
    /// Letters from one word of a frame to the next [default: as many as a word has]
    #[arg(long, value_name = "N")]
    stride: Option<usize>,
    /// Frames, which begin one letter after the other [default: as many as the stride has letters]
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    /// Words of padding at each end of a sequence
    #[arg(long, value_name = "N", default_value_t = 3)]
    padding: usize,
    /// What becomes of words with letters that the alphabet lacks: fail, skip, or word (the same
    /// word for all of them)
    #[arg(long, value_name = "RULE", default_value = "fail", hide_possible_values = true)]
    unknown: Unknown,
    /// Letters of words [default: all that occur]
    #[arg(long, value_name = "LETTERS")]
    alphabet: Option<String>,
    /// Let both cases of a letter be the same letter, as in genomes whose repeats are in lower case
    #[arg(long)]
    fold_case: bool,
}

/// What becomes of unknown words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Unknown {
    Fail,
    Skip,
    Word,
}

impl Unknown {
    fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Word => "word",
        }
    }

    fn rule(self) -> WhenUnknown {
        match self {
            Self::Fail => WhenUnknown::Fail,
            Self::Skip => WhenUnknown::Skip,
            Self::Word => WhenUnknown::Word,
        }
    }
}

/// How sequences are cut into words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Words {
    pub(crate) k: usize,
    pub(crate) stride: usize,
    pub(crate) n_frames: usize,
    pub(crate) padding: usize,
    unknown: Unknown,
    alphabet: Option<String>,
    folds_case: bool,
}

impl KmerFlags {
    /// The words that the flags ask for.
    pub(crate) fn words(&self) -> Words {
        let stride = self.stride.unwrap_or(self.k);
        Words {
            k: self.k,
            stride,
            n_frames: self.frames.unwrap_or(stride),
            padding: self.padding,
            unknown: self.unknown,
            alphabet: self.alphabet.clone(),
            folds_case: self.fold_case,
        }
    }
}

impl Words {
    /// The tokenizer's settings.
    pub(crate) fn spec(&self) -> KmerSpec {
        let Self { k, stride, n_frames, padding, .. } = *self;
        KmerSpec { k, stride, n_frames, padding }
    }

    /// The flags that give these words, each with its value; folding of cases has a flag without
    /// one.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = vec![
            ("-k", self.k.to_string()),
            ("--stride", self.stride.to_string()),
            ("--frames", self.n_frames.to_string()),
            ("--padding", self.padding.to_string()),
            ("--unknown", self.unknown.name().to_owned()),
        ];
        flags.extend(self.alphabet.iter().map(|letters| ("--alphabet", letters.clone())));
        flags
    }

    /// Whether both cases of a letter are the same one.
    pub(crate) fn folds_case(&self) -> bool {
        self.folds_case
    }

    /// The words as Python's class has them.
    pub(crate) fn python(&self) -> String {
        let Self { k, stride, n_frames, padding, unknown, alphabet, folds_case } = self;
        let unknown = match unknown {
            Unknown::Fail => String::new(),
            unknown => format!(", unknown={:?}", unknown.name()),
        };
        let alphabet = alphabet.iter().map(|letters| format!(", alphabet={letters:?}"));
        let alphabet: String = alphabet.collect();
        let case = if *folds_case { ", fold_case=True" } else { "" };
        format!(
            "Kmers({k}, stride={stride}, frames={n_frames}, padding={padding}{unknown}{alphabet}{case})"
        )
    }

    /// Whether words consist of the letters of a store as they are, and unknown ones are an error.
    pub(crate) fn are_plain(&self) -> bool {
        self.unknown == Unknown::Fail && !self.folds_case
    }

    /// Counts the words of a store, in `threads` threads.
    pub(crate) fn count(
        &self,
        store: &dyn SequenceStore,
        threads: usize,
    ) -> Result<Vocabulary, sequences::Error> {
        let alphabet = match (&self.alphabet, self.folds_case) {
            (Some(letters), false) => Alphabet::new(letters.as_bytes())?,
            (Some(letters), true) => Alphabet::new(letters.as_bytes())?.folding_case(),
            (None, false) => store.summary().alphabet()?,
            (None, true) => store.summary().alphabet_of_both_cases()?,
        };
        Vocabulary::count(store, &alphabet, &self.spec(), self.unknown.rule(), threads)
    }

    /// Counts the words of a store, and makes the tokenizer of them.
    pub(crate) fn tokenizer(
        &self,
        store: &dyn SequenceStore,
        threads: usize,
    ) -> Result<Tokenizer, sequences::Error> {
        let vocabulary = Arc::new(self.count(store, threads)?);
        Tokenizer::new(self.spec(), vocabulary, self.unknown.rule())
    }

    /// The settings in words, for records.
    pub(crate) fn describe(&self) -> String {
        let Self { k, stride, n_frames, padding, unknown, alphabet, folds_case } = self;
        let unknown = match unknown {
            Unknown::Fail => "",
            Unknown::Skip => " unknown skipped",
            Unknown::Word => " unknown word",
        };
        let alphabet = alphabet.iter().map(|letters| format!(" of {letters}"));
        let alphabet: String = alphabet.collect();
        let case = if *folds_case { " of either case" } else { "" };
        format!(
            "{k}-mers{alphabet}{case} stride {stride} frames {n_frames} padding {padding}{unknown}"
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        words: KmerFlags,
    }

    fn words(text: &str) -> Words {
        let words = ["x"].into_iter().chain(text.split_whitespace());
        Flags::try_parse_from(words).unwrap().words.words()
    }

    #[test]
    fn the_default_is_dragons() {
        assert_eq!(words("").spec(), KmerSpec::default());
        assert_eq!(words("").describe(), "4-mers stride 4 frames 4 padding 3");
        assert_eq!(words("-k 6 --padding 0").spec(), KmerSpec::all_frames(6, 0));
        assert_eq!(words("--stride 1").spec(), KmerSpec::overlapping(4, 3));
        let some = words("-k 3 --stride 2 --frames 1 --unknown word --alphabet ACGT");
        assert_eq!(some.describe(), "3-mers of ACGT stride 2 frames 1 padding 3 unknown word");
        let folded = words("--fold-case");
        assert_eq!(folded.describe(), "4-mers of either case stride 4 frames 4 padding 3");
        assert_eq!(folded.python(), "Kmers(4, stride=4, frames=4, padding=3, fold_case=True)");
        let flags = some.flags().into_iter().map(|(name, value)| format!("{name} {value} "));
        assert_eq!(words(&flags.collect::<String>()), some);
    }
}
