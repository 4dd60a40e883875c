//! Training against a naive oracle and on planted families, noise, files, and wrong input.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod families;
mod files;
mod gensim;
mod inference;
mod oracle;
mod wrong_input;

use doc2vec::{Combine, Documents, Model, WindowRule};

/// PV-DM over whole windows of three words on each side.
const MEMORY: Model =
    Model::DistributedMemory { window: 3, window_rule: WindowRule::Whole, combine: Combine::Sum };

/// Documents of a batch, each a list of frames.
#[derive(Debug, Clone, Default)]
struct Batch {
    documents: Vec<u64>,
    document_ends: Vec<usize>,
    frame_ends: Vec<usize>,
    tokens: Vec<u32>,
    padding: usize,
}

impl Batch {
    fn new(padding: usize) -> Self {
        Self { padding, ..Self::default() }
    }

    fn push<F: AsRef<[u32]>>(&mut self, document: u64, frames: &[F]) {
        for frame in frames {
            self.tokens.extend_from_slice(frame.as_ref());
            self.frame_ends.push(self.tokens.len());
        }
        self.documents.push(document);
        self.document_ends.push(self.frame_ends.len());
    }

    /// One of its documents, as document 0.
    fn only(&self, document: usize) -> Self {
        let begin = |ends: &[usize], at: usize| at.checked_sub(1).map_or(0, |before| ends[before]);
        let frames = begin(&self.document_ends, document)..self.document_ends[document];
        let tokens_of = |frame: usize| begin(&self.frame_ends, frame)..self.frame_ends[frame];
        let frames: Vec<&[u32]> = frames.map(|frame| &self.tokens[tokens_of(frame)]).collect();
        let mut one = Self::new(self.padding);
        one.push(0, &frames);
        one
    }

    fn frames(&self) -> Documents<'_> {
        Documents {
            documents: &self.documents,
            document_ends: &self.document_ends,
            frame_ends: &self.frame_ends,
            tokens: &self.tokens,
            padding: self.padding,
        }
    }
}
