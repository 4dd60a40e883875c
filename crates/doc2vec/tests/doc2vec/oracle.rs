//! Training against a naive oracle in 64-bit floats, and the oracle's steps against finite
//! differences of its loss.
//!
//! A vocabulary in which only one word has a count leaves nothing to chance: that word is all the
//! noise.

use doc2vec::{Combine, Model, TrainSpec, Trainer, WindowRule};
use proptest::prelude::*;

use crate::Batch;

pub(crate) const N_DOCUMENTS: usize = 3;
const N_WORDS: usize = 6;
const NOISE: u32 = 5;
pub(crate) const COUNTS: [u64; N_WORDS] = [0, 0, 0, 0, 0, 1];

/// Vectors as lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Oracle {
    /// Whether words stay as they are.
    pub(crate) has_fixed_words: bool,
    pub(crate) documents: Vec<Vec<f64>>,
    pub(crate) inputs: Vec<Vec<f64>>,
    pub(crate) outputs: Vec<Vec<f64>>,
}

/// A target with its document and context.
#[derive(Debug, Clone)]
struct Example {
    document: usize,
    context: Vec<usize>,
    target: usize,
}

pub(crate) fn rows(values: &[f32], dimension: usize) -> Vec<Vec<f64>> {
    let row = |row: &[f32]| row.iter().map(|value| f64::from(*value)).collect();
    values.chunks(dimension).map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn logistic(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

impl Oracle {
    pub(crate) fn new(trainer: &Trainer) -> Self {
        let dimension = trainer.spec().dimension;
        let inputs = match trainer.spec().model {
            Model::BagOfWords => Vec::new(),
            Model::DistributedMemory { .. } => rows(&trainer.word_vectors(), dimension),
        };
        Self {
            has_fixed_words: false,
            documents: rows(&trainer.document_vectors(), dimension),
            inputs,
            outputs: rows(&trainer.output_vectors(), dimension),
        }
    }

    fn hidden(&self, example: &Example, combine: Combine) -> Vec<f64> {
        let mut hidden = self.documents[example.document].clone();
        for word in &example.context {
            for (of_hidden, of_word) in hidden.iter_mut().zip(&self.inputs[*word]) {
                *of_hidden += of_word;
            }
        }
        if combine == Combine::Mean {
            let n_vectors = (example.context.len() + 1) as f64;
            hidden = hidden.into_iter().map(|value| value / n_vectors).collect();
        }
        hidden
    }

    fn candidates(example: &Example, negatives: usize) -> Vec<(usize, f64)> {
        let noise = (0..negatives).map(|_| (NOISE as usize, 0.0));
        let noise = noise.filter(|(word, _)| *word != example.target);
        std::iter::once((example.target, 1.0)).chain(noise).collect()
    }

    fn loss(&self, example: &Example, combine: Combine, negatives: usize) -> f64 {
        let hidden = self.hidden(example, combine);
        let loss = |(word, expected): (usize, f64)| {
            let score = dot(&hidden, &self.outputs[word]);
            -logistic(if expected == 1.0 { score } else { -score }).ln()
        };
        Self::candidates(example, negatives).into_iter().map(loss).sum()
    }

    fn step(&mut self, example: &Example, combine: Combine, negatives: usize, rate: f64) {
        let hidden = self.hidden(example, combine);
        let candidates = Self::candidates(example, negatives);
        let mut change = vec![0.0; hidden.len()];
        // Candidates of a group are scored before one of them changes.
        for group in candidates.chunks(8) {
            let scores: Vec<f64> =
                group.iter().map(|(word, _)| dot(&hidden, &self.outputs[*word])).collect();
            for ((word, expected), score) in group.iter().zip(scores) {
                let factor = rate * (expected - logistic(score));
                for (idx, output) in self.outputs[*word].iter_mut().enumerate() {
                    change[idx] += factor * *output;
                    *output += if self.has_fixed_words { 0.0 } else { factor * hidden[idx] };
                }
            }
        }
        let add = |row: &mut Vec<f64>| row.iter_mut().zip(&change).for_each(|(to, of)| *to += of);
        add(&mut self.documents[example.document]);
        for word in example.context.iter().filter(|_| !self.has_fixed_words) {
            add(&mut self.inputs[*word]);
        }
    }

    fn train(&mut self, spec: &TrainSpec, batch: &Batch, n_before: u64) {
        let rate = |n_targets| f64::from(spec.rate_after(n_before + n_targets));
        self.train_with(spec, batch, rate);
    }

    /// Trains at the rate after a number of targets.
    pub(crate) fn train_with(
        &mut self,
        spec: &TrainSpec,
        batch: &Batch,
        rate_after: impl Fn(u64) -> f64,
    ) {
        let mut n_targets = 0;
        let mut frames = batch.frame_ends.iter();
        let mut begin = 0;
        let mut frame_number = 0;
        for (document, frames_end) in batch.documents.iter().zip(&batch.document_ends) {
            let rate = rate_after(n_targets);
            while frame_number < *frames_end {
                let end = *frames.next().unwrap();
                let frame = &batch.tokens[begin..end];
                (begin, frame_number) = (end, frame_number + 1);
                for at in 0..frame.len() {
                    if at < batch.padding || frame.len() <= at + batch.padding {
                        continue;
                    }
                    n_targets += 1;
                    let (example, combine) = example(spec, *document as usize, frame, at);
                    self.step(&example, combine, spec.negatives, rate);
                }
            }
        }
    }

    #[track_caller]
    fn assert_near(&self, other: &Self, tolerance: f64) {
        let pairs = [
            ("documents", &self.documents, &other.documents),
            ("inputs", &self.inputs, &other.inputs),
            ("outputs", &self.outputs, &other.outputs),
        ];
        for (what, a, b) in pairs {
            assert_eq!(a.len(), b.len(), "{what}");
            for (row, (a, b)) in a.iter().zip(b).enumerate() {
                let size = a.iter().map(|a| a.abs()).fold(1.0, f64::max);
                let distance = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(distance < tolerance * size, "{what}[{row}]: {a:?}, {b:?}");
            }
        }
    }
}

fn example(spec: &TrainSpec, document: usize, frame: &[u32], at: usize) -> (Example, Combine) {
    let target = frame[at] as usize;
    match spec.model {
        Model::BagOfWords => (Example { document, context: Vec::new(), target }, Combine::Sum),
        Model::DistributedMemory { window, combine, .. } => {
            let is_near = |other: &usize| *other != at && other.abs_diff(at) <= window;
            let context = (0..frame.len()).filter(is_near).map(|near| frame[near] as usize);
            (Example { document, context: context.collect(), target }, combine)
        }
    }
}

pub(crate) fn model() -> impl Strategy<Value = Model> {
    let memory = (1_usize..5, any::<bool>()).prop_map(|(window, is_mean)| {
        let combine = if is_mean { Combine::Mean } else { Combine::Sum };
        Model::DistributedMemory { window, window_rule: WindowRule::Whole, combine }
    });
    prop_oneof![1 => Just(Model::BagOfWords), 3 => memory]
}

/// Batches of random documents, each trained on once in a batch.
pub(crate) fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let frame = prop::collection::vec(0..N_WORDS as u32, 0..12);
    let document = (0..N_DOCUMENTS as u64, prop::collection::vec(frame, 0..3));
    let batch =
        (prop::collection::vec(document, 0..5), 0_usize..3).prop_map(|(documents, padding)| {
            let mut batch = Batch::new(padding);
            for (document, frames) in documents {
                batch.push(document, &frames);
            }
            batch
        });
    prop::collection::vec(batch, 1..4)
}

proptest! {
    #[test]
    fn training_is_that_of_the_oracle(
        model in model(),
        batches in batches(),
        dimension in 1_usize..40,
        negatives in 1_usize..12,
        planned_words in 1_u64..100,
    ) {
        // A large rate, so that vectors leave their small beginnings.
        let spec = TrainSpec {
            dimension,
            negatives,
            alpha: 0.1,
            ..TrainSpec::new(model, planned_words)
        };
        let mut trainer = Trainer::new(&spec, N_DOCUMENTS, &COUNTS).unwrap();
        let mut oracle = Oracle::new(&trainer);
        let mut n_targets = 0;
        for batch in &batches {
            let progress = trainer.train_batch(&batch.frames()).unwrap();
            oracle.train(&spec, batch, n_targets);
            n_targets += batch.frames().n_targets();
            prop_assert_eq!(progress.words, batch.frames().n_targets());
            prop_assert_eq!(progress.targets, progress.words);
            prop_assert_eq!(progress.loss.is_some(), 0 < progress.words);
            prop_assert_eq!(progress.rate, spec.rate_after(n_targets));
        }
        prop_assert_eq!(trainer.n_targets(), n_targets);
        oracle.assert_near(&Oracle::new(&trainer), 2e-4);
    }

    #[test]
    fn one_thread_trains_the_same_in_any_batches(batches in batches(), model in model()) {
        let spec = TrainSpec { dimension: 5, ..TrainSpec::new(model, 50) };
        let padding = batches[0].padding;
        let train = |size: usize| {
            let mut trainer = Trainer::new(&spec, N_DOCUMENTS, &[3, 1, 4, 1, 5, 9]).unwrap();
            let mut documents = Vec::new();
            for batch in &batches {
                let mut begin = 0;
                for (document, end) in batch.documents.iter().zip(&batch.document_ends) {
                    let frames = (begin..*end).map(|frame| {
                        let from = if frame == 0 { 0 } else { batch.frame_ends[frame - 1] };
                        batch.tokens[from..batch.frame_ends[frame]].to_vec()
                    });
                    documents.push((*document, frames.collect::<Vec<_>>()));
                    begin = *end;
                }
            }
            for documents in documents.chunks(size) {
                let mut batch = Batch::new(padding);
                for (document, frames) in documents {
    batch.push(*document, frames);
}
                trainer.train_batch(&batch.frames()).unwrap();
            }
            Oracle::new(&trainer)
        };
        prop_assert_eq!(train(1), train(4));
    }
}

/// The trainer's own step against finite differences of the loss.
#[test]
fn a_step_follows_the_gradient() {
    let models = [
        (Model::BagOfWords, Combine::Sum),
        (memory(Combine::Sum), Combine::Sum),
        (memory(Combine::Mean), Combine::Mean),
    ];
    for (model, combine) in models {
        let spec = TrainSpec {
            dimension: 9,
            negatives: 1,
            alpha: 0.2,
            min_alpha: 0.2,
            ..TrainSpec::new(model, 1000)
        };
        let mut trainer = Trainer::new(&spec, N_DOCUMENTS, &COUNTS).unwrap();
        let mut warm = Batch::new(0);
        warm.push(0, &[[0, 1, 2, 3, 5, 4, 0, 2, 1]]);
        warm.push(1, &[[3, 1, 4, 0, 5, 2, 2, 1, 3]]);
        for _ in 0..3 {
            trainer.train_batch(&warm.frames()).unwrap();
        }
        let before = Oracle::new(&trainer);
        // One target, word 2, with two words of context on each side.
        let mut one = Batch::new(2);
        one.push(1, &[[0, 3, 2, 4, 1]]);
        trainer.train_batch(&one.frames()).unwrap();
        let after = Oracle::new(&trainer);

        let (example, _) = example(&spec, 1, &one.tokens, 2);
        let loss = |at: &Oracle| at.loss(&example, combine, 1);
        // With the mean, each vector gets the whole gradient of the mean.
        let n_vectors = if combine == Combine::Mean { 5.0 } else { 1.0 };
        let descend = |rows: fn(&mut Oracle) -> &mut Vec<Vec<f64>>, factor: f64| {
            let slope = |row: usize, idx: usize| {
                let shifted = |by: f64| {
                    let mut shifted = before.clone();
                    rows(&mut shifted)[row][idx] += by;
                    loss(&shifted)
                };
                (shifted(1e-5) - shifted(-1e-5)) / 2e-5
            };
            let mut expected = rows(&mut before.clone()).clone();
            for (row, expected) in expected.iter_mut().enumerate() {
                for (idx, expected) in expected.iter_mut().enumerate() {
                    *expected -= 0.2 * factor * slope(row, idx);
                }
            }
            expected
        };
        let expected = Oracle {
            has_fixed_words: false,
            documents: descend(|of| &mut of.documents, n_vectors),
            inputs: descend(|of| &mut of.inputs, n_vectors),
            outputs: descend(|of| &mut of.outputs, 1.0),
        };
        after.assert_near(&expected, 1e-6);
        let moved = (after.outputs[2][0] - before.outputs[2][0]).abs();
        assert!(1e-4 < moved, "the step is too small to compare: {moved}");
        assert!(loss(&after) < loss(&before));
    }
}

fn memory(combine: Combine) -> Model {
    Model::DistributedMemory { window: 2, window_rule: WindowRule::Whole, combine }
}
