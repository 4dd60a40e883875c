//! Decoded chunks that stay in memory from epoch to epoch.

use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use pipeline::{Budget, Epoch, Pipeline, PipelineSpec};

use crate::far::far;
use crate::open_with;
use crate::oracle::{Compression, Stored, expected, write};

/// 24 steps in 12 rows of two chunks of 8 KiB.
const SHAPE: [u64; 3] = [24, 16, 64];
const ALL: u64 = 24 * 16 * 64 * 8;

fn stored(codec: Option<Compression>) -> Stored {
    Stored { shape: SHAPE.to_vec(), chunk: vec![2, 8, 64], is_sharded: false, codec }
}

/// Checks the values of an epoch, and returns how many bytes were decoded.
fn decoded(mut epoch: Epoch<ArraySamples>) -> u64 {
    let mut n = 0;
    for batch in epoch.by_ref() {
        let batch = batch.unwrap();
        let values = batch.variable("x").unwrap().values::<f64>().unwrap();
        let each = values.chunks(values.len() / batch.n_samples());
        for (sample, values) in batch.samples().iter().zip(each) {
            assert_eq!(values, expected((&SHAPE, 0), &Variable::new("x"), *sample));
            n += 1;
        }
    }
    assert_eq!(n, SHAPE[0]);
    epoch.stats().read.bytes_decoded.unwrap()
}

fn pipeline(samples: &ArraySamples, spec: PipelineSpec) -> Pipeline<ArraySamples> {
    let spec = PipelineSpec { chunk_rows: 2, chunks_per_block: 3, batch_rows: 4, seed: 7, ..spec };
    Pipeline::new(Arc::new(samples.clone()), spec, ArrayBatch::n_samples).unwrap()
}

#[test]
fn a_later_epoch_decodes_only_what_was_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "x", &stored(Some(Compression::Zstd)));
    let spec = SampleSpec { threads: 2, ..SampleSpec::new([Variable::new("x")]) };
    for (keep_bytes, left) in [(None, ALL), (Some(ALL), 0), (Some(ALL / 4), ALL * 3 / 4)] {
        // A budget leaves all of its rest to kept chunks, unless they are limited.
        for memory in [Budget::unlimited(), Budget::new(512 << 20)] {
            let samples = open_with(folder.path(), &spec).unwrap();
            let left = if keep_bytes.is_none() && memory.limit().is_some() { 0 } else { left };
            let pipeline =
                pipeline(&samples, PipelineSpec { keep_bytes, memory, ..PipelineSpec::default() });
            assert_eq!(decoded(pipeline.epoch(0).unwrap()), ALL);
            assert_eq!(decoded(pipeline.epoch(1).unwrap()), left, "{keep_bytes:?}");
            assert_eq!(decoded(pipeline.epoch(2).unwrap()), left, "{keep_bytes:?}");
        }
    }
}

#[test]
fn what_a_loader_allowed_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "x", &stored(Some(Compression::Zstd)));
    let samples = open_with(folder.path(), &SampleSpec::new([Variable::new("x")])).unwrap();
    let keeping = |bytes| PipelineSpec { keep_bytes: Some(bytes), ..PipelineSpec::default() };
    let first = pipeline(&samples, keeping(ALL / 2));
    let second = pipeline(&samples, keeping(ALL / 2));
    assert_eq!(decoded(first.epoch(0).unwrap()), ALL);
    assert_eq!(decoded(second.epoch(1).unwrap()), 0);
    drop(first);
    assert_eq!(decoded(second.epoch(2).unwrap()), ALL / 2);
}

#[test]
fn chunks_of_a_remote_store_are_kept_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "x", &stored(None));
    let spec = SampleSpec::new([Variable::new("x")]);
    let samples = ArraySamples::open(far(folder.path(), 1 << 20), &spec).unwrap();
    let spec = PipelineSpec { keep_bytes: Some(ALL), ..PipelineSpec::default() };
    let pipeline = pipeline(&samples, spec);
    decoded(pipeline.epoch(0).unwrap());
    assert_eq!(decoded(pipeline.epoch(1).unwrap()), 0);
}
