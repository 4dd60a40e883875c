//! Batches of documents to train on, and their checks.

use std::ops::Range;

use crate::error::Error;

/// Documents of a batch, each of one or several frames: runs of tokens whose windows do not cross.
///
/// The ends are exclusive and never descend: document `d` has the frames
/// `document_ends[d - 1]..document_ends[d]` (from 0 for the first), and frame `f` has the tokens
/// `frame_ends[f - 1]..frame_ends[f]`. The last end of documents is the number of frames, and that
/// of frames is the number of tokens.
#[derive(Debug, Clone, Copy)]
pub struct Documents<'a> {
    /// Row of each document, below the trainer's number of documents.
    pub documents: &'a [u64],
    /// For each document, the exclusive end of its frames in `frame_ends`.
    pub document_ends: &'a [usize],
    /// For each frame, the exclusive end of its tokens in `tokens`.
    pub frame_ends: &'a [usize],
    /// The words, by number.
    pub tokens: &'a [u32],
    /// Number of tokens at each end of each frame that are context only, never targets. A frame of
    /// twice as many tokens or fewer has no targets.
    pub padding: usize,
}

impl Documents<'_> {
    /// Number of targets in a batch of frames: all tokens except padding.
    pub fn n_targets(&self) -> u64 {
        (0..self.frame_ends.len()).map(|frame| self.targets_of(frame) as u64).sum()
    }

    pub(crate) fn targets_of(&self, frame: usize) -> usize {
        self.tokens_of(frame).len().saturating_sub(2 * self.padding)
    }

    pub(crate) fn frames_of(&self, document: usize) -> Range<usize> {
        range(self.document_ends, document)
    }

    pub(crate) fn tokens_of(&self, frame: usize) -> Range<usize> {
        range(self.frame_ends, frame)
    }

    /// Checks that documents and words exist and that the ends fit together.
    pub(crate) fn check(&self, n_documents: usize, n_words: usize) -> Result<(), Error> {
        if self.documents.len() != self.document_ends.len() {
            return Err(Error::Lengths {
                n_documents: self.documents.len(),
                n_ends: self.document_ends.len(),
            });
        }
        check_ends("document_ends", self.document_ends, self.frame_ends.len())?;
        check_ends("frame_ends", self.frame_ends, self.tokens.len())?;
        if self.padding > usize::MAX / 2 {
            return Err(Error::setting("padding", self.padding, "is more than memory can hold"));
        }
        let outside = |document: &u64| n_documents as u64 <= *document;
        if let Some(position) = self.documents.iter().position(outside) {
            let document = self.documents[position];
            return Err(Error::Document { document, position, n_documents });
        }
        // One pass that vectorises; the position is searched for only if there is an error.
        let largest = self.tokens.iter().copied().fold(0, u32::max);
        let outside = |token: &u32| n_words <= *token as usize;
        if !self.tokens.is_empty() && outside(&largest) {
            let position = self.tokens.iter().position(outside).unwrap_or_default();
            return Err(Error::Token { token: self.tokens[position], position, n_words });
        }
        Ok(())
    }
}

fn range(ends: &[usize], idx: usize) -> Range<usize> {
    let begin = idx.checked_sub(1).map_or(0, |before| ends[before]);
    begin..ends[idx]
}

fn check_ends(name: &'static str, ends: &[usize], total: usize) -> Result<(), Error> {
    let mut previous = 0;
    for (position, end) in ends.iter().copied().enumerate() {
        if end < previous {
            return Err(Error::Descending { name, position, end, previous });
        }
        previous = end;
    }
    if previous != total {
        return Err(Error::LastEnd { name, end: previous, total });
    }
    Ok(())
}
