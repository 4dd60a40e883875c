//! A thread's part of a batch: documents copied from it, so that threads can outlive the batch.

use std::ops::Range;

use crate::document::{Document, DocumentTrainer, Rules, WordRows};
use crate::documents::Documents;
use crate::random::{Decision, generator};
use crate::row::Row;
use crate::target::Loss;

/// Documents for one thread. The memory is used again.
#[derive(Debug)]
pub(crate) struct Part<const N: usize> {
    documents: Vec<PartDocument<N>>,
    frame_ends: Vec<usize>,
    tokens: Vec<u32>,
    padding: usize,
    /// Occurrences of each word. Empty if one thread trains alone.
    pub(crate) occurrences: Vec<u32>,
    /// The loss of the last training.
    pub(crate) loss: Loss,
}

#[derive(Debug)]
struct PartDocument<const N: usize> {
    /// Where the vector belongs.
    place: usize,
    row: Row<N>,
    /// Exclusive end of its frames.
    frames_end: usize,
    rate: f32,
    /// Number of documents that were trained on before it.
    number: u64,
}

impl<const N: usize> Default for Part<N> {
    fn default() -> Self {
        Self {
            documents: Vec::new(),
            frame_ends: Vec::new(),
            tokens: Vec::new(),
            padding: 0,
            occurrences: Vec::new(),
            loss: Loss::default(),
        }
    }
}

/// Progress when a document begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Begin {
    /// Number of documents that were trained on before it.
    pub(crate) number: u64,
    /// Its learning rate.
    pub(crate) rate: f32,
    /// Number of its targets.
    pub(crate) n_targets: u64,
}

impl<const N: usize> Part<N> {
    /// Replaces the content by documents of a batch; `begins` has one entry for each of them.
    pub(crate) fn fill(
        &mut self,
        batch: &Documents<'_>,
        documents: Range<usize>,
        begins: &[Begin],
        rows: &[Row<N>],
    ) {
        self.documents.clear();
        self.frame_ends.clear();
        self.tokens.clear();
        self.padding = batch.padding;
        for (document, begin) in documents.zip(begins) {
            for frame in batch.frames_of(document) {
                self.tokens.extend_from_slice(&batch.tokens[batch.tokens_of(frame)]);
                self.frame_ends.push(self.tokens.len());
            }
            let place = batch.documents[document] as usize;
            let frames_end = self.frame_ends.len();
            let Begin { number, rate, .. } = *begin;
            self.documents.push(PartDocument { place, row: rows[place], frames_end, rate, number });
        }
    }

    /// Trains on all documents in their order.
    pub(crate) fn train(&mut self, rules: &Rules, words: &mut WordRows<N>) {
        if 1 < rules.spec.threads {
            self.occurrences.clear();
            self.occurrences.resize(rules.noise.n_counts(), 0);
            for token in &self.tokens {
                self.occurrences[*token as usize] += 1;
            }
        }
        let mut trainer = DocumentTrainer::new(rules, words);
        let (mut frame, mut token) = (0, 0);
        for PartDocument { row, frames_end, rate, number, .. } in &mut self.documents {
            let generator = generator(rules.spec.seed, Decision::Document(*number));
            let mut document = Document { row, rate: *rate, generator };
            for end in &self.frame_ends[frame..*frames_end] {
                trainer.train_frame(&mut document, &self.tokens[token..*end], self.padding);
                token = *end;
            }
            frame = *frames_end;
        }
        self.loss = trainer.loss;
    }

    /// Stores the trained document vectors.
    pub(crate) fn store(&self, rows: &mut [Row<N>]) {
        for document in &self.documents {
            rows[document.place] = document.row;
        }
    }
}
