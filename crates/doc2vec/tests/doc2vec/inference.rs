//! Inferred vectors: against the naive oracle with fixed words, near those of training, and of any
//! batch and number of threads.

use doc2vec::{
    Combine, Error, InferSpec, Inference, Model, NamedVectors, TrainSpec, TrainedWords, Trainer,
    WindowRule,
};
use proptest::prelude::*;

use crate::families::{Families, names};
use crate::oracle::{COUNTS, N_DOCUMENTS, Oracle, batches, model, rows};
use crate::{Batch, MEMORY};

proptest! {
    /// Words stay, and each document's vector is trained alone.
    #[test]
    fn inference_is_that_of_the_oracle(
        model in model(),
        batches in batches(),
        dimension in 1_usize..40,
        negatives in 1_usize..12,
        epochs in 1_u64..5,
        threads in 1_usize..4,
    ) {
        let spec = TrainSpec { dimension, negatives, alpha: 0.1, ..TrainSpec::new(model, 50) };
        let mut trainer = Trainer::new(&spec, N_DOCUMENTS, &COUNTS).unwrap();
        for batch in &batches {
            trainer.train_batch(&batch.frames()).unwrap();
        }
        let inference = Inference::of(&trainer, &COUNTS).unwrap();
        let infer = InferSpec { epochs, alpha: 0.2, min_alpha: 0.05, threads };
        // A document without words keeps the vector with which all begin.
        let mut empty = Batch::new(0);
        empty.push(0, &[[0_u32; 0]]);
        let first = rows(&inference.infer(&empty.frames(), &infer).unwrap(), dimension);
        for batch in &batches {
            let vectors = rows(&inference.infer(&batch.frames(), &infer).unwrap(), dimension);
            prop_assert_eq!(vectors.len(), batch.documents.len());
            for (document, vector) in vectors.iter().enumerate() {
                let mut oracle = Oracle::new(&trainer);
                oracle.has_fixed_words = true;
                oracle.documents[0].clone_from(&first[0]);
                let one = batch.only(document);
                for epoch in 0..epochs {
                    let part = epoch as f64 / (epochs - 1).max(1) as f64;
                    oracle.train_with(&spec, &one, |_| 0.2 - (0.2 - 0.05) * part);
                }
                let size = vector.iter().map(|value| value.abs()).fold(1.0, f64::max);
                for (found, expected) in vector.iter().zip(&oracle.documents[0]) {
                    prop_assert!((found - expected).abs() < 2e-4 * size, "{found}, {expected}");
                }
            }
        }
    }
}

/// The inferred vector of a document is nearest to the one that it was trained to have.
#[test]
fn documents_are_near_themselves() {
    let reduced =
        |combine| Model::DistributedMemory { window: 3, window_rule: WindowRule::Reduced, combine };
    for model in [MEMORY, reduced(Combine::Mean), Model::BagOfWords] {
        let families = Families::new(20);
        let spec = TrainSpec { alpha: 0.05, threads: 2, ..TrainSpec::new(model, 1) };
        let (trainer, _) = families.train(&spec, 15);
        let inference = Inference::of(&trainer, &families.counts).unwrap();
        let infer = InferSpec { epochs: 15, alpha: 0.05, threads: 2, ..InferSpec::default() };
        let mut inferred = Vec::new();
        for batch in &families.batches {
            inferred.extend(inference.infer(&batch.frames(), &infer).unwrap());
        }
        let n = families.labels.len();
        // The documents, then the same as inferred.
        let values = [trainer.document_vectors(), inferred].concat();
        let both = NamedVectors::new(names("document", 2 * n), values, spec.dimension).unwrap();
        let unit = both.unit();
        let is_near = |row: &usize| {
            let near = unit.nearest(n + row, 2 * n);
            near.into_iter().find(|found| found.row < n).unwrap().row == *row
        };
        let share = (0..n).filter(is_near).count() as f64 / n as f64;
        assert!(0.9 <= share, "{model:?}: {share} are nearest to themselves");
        // With the right family in nearly all cases.
        let same_family = |row: &usize| {
            let near = unit.nearest(n + row, 2 * n);
            let found = near.into_iter().find(|found| found.row < n).unwrap().row;
            families.labels[found] == families.labels[*row]
        };
        let share = (0..n).filter(same_family).count() as f64 / n as f64;
        assert!(0.95 <= share, "{model:?}: {share} are nearest to a relative");
    }
}

