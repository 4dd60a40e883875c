//! Wrong settings and batches: an error that names the place, and nothing trained.

use doc2vec::{Documents, Error, Model, NamedVectors, TrainSpec, Trainer, WindowRule};

use crate::MEMORY;

#[track_caller]
fn assert_setting(change: impl Fn(&mut TrainSpec), name: &str) {
    let mut spec = TrainSpec::new(MEMORY, 100);
    change(&mut spec);
    match Trainer::new(&spec, 2, &[1, 1]) {
        Err(error @ Error::Setting { .. }) => {
            assert!(error.to_string().starts_with(name), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_out_of_range_are_named() {
    assert_setting(|spec| spec.dimension = 0, "dimension is 0");
    assert_setting(|spec| spec.dimension = 513, "dimension is 513");
    assert_setting(|spec| spec.negatives = 0, "negatives is 0");
    for alpha in [f32::NAN, f32::INFINITY, 0.0, -0.1] {
        assert_setting(|spec| spec.alpha = alpha, "alpha is");
    }
    for min_alpha in [f32::NAN, -0.1, 0.03] {
        assert_setting(|spec| spec.min_alpha = min_alpha, "min_alpha is");
    }
    assert_setting(|spec| spec.planned_words = 0, "planned_words is 0");
    for share in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        assert_setting(|spec| spec.subsample = Some(share), "subsample is");
    }
    assert_setting(|spec| spec.threads = 0, "threads is 0");
    assert_setting(|spec| spec.threads = 1025, "threads is 1025");
    assert_setting(|spec| spec.words_per_merge = Some(0), "words_per_merge is 0");
    let window_rule = WindowRule::Whole;
    let combine = doc2vec::Combine::Sum;
    let no_window = Model::DistributedMemory { window: 0, window_rule, combine };
    assert_setting(|spec| spec.model = no_window, "window is 0");
}

#[test]
fn every_dimension_and_an_immense_window_train() {
    let tokens = [0, 1, 1, 0, 1];
    let batch = Documents {
        documents: &[1],
        document_ends: &[1],
        frame_ends: &[5],
        tokens: &tokens,
        padding: 0,
    };
    let window_rule = WindowRule::Reduced;
    let combine = doc2vec::Combine::Mean;
    let model = Model::DistributedMemory { window: usize::MAX / 2, window_rule, combine };
    for dimension in [1, 8, 9, 31, 64, 65, 104, 128, 200, 256, 300, 384, 385, 512] {
        let spec = TrainSpec { dimension, ..TrainSpec::new(model, 10) };
        let mut trainer = Trainer::new(&spec, 2, &[2, 3]).unwrap();
        assert_eq!(trainer.train_batch(&batch).unwrap().words, 5);
        assert_eq!(trainer.document_vectors().len(), 2 * dimension);
        assert_eq!(trainer.word_vectors().len(), 2 * dimension);
    }
}

#[test]
fn counts_without_noise_are_an_error() {
    let spec = TrainSpec::new(MEMORY, 100);
    assert!(matches!(Trainer::new(&spec, 2, &[]), Err(Error::Noise(_))));
    assert!(matches!(Trainer::new(&spec, 2, &[0]), Err(Error::Noise(_))));
    let spec = TrainSpec { noise_exponent: f64::NAN, ..spec };
    assert!(matches!(Trainer::new(&spec, 2, &[1]), Err(Error::Noise(_))));
}

/// Trains on a wrong batch; the trainer remains as it was, and trains on a right one.
#[track_caller]
fn assert_batch(batch: &Documents<'_>, message: &str) {
    for threads in [1, 2] {
        let spec = TrainSpec { threads, ..TrainSpec::new(MEMORY, 100) };
        let mut trainer = Trainer::new(&spec, 2, &[1, 1, 0]).unwrap();
        let before = trainer.word_vectors();
        let error = trainer.train_batch(batch).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(trainer.word_vectors(), before);
        assert_eq!(trainer.n_targets(), 0);
        assert_eq!(trainer.train_batch(&RIGHT).unwrap().words, 5);
    }
}

const RIGHT: Documents<'static> = Documents {
    documents: &[1, 0],
    document_ends: &[2, 3],
    frame_ends: &[3, 3, 5],
    tokens: &[0, 1, 2, 1, 1],
    padding: 0,
};

#[test]
fn wrong_batches_name_the_place() {
    let documents = Documents { documents: &[1, 2], ..RIGHT };
    assert_batch(&documents, "document 2, at position 1 of a batch, does not exist");
    let tokens = Documents { tokens: &[0, 1, 2, 3, 1], ..RIGHT };
    assert_batch(
        &tokens,
        "token 3, at position 3 of a batch, is no word: the trainer was made for 3",
    );
    let fewer = Documents { document_ends: &[3], ..RIGHT };
    assert_batch(&fewer, "2 documents, but 1 document ends");
    let descending = Documents { document_ends: &[4, 3], ..RIGHT };
    assert_batch(&descending, "document_ends[1] is 3, less than 4");
    let descending = Documents { frame_ends: &[3, 2, 5], ..RIGHT };
    assert_batch(&descending, "frame_ends[1] is 2, less than 3");
    let short = Documents { document_ends: &[1, 2], ..RIGHT };
    assert_batch(&short, "document_ends ends at 2, but there are 3");
    let long = Documents { frame_ends: &[3, 3, 6], ..RIGHT };
    assert_batch(&long, "frame_ends ends at 6, but there are 5");
    let no_ends = Documents { documents: &[], document_ends: &[], ..RIGHT };
    assert_batch(&no_ends, "document_ends ends at 0, but there are 3");
    let padded = Documents { padding: usize::MAX, ..RIGHT };
    assert_batch(&padded, "padding is");
}

#[test]
fn a_batch_without_targets_has_no_loss() {
    let spec = TrainSpec { threads: 3, ..TrainSpec::new(MEMORY, 100) };
    let mut trainer = Trainer::new(&spec, 2, &[1, 1, 0]).unwrap();
    let empty =
        Documents { documents: &[], document_ends: &[], frame_ends: &[], tokens: &[], padding: 0 };
    for batch in
        [empty, Documents { padding: 2, ..RIGHT }, Documents { padding: usize::MAX / 2, ..RIGHT }]
    {
        let progress = trainer.train_batch(&batch).unwrap();
        assert_eq!((progress.words, progress.targets, progress.loss), (0, 0, None));
    }
    assert_eq!(batch_targets(1), 1);
    assert_eq!(batch_targets(0), 5);
}

fn batch_targets(padding: usize) -> u64 {
    Documents { padding, ..RIGHT }.n_targets()
}

#[test]
fn a_rate_that_diverges_is_found_at_once_and_in_the_vectors() {
    let spec = TrainSpec { alpha: 1e30, ..TrainSpec::new(MEMORY, 1_000_000) };
    let mut trainer = Trainer::new(&spec, 2, &[1, 1, 0]).unwrap();
    let error = (0..50).find_map(|_| trainer.train_batch(&RIGHT).err()).unwrap();
    assert!(matches!(error, Error::Diverged { n_targets: 1..250, .. }), "{error}");
    assert!(error.to_string().contains("an alpha lower than 1"), "{error}");
    let names = |n: usize| (0..n).map(|name| name.to_string()).collect::<Vec<_>>();
    let error = trainer.embeddings(names(2), names(3)).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    assert!(error.to_string().contains("train with a lower alpha"), "{error}");
    let error = trainer.embeddings(names(3), names(3)).unwrap_err();
    assert!(matches!(error, Error::Names { n_names: 3, .. }), "{error}");
    assert!(matches!(NamedVectors::new(vec![], vec![], 0), Err(Error::Setting { .. })));
}
