//! Several threads that read: the plan's order, errors and panics, and stopping.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use pipeline::{Error, PipelineSpec};
use proptest::prelude::*;
use shuffle::{Order, Remainder};

use crate::numbers::{Numbers, NumbersError, batches, numbers_of, pipeline, spec};

/// Fails if `work` hangs.
fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        work();
        let _nobody_waits = done.send(());
    });
    let ended = ended.recv_timeout(Duration::from_mins(1));
    assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
    worker.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any number of threads, blocks and batches ahead: the same batches as without threads,
    /// and each row exactly once.
    #[test]
    fn the_order_does_not_depend_on_threads(
        n_rows in 0_u64..200,
        chunk_rows in 1_u64..6,
        chunks_per_block in 1_u64..6,
        batch_rows in 1_u64..20,
        prefetch_blocks in 0_usize..5,
        prefetch_batches in 0_usize..4,
        read_threads in 0_usize..6,
        in_order in any::<bool>(),
        drop_last in any::<bool>(),
    ) {
        let spec = PipelineSpec {
            chunk_rows,
            chunks_per_block,
            batch_rows,
            prefetch_blocks,
            prefetch_batches,
            read_threads,
            order: if in_order { Order::InOrder } else { Order::Shuffled },
            remainder: if drop_last { Remainder::Drop } else { Remainder::Short },
            ..spec()
        };
        let plan = spec.plan(n_rows).dealt_epoch(3, &spec.batches(1)).unwrap();
        let (n_planned, n_batches) = (plan.n_rows() as usize, plan.n_batches());
        let mut expected: Vec<u64> = plan.flat_map(|block| block.delivered_rows()).collect();
        expected.truncate(n_planned);

        let pipeline = pipeline(numbers_of(n_rows), spec);
        let found = batches(&pipeline, 3);
        prop_assert_eq!(found.len() as u64, n_batches);
        prop_assert_eq!(pipeline.n_batches(), n_batches);
        for (idx, batch) in found.iter().enumerate() {
            prop_assert_eq!((batch.place.epoch, batch.place.batch_idx), (3, idx as u64));
        }
        let mut rows: Vec<u64> = found.into_iter().flat_map(|batch| batch.rows).collect();
        prop_assert_eq!(&rows, &expected);
        rows.sort_unstable();
        if !drop_last {
            prop_assert_eq!(rows, (0..n_rows).collect::<Vec<_>>());
        }
    }
}

#[test]
fn blocks_are_read_at_once_and_delivered_in_order() {
    let slow = || Numbers { delay: Duration::from_millis(30), ..numbers_of(96) };
    let expected = batches(&pipeline(numbers_of(96), spec()), 0);
    for read_threads in [1, 2, 4, 9] {
        let spec = PipelineSpec { read_threads, prefetch_blocks: 3, ..spec() };
        let pipeline = pipeline(slow(), spec);
        assert_eq!(batches(&pipeline, 0), expected);
        // There are four blocks to read into.
        let at_once = pipeline.source().most_at_once.load(Ordering::SeqCst);
        assert!(at_once <= read_threads.min(4), "{at_once} of {read_threads}");
        assert!(read_threads == 1 || at_once > 1, "{at_once} of {read_threads}");
    }
}

#[test]
fn a_wait_that_ends_early_loses_nothing() {
    within_a_minute(|| {
        let expected = batches(&pipeline(numbers_of(96), spec()), 0);
        for (read_threads, prefetch_batches) in [(1, 0), (3, 0), (1, 1), (3, 4)] {
            let source = numbers_of(96);
            let gate = Arc::clone(&source.gate);
            let spec = PipelineSpec { read_threads, prefetch_batches, ..spec() };
            let pipeline = pipeline(source, spec);
            let nothing_is_read = gate.lock().unwrap();
            let mut epoch = pipeline.epoch(0).unwrap();
            for limit in [Duration::ZERO, Duration::from_millis(1)] {
                assert!(epoch.next_within(limit).is_pending());
            }
            assert_eq!(epoch.state().batches_delivered(), 0);
            drop(nothing_is_read);
            let mut found = Vec::new();
            loop {
                match epoch.next_within(Duration::from_millis(1)) {
                    Poll::Ready(Some(batch)) => found.push(batch.unwrap()),
                    Poll::Ready(None) => break,
                    Poll::Pending => {}
                }
            }
            assert_eq!(found, expected);
            // A batch counts once, however often it was asked for.
            assert_eq!(epoch.stats().wait_secs.len(), expected.len());
            assert!(epoch.next_within(Duration::ZERO).is_ready());
        }
    });
}

