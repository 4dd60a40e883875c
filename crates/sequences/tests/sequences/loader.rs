//! The loader of sequences.

use std::collections::BTreeMap;
use std::sync::Arc;

use pipeline::{Pipeline, PipelineSpec, World};
use proptest::prelude::*;
use sequences::{
    Alphabet, KmerSpec, SequenceBatch, SequenceFiles, SequenceSamples, SequenceSpec, Tokenizer,
    Vocabulary, WhenUnknown, WindowSpec,
};
use shuffle::{AliasTable, Remainder};
use tempfile::TempDir;

use crate::bed::{random, store};

/// Sequences of different lengths, some shorter than a word.
fn sequences(n: usize) -> Vec<Vec<u8>> {
    (0..n).map(|number| random(b"ACGT", 1 + (number * 37) % 90, number as u64)).collect()
}

struct Bed {
    _folder: TempDir,
    sequences: Vec<Vec<u8>>,
    store: Arc<SequenceFiles>,
    tokenizer: Tokenizer,
    windows: WindowSpec,
}

fn bed(n: usize) -> Bed {
    let sequences = sequences(n);
    let (folder, store) = store(&sequences);
    let spec = KmerSpec::all_frames(3, 2);
    let words = Vocabulary::count(&*store, &Alphabet::DNA, &spec, WhenUnknown::Fail, 2).unwrap();
    let noise = Arc::new(AliasTable::new(words.counts(), AliasTable::NOISE).unwrap());
    let tokenizer = Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail).unwrap();
    let windows = WindowSpec { context: 2, n_noise: 3, noise, seed: 5 };
    Bed { _folder: folder, sequences, store, tokenizer, windows }
}

impl Bed {
    fn pipeline(&self, spec: PipelineSpec) -> Pipeline<SequenceSamples> {
        let of_batch = SequenceSpec {
            letters: true,
            names: true,
            tokenizer: Some(self.tokenizer.clone()),
            windows: Some(self.windows.clone()),
            ..SequenceSpec::default()
        };
        let samples =
            SequenceSamples::new(Arc::<SequenceFiles>::clone(&self.store), of_batch).unwrap();
        Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences).unwrap()
    }
}

/// The windows of a sequence, by the definition: targets and contexts.
fn windows_of(batch: &SequenceBatch, idx: usize) -> Vec<(u32, Vec<u32>)> {
    let mut windows = Vec::new();
    for frame in batch.frames(idx) {
        for at in 0..frame.len() {
            if 2 <= at && at + 2 < frame.len() {
                let around = [at - 2, at - 1, at + 1, at + 2].map(|at| frame[at]);
                windows.push((frame[at], around.to_vec()));
            }
        }
    }
    windows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_sequence_comes_once_with_its_words(
        n in 2_usize..60,
        chunk_rows in 1_u64..9,
        chunks_per_block in 1_u64..5,
        batch_rows in 1_u64..12,
        read_threads in 0_usize..3,
        seed in 0_u64..100,
    ) {
        let bed = bed(n);
        let sizes = PipelineSpec { chunk_rows, chunks_per_block, ..PipelineSpec::default() };
        let spec = PipelineSpec { batch_rows, read_threads, seed, ..sizes };
        let mut seen = vec![0; n];
        for batch in bed.pipeline(spec).epoch(1).unwrap() {
            let batch = batch.unwrap();
            let mut windows = Vec::new();
            for (idx, row) in batch.rows().iter().enumerate() {
                let letters = &bed.sequences[*row as usize];
                seen[*row as usize] += 1;
                prop_assert_eq!(batch.letters(idx), Some(&letters[..]));
                let name = format!("s{row}");
                prop_assert_eq!(batch.name(idx), Some(name.as_bytes()));
                let n_words: usize = batch.frames(idx).map(<[u32]>::len).sum();
                prop_assert_eq!(n_words, bed.tokenizer.spec().n_words(letters.len()));
                let of_sequence = windows_of(&batch, idx);
                windows.extend(of_sequence.into_iter().map(|window| (*row as u32, window)));
            }
            let found = batch.windows().unwrap();
            prop_assert_eq!(found.n_targets(), windows.len());
            for (at, (row, (target, context))) in windows.into_iter().enumerate() {
                prop_assert_eq!((found.sequences[at], found.targets[at]), (row, target));
                prop_assert_eq!(&found.contexts[4 * at..4 * at + 4], &context[..]);
                prop_assert_eq!(found.targets_and_noise[4 * at], target);
            }
            prop_assert_eq!(found.targets_and_noise.len(), 4 * found.n_targets());
        }
        prop_assert!(seen.iter().all(|n| *n == 1), "{:?}", seen);
    }
}

/// Noise is a function of seed, epoch and sequence.
#[test]
fn noise_does_not_depend_on_batches_or_threads() {
    let bed = bed(40);
    let noise = |epoch, batch_rows, read_threads| {
        let sizes = PipelineSpec { chunk_rows: 3, chunks_per_block: 4, ..Default::default() };
        let spec = PipelineSpec { batch_rows, read_threads, ..sizes };
        let mut noise: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for batch in bed.pipeline(spec).epoch(epoch).unwrap() {
            let windows = batch.unwrap().into_windows().unwrap();
            for (row, with) in windows.sequences.iter().zip(windows.targets_and_noise.chunks(4)) {
                noise.entry(*row).or_default().extend(&with[1..]);
            }
        }
        noise
    };
    let expected = noise(0, 7, 1);
    assert_eq!(noise(0, 13, 2), expected);
    assert_eq!(noise(0, 1, 0), expected);
    assert_ne!(noise(1, 7, 1), expected);
}

#[test]
fn ranks_share_an_epoch_and_a_saved_state_goes_on() {
    let bed = bed(48);
    let sizes = PipelineSpec { chunk_rows: 2, chunks_per_block: 4, ..Default::default() };
    let spec = PipelineSpec { batch_rows: 4, ..sizes };
    let remainder = Remainder::Drop;
    let mut seen = vec![0; 48];
    for rank in 0..3 {
        let world = World { rank, size: 3 };
        for batch in
            bed.pipeline(PipelineSpec { world, remainder, ..spec.clone() }).epoch(0).unwrap()
        {
            batch.unwrap().rows().iter().for_each(|row| seen[*row as usize] += 1);
        }
    }
    assert_eq!(seen, [1; 48]);

    let pipeline = bed.pipeline(spec);
    let all: Vec<SequenceBatch> = pipeline.epoch(2).unwrap().map(Result::unwrap).collect();
    let mut epoch = pipeline.epoch(2).unwrap();
    let first: Vec<SequenceBatch> = epoch.by_ref().take(5).map(Result::unwrap).collect();
    let state = epoch.state();
    let rest: Vec<SequenceBatch> = pipeline.resume(&state).unwrap().map(Result::unwrap).collect();
    assert_eq!([first, rest].concat(), all);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let bed = bed(3);
    let noise = Arc::new(AliasTable::new(&[1, 2], AliasTable::NOISE).unwrap());
    let windows = WindowSpec { context: 2, n_noise: 3, noise, seed: 5 };
    for (tokenizer, windows, what) in [
        (None, bed.windows.clone(), "tokenizer"),
        (Some(bed.tokenizer.clone()), windows, "2 words"),
    ] {
        let spec = SequenceSpec { tokenizer, windows: Some(windows), ..SequenceSpec::default() };
        let error = SequenceSamples::new(Arc::<SequenceFiles>::clone(&bed.store), spec)
            .unwrap_err()
            .to_string();
        assert!(error.contains(what), "{error}");
    }
}
