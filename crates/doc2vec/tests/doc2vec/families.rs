//! Planted families: mutated copies of random ancestors are found by their vectors.

use doc2vec::{Combine, Model, Progress, TrainSpec, Trainer, WindowRule};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::{Batch, MEMORY};

const N_FAMILIES: usize = 20;
const FAMILY: usize = 5;
const N_BASES: usize = 400;
const K: usize = 3;
/// All 3-mers, and the padding word, which no document contains.
const N_WORDS: usize = 65;
const PADDING: u32 = 64;

/// Families of sequences as words of all frames, padded on both sides.
pub(crate) struct Families {
    pub(crate) batches: Vec<Batch>,
    pub(crate) counts: Vec<u64>,
    pub(crate) labels: Vec<usize>,
}

impl Families {
    /// Draws one base in ten of each copy anew.
    pub(crate) fn new(batch_size: usize) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(20);
        let mut base = move |bound: u32| generator.next_u32() % bound;
        let mut families = Self {
            batches: Vec::new(),
            counts: vec![0; N_WORDS],
            labels: (0..N_FAMILIES * FAMILY).map(|document| document % N_FAMILIES).collect(),
        };
        let ancestors: Vec<Vec<u32>> =
            (0..N_FAMILIES).map(|_| (0..N_BASES).map(|_| base(4)).collect()).collect();
        for document in 0..N_FAMILIES * FAMILY {
            let mut copied = |of: &u32| if base(10) == 0 { base(4) } else { *of };
            let copy: Vec<u32> = ancestors[document % N_FAMILIES].iter().map(&mut copied).collect();
            if document % batch_size == 0 {
                families.batches.push(Batch::new(3));
            }
            let frames: Vec<Vec<u32>> =
                (0..K).map(|begin| families.frame(&copy[begin..])).collect();
            families.batches.last_mut().unwrap().push(document as u64, &frames);
        }
        families
    }

    fn frame(&mut self, bases: &[u32]) -> Vec<u32> {
        let mut frame = vec![PADDING; 3];
        for word in bases.chunks_exact(K) {
            let word = word.iter().fold(0, |word, base| 4 * word + base);
            self.counts[word as usize] += 1;
            frame.push(word);
        }
        frame.extend([PADDING; 3]);
        frame
    }

    fn n_words(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Trains for all epochs, and returns the progress after each batch.
    pub(crate) fn train(&self, spec: &TrainSpec, n_epochs: usize) -> (Trainer, Vec<Progress>) {
        let spec = TrainSpec { planned_words: self.n_words() * n_epochs as u64, ..spec.clone() };
        let mut trainer = Trainer::new(&spec, self.labels.len(), &self.counts).unwrap();
        let mut progress = Vec::new();
        for _ in 0..n_epochs {
            for batch in &self.batches {
                progress.push(trainer.train_batch(&batch.frames()).unwrap());
            }
        }
        (trainer, progress)
    }

    fn score(&self, trainer: &Trainer) -> f64 {
        let documents = names("document", self.labels.len());
        let embeddings = trainer.embeddings(documents, names("word", N_WORDS)).unwrap();
        embeddings.documents.unit().label_score(&self.labels)
    }
}

pub(crate) fn names(of: &str, n: usize) -> Vec<String> {
    (0..n).map(|idx| format!("{of}-{idx}")).collect()
}

/// Trains with one and three threads; both find the families, and the loss falls.
#[track_caller]
fn check(model: Model, n_epochs: usize, alpha: f32) {
    let families = Families::new(20);
    for threads in [1, 3] {
        let spec = TrainSpec { alpha, threads, ..TrainSpec::new(model, 1) };
        let (trainer, progress) = families.train(&spec, n_epochs);
        let n_batches = families.batches.len();
        let mean = |of: &[Progress]| {
            of.iter().map(|batch| batch.loss.unwrap()).sum::<f64>() / of.len() as f64
        };
        let first = progress[0].loss.unwrap();
        // With all outputs 0, the loss of six candidates is 6 log 2.
        assert!(first < 6.0 * 2_f64.ln() + 0.05, "{first}");
        let (early, late) =
            (mean(&progress[..n_batches]), mean(&progress[progress.len() - n_batches..]));
        assert!(late < early, "{threads} threads: loss from {early} to {late}");
        let score = families.score(&trainer);
        // By chance it would be 0.04.
        assert!(
            0.8 <= score,
            "{threads} threads: {score} of the documents have a relative nearest"
        );
        assert_eq!(trainer.n_targets(), families.n_words() * n_epochs as u64);
        let rate = progress.last().unwrap().rate;
        assert_eq!(rate, spec.min_alpha, "the rate ends at its least value");
    }
}