#[test]
fn an_error_comes_once_after_the_batches_before_it() {
    within_a_minute(|| {
        for read_threads in [0, 1, 2, 5] {
            for prefetch_batches in [0, 1, 3] {
                let broken = Numbers { broken: Some((1, 3)), ..numbers_of(96) };
                let spec =
                    PipelineSpec { read_threads, prefetch_batches, prefetch_blocks: 4, ..spec() };
                let pipeline = pipeline(broken, spec);
                assert_eq!(batches(&pipeline, 0).len(), 20);
                let mut epoch = pipeline.epoch(1).unwrap();
                // Three blocks of 12 rows make seven whole batches of 5.
                let n_good = epoch.by_ref().take_while(Result::is_ok).count();
                assert!(n_good <= 7, "{n_good}");
                assert!(epoch.next().is_none());
                let mut epoch = pipeline.epoch(1).unwrap();
                let error = epoch.find_map(Result::err).unwrap();
                assert!(
                    matches!(error, NumbersError::Broken { epoch: 1, block_idx: 3 }),
                    "{error}"
                );
                assert_eq!(batches(&pipeline, 2).len(), 20);
            }
        }
    });
}

#[test]
fn a_panic_is_an_error() {
    within_a_minute(|| {
        for read_threads in [1, 3] {
            let panics = Numbers { panics: Some((0, 2)), ..numbers_of(96) };
            let spec = PipelineSpec { read_threads, prefetch_blocks: 3, ..spec() };
            let pipeline = pipeline(panics, spec);
            let mut epoch = pipeline.epoch(0).unwrap();
            let error = epoch.find_map(Result::err).unwrap();
            let NumbersError::Engine(Error::Panicked { thread, message }) = &error else {
                panic!("{error:?}")
            };
            assert_eq!((*thread, message.as_str()), ("somafeed-read", "scripted panic"));
            assert!(epoch.next().is_none());
        }
    });
}

#[test]
fn an_epoch_can_be_dropped_anywhere() {
    within_a_minute(|| {
        for n_taken in 0..21 {
            for read_threads in [0, 1, 3] {
                let source = Numbers { delay: Duration::from_millis(1), ..numbers_of(96) };
                let spec = PipelineSpec { read_threads, prefetch_blocks: 3, ..spec() };
                let pipeline = pipeline(source, spec);
                let mut epoch = pipeline.epoch(0).unwrap();
                assert_eq!(epoch.by_ref().take(n_taken).count(), n_taken.min(20));
                drop(epoch);
                let n_started = pipeline.source().n_started.load(Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(3));
                assert_eq!(pipeline.source().n_started.load(Ordering::SeqCst), n_started);
            }
        }
    });
}

#[test]
fn each_block_names_the_rows_of_the_next() {
    for (read_threads, in_order) in [(0, false), (1, false), (1, true)] {
        let order = if in_order { Order::InOrder } else { Order::Shuffled };
        let pipeline = pipeline(numbers_of(100), PipelineSpec { read_threads, order, ..spec() });
        assert!(!batches(&pipeline, 2).is_empty());
        let blocks = pipeline.source().blocks.lock().unwrap();
        assert!(2 < blocks.len());
        for pair in blocks.windows(2) {
            assert_eq!(pair[0][1], pair[1][0]);
        }
        assert!(blocks[blocks.len() - 1][1].is_empty());
    }
    // With several threads, another one may be reading the next block already.
    let pipeline =
        pipeline(numbers_of(100), PipelineSpec { read_threads: 3, prefetch_blocks: 3, ..spec() });
    assert!(!batches(&pipeline, 2).is_empty());
    let blocks = pipeline.source().blocks.lock().unwrap();
    assert!(blocks.iter().all(|block| block[1].is_empty()));
}
