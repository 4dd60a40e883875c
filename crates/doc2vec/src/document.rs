//! Training on one document: its frames, targets and contexts.

use std::fmt::Debug;
use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::random::below;
use crate::row::Row;
use crate::spec::{Combine, Model, TrainSpec, WindowRule};
use crate::target::{Candidates, Loss};
use shuffle::AliasTable;

/// The vectors that all documents share.
#[derive(Debug, Clone, Default)]
pub(crate) struct WordRows<const N: usize> {
    /// Input vectors, added up for a context. Empty for bags of words, which have no context.
    pub(crate) inputs: Vec<Row<N>>,
    /// Output vectors, which score words.
    pub(crate) outputs: Vec<Row<N>>,
}

/// Everything that training reads and never changes.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) spec: TrainSpec,
    pub(crate) noise: AliasTable,
    /// Probability of each word as noise.
    pub(crate) noise_probabilities: Vec<f64>,
    /// How often in 2^64 cases each word is kept; empty if no word is left out.
    pub(crate) kept: Vec<u64>,
}

/// How often in 2^64 cases each word is kept.
pub(crate) fn kept_cases(word_counts: &[u64], share: f64) -> Vec<u64> {
    let total: f64 = word_counts.iter().map(|count| *count as f64).sum();
    let kept = |count: u64| match count {
        0 => u64::MAX,
        count => {
            let ratio = share * total / count as f64;
            // The conversion limits a probability above 1.
            ((ratio.sqrt() + ratio) * 2_f64.powi(64)) as u64
        }
    };
    word_counts.iter().map(|count| kept(*count)).collect()
}

/// Word vectors that training changes, or that stay as they are.
pub(crate) trait Words<const N: usize>: Debug {
    /// The vectors.
    fn rows(&self) -> &WordRows<N>;
    /// The vectors to be changed; `None` if they stay.
    fn rows_mut(&mut self) -> Option<&mut WordRows<N>>;
}

impl<const N: usize> Words<N> for &mut WordRows<N> {
    #[inline]
    fn rows(&self) -> &WordRows<N> {
        self
    }

    #[inline]
    fn rows_mut(&mut self) -> Option<&mut WordRows<N>> {
        Some(self)
    }
}

impl<const N: usize> Words<N> for &WordRows<N> {
    #[inline]
    fn rows(&self) -> &WordRows<N> {
        self
    }

    #[inline]
    fn rows_mut(&mut self) -> Option<&mut WordRows<N>> {
        None
    }
}

/// Trains on documents one after another.
#[derive(Debug)]
pub(crate) struct DocumentTrainer<'a, W, const N: usize> {
    rules: &'a Rules,
    words: W,
    candidates: Candidates,
    /// A frame without the words that are left out.
    thinned: Vec<u32>,
    pub(crate) loss: Loss,
}

/// A document's vector, and how it is trained.
#[derive(Debug)]
pub(crate) struct Document<'a, const N: usize> {
    pub(crate) row: &'a mut Row<N>,
    pub(crate) rate: f32,
    pub(crate) generator: ChaCha8Rng,
}

impl<'a, W: Words<N>, const N: usize> DocumentTrainer<'a, W, N> {
    pub(crate) fn new(rules: &'a Rules, words: W) -> Self {
        let candidates = Candidates::new(rules.spec.negatives);
        Self { rules, words, candidates, thinned: Vec::new(), loss: Loss::default() }
    }

    /// Trains on a frame, whose first and last `padding` tokens are no targets.
    pub(crate) fn train_frame(
        &mut self,
        document: &mut Document<'_, N>,
        frame: &[u32],
        padding: usize,
    ) {
        if frame.len() <= 2 * padding {
            return;
        }
        if self.rules.kept.is_empty() {
            return self.train_targets(document, frame, padding);
        }
        let mut thinned = std::mem::take(&mut self.thinned);
        let (targets, end) = (&frame[padding..frame.len() - padding], frame.len() - padding);
        let generator = &mut document.generator;
        thinned.clear();
        thinned.extend_from_slice(&frame[..padding]);
        thinned.extend(
            targets.iter().filter(|word| generator.next_u64() < self.rules.kept[**word as usize]),
        );
        thinned.extend_from_slice(&frame[end..]);
        self.train_targets(document, &thinned, padding);
        self.thinned = thinned;
    }

    fn train_targets(&mut self, document: &mut Document<'_, N>, frame: &[u32], padding: usize) {
        for at in padding..frame.len() - padding {
            match self.rules.spec.model {
                Model::BagOfWords => self.predict_from_document(document, frame[at]),
                Model::DistributedMemory { window, window_rule, combine } => {
                    let reach = match window_rule {
                        WindowRule::Whole => window,
                        WindowRule::Reduced => below(document.generator.next_u64(), window) + 1,
                    };
                    let end = at.saturating_add(reach).saturating_add(1).min(frame.len());
                    let context = at.saturating_sub(reach)..end;
                    self.predict_from_context(document, frame, at, context, combine);
                }
            }
        }
    }

    #[inline]
    fn predict_from_document(&mut self, document: &mut Document<'_, N>, target: u32) {
        let Document { row, rate, generator } = document;
        self.candidates.draw(target, &self.rules.noise, generator);
        let change = self.candidates.learn(row, &mut self.words, *rate, &mut self.loss);
        row.add(&change);
    }

    #[inline]
    fn predict_from_context(
        &mut self,
        document: &mut Document<'_, N>,
        frame: &[u32],
        at: usize,
        context: Range<usize>,
        combine: Combine,
    ) {
        let Document { row, rate, generator } = document;
        let inputs = &self.words.rows().inputs;
        let (before, after) = (&frame[context.start..at], &frame[at + 1..context.end]);
        let mut hidden = **row;
        for word in before.iter().chain(after) {
            hidden.add(&inputs[*word as usize]);
        }
        if combine == Combine::Mean {
            hidden.scale(1.0 / context.len() as f32);
        }
        self.candidates.draw(frame[at], &self.rules.noise, generator);
        let change = self.candidates.learn(&hidden, &mut self.words, *rate, &mut self.loss);
        row.add(&change);
        let Some(rows) = self.words.rows_mut() else { return };
        for word in before.iter().chain(after) {
            rows.inputs[*word as usize].add(&change);
        }
    }
}
