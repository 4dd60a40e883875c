//! Budgets: what is leased, what is granted, and what is refused.

use std::sync::atomic::Ordering;

use pipeline::{Budget, Error, Pipeline, PipelineSpec};
use std::sync::Arc;

use crate::numbers::{NumbersError, ROW_BYTES, batches, numbers_of, pipeline, spec};

/// Bytes that every pipeline needs beside blocks and batches.
const FIXED: u64 = 64 << 20;

/// The least memory that the settings need, read from the error.
fn least(spec: &PipelineSpec) -> u64 {
    let spec = PipelineSpec { memory: Budget::new(0), ..spec.clone() };
    match Pipeline::new(Arc::new(numbers_of(96)), spec, |batch| batch.rows.len()) {
        Err(NumbersError::Engine(Error::Memory { limit: 0, least, .. })) => least,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_is_what_is_needed_and_suffices() {
    // A block of 12 rows, two batches of 5, and 4 bytes for the place of each row.
    let least = least(&spec());
    assert_eq!(least, FIXED + (12 + 2 * 5) * ROW_BYTES + 12 * 4);
    let expected = batches(&pipeline(numbers_of(96), spec()), 0);
    let memory = Budget::new(least);
    let short = pipeline(numbers_of(96), PipelineSpec { memory: memory.clone(), ..spec() });
    let mut epoch = short.epoch(0).unwrap();
    assert_eq!((epoch.spec().prefetch_blocks, epoch.spec().prefetch_batches), (0, 0));
    let mut found = Vec::new();
    for batch in epoch.by_ref() {
        found.push(batch.unwrap());
        assert!(memory.leased() <= least, "{memory:?}");
    }
    assert_eq!(found, expected);
}

#[test]
fn a_block_is_read_ahead_where_another_thread_does_not_fit() {
    let reading = 100 * ROW_BYTES;
    let block = 12 * ROW_BYTES + 12 * 4;
    // One thread reads.
    let least = least(&spec()) + reading;
    for (spare, blocks, threads) in
        [(block - 1, 0, 1), (block, 1, 1), (block + reading - 1, 1, 1), (block + reading, 1, 2)]
    {
        let memory = Budget::new(least + spare);
        let spec = PipelineSpec { memory, read_threads: 2, prefetch_batches: 0, ..spec() };
        let pipeline = pipeline(crate::numbers::Numbers { reading, ..numbers_of(96) }, spec);
        let running = pipeline.epoch(0).unwrap();
        let as_run = running.spec();
        assert_eq!((as_run.prefetch_blocks, as_run.read_threads), (blocks, threads), "{spare}");
        assert_eq!(running.map(Result::unwrap).count(), 20);
    }
}

#[test]
fn what_is_leased_comes_back_whatever_happens() {
    let memory = Budget::new(1 << 30);
    let spec = PipelineSpec { memory: memory.clone(), read_threads: 2, ..spec() };
    let pipeline =
        pipeline(crate::numbers::Numbers { broken: Some((2, 1)), ..numbers_of(96) }, spec);
    assert_eq!((memory.leased(), pipeline.source().kept.load(Ordering::SeqCst)), (0, 1 << 30));
    for (epoch, n_taken) in [(0, 99), (1, 3), (2, 99)] {
        let mut running = pipeline.epoch(epoch).unwrap();
        let leased = memory.leased();
        assert!(FIXED < leased, "{memory:?}");
        assert_eq!(pipeline.source().kept.load(Ordering::SeqCst), (1 << 30) - leased);
        running.by_ref().take(n_taken).for_each(drop);
        drop(running);
        assert_eq!(memory.leased(), 0);
    }
    let source = Arc::clone(pipeline.source());
    drop(pipeline);
    assert_eq!(source.kept.load(Ordering::SeqCst), 0);
}

#[test]
fn without_a_limit_blocks_are_counted() {
    let memory = Budget::unlimited();
    let pipeline = pipeline(numbers_of(96), PipelineSpec { memory: memory.clone(), ..spec() });
    let mut epoch = pipeline.epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    assert!(12 * ROW_BYTES <= memory.leased(), "{memory:?}");
    drop(epoch);
    assert_eq!((memory.leased(), pipeline.source().kept.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn blocks_are_leased_until_their_batches_are_taken() {
    let memory = Budget::new(1 << 30);
    let spec = PipelineSpec { memory: memory.clone(), prefetch_blocks: 3, ..spec() };
    let pipeline = pipeline(numbers_of(24), spec);
    let mut epoch = pipeline.epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    // Both blocks are read by now, and the thread that read them is idle.
    while epoch.stats().n_blocks < 2 {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(24 * ROW_BYTES <= memory.leased(), "{memory:?} with 4 of 5 batches to come");
    drop(epoch);
    assert_eq!(memory.leased(), 0);
}

#[test]
fn the_settings_as_run_name_the_threads_that_ran() {
    let spec = PipelineSpec { read_threads: 8, prefetch_blocks: 1, ..spec() };
    assert_eq!(pipeline(numbers_of(960), spec.clone()).epoch(0).unwrap().spec().read_threads, 2);
    let least = least(&spec);
    let short = PipelineSpec { memory: Budget::new(least), ..spec };
    assert_eq!(pipeline(numbers_of(960), short).epoch(0).unwrap().spec().read_threads, 1);
}
