//! A batch that fails while it is made, or while the consumer makes something of it, does not count
//! as delivered: a resumed epoch has it, and no later batch comes in its place.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pipeline::{Epoch, PipelineSpec};

use crate::numbers::{
    Call, Numbered, Numbers, NumbersError, Unmade, batches, numbers_of, pipeline, spec,
};

const N_BATCHES: usize = 20;

/// The batches until one fails, by an error or by a panic.
fn until_failure(
    mut next: impl FnMut() -> Option<Result<Numbered, NumbersError>>,
) -> Vec<Numbered> {
    let mut found = Vec::new();
    while let Ok(Some(Ok(batch))) = catch_unwind(AssertUnwindSafe(&mut next)) {
        found.push(batch);
    }
    found
}

/// Checks that an epoch that failed after these batches is over, and goes on with the next.
fn check(mut failed: Epoch<Numbers>, mut found: Vec<Numbered>, spec: PipelineSpec) {
    assert!(failed.next().is_none());
    let state = failed.state();
    assert_eq!(state.batches_delivered(), found.len() as u64);
    drop(failed);
    let whole = pipeline(numbers_of(96), spec);
    found.extend(whole.resume(&state).unwrap().map(Result::unwrap));
    assert_eq!(found, batches(&whole, 3));
}

fn threads() -> impl Iterator<Item = PipelineSpec> {
    [(0, 0), (1, 0), (2, 1), (3, 4)].into_iter().map(|(read_threads, prefetch_batches)| {
        PipelineSpec { read_threads, prefetch_batches, ..spec() }
    })
}

#[test]
fn a_batch_that_cannot_be_made_comes_again() {
    for spec in threads() {
        for n_before in [0, 1, 7, N_BATCHES - 1] {
            for call in [Call::Begin, Call::Add, Call::Finish] {
                for panics in [false, true] {
                    let unmade = Some(Unmade { n_before, call, panics });
                    let broken = pipeline(Numbers { unmade, ..numbers_of(96) }, spec.clone());
                    let mut epoch = broken.epoch(3).unwrap();
                    let found = until_failure(|| epoch.next());
                    assert_eq!(found.len(), n_before, "{call:?}");
                    check(epoch, found, spec.clone());
                }
            }
        }
    }
}

#[test]
fn a_batch_of_which_the_consumer_makes_nothing_comes_again() {
    for spec in threads() {
        for n_before in 0..N_BATCHES {
            for panics in [false, true] {
                let whole = pipeline(numbers_of(96), spec.clone());
                let mut epoch = whole.epoch(3).unwrap();
                let mut n_made = 0;
                let found = until_failure(|| {
                    epoch.next_made(|batch| {
                        n_made += 1;
                        if n_made <= n_before {
                            return batch;
                        }
                        assert!(!panics, "scripted panic");
                        Err(NumbersError::Unmade)
                    })
                });
                assert_eq!(found.len(), n_before);
                check(epoch, found, spec.clone());
            }
        }
    }
}

#[test]
fn what_is_made_of_each_batch_is_delivered() {
    let whole = pipeline(numbers_of(96), spec());
    let mut epoch = whole.epoch(3).unwrap();
    let made = |batch: Result<Numbered, NumbersError>| batch.map(|batch| batch.rows.len());
    let n_rows: Vec<_> = std::iter::from_fn(|| epoch.next_made(made)).map(Result::unwrap).collect();
    assert_eq!((n_rows.len(), n_rows.iter().sum::<usize>()), (N_BATCHES, 96));
    assert_eq!(epoch.state().batches_delivered(), N_BATCHES as u64);
    // The error of a read reaches it, too.
    let broken = pipeline(Numbers { broken: Some((3, 0)), ..numbers_of(96) }, spec());
    let mut epoch = broken.epoch(3).unwrap();
    assert!(matches!(epoch.next_made(made), Some(Err(NumbersError::Broken { .. }))));
    assert!(epoch.next_made(made).is_none());
}

#[test]
fn the_next_epoch_follows_one_whose_last_batch_failed() {
    let whole = pipeline(numbers_of(96), spec());
    let mut epochs = whole.epochs(3..5);
    let mut epoch = epochs.next().unwrap().unwrap();
    assert_eq!(epoch.by_ref().take(N_BATCHES - 1).count(), N_BATCHES - 1);
    let failed = epoch.next_made(|_| Err::<(), _>(NumbersError::Unmade));
    assert!(matches!(failed, Some(Err(NumbersError::Unmade))));
    assert_eq!(epoch.state().batches_delivered(), N_BATCHES as u64 - 1);
    let next: Vec<_> = epochs.next().unwrap().unwrap().map(Result::unwrap).collect();
    assert_eq!(next, batches(&whole, 4));
}

#[test]
fn a_place_before_a_batch_is_never_behind_it() {
    let whole = pipeline(numbers_of(96), spec());
    let mut epoch = whole.epoch(3).unwrap();
    assert_eq!(epoch.by_ref().take(5).count(), 5);
    let state = epoch.state();
    assert_eq!(state.before(9), state);
    assert_eq!(state.before(5), state);
    assert_eq!(state.before(2).batches_delivered(), 2);
    let rest: Vec<_> = whole.resume(&state.before(2)).unwrap().map(Result::unwrap).collect();
    assert_eq!(rest, batches(&whole, 3)[2..]);
}
