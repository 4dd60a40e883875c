//! Batches of sequences.

use pipeline::BatchPlace;

use crate::sequence_list::SequenceList;
use crate::tokens::TokenFrames;
use crate::windows::Windows;

/// Sequences in the order of the plan, in the forms that the settings ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceBatch {
    pub(crate) rows: Vec<u64>,
    pub(crate) n_frames: usize,
    pub(crate) sequences: SequenceList,
    pub(crate) tokens: Option<TokenFrames>,
    pub(crate) windows: Option<Windows>,
    pub(crate) place: BatchPlace,
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

    /// The letters of a sequence; `None` if they were not asked for.
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

    /// The words of all sequences; `None` without a tokenizer.
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

    /// Takes the targets with contexts and noise out of the batch.
    pub fn into_windows(self) -> Option<Windows> {
        self.windows
    }

    /// The batch's position in its epoch.
    pub fn place(&self) -> BatchPlace {
        self.place
    }
}
