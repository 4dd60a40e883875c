//! Rollouts: variables that deliver more of their steps from epoch to epoch.

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, ReadStrategy, SampleSpec, TimeSpan, Variable};
use pipeline::{Pipeline, PipelineSpec, Source as _, World};
use proptest::prelude::*;
use shuffle::Remainder;

use crate::oracle::{Stored, expected, write};
use crate::timed::{Grid, write_grid, write_times};
use crate::{chain, in_order, open_with};

fn stored() -> impl Strategy<Value = Stored> {
    let shape = prop::collection::vec(1..5_u64, 2);
    let chunk = prop::collection::vec(1..4_u64, 3);
    (6..20_u64, shape, chunk).prop_map(|(steps, others, chunk)| {
        let shape = std::iter::once(steps).chain(others).collect();
        Stored { shape, chunk, is_sharded: false, codec: None }
    })
}

/// Steps of a variable, and how many of them it has in the first, the second and later epochs.
fn rollout() -> impl Strategy<Value = (Vec<i64>, [usize; 2])> {
    prop::collection::vec(-2..=3_i64, 1..5).prop_flat_map(|steps| {
        let n = steps.len();
        (Just(steps), [1..=n, 1..=n])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each epoch has the same samples, with the first of the steps.
    #[test]
    fn each_epoch_has_as_many_steps_as_its_rollout_says(
        stored in stored(),
        (steps, n) in rollout(),
        second in 1..3_u64,
        sizes in [1..5_u64, 1..4, 1..7],
        seed in any::<u64>(),
        per_sample in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "x", &stored);
        let plain = Variable::new("x").steps(steps.clone());
        let rolled = plain.clone().named("rolled").rollout([(0, n[0]), (second, n[1])]);
        let read = if per_sample { ReadStrategy::PerSample } else { ReadStrategy::Stacked };
        let spec = SampleSpec { read, ..SampleSpec::new([plain.clone(), rolled]) };
        // The array may be shorter than the window.
        let Ok(samples) = open_with(folder.path(), &spec) else { return Ok(()) };
        let n_samples = samples.n_samples();
        let of_all = open_with(folder.path(), &SampleSpec::new([plain.clone()])).unwrap();
        prop_assert_eq!(n_samples, of_all.n_samples());
        let shape = [steps.len()].into_iter().chain(stored.shape[1..].iter().map(|n| *n as usize));
        prop_assert_eq!(samples.sample_shape("rolled").unwrap(), shape.collect::<Vec<_>>());
        let [chunk_rows, chunks_per_block, batch_rows] = sizes;
        let engine = PipelineSpec { chunk_rows, chunks_per_block, batch_rows, seed, ..PipelineSpec::default() };
        let pipeline = Pipeline::new(Arc::new(samples), engine, ArrayBatch::n_samples).unwrap();
        for (epoch, batches) in pipeline.epochs(0..4).enumerate() {
            let n = if (epoch as u64) < second { n[0] } else { n[1] };
            let first = plain.clone().steps(steps[..n].to_vec());
            let mut seen = 0;
            for batch in batches.unwrap() {
                let batch = batch.unwrap();
                seen += batch.n_samples() as u64;
                let rolled = batch.variable("rolled").unwrap();
                prop_assert_eq!((rolled.n_steps(), rolled.dimensions()[1]), (n, "step"));
                prop_assert_eq!(rolled.shape()[..2].to_vec(), [batch.n_samples(), n]);
                let (mut right, mut whole) = (Vec::new(), Vec::new());
                for sample in batch.samples() {
                    let step = pipeline.source().step(*sample);
                    right.extend(expected((&stored.shape, 0), &first, step));
                    whole.extend(expected((&stored.shape, 0), &plain, step));
                }
                prop_assert_eq!(rolled.values::<f64>().unwrap(), right);
                prop_assert_eq!(batch.variable("x").unwrap().values::<f64>().unwrap(), whole);
            }
            prop_assert_eq!(seen, n_samples);
        }
    }
}

fn open(folder: &Path) -> ArraySamples {
    let shape = vec![20, 3];
    write(folder, "x", &Stored { chunk: vec![2, 3], shape, is_sharded: false, codec: None });
    let x = Variable::new("x").steps([1, 2, 3, 4]).rollout([(0, 1), (1, 2), (2, 4)]);
    open_with(folder, &SampleSpec::new([x])).unwrap()
}

fn values(batches: impl Iterator<Item = ArrayBatch>) -> Vec<(u64, Vec<usize>, Vec<f64>)> {
    let of_batch = |batch: ArrayBatch| {
        let x = batch.variable("x").unwrap();
        (batch.place().epoch, x.shape(), x.values::<f64>().unwrap().to_vec())
    };
    batches.map(of_batch).collect()
}

/// A state of the middle of an epoch goes on with that epoch's steps, and ranks have them too.
#[test]
fn resumed_epochs_and_ranks_have_the_steps_of_their_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Arc::new(open(folder.path()));
    let spec = PipelineSpec {
        batch_rows: 3,
        chunk_rows: 2,
        chunks_per_block: 2,
        ..PipelineSpec::default()
    };
    let pipeline =
        Pipeline::new(Arc::clone(&samples), spec.clone(), ArrayBatch::n_samples).unwrap();
    for epoch in 0..3 {
        let whole = values(pipeline.epoch(epoch).unwrap().map(Result::unwrap));
        let mut begun = pipeline.epoch(epoch).unwrap();
        let first = values(begun.by_ref().take(2).map(Result::unwrap));
        let again =
            Pipeline::new(Arc::clone(&samples), spec.clone(), ArrayBatch::n_samples).unwrap();
        let rest = values(again.resume(&begun.state()).unwrap().map(Result::unwrap));
        assert_eq!([first, rest].concat(), whole);
        let n_steps = [1, 2, 4][epoch as usize];
        assert!(whole.iter().all(|(of, shape, _)| *of == epoch && shape[1] == n_steps));
        let of_ranks = (0..2).flat_map(|rank| {
            let spec = PipelineSpec {
                batch_rows: 4,
                world: World { rank, size: 2 },
                remainder: Remainder::Drop,
                ..spec.clone()
            };
            let pipeline =
                Pipeline::new(Arc::clone(&samples), spec, ArrayBatch::n_samples).unwrap();
            values(pipeline.epoch(epoch).unwrap().map(Result::unwrap))
        });
        let all: usize = of_ranks
            .map(|(_, shape, _)| {
                assert_eq!(shape[1], n_steps);
                shape[0]
            })
            .sum();
        assert_eq!(all as u64, samples.n_samples());
    }
    // Memory is counted for the longest, and what is read for the epoch.
    assert_eq!(samples.need(4, 2).unwrap().block, 4 * 4 * 3 * 8);
    let mut epoch = pipeline.epoch(0).unwrap();
    let n: usize = epoch.by_ref().map(|batch| batch.unwrap().n_samples()).sum();
    assert_eq!(epoch.stats().read.bytes_needed, Some((n * 3 * 8) as u64));
}