#[test]
fn a_vector_depends_on_seed_and_words_alone() {
    let families = Families::new(20);
    for subsample in [None, Some(0.001)] {
        let spec = TrainSpec { subsample, ..TrainSpec::new(MEMORY, 1) };
        let (trainer, _) = families.train(&spec, 1);
        let infer = |seed: u64, batch: &Batch, threads| {
            let (inputs, outputs) = (trainer.input_vectors(), trainer.output_vectors());
            let words =
                TrainedWords { inputs: &inputs, outputs: &outputs, counts: &families.counts };
            let inference = Inference::new(&TrainSpec { seed, ..spec.clone() }, words).unwrap();
            assert_eq!(inference.dimension(), 24);
            inference
                .infer(&batch.frames(), &InferSpec { threads, ..InferSpec::default() })
                .unwrap()
        };
        let batch = &families.batches[0];
        let all = infer(7, batch, 1);
        assert_ne!(infer(8, batch, 1), all);
        for threads in [2, 5, 100] {
            assert_eq!(infer(7, batch, threads), all, "{threads} threads");
        }
        for document in [0, 13, 19] {
            let alone = infer(7, &batch.only(document), 1);
            assert_eq!(alone, all[24 * document..][..24], "document {document}");
        }
        assert_eq!(infer(7, &Batch::new(3), 2), [0.0; 0]);
    }
}

#[test]
fn wrong_input_is_named() {
    let spec = TrainSpec { dimension: 4, ..TrainSpec::new(MEMORY, 10) };
    let rows = [0.5; 8];
    let words = TrainedWords { inputs: &rows, outputs: &rows, counts: &[2, 3] };
    for wrong in [
        TrainedWords { inputs: &rows[..4], ..words },
        TrainedWords { outputs: &rows[..7], ..words },
        TrainedWords { counts: &[1, 2, 3], ..words },
    ] {
        let error = Inference::new(&spec, wrong).unwrap_err();
        assert!(matches!(error, Error::Names { dimension: 4, .. }), "{error}");
    }
    // Bags of words have no inputs.
    let bags = TrainSpec { dimension: 4, ..TrainSpec::new(Model::BagOfWords, 10) };
    assert!(Inference::new(&bags, words).is_err());
    assert!(Inference::new(&bags, TrainedWords { inputs: &[], ..words }).is_ok());
    let none = TrainedWords { counts: &[0, 0], ..words };
    assert!(matches!(Inference::new(&spec, none), Err(Error::Noise(_))));
    let inference = Inference::new(&spec, words).unwrap();
    let mut batch = Batch::new(0);
    batch.push(9, &[[0, 1]]);
    let infer = InferSpec::default();
    assert_eq!(inference.infer(&batch.frames(), &infer).unwrap().len(), 4);
    for (wrong, name) in [
        (InferSpec { epochs: 0, ..infer }, "epochs is 0"),
        (InferSpec { alpha: f32::NAN, ..infer }, "alpha is NaN"),
        (InferSpec { min_alpha: 1.0, ..infer }, "min_alpha is 1"),
        (InferSpec { threads: 0, ..infer }, "threads is 0"),
    ] {
        let error = inference.infer(&batch.frames(), &wrong).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
    batch.push(0, &[[1, 2]]);
    let error = inference.infer(&batch.frames(), &infer).unwrap_err();
    assert!(matches!(error, Error::Token { token: 2, n_words: 2, .. }), "{error}");
    let mut batch = Batch::new(0);
    batch.push(0, &[[0, 1, 0, 1, 1, 0, 1]]);
    let infinite = InferSpec { alpha: f32::MAX, min_alpha: f32::MAX, epochs: 20, ..infer };
    let error = inference.infer(&batch.frames(), &infinite).unwrap_err();
    assert!(matches!(error, Error::Diverged { .. }), "{error}");
}
