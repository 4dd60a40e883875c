//! Random samples through epochs of the engine: each once, with the values of a naive oracle.

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ReadStrategy, SampleSpec, Variable};
use pipeline::{Budget, Pipeline, PipelineSpec};
use proptest::prelude::*;

use crate::oracle::{Stored, expected, stored, variable, write};
use crate::{open, open_with};

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

/// Two arrays with the same number of steps, the dimension of these in both, and a part of each.
pub(crate) fn arrays() -> impl Strategy<Value = ([Stored; 2], usize, Vec<Variable>)> {
    (stored(), stored(), 0..4_usize).prop_flat_map(|(mut a, mut b, axis)| {
        b.shape[0] = a.shape[0];
        let axis = axis.min(a.shape.len() - 1).min(b.shape.len() - 1);
        for Stored { shape, chunk, .. } in [&mut a, &mut b] {
            shape.swap(0, axis);
            chunk.swap(0, axis);
        }
        let parts = (variable("a", (&a.shape, axis)), variable("b", (&b.shape, axis)));
        parts.prop_map(move |(of_a, of_b)| ([a.clone(), b.clone()], axis, vec![of_a, of_b]))
    })
}

/// First step and end of the samples, stride, and how they are read.
pub(crate) fn reading() -> impl Strategy<Value = ([Option<u64>; 2], u64, ReadStrategy, usize)> {
    let strategy = prop_oneof![Just(ReadStrategy::Stacked), Just(ReadStrategy::PerSample)];
    let range = [prop::option::of(2..5_u64), prop::option::of(1..45_u64)];
    (range, 1..4_u64, strategy, 1..4_usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_sample_comes_once_with_its_values(
        (stored, axis, variables) in arrays(),
        ([start, end], stride, read, threads) in reading(),
        spec in spec(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", &stored[0]);
        write(folder.path(), "b", &stored[1]);
        let n_steps = stored[0].shape[axis];
        let end = end.map(|end| end.min(n_steps));
        // The first dimension needs no name.
        let along = (0 < axis).then_some(axis.into());
        let samples =
            SampleSpec { start, end, stride, along, read, threads, ..SampleSpec::new(variables.clone()) };
        let Ok(samples) = open_with(folder.path(), &samples) else {
            // No sample fits: the window is longer than the array.
            let reach = variables.iter().flat_map(|of| &of.steps).fold((0, 0), |(least, most), by| {
                (least.min(*by), most.max(*by))
            });
            let first = start.unwrap_or_else(|| reach.0.unsigned_abs());
            let ends = (n_steps.saturating_sub(reach.1.unsigned_abs()), end.unwrap_or(n_steps));
            prop_assert!(ends.0.min(ends.1) <= first);
            return Ok(());
        };
        let n_samples = samples.n_samples();
        let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
        for epoch in pipeline.epochs(0..2) {
            let mut seen = vec![0; n_samples as usize];
            for batch in epoch.unwrap() {
                let batch = batch.unwrap();
                for (values, (variable, stored)) in batch.variables().zip(variables.iter().zip(&stored)) {
                    let all = values.values::<f64>().unwrap();
                    prop_assert_eq!(values.shape().iter().product::<usize>(), all.len());
                    let of_sample = all.len() / batch.n_samples();
                    for (sample, values) in batch.samples().iter().zip(all.chunks(of_sample)) {
                        let step = pipeline.source().step(*sample);
                        prop_assert!(end.is_none_or(|end| step < end));
                        prop_assert_eq!(values, expected((&stored.shape, axis), variable, step));
                    }
                }
                batch.samples().iter().for_each(|sample| seen[*sample as usize] += 1);
            }
            prop_assert!(seen.iter().all(|n| *n == 1), "{:?}", seen);
        }
    }
}

fn write_rows(folder: &Path) {
    let (shape, chunk) = (vec![8, 4], vec![2, 4]);
    write(folder, "fields", &Stored { shape, chunk, is_sharded: false, codec: None });
}

#[test]
fn what_was_read_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    write_rows(folder.path());
    let samples = Arc::new(open(folder.path(), "fields").unwrap());
    let spec = PipelineSpec { chunk_rows: 2, read_threads: 2, ..PipelineSpec::default() };
    let mut epoch = Pipeline::new(samples, spec, ArrayBatch::n_samples).unwrap().epoch(0).unwrap();
    let n_samples: usize = epoch.by_ref().map(|batch| batch.unwrap().n_samples()).sum();
    let stats = epoch.stats();
    assert_eq!((n_samples, stats.read.values), (8, 32));
    assert_eq!((stats.read.bytes_read, stats.read.bytes_needed), (Some(256), Some(256)));
}