/// Steps by time have the coordinates of those that are delivered; so do stacks.
#[test]
fn coordinates_are_those_of_the_steps_delivered() {
    let folder = tempfile::tempdir().unwrap();
    write_grid(folder.path(), "t", &Grid { values: (0..6).collect(), ..Grid::default() });
    write_times(folder.path(), &[0, 6, 12, 18, 24, 30], "hours since 2000-01-01", "standard");
    let spans = [6, 12].map(TimeSpan::hours);
    let t = Variable::new("t").spans(spans).rollout([(0, 1), (1, 2)]);
    let stack = Variable::stacked("s", [Variable::new("t")]).spans(spans).rollout([(0, 1), (1, 2)]);
    let samples = open_with(folder.path(), &SampleSpec::new([t, stack])).unwrap();
    assert_eq!(samples.n_samples(), 4);
    let spec = PipelineSpec { batch_rows: 4, chunk_rows: 4, ..in_order() };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    for (epoch, expected) in [(0, vec![6, 12, 18, 24]), (1, vec![6, 12, 12, 18, 18, 24, 24, 30])] {
        let batch = pipeline.epoch(epoch).unwrap().next().unwrap().unwrap();
        for name in ["t", "s"] {
            let values = batch.variable(name).unwrap();
            let times = values.sample_coordinates().unwrap();
            assert_eq!(times.integers().unwrap(), expected, "{name}");
            let steps: Vec<i16> = expected.iter().map(|hour| (hour / 6) as i16).collect();
            assert_eq!(values.values::<i16>().unwrap(), steps, "{name}");
        }
        let owned = batch.into_values().next().unwrap();
        assert_eq!(owned.values().shape(), [4, epoch as usize + 1]);
    }
}

#[test]
fn rollouts_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path());
    let mask =
        Grid { values: vec![1], shape: vec![1], names: vec!["lat".to_owned()], packing: None };
    write_grid(folder.path(), "mask", &mask);
    let refused = |variable: Variable, words: &[&str]| {
        let spec = SampleSpec { along: Some("time".into()), ..SampleSpec::new([variable]) };
        let text = chain(&open_with(folder.path(), &spec).unwrap_err());
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let x = || Variable::new("x").steps([1, 2]);
    refused(x().rollout([(0, 3)]), &["rollout of x", "3 steps of 2", "epoch 0"]);
    refused(x().rollout([(0, 1), (4, 0)]), &["0 steps of 2", "epoch 4"]);
    refused(x().rollout([(1, 1)]), &["begin with 0"]);
    refused(x().rollout([(0, 1), (2, 2), (2, 1)]), &["ascend"]);
    refused(Variable::new("mask").rollout([(0, 1)]), &["mask has no dimension time"]);
}
