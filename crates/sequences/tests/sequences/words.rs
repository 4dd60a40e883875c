//! Words and vocabularies, against words as text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pipeline::{Pipeline, PipelineSpec};
use proptest::prelude::*;
use sequences::{
    Alphabet, Error, KmerSpec, SequenceBatch, SequenceSamples, SequenceSpec, SequenceStore as _,
    TokenFrames, TokenScratch, Tokenizer, Vocabulary, WhenUnknown, WindowSpec,
};
use shuffle::AliasTable;

use crate::bed::{random, store};

/// The words of a sequence's frames as text, from the definition.
fn as_text(letters: &str, spec: &KmerSpec) -> Vec<Vec<String>> {
    let padding = spec.padding * spec.k;
    let padded = format!("{}{letters}{}", "X".repeat(padding), "Y".repeat(padding));
    let frame = |frame: usize| {
        let begins = (frame..).step_by(spec.stride);
        let whole = begins.take_while(|begin| begin + spec.k <= padded.len());
        let words = whole.map(|begin| padded[begin..begin + spec.k].to_owned());
        if letters.len() < spec.k { Vec::new() } else { words.collect() }
    };
    (0..spec.n_frames).map(frame).collect()
}

fn is_known(word: &str) -> bool {
    !word.contains('N')
}

