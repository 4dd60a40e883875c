//! Words of several sequences, frame by frame.

use crate::layout::{Layout, PaddedRows};

/// The words of sequences: each has the same number of frames, and frames differ in length.
///
/// Frame `f` of sequence `s` is number `s * n_frames + f`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TokenFrames {
    tokens: Vec<u32>,
    frame_ends: Vec<usize>,
}

impl TokenFrames {
    /// The words of all frames one after another.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The end of each frame in the words.
    pub fn frame_ends(&self) -> &[usize] {
        &self.frame_ends
    }

    /// The number of frames of all sequences.
    pub fn n_frames(&self) -> usize {
        self.frame_ends.len()
    }

    /// The number of words of all frames.
    pub fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The words of a frame; none if there is no such frame.
    pub fn frame(&self, number: usize) -> &[u32] {
        self.frames_from(number, 1)
    }

    /// All frames, in their order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.frame_ends.len()).map(|number| self.frame(number))
    }

    /// The words of all sequences in rows of `length` words, each row a sequence with its
    /// `n_frames` frames: cut if it has more words, filled up with `fill` if it has fewer. The mask
    /// is true for words of the sequence. Both have `length` columns, and no rows if `n_frames` is
    /// 0.
    pub fn padded(&self, n_frames: usize, length: usize, fill: u32) -> (Vec<u32>, Vec<bool>) {
        let rows = PaddedRows::new(self.sequences(n_frames), Layout::Padded(length), fill);
        rows.map(|rows| (rows.values, rows.mask)).unwrap_or_default()
    }

    /// The words of each sequence, which has `n_frames` frames.
    pub(crate) fn sequences(&self, n_frames: usize) -> impl Iterator<Item = &[u32]> + Clone {
        let n_sequences = self.frame_ends.len().checked_div(n_frames).unwrap_or(0);
        (0..n_sequences).map(move |sequence| self.frames_from(sequence * n_frames, n_frames))
    }

    /// Takes the words and the end of each frame.
    pub fn into_tokens_and_ends(self) -> (Vec<u32>, Vec<usize>) {
        (self.tokens, self.frame_ends)
    }

    /// The words of `n` frames from `first` on.
    fn frames_from(&self, first: usize, n: usize) -> &[u32] {
        let end_of = |n_frames: usize| match n_frames.checked_sub(1) {
            Some(last) => self.frame_ends.get(last).copied(),
            None => Some(0),
        };
        let tokens = end_of(first).zip(first.checked_add(n).and_then(end_of));
        tokens.and_then(|(start, end)| self.tokens.get(start..end)).unwrap_or_default()
    }

    /// Appends `n` frames of others.
    pub(crate) fn append(&mut self, others: &Self, first: usize, n: usize) {
        let start = first.checked_sub(1).map_or(0, |before| others.frame_ends[before]);
        let behind = self.tokens.len();
        self.tokens.extend_from_slice(others.frames_from(first, n));
        let ends = &others.frame_ends[first..first + n];
        self.frame_ends.extend(ends.iter().map(|end| end - start + behind));
    }

    /// Number of words of `n` frames from `first` on.
    pub(crate) fn n_tokens_from(&self, first: usize, n: usize) -> usize {
        self.frames_from(first, n).len()
    }

    /// Makes room for more words and frames.
    pub(crate) fn reserve(&mut self, n_tokens: usize, n_frames: usize) {
        self.tokens.reserve(n_tokens);
        self.frame_ends.reserve(n_frames);
    }

    /// Removes all frames, and makes room for as many words and frames, and no more.
    pub(crate) fn clear_for(&mut self, n_tokens: usize, n_frames: usize) {
        self.clear();
        self.tokens.reserve_exact(n_tokens);
        self.frame_ends.reserve_exact(n_frames);
    }

    pub(crate) fn push(&mut self, token: u32) {
        self.tokens.push(token);
    }

    pub(crate) fn extend(&mut self, tokens: impl IntoIterator<Item = u32>) {
        self.tokens.extend(tokens);
    }

    pub(crate) fn truncate(&mut self, n_tokens: usize) {
        self.tokens.truncate(n_tokens);
    }

    pub(crate) fn end_frame(&mut self) {
        self.frame_ends.push(self.tokens.len());
    }

    /// Removes all frames, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.frame_ends.clear();
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        size_of::<u32>() * self.tokens.capacity() + size_of::<usize>() * self.frame_ends.capacity()
    }
}