#[test]
fn distributed_memory_finds_families() {
    check(MEMORY, 15, 0.05);
}

#[test]
fn the_mean_of_reduced_windows_finds_families() {
    let window_rule = WindowRule::Reduced;
    check(Model::DistributedMemory { window: 3, window_rule, combine: Combine::Mean }, 15, 0.05);
}

#[test]
fn bags_of_words_find_families() {
    check(Model::BagOfWords, 15, 0.05);
}

#[test]
fn the_same_settings_give_the_same_vectors() {
    let families = Families::new(20);
    for model in [MEMORY, Model::BagOfWords] {
        for threads in [1, 2, 5] {
            let spec = TrainSpec { threads, ..TrainSpec::new(model, 1) };
            let train = |seed: u64| {
                let (trainer, _) = families.train(&TrainSpec { seed, ..spec.clone() }, 2);
                (trainer.document_vectors(), trainer.word_vectors(), trainer.output_vectors())
            };
            assert!(train(7) == train(7), "{threads} threads");
            assert!(train(7) != train(8), "{threads} threads");
        }
    }
}

#[test]
fn frequent_words_are_left_out() {
    let families = Families::new(20);
    // Each word makes up about 1/64 of all: kept with probability sqrt(1/4) / 2 + 1/16.
    let share = 1.0 / 64.0 / 16.0;
    let spec = TrainSpec { subsample: Some(share), threads: 2, ..TrainSpec::new(MEMORY, 1) };
    let (_, progress) = families.train(&spec, 1);
    let words: u64 = progress.iter().map(|batch| batch.words).sum();
    let targets: u64 = progress.iter().map(|batch| batch.targets).sum();
    assert_eq!(targets, families.n_words());
    let expected: f64 = families
        .counts
        .iter()
        .map(|count| *count as f64)
        .filter(|count| 0.0 < *count)
        .map(|count| {
            let ratio = share * families.n_words() as f64 / count;
            count * (ratio.sqrt() + ratio).min(1.0)
        })
        .sum();
    // Within five standard deviations of a binomial number.
    let deviation = (expected * (1.0 - expected / targets as f64)).sqrt();
    assert!((words as f64 - expected).abs() < 5.0 * deviation, "{words}, expected {expected}");
    // A share above 1 keeps all.
    let spec = TrainSpec { subsample: Some(2.0), ..spec };
    let (_, progress) = families.train(&spec, 1);
    assert!(progress.iter().all(|batch| batch.words == batch.targets));
}

#[test]
fn unused_vectors_stay() {
    // Word 3 is never context nor target, and has no count.
    let mut batch = Batch::new(0);
    batch.push(1, &[[0, 1, 2, 1, 0]]);
    for threads in [1, 2] {
        let spec = TrainSpec { dimension: 4, threads, ..TrainSpec::new(MEMORY, 100) };
        let mut trainer = Trainer::new(&spec, 3, &[2, 2, 1, 0]).unwrap();
        let vectors =
            |of: &Trainer| (of.document_vectors(), of.word_vectors(), of.output_vectors());
        let before = vectors(&trainer);
        for _ in 0..3 {
            trainer.train_batch(&batch.frames()).unwrap();
        }
        let after = vectors(&trainer);
        assert_eq!(after.0[..4], before.0[..4]);
        assert_ne!(after.0[4..8], before.0[4..8]);
        assert_eq!(after.0[8..], before.0[8..]);
        assert_eq!(after.1[12..], before.1[12..]);
        assert_eq!(after.2[12..], [0.0; 4]);
    }
}
