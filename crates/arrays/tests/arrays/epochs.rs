//! Random arrays through epochs of the engine: each row once, with its own values.

use std::sync::Arc;

use arrays::RowBatch;
use pipeline::{Budget, Pipeline, PipelineSpec};
use proptest::prelude::*;
use zarrs::array::{ArrayBuilder, codec, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::open;

/// How an array is stored.
#[derive(Debug, Clone)]
struct Stored {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    is_sharded: bool,
    is_compressed: bool,
}

fn stored() -> impl Strategy<Value = Stored> {
    let dimension = |most: u64| (1..=most, 1..=4_u64);
    (dimension(40), prop::collection::vec(dimension(5), 0..3), any::<bool>(), any::<bool>())
        .prop_map(|(rows, others, is_sharded, is_compressed)| {
            let (shape, chunk) = std::iter::once(rows).chain(others).unzip();
            Stored { shape, chunk, is_sharded, is_compressed }
        })
}

/// Writes the array `fields`, whose element i is i.
fn write(folder: &std::path::Path, stored: &Stored) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let mut builder = ArrayBuilder::new(
        stored.shape.clone(),
        stored.chunk.clone(),
        data_type::float64(),
        f64::NAN,
    );
    if stored.is_compressed {
        builder.bytes_to_bytes_codecs(vec![Arc::new(codec::ZstdCodec::new(1, true))]);
    }
    if stored.is_sharded {
        builder.subchunk_shape(vec![1_u64; stored.shape.len()]);
    }
    let array = builder.build(store, "/fields").unwrap();
    array.store_metadata().unwrap();
    let n: u64 = stored.shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

fn spec() -> impl Strategy<Value = PipelineSpec> {
    let sizes = (1..6_u64, 1..5_u64, 1..9_u64, any::<u64>());
    let ahead = (0..3_usize, 1..4_usize, 0..3_usize);
    (sizes, ahead).prop_map(|((chunk_rows, chunks_per_block, batch_rows, seed), ahead)| {
        let (prefetch_blocks, read_threads, prefetch_batches) = ahead;
        PipelineSpec {
            chunk_rows,
            chunks_per_block,
            batch_rows,
            seed,
            prefetch_blocks,
            read_threads,
            prefetch_batches,
            memory: Budget::new(128 << 20),
            ..PipelineSpec::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_row_comes_once_with_its_values(stored in stored(), spec in spec()) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &stored);
        let rows = open::<f64>(folder.path(), "fields").unwrap();
        let row_len = stored.shape[1..].iter().product::<u64>() as usize;
        let pipeline = Pipeline::new(Arc::new(rows), spec, RowBatch::n_rows).unwrap();
        for epoch in pipeline.epochs(0..2) {
            let mut seen = vec![0; stored.shape[0] as usize];
            for batch in epoch.unwrap() {
                let batch = batch.unwrap();
                prop_assert_eq!(batch.shape().iter().product::<usize>(), batch.values().len());
                for row in batch.values().chunks(row_len) {
                    let first = row[0] as usize;
                    prop_assert!(row.iter().enumerate().all(|(i, x)| *x == (first + i) as f64));
                    seen[first / row_len] += 1;
                }
            }
            prop_assert!(seen.iter().all(|n| *n == 1), "{:?}", seen);
        }
    }
}

#[test]
fn what_was_read_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let shape = vec![8, 4];
    let stored = Stored { shape, chunk: vec![2, 4], is_sharded: false, is_compressed: false };
    write(folder.path(), &stored);
    let rows = Arc::new(open::<f64>(folder.path(), "fields").unwrap());
    let spec = PipelineSpec { chunk_rows: 2, read_threads: 2, ..PipelineSpec::default() };
    let mut epoch = Pipeline::new(rows, spec, RowBatch::n_rows).unwrap().epoch(0).unwrap();
    let n_rows: usize = epoch.by_ref().map(|batch| batch.unwrap().n_rows()).sum();
    let stats = epoch.stats();
    assert_eq!((n_rows, stats.read.values), (8, 32));
    assert_eq!((stats.read.bytes_read, stats.read.bytes_needed), (Some(256), Some(256)));
}
