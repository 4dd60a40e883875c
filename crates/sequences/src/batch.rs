//! Batches of sequences.

use pipeline::BatchPlace;

use crate::layout::PaddedRows;
use crate::sequence_list::SequenceList;
use crate::tokens::TokenFrames;
use crate::windows::Windows;

/// Sequences in the order of the plan, in the forms that the settings ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct SequenceBatch {
    pub(crate) rows: Vec<u64>,
    pub(crate) n_frames: usize,
    pub(crate) sequences: SequenceList,
    pub(crate) tokens: Option<TokenFrames>,
    pub(crate) padded_letters: Option<PaddedRows<u8>>,
    pub(crate) padded_words: Option<PaddedRows<u32>>,
    pub(crate) one_hot: Option<Vec<f32>>,
    pub(crate) windows: Option<Windows>,
    pub(crate) place: BatchPlace,
}

/// What a batch consists of, to be taken apart without a copy.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SequenceParts {
    /// The number of each sequence in the store.
    pub rows: Vec<u64>,
    /// Number of frames of each sequence; 0 without a tokenizer.
    pub n_frames: usize,
    /// Letters and names, as far as they were asked for; letters only if they are ragged.
    pub sequences: SequenceList,
    /// Words, if they are ragged.
    pub words: Option<TokenFrames>,
    /// Letters in rows of equal length.
    pub padded_letters: Option<PaddedRows<u8>>,
    /// Words in rows of equal length.
    pub padded_words: Option<PaddedRows<u32>>,
    /// See [`SequenceBatch::one_hot`].
    pub one_hot: Option<Vec<f32>>,
    /// Targets with contexts and noise.
    pub windows: Option<Windows>,
    /// The batch's position in its epoch.
    pub place: BatchPlace,
}

impl SequenceBatch {
    /// The number of sequences.
    pub fn n_sequences(&self) -> usize {
        self.rows.len()
    }

    /// The number of each sequence in the store.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// The letters of a sequence; `None` if they were not asked for, or are padded.
    pub fn letters(&self, idx: usize) -> Option<&[u8]> {
        self.sequences.get(idx)
    }

    /// The name of a sequence; `None` if names were not asked for.
    pub fn name(&self, idx: usize) -> Option<&[u8]> {
        self.sequences.name(idx)
    }

    /// The letters and names of all sequences, as far as they were asked for.
    pub fn sequences(&self) -> &SequenceList {
        &self.sequences
    }

    /// Number of frames of each sequence; 0 without a tokenizer.
    pub fn n_frames(&self) -> usize {
        self.n_frames
    }

    /// The words of all sequences; `None` without a tokenizer, or if they are padded.
    pub fn tokens(&self) -> Option<&TokenFrames> {
        self.tokens.as_ref()
    }

    /// The frames of a sequence.
    pub fn frames(&self, idx: usize) -> impl Iterator<Item = &[u32]> {
        let numbers = idx * self.n_frames..(idx + 1) * self.n_frames;
        self.tokens
            .iter()
            .flat_map(move |tokens| numbers.clone().map(|number| tokens.frame(number)))
    }

    /// Targets with contexts and noise; `None` if they were not asked for.
    pub fn windows(&self) -> Option<&Windows> {
        self.windows.as_ref()
    }

    /// The letters in rows of equal length; `None` if they were not asked for, or are ragged.
    pub fn padded_letters(&self) -> Option<&PaddedRows<u8>> {
        self.padded_letters.as_ref()
    }

    /// The words in rows of equal length, each a sequence with all its frames; `None` without a
    /// tokenizer, or if they are ragged.
    pub fn padded_words(&self) -> Option<&PaddedRows<u32>> {
        self.padded_words.as_ref()
    }

    /// A row for each letter, as long as the alphabet, with a one for the letter: of all letters
    /// one after another, or `[sequences, width]` rows if they are padded.
    pub fn one_hot(&self) -> Option<&[f32]> {
        self.one_hot.as_deref()
    }

    /// Takes the batch apart.
    pub fn into_parts(self) -> SequenceParts {
        let Self { rows, n_frames, sequences, tokens: words, windows, place, .. } = self;
        let (padded_letters, padded_words) = (self.padded_letters, self.padded_words);
        let one_hot = self.one_hot;
        SequenceParts {
            rows,
            n_frames,
            sequences,
            words,
            padded_letters,
            padded_words,
            one_hot,
            windows,
            place,
        }
    }

    /// Takes the targets with contexts and noise out of the batch.
    pub fn into_windows(self) -> Option<Windows> {
        self.windows
    }

    /// The batch's position in its epoch.
    pub fn place(&self) -> BatchPlace {
        self.place
    }
}