fn tokenized(tokenizer: &Tokenizer, letters: &str) -> Result<Vec<Vec<String>>, Error> {
    let (mut frames, mut scratch) = (TokenFrames::default(), TokenScratch::default());
    tokenizer.tokenize(7, letters.as_bytes(), &mut frames, &mut scratch)?;
    let word = |token: &u32| tokenizer.vocabulary().word(*token).unwrap();
    Ok(frames.frames().map(|frame| frame.iter().map(word).collect()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn words_are_those_of_the_padded_text(
        sequences in proptest::collection::vec("[ACGTUN]{1,40}", 1..6),
        k in 1_usize..5,
        stride in 1_usize..6,
        n_frames in 1_usize..6,
        padding in 0_usize..3,
        threads in 1_usize..4,
    ) {
        let spec = KmerSpec { k, stride, n_frames: n_frames.min(stride), padding };
        let (_folder, store) = store(&sequences);
        let alphabet = Alphabet::NUCLEIC;
        let count = |when| Vocabulary::count(&*store, &alphabet, &spec, when, threads);
        let texts: Vec<_> = sequences.iter().map(|letters| as_text(letters, &spec)).collect();

        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for word in texts.iter().flatten().flatten() {
            if is_known(word) && !word.contains(['X', 'Y']) {
                *counts.entry(word).or_default() += 1;
            }
        }
        let vocabulary = Arc::new(count(WhenUnknown::Word).unwrap());
        let counted: BTreeMap<String, u64> = (0..vocabulary.n_counted())
            .map(|word| (vocabulary.word(word as u32).unwrap(), vocabulary.counts()[word]))
            .collect();
        prop_assert!(counts.into_iter().eq(counted.iter().map(|(word, n)| (word.as_str(), *n))));
        let all: BTreeSet<String> =
            (0..vocabulary.n_words()).map(|word| vocabulary.word(word as u32).unwrap()).collect();
        prop_assert_eq!(all.len(), vocabulary.n_words(), "words differ");
        prop_assert_eq!(vocabulary.word(vocabulary.n_words() as u32), None);

        let with_word = Tokenizer::new(spec, Arc::clone(&vocabulary), WhenUnknown::Word).unwrap();
        let skipping = Tokenizer::new(spec, vocabulary, WhenUnknown::Skip).unwrap();
        for (letters, text) in sequences.iter().zip(&texts) {
            let unknown = |word: &String| {
                if is_known(word) { word.clone() } else { "<unk>".to_owned() }
            };
            let expected: Vec<Vec<String>> =
                text.iter().map(|frame| frame.iter().map(unknown).collect()).collect();
            prop_assert_eq!(&tokenized(&with_word, letters).unwrap(), &expected);
            let expected: Vec<Vec<String>> = text
                .iter()
                .map(|frame| frame.iter().filter(|word| is_known(word)).cloned().collect())
                .collect();
            prop_assert_eq!(&tokenized(&skipping, letters).unwrap(), &expected);
        }
    }
}

/// Half DNA, half RNA, as Dragon's generator writes them, give the words of Dragon's example.
#[test]
fn the_vocabulary_of_dragons_example_has_743_words() {
    let mut sequences = Vec::new();
    for (half, letters) in [b"ATCG", b"AUCG"].into_iter().enumerate() {
        sequences.extend((0..40).map(|number| random(letters, 1024, 100 * half as u64 + number)));
        sequences.push(random(letters, 64, half as u64));
    }
    let (_folder, store) = store(&sequences);
    let alphabet = store.summary().alphabet().unwrap();
    assert_eq!(alphabet, Alphabet::NUCLEIC);
    let spec = KmerSpec::default();
    let words = Vocabulary::count(&*store, &alphabet, &spec, WhenUnknown::Fail, 2).unwrap();
    assert_eq!((words.n_counted(), words.n_words()), (431, 743));
    assert_eq!(words.counts().iter().sum::<u64>(), 2 * (40 * 1021 + 61));
    assert!(words.counts()[..431].is_sorted_by(|one, next| next <= one));
    assert!(words.counts()[431..].iter().all(|count| *count == 0));
    let all: BTreeSet<String> = (0..743).map(|word| words.word(word).unwrap()).collect();
    let letters = ['A', 'C', 'G', 'T', 'U'];
    for letter in letters {
        assert!(all.contains(&format!("XXX{letter}")) && all.contains(&format!("{letter}YYY")));
    }
    assert!(all.contains("XXXX") && all.contains("YYYY") && all.contains("XTUA"));
}

#[test]
fn unknown_letters_and_words_are_named() {
    let (_folder, store) = store(&["ACGTACGT", "ACGNACGT"]);
    let spec = KmerSpec::all_frames(3, 1);
    let fails = Vocabulary::count(&*store, &Alphabet::DNA, &spec, WhenUnknown::Fail, 1);
    let error = fails.unwrap_err().to_string();
    assert!(error.contains("sequence 1") && error.contains("'N' at position 3"), "{error}");

    let words = [(&b"ACG"[..], 2), (b"CGT", 1)];
    let words = Vocabulary::from_words(&Alphabet::DNA, &spec, WhenUnknown::Fail, words).unwrap();
    let tokenizer = Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail).unwrap();
    let error = tokenized(&tokenizer, "ACGTTT").unwrap_err().to_string();
    assert!(error.contains("sequence 7") && error.contains("word TTT at position 3"), "{error}");
    let error = tokenized(&tokenizer, "ACGACGNA").unwrap_err().to_string();
    assert!(error.contains("'N' at position 6"), "{error}");
}

#[test]
fn a_tokenizer_needs_the_vocabulary_of_its_settings() {
    let plain = KmerSpec::all_frames(3, 0);
    let vocabulary = |spec: &KmerSpec| {
        let words = [(&b"ACG"[..], 2)];
        Arc::new(Vocabulary::from_words(&Alphabet::DNA, spec, WhenUnknown::Fail, words).unwrap())
    };
    for (spec, when, what) in [
        (KmerSpec::all_frames(4, 0), WhenUnknown::Fail, "words of 3 letters"),
        (KmerSpec::all_frames(3, 1), WhenUnknown::Fail, "padding"),
        (plain, WhenUnknown::Word, "unknown word"),
    ] {
        let error = Tokenizer::new(spec, vocabulary(&plain), when).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    for word in [&b"AC"[..], b"ACGT", b"ACN"] {
        let words = [(word, 1)];
        let made = Vocabulary::from_words(&Alphabet::DNA, &plain, WhenUnknown::Fail, words);
        assert!(made.is_err());
    }
}

#[test]
fn words_in_rows_are_cut_and_filled() {
    let (_folder, store) = store(&["ACGTACGT", "AC", "ACGT"]);
    let spec = KmerSpec::overlapping(3, 0);
    let words = Vocabulary::count(&*store, &Alphabet::DNA, &spec, WhenUnknown::Fail, 1).unwrap();
    let tokenizer = Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail).unwrap();
    let (mut frames, mut scratch) = (TokenFrames::default(), TokenScratch::default());
    for letters in [&b"ACGTACGT"[..], b"AC", b"ACGT"] {
        tokenizer.tokenize(0, letters, &mut frames, &mut scratch).unwrap();
    }
    let (words, mask) = frames.padded(1, 4, 99);
    let [first, third] = [0, 2].map(|frame| frames.frame(frame));
    assert_eq!(words, [&first[..4], &[99; 4], third, &[99; 2]].concat());
    assert_eq!(mask, [&[true; 4][..], &[false; 4], &[true, true, false, false]].concat());
}

/// Against Dragon's rules for a few short sequences (`tests/python/dragon.py`): targets with their
/// contexts, in its order, and the vocabulary with its counts.
#[test]
fn targets_and_contexts_are_dragons() {
    let text = include_str!("../data/dragon.txt");
    let (windows, counts) = text.split_once("vocabulary ").unwrap();
    let documents: Vec<(&str, Vec<&str>)> = windows
        .split("sequence ")
        .filter(|of| !of.is_empty())
        .map(|of| {
            let (letters, rest) = of.split_once('\n').unwrap();
            (letters, rest.lines().collect())
        })
        .collect();
    let sequences: Vec<&str> = documents.iter().map(|(letters, _)| *letters).collect();
    let (_folder, store) = store(&sequences);
    let spec = KmerSpec::default();
    let alphabet = store.summary().alphabet().unwrap();
    let words = Vocabulary::count(&*store, &alphabet, &spec, WhenUnknown::Fail, 2).unwrap();

    let mut counts = counts.lines();
    let totals = format!("{} {}", words.n_words(), words.counts().iter().sum::<u64>());
    assert_eq!(counts.next(), Some(totals.as_str()));
    let of_word =
        |word: usize| format!("{} {}", words.word(word as u32).unwrap(), words.counts()[word]);
    let mut counted: Vec<String> = (0..words.n_counted()).map(of_word).collect();
    counted.sort_unstable();
    assert!(counts.eq(counted.iter().map(String::as_str)), "{counted:?}");

    let noise = Arc::new(AliasTable::new(words.counts(), AliasTable::NOISE).unwrap());
    let tokenizer = Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail).unwrap();
    let vocabulary = Arc::clone(tokenizer.vocabulary());
    let windows = Some(WindowSpec { context: 3, n_noise: 5, noise, seed: 1 });
    let of_batch = SequenceSpec { tokenizer: Some(tokenizer), windows, ..Default::default() };
    let samples = SequenceSamples::new(store, of_batch).unwrap();
    let spec = PipelineSpec { batch_rows: 3, ..PipelineSpec::default() };
    let pipeline = Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences).unwrap();
    let mut found: Vec<Vec<String>> = vec![Vec::new(); documents.len()];
    for batch in pipeline.epoch(0).unwrap() {
        let windows = batch.unwrap().into_windows().unwrap();
        let contexts = windows.contexts.chunks(windows.n_context);
        let targets = windows.sequences.iter().zip(&windows.targets).zip(contexts);
        for ((row, target), context) in targets {
            let words = [&[*target], context].concat();
            let words: Vec<String> =
                words.iter().map(|word| vocabulary.word(*word).unwrap()).collect();
            found[*row as usize].push(words.join(" "));
        }
    }
    for ((letters, expected), found) in documents.iter().zip(&found) {
        assert_eq!(expected, found, "{letters}");
    }
}
