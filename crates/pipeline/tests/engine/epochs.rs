//! Epochs one after another: without a gap, with the same batches as alone, from any state.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pipeline::{Budget, LoaderState, PipelineSpec, World};
use proptest::prelude::*;

use crate::numbers::{Numbered, Numbers, NumbersError, batches, numbers_of, pipeline, spec};

#[test]
fn epochs_that_follow_are_those_that_are_started_alone() {
    for n_rows in [0, 1, 11, 96] {
        for (prefetch_batches, read_threads) in [(0, 1), (1, 1), (4, 3)] {
            let spec = PipelineSpec { prefetch_batches, read_threads, ..spec() };
            let pipeline = pipeline(numbers_of(n_rows), spec);
            for (found, number) in pipeline.epochs(5..9).zip(5_u64..) {
                let mut found = found.unwrap();
                assert_eq!(found.state().epoch(), number);
                let all: Vec<Numbered> = found.by_ref().map(Result::unwrap).collect();
                assert_eq!(all, batches(&pipeline, number), "epoch {number} of {n_rows} rows");
                assert_eq!(found.stats().n_rows, n_rows);
                assert_eq!(found.stats().read.values, n_rows);
            }
        }
    }
}

#[test]
fn the_next_epoch_is_read_while_this_one_is_consumed() {
    let pipeline = pipeline(numbers_of(96), PipelineSpec { prefetch_blocks: 2, ..spec() });
    let mut epochs = pipeline.epochs(..);
    let mut first = epochs.next().unwrap().unwrap();
    // There are eight blocks an epoch; while the last batch is being made, blocks of the next epoch
    // are free.
    assert_eq!(first.by_ref().take(20).count(), 20);
    for _ in 0..1000 {
        if pipeline.source().n_started.load(Ordering::SeqCst) > 8 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(pipeline.source().n_started.load(Ordering::SeqCst) > 8);
    // Dropped before its end was asked for, it is over all the same.
    drop(first);
    let n_started = pipeline.source().n_started.load(Ordering::SeqCst);
    let second = epochs.next().unwrap().unwrap();
    assert_eq!(second.map(Result::unwrap).count(), 20);
    // No block was read twice.
    assert!(pipeline.source().n_started.load(Ordering::SeqCst) <= n_started.max(16) + 3);
}

#[test]
fn nothing_is_read_behind_the_last_epoch() {
    let spec = PipelineSpec { prefetch_blocks: 9, prefetch_batches: 50, ..spec() };
    let pipeline = pipeline(numbers_of(96), spec);
    let all: Vec<usize> = pipeline.epochs(3..=4).map(|epoch| epoch.unwrap().count()).collect();
    assert_eq!(all, [20, 20]);
    assert_eq!(pipeline.source().n_started.load(Ordering::SeqCst), 16);
    assert_eq!(pipeline.epochs(4..4).count(), 0);
}

#[test]
fn an_epoch_that_is_dropped_early_does_not_disturb_the_next() {
    let pipeline = pipeline(numbers_of(96), PipelineSpec { prefetch_blocks: 2, ..spec() });
    let mut epochs = pipeline.epochs(..);
    for number in 0..4 {
        let mut epoch = epochs.next().unwrap().unwrap();
        let taken: Vec<Numbered> = epoch.by_ref().take(7).map(Result::unwrap).collect();
        assert_eq!(taken, batches(&pipeline, number)[..7]);
    }
}

#[test]
fn an_error_ends_its_epoch_and_the_next_starts_anew() {
    let broken = Numbers { broken: Some((1, 2)), ..numbers_of(96) };
    let pipeline = pipeline(broken, PipelineSpec { read_threads: 2, ..spec() });
    let mut outcomes = Vec::new();
    for epoch in pipeline.epochs(0..3) {
        match epoch {
            Ok(epoch) => outcomes.push(epoch.collect::<Result<Vec<_>, _>>().map(|all| all.len())),
            Err(error) => outcomes.push(Err(error)),
        }
    }
    let [Ok(20), Err(NumbersError::Broken { epoch: 1, block_idx: 2 }), Ok(20)] = &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
}

#[test]
fn an_epoch_whose_end_is_not_asked_for_is_followed_by_the_next() {
    let pipeline = pipeline(numbers_of(96), spec());
    let mut epochs = pipeline.epochs(0..6);
    let mut epoch = epochs.next().unwrap().unwrap();
    let mut seen = Vec::new();
    loop {
        // Takes all batches, but not the end; the epoch still exists when the next one is asked
        // for.
        for _ in 0..pipeline.n_batches() {
            epoch.next().unwrap().unwrap();
        }
        seen.push(epoch.state().epoch());
        let Some(next) = epochs.next() else { break };
        epoch = next.unwrap();
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    // No block was read twice, so there was no gap.
    assert_eq!(pipeline.source().n_started.load(Ordering::SeqCst), 6 * 8);
}

#[test]
fn epochs_are_numbered_to_the_last_that_there_is() {
    let pipeline = pipeline(numbers_of(96), spec());
    assert_eq!(batches(&pipeline, u64::MAX).len(), 20);
    let last: Vec<u64> = pipeline
        .epochs(u64::MAX - 2..)
        .map(|epoch| {
            let mut epoch = epoch.unwrap();
            assert_eq!(epoch.by_ref().map(Result::unwrap).count(), 20);
            epoch.state().epoch()
        })
        .collect();
    assert_eq!(last, [u64::MAX - 2, u64::MAX - 1]);
}

#[test]
fn two_epochs_at_once_are_each_whole() {
    let pipeline = pipeline(numbers_of(96), spec());
    let mut epochs = pipeline.epochs(0..4);
    let mut first = epochs.next().unwrap().unwrap();
    first.by_ref().take(3).for_each(|batch| drop(batch.unwrap()));
    let second = epochs.next().unwrap().unwrap();
    assert_eq!(first.by_ref().map(Result::unwrap).count(), 17);
    assert_eq!(second.map(Result::unwrap).collect::<Vec<_>>(), batches(&pipeline, 1));
    drop(first);
    let third = epochs.next().unwrap().unwrap();
    assert_eq!(third.map(Result::unwrap).collect::<Vec<_>>(), batches(&pipeline, 2));
}

#[test]
fn an_epoch_that_is_kept_for_its_counts_keeps_nothing_else() {
    let memory = Budget::new(1 << 30);
    let spec = PipelineSpec { memory: memory.clone(), ..spec() };
    let pipeline = pipeline(numbers_of(96), spec);
    let mut epochs = pipeline.epochs(..);
    let mut first = epochs.next().unwrap().unwrap();
    assert_eq!(first.by_ref().count(), 20);
    drop(epochs);
    assert_eq!((memory.leased(), first.stats().n_batches), (0, 20));
}

#[test]
fn as_much_ahead_as_there_is_may_be_asked_for() {
    for spec in [
        PipelineSpec { prefetch_batches: usize::MAX, ..spec() },
        PipelineSpec { prefetch_blocks: usize::MAX, read_threads: 8, ..spec() },
    ] {
        let pipeline = pipeline(numbers_of(96), spec);
        assert_eq!(batches(&pipeline, 0).len(), 20);
        let all: Vec<usize> = pipeline.epochs(0..2).map(|epoch| epoch.unwrap().count()).collect();
        assert_eq!(all, [20, 20]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// From any state, with another world size: the next batches, and the epochs after, are the
    /// same.
    #[test]
    fn a_state_goes_on_through_the_epochs_that_follow(
        n_rows in 1_u64..150,
        n_taken in 0_usize..12,
        ranks in prop::sample::select(vec![(1_u64, 2_u64), (2, 1), (4, 2), (2, 4)]),
    ) {
        let (before, after) = ranks;
        let global = 8;
        let of_world = |rank, size| PipelineSpec {
            world: World { rank, size },
            batch_rows: global / size,
            lanes: Some(2),
            remainder: shuffle::Remainder::Pad,
            ..spec()
        };
        let of_ranks = |size: u64, from: Option<&LoaderState>| -> Vec<Vec<Vec<u64>>> {
            (0..size).map(|rank| {
                let pipeline = pipeline(numbers_of(n_rows), of_world(rank, size));
                let epochs = match from {
                    Some(state) => pipeline.resume_epochs(state, 2).unwrap(),
                    None => pipeline.epochs(0..2),
                };
                epochs.map(|epoch| epoch.unwrap().map(|batch| batch.unwrap().rows).collect::<Vec<_>>().concat()).collect()
            }).collect()
        };
        let whole = pipeline(numbers_of(n_rows), of_world(0, before));
        let mut epoch = whole.epoch(0).unwrap();
        let n_taken = epoch.by_ref().take(n_taken).count();
        let state = LoaderState::from_json(&epoch.state().to_json().unwrap()).unwrap();
        prop_assert_eq!(state.batches_delivered(), n_taken as u64);

        // The global batches of both epochs, put together from all ranks.
        let global_batches = |of_ranks: &[Vec<Vec<u64>>], epoch: usize, size: u64| -> Vec<u64> {
            let rows = (global / size) as usize;
            let n_batches = of_ranks[0][epoch].len() / rows;
            (0..n_batches).flat_map(|batch| {
                of_ranks.iter().flat_map(move |rank| rank[epoch][batch * rows..(batch + 1) * rows].to_vec())
            }).collect()
        };
        let (all, rest) = (of_ranks(before, None), of_ranks(after, Some(&state)));
        let skipped = n_taken * global as usize;
        prop_assert_eq!(&global_batches(&all, 0, before)[skipped..], &global_batches(&rest, 0, after)[..]);
        prop_assert_eq!(global_batches(&all, 1, before), global_batches(&rest, 1, after));
    }
}

#[test]
fn an_epoch_with_a_ramp_goes_on_from_every_batch() {
    let spec = PipelineSpec {
        ramp_blocks: 2,
        chunk_rows: 2,
        chunks_per_block: 8,
        batch_rows: 5,
        ..spec()
    };
    let ramped = pipeline(numbers_of(96), spec.clone());
    let whole = batches(&ramped, 3);
    for n_taken in 0..=whole.len() {
        let mut epoch = ramped.epoch(3).unwrap();
        let taken: Vec<Numbered> = epoch.by_ref().take(n_taken).map(Result::unwrap).collect();
        let text = epoch.state().to_json().unwrap();
        assert!(text.contains("\"ramp_blocks\":2"), "{text}");
        let state = LoaderState::from_json(&text).unwrap();
        let rest = ramped.resume(&state).unwrap().map(Result::unwrap);
        assert_eq!(taken.into_iter().chain(rest).collect::<Vec<_>>(), whole);
    }
    let mut epoch = ramped.epoch(3).unwrap();
    assert_eq!(epoch.by_ref().count(), whole.len());
    // 4, 8, 5 times 16, and the last 4 rows.
    assert_eq!((epoch.stats().n_blocks, epoch.stats().max_block_rows), (8, 16));
    // States of an epoch without one do not mention it, as those of earlier versions.
    let even = pipeline(numbers_of(96), PipelineSpec { ramp_blocks: 0, ..spec });
    assert!(!even.epoch(3).unwrap().state().to_json().unwrap().contains("ramp"));
}
