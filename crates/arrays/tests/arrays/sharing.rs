//! Batches share the memory of their block, and it goes round.

use std::sync::Arc;

use arrays::{ArrayBatch, SampleSpec, Variable};
use pipeline::{Pipeline, PipelineSpec};
use slots::SlotMemory as _;

use crate::open_with;
use crate::oracle::{Stored, write};

fn pipeline(
    folder: &std::path::Path,
    batch_rows: u64,
    prefetch_batches: usize,
) -> Pipeline<arrays::ArraySamples> {
    pipeline_with(folder, batch_rows, prefetch_batches, true)
}

fn pipeline_with(
    folder: &std::path::Path,
    batch_rows: u64,
    prefetch_batches: usize,
    shares_blocks: bool,
) -> Pipeline<arrays::ArraySamples> {
    let stored = Stored { shape: vec![48, 8], chunk: vec![1, 8], is_sharded: false, codec: None };
    write(folder, "fields", &stored);
    let spec = PipelineSpec {
        chunk_rows: 1,
        chunks_per_block: 8,
        batch_rows,
        prefetch_batches,
        ..PipelineSpec::default()
    };
    let of_samples = SampleSpec { shares_blocks, ..SampleSpec::new([Variable::new("fields")]) };
    let samples = open_with(folder, &of_samples).unwrap();
    Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap()
}

fn address(batch: &ArrayBatch) -> usize {
    batch.variable("fields").unwrap().bytes().as_ptr() as usize
}

#[test]
fn batches_of_a_block_lie_in_it_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = pipeline(folder.path(), 4, 0);
    let batches: Vec<ArrayBatch> = pipeline.epoch(0).unwrap().map(Result::unwrap).collect();
    for pair in batches.chunks(2) {
        assert_eq!(address(&pair[1]), address(&pair[0]) + 4 * 8 * size_of::<f64>());
    }
}

#[test]
fn dropped_memory_is_used_again_and_kept_batches_are_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = pipeline(folder.path(), 8, 0);
    let mut addresses = Vec::new();
    for epoch in pipeline.epochs(0..4) {
        for batch in epoch.unwrap() {
            addresses.push(address(&batch.unwrap()));
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    // One block in use, one read ahead, and the consumer's batch.
    assert!(addresses.len() <= 4, "{addresses:?}");

    let kept: Vec<ArrayBatch> = pipeline.epoch(0).unwrap().map(Result::unwrap).collect();
    for epoch in pipeline.epochs(1..3) {
        for batch in epoch.unwrap() {
            drop(batch.unwrap());
        }
    }
    for batch in &kept {
        let values = batch.variable("fields").unwrap();
        let values = values.values::<f64>().unwrap().chunks(8);
        for (sample, values) in batch.samples().iter().zip(values) {
            assert_eq!(values[0], (sample * 8) as f64);
        }
    }
}

#[test]
fn a_batch_of_a_whole_block_owns_its_memory_and_parts_do_not() {
    let folder = tempfile::tempdir().unwrap();
    // The whole of a block, a part of it, a part beside copies from two blocks.
    for (batch_rows, n_alone) in [(8, 6), (4, 0), (5, 4)] {
        for prefetch_batches in [0, 2] {
            let pipeline = pipeline(folder.path(), batch_rows, prefetch_batches);
            let mut n_found = 0;
            for batch in pipeline.epoch(0).unwrap() {
                let batch = batch.unwrap();
                let before = address(&batch);
                let expected: Vec<f64> =
                    batch.variable("fields").unwrap().values().unwrap().to_vec();
                let mut values = batch.into_values().next().unwrap();
                if let Some(bytes) = values.bytes_mut() {
                    assert_eq!(bytes.as_ptr() as usize, before);
                    n_found += 1;
                }
                let values = values.values();
                assert_eq!(values.values::<f64>().unwrap(), expected);
                assert_eq!((values.name(), values.dimensions()[0]), ("fields", "sample"));
            }
            assert_eq!(n_found, n_alone, "{batch_rows} {prefetch_batches}");
        }
    }
}

#[test]
fn all_batches_own_their_memory_if_blocks_are_not_shared() {
    let folder = tempfile::tempdir().unwrap();
    for batch_rows in [8, 4, 5, 20] {
        let pipeline = pipeline_with(folder.path(), batch_rows, 1, false);
        let mut addresses = Vec::new();
        for batch in pipeline.epochs(0..3).flat_map(Result::unwrap) {
            let batch = batch.unwrap();
            let samples = batch.samples().to_vec();
            addresses.push(address(&batch));
            let slot = batch.into_values().next().unwrap().into_slot().unwrap();
            let values: &[f64] = bytemuck::cast_slice(slot.bytes());
            let expected: Vec<f64> = samples
                .iter()
                .flat_map(|sample| (0..8).map(move |at| (sample * 8 + at) as f64))
                .collect();
            assert_eq!(values, expected);
        }
        addresses.sort_unstable();
        addresses.dedup();
        assert!(addresses.len() <= 6, "{batch_rows}: {addresses:?}");
    }
}

#[test]
fn a_batch_of_two_blocks_is_copied_whole() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = pipeline(folder.path(), 5, 0);
    let mut seen = Vec::new();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let values = batch.variable("fields").unwrap();
        for (sample, values) in
            batch.samples().iter().zip(values.values::<f64>().unwrap().chunks(8))
        {
            assert_eq!((values[0], values[7]), ((sample * 8) as f64, (sample * 8 + 7) as f64));
            seen.push(*sample);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..48).collect::<Vec<u64>>());
}
