//! Decoded chunks that stay in memory from epoch to epoch.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, DecodeMemory, KeptChunks, SampleSpec, StoredArray, Variable,
    read_requests,
};
use pipeline::{Budget, Epoch, Pipeline, PipelineSpec};
use storage::{LocalStorage, NextReads, Storage};

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

/// 24 steps in 12 chunks of 16 KiB.
const IN_ROWS: [u64; 3] = [2, 16, 64];
const CHUNK_BYTES: u64 = 2 * 16 * 64 * 8;

fn in_rows() -> Stored {
    let codec = Some(Compression::Blosc);
    Stored { shape: SHAPE.to_vec(), chunk: IN_ROWS.to_vec(), is_sharded: false, codec }
}

/// When a chunk is wanted after this place of a list.
fn next(wanted: &[u64], at: usize, chunk: u64) -> Option<usize> {
    wanted[at + 1..].iter().position(|one| *one == chunk)
}

/// How many of the first `n` chunks are decoded if those stay, of `room`, that are wanted soonest.
fn fewest_decoded(wanted: &[u64], n: usize, room: usize) -> u64 {
    let (mut kept, mut n_decoded) = (BTreeSet::new(), 0);
    for (at, chunk) in wanted.iter().enumerate().take(n) {
        n_decoded += u64::from(!kept.contains(chunk));
        kept.insert(*chunk);
        if room < kept.len() {
            let last = kept.iter().max_by_key(|one| next(wanted, at, **one).unwrap_or(usize::MAX));
            let last = *last.unwrap();
            kept.remove(&last);
        }
    }
    n_decoded
}

#[test]
fn as_few_chunks_are_decoded_as_the_plan_allows() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "x", &in_rows());
    let variable = Variable::new("x").steps([-1, 0, 1]);
    let spec = SampleSpec { threads: 1, ..SampleSpec::new([variable]) };
    for room in [0, 1, 2, 4, 7, 11, 12] {
        let samples = open_with(folder.path(), &spec).unwrap();
        let spec = PipelineSpec {
            chunk_rows: 1,
            chunks_per_block: 5,
            batch_rows: 5,
            seed: 3,
            keep_bytes: Some(room * CHUNK_BYTES),
            ..PipelineSpec::default()
        };
        let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
        // The chunks that the blocks want, and the bytes decoded, of each epoch.
        let epochs: Vec<(Vec<u64>, u64)> = (0..5)
            .map(|epoch| {
                let (mut epoch, mut wanted) = (pipeline.epoch(epoch).unwrap(), Vec::new());
                for batch in epoch.by_ref() {
                    let batch = batch.unwrap();
                    let steps = batch.samples().iter().flat_map(|sample| *sample..*sample + 3);
                    wanted.extend(steps.map(|step| step / 2).collect::<BTreeSet<_>>());
                }
                (wanted, epoch.stats().read.bytes_decoded.unwrap())
            })
            .collect();
        let wanted: Vec<u64> = epochs.iter().flat_map(|(wanted, _)| wanted).copied().collect();
        // What the last epoch keeps depends on one that is not run.
        let n = wanted.len() - epochs[4].0.len();
        let decoded: u64 = epochs[..4].iter().map(|(_, decoded)| decoded).sum();
        let fewest = fewest_decoded(&wanted, n, room as usize);
        assert_eq!(decoded, fewest * CHUNK_BYTES, "room for {room}: {wanted:?}");
    }
}

#[test]
fn requests_keep_what_is_needed_soonest() {
    let folder = tempfile::tempdir().unwrap();
    // The same chunks, as rows of a matrix.
    let stored = Stored { shape: vec![24, 1024], chunk: vec![2, 1024], ..in_rows() };
    write(folder.path(), "x", &stored);
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
    let (array, memory) = (StoredArray::open(&storage, "x").unwrap(), DecodeMemory::default());
    let wanted = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4];
    for room in 0..6 {
        let kept = KeptChunks::up_to(room * CHUNK_BYTES);
        let mut decoded = 0;
        for (at, chunk) in wanted.into_iter().enumerate() {
            // The caller's numbers of the rows begin with 100; a read counts as one row.
            let reads = NextReads::new(move |rows| {
                assert_eq!(rows, 100 + 2 * chunk..102 + 2 * chunk);
                next(&wanted, at, chunk).map_or(u64::MAX, |n| n as u64 + 1)
            });
            let read = kept.begin(1, Some(reads));
            let mut into = vec![0_u64; 2 * 16 * 64];
            let bytes = bytemuck::cast_slice_mut(&mut into);
            let request = array.request_bytes(&[2 * chunk..2 * chunk + 2], bytes).unwrap();
            let requests = vec![request.keep_in(&read, 100)];
            decoded += read_requests(&*storage, &memory, requests).unwrap().bytes_decoded.unwrap();
            let values = into.iter().map(|bits| f64::from_bits(*bits));
            assert!(values.zip(chunk * 2048..).all(|(value, place)| value == place as f64));
            assert!(kept.n_bytes() <= room * CHUNK_BYTES);
        }
        let fewest = fewest_decoded(&wanted, wanted.len(), room as usize);
        assert_eq!(decoded, fewest * CHUNK_BYTES, "room for {room}");
    }
}
