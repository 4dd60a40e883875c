//! Samples that are read straight into the caller's memory.

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, Error, ReadScratch, SampleSpec, Variable};
use pipeline::{Pipeline, Stop};
use proptest::prelude::*;
use slots::{Mapped, Ring};

use crate::epochs::{arrays, reading};
use crate::oracle::{Stored, write};
use crate::{chain, in_order, open, open_with};

/// Bytes of each variable in each sample, through the engine.
fn delivered(samples: ArraySamples) -> Vec<Vec<Vec<u8>>> {
    let mut all = vec![Vec::new(); samples.n_samples() as usize];
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        for values in batch.variables() {
            let each = values.bytes().chunks(values.bytes().len() / batch.n_samples());
            for (sample, bytes) in batch.samples().iter().zip(each) {
                all[*sample as usize].push(bytes.to_vec());
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn samples_in_the_callers_memory_are_those_of_the_engine(
        (stored, axis, variables) in arrays(),
        ([start, end], stride, read, threads) in reading(),
        chosen in prop::collection::vec(any::<u64>(), 0..12),
        as_f32 in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", &stored[0]);
        write(folder.path(), "b", &stored[1]);
        let end = end.map(|end| end.min(stored[0].shape[axis]));
        let [a, b]: [Variable; 2] = variables.try_into().unwrap();
        let a = if as_f32 { a.as_f32() } else { a };
        let spec = SampleSpec { start, end, stride, along: Some(axis.into()), read, threads, ..SampleSpec::new([a, b]) };
        // No sample may fit.
        let Ok(samples) = open_with(folder.path(), &spec) else { return Ok(()) };
        let expected = delivered(samples.clone());
        let chosen: Vec<u64> = chosen.iter().map(|number| number % samples.n_samples()).collect();
        let key_bytes: Vec<usize> =
            expected[0].iter().map(|bytes| bytes.len() * chosen.len()).collect();
        let mut slot = Ring::new(1, &key_bytes, &Mapped).unwrap().take().unwrap();
        slot.keys_mut().into_iter().for_each(|key| key.fill(0xEE));
        let mut scratch = ReadScratch::default();
        let stats = samples.read_into(&chosen, &mut slot.keys_mut(), &mut scratch, &Stop::default());
        let needed = key_bytes.iter().sum::<usize>() as u64;
        prop_assert_eq!(stats.unwrap().bytes_needed, Some(needed));
        for (key, n_bytes) in key_bytes.iter().enumerate() {
            prop_assert_eq!(slot.key(key).len(), *n_bytes);
            let of_samples = chosen.iter().map(|sample| &expected[*sample as usize][key][..]);
            prop_assert_eq!(slot.key(key), of_samples.collect::<Vec<_>>().concat());
        }
    }
}

fn write_rows(folder: &Path) {
    let (shape, chunk) = (vec![8, 4], vec![1, 4]);
    write(folder, "fields", &Stored { shape, chunk, is_sharded: false, codec: None });
}

#[test]
fn memory_that_does_not_fit_the_samples_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path());
    let samples = open(folder.path(), "fields").unwrap();
    let refused = |numbers: &[u64], into: &mut [&mut [u8]], words: &[&str]| {
        let stop = Stop::default();
        let error = samples.read_into(numbers, into, &mut ReadScratch::default(), &stop);
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Destination { .. }), "{error:?}");
        let text = chain(&error);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let mut memory = [0_u64; 20];
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    refused(&[0], &mut [], &["0 slices", "1 variables"]);
    refused(&[0, 3], &mut [&mut memory[..60]], &["fields has 64 bytes", "60"]);
    refused(&[0, 3], &mut [&mut memory[4..68]], &["multiple of 8"]);
    refused(&[0, 8], &mut [&mut memory[..64]], &["sample 8 of 8"]);
    assert!(memory.iter().all(|byte| *byte == 0));
}

#[test]
fn a_damaged_chunk_is_named_and_a_stop_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path());
    let samples = open(folder.path(), "fields").unwrap();
    std::fs::write(folder.path().join("fields/c/3/0"), [0; 5]).unwrap();
    let mut memory = [0_u64; 8];
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let (mut scratch, stop) = (ReadScratch::default(), Stop::default());
    let error = samples.read_into(&[2, 3], &mut [&mut *memory], &mut scratch, &stop).unwrap_err();
    let text = chain(&error);
    assert!(text.contains("array fields") && text.contains("chunk [3, 0]"), "{text}");
    stop.set();
    let stats = samples.read_into(&[2, 3], &mut [&mut *memory], &mut scratch, &stop).unwrap();
    assert_eq!(stats.bytes_read, Some(0));
}
