//! Batches of sequences as tensors.

use std::path::Path;
use std::sync::Arc;

use pipeline::{Pipeline, PipelineSpec};
use sequences::{
    Alphabet, KmerSpec, Layout, SequenceBatch, SequenceFiles, SequenceFilesWriter, SequenceSamples,
    SequenceSpec, Tokenizer, Vocabulary, WhenUnknown, WindowSpec,
};
use shuffle::AliasTable;
use storage::LocalStorage;
use tch::{Kind, Tensor};

use crate::ArrayTensorLoader;

fn integers(tensor: &Tensor) -> Vec<i64> {
    Vec::try_from(tensor.to_kind(Kind::Int64).view(-1)).unwrap()
}

/// Three sequences in batches of two: their letters, words and windows.
pub(super) fn samples(folder: &Path) -> (SequenceSamples, PipelineSpec) {
    let path = folder.join("store");
    let mut writer = SequenceFilesWriter::create(&path, &[]).unwrap();
    for (name, letters) in [("a", "ACGTACGTAC"), ("b", "GG"), ("c", "TTTTGACCA")] {
        writer.push(letters.as_bytes(), name.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let store = Arc::new(SequenceFiles::open(Arc::new(LocalStorage::new(&path))).unwrap());
    let kmers = KmerSpec::all_frames(3, 2);
    let words = Vocabulary::count(&*store, &Alphabet::DNA, &kmers, WhenUnknown::Fail, 1).unwrap();
    let noise = Arc::new(AliasTable::new(words.counts(), AliasTable::NOISE).unwrap());
    let tokenizer = Tokenizer::new(kmers, Arc::new(words), WhenUnknown::Fail).unwrap();
    let spec = SequenceSpec {
        letters: true,
        tokenizer: Some(tokenizer),
        windows: Some(WindowSpec { context: 2, n_noise: 4, noise, seed: 1 }),
        ..SequenceSpec::default()
    };
    let samples = SequenceSamples::new(store, spec).unwrap();
    (samples, PipelineSpec { batch_rows: 2, ..PipelineSpec::default() })
}

/// Rows of words and letters, and encoded letters, have a row for each sequence.
#[test]
fn rows_are_those_of_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (samples, spec) = samples(folder.path());
    let of_batch = SequenceSpec {
        windows: None,
        layout: Layout::Padded(12),
        one_hot: Some(Alphabet::DNA),
        ..samples.spec().clone()
    };
    let samples = SequenceSamples::new(Arc::clone(samples.store()), of_batch).unwrap();
    let pipeline =
        Pipeline::new(Arc::new(samples.clone()), spec.clone(), SequenceBatch::n_sequences).unwrap();
    let batches: Vec<SequenceBatch> = pipeline.epoch(0).unwrap().map(Result::unwrap).collect();
    let loader = ArrayTensorLoader::new(samples, spec).unwrap();
    for (tensors, batch) in loader.epoch(0).unwrap().zip(batches) {
        let tensors = tensors.unwrap();
        let (n, words) = (batch.n_sequences() as i64, batch.padded_words().unwrap());
        let tokens = tensors.tensor("tokens").unwrap();
        assert_eq!(tokens.size(), [n, 12]);
        assert_eq!(
            integers(tokens),
            words.values.iter().map(|w| i64::from(*w)).collect::<Vec<_>>()
        );
        let lengths = integers(tensors.tensor("lengths").unwrap());
        assert_eq!(lengths, words.lengths.iter().map(|n| *n as i64).collect::<Vec<_>>());
        assert_eq!(tensors.tensor("letters").unwrap().size(), [n, 12]);
        assert_eq!(tensors.tensor("one_hot").unwrap().size(), [n * 12 * 4]);
        assert!(batch.tokens().is_none() && batch.letters(0).is_none());
    }
}

#[test]
fn words_and_windows_are_those_of_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (samples, spec) = samples(folder.path());
    let pipeline =
        Pipeline::new(Arc::new(samples.clone()), spec.clone(), SequenceBatch::n_sequences).unwrap();
    let batches: Vec<SequenceBatch> = pipeline.epoch(0).unwrap().map(Result::unwrap).collect();
    let loader = ArrayTensorLoader::new(samples, spec).unwrap();
    for (tensors, batch) in loader.epoch(0).unwrap().zip(batches) {
        let tensors = tensors.unwrap();
        assert_eq!(tensors.samples(), batch.rows());
        let same = |name: &str, values: Vec<i64>, shape: &[i64]| {
            let tensor = tensors.tensor(name).unwrap();
            assert_eq!((integers(tensor), tensor.size()), (values, shape.to_vec()), "{name}");
        };
        let words = |words: &[u32]| words.iter().copied().map(i64::from).collect::<Vec<_>>();
        let ends = |ends: &[usize]| ends.iter().map(|end| *end as i64).collect::<Vec<_>>();
        let n = batch.n_sequences() as i64;
        let (letters, letter_ends) = batch.sequences().letters_and_ends();
        let letters: Vec<i64> = letters.iter().copied().map(i64::from).collect();
        same("letters", letters.clone(), &[letters.len() as i64]);
        same("letter_ends", ends(letter_ends), &[n]);
        let tokens = batch.tokens().unwrap();
        same("tokens", words(tokens.tokens()), &[tokens.n_tokens() as i64]);
        same("frame_ends", ends(tokens.frame_ends()), &[3 * n]);
        let windows = batch.windows().unwrap();
        let n_targets = windows.n_targets() as i64;
        same("sequences", words(&windows.sequences), &[n_targets]);
        same("targets", words(&windows.targets), &[n_targets]);
        same("contexts", words(&windows.contexts), &[n_targets, 4]);
        same("targets_and_noise", words(&windows.targets_and_noise), &[n_targets, 5]);
    }
}
