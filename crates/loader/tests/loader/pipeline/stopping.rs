//! Epochs that are dropped half-way, slow consumers, and readers that fail or panic.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use loader::{
    BatchBuffers, BlockForm, BufferError, Cells, ElementType, GeneSelection, HeapBuffer,
    HeapBuffers, Loader, LoaderError, LoaderSpec, PipelineSpec, Remainder,
};

use pipeline::Error as Engine;

use crate::pipeline::sample::{self, WAYS};
use crate::pipeline::scripted::{At, ScriptedReader};

const N_ROWS: u64 = 64;

/// Eight blocks of 8 rows, in batches of 3.
fn loader(reader: &Arc<ScriptedReader>, spec: LoaderSpec) -> Loader {
    let x: Arc<ScriptedReader> = Arc::clone(reader);
    Loader::new(sample::dataset(x, Cells::Range(0..N_ROWS), GeneSelection::All), spec).unwrap()
}

/// Runs `test` with a time limit, so that a hang fails.
#[track_caller]
pub(crate) fn within_seconds(n_secs: u64, test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).ok();
    });
    let result = is_done.recv_timeout(Duration::from_secs(n_secs));
    assert!(
        !matches!(result, Err(mpsc::RecvTimeoutError::Timeout)),
        "still running after {n_secs} s"
    );
    thread.join().unwrap();
}

/// Checks that only the test and the loader own the reader, and no thread of an epoch.
#[track_caller]
fn assert_no_thread_reads(reader: &Arc<ScriptedReader>, n_loaders: usize) {
    assert_eq!(Arc::strong_count(reader), 1 + n_loaders);
}

#[test]
fn dropped_at_any_point_its_threads_have_ended() {
    within_seconds(60, || {
        for (block_form, batch_form) in WAYS {
            for (prefetch_blocks, prefetch_batches) in [(0, 0), (0, 1), (1, 0), (1, 1), (3, 2)] {
                for n_taken in 0..=22 {
                    let reader = ScriptedReader::new(N_ROWS, 4, At::Never);
                    let spec = LoaderSpec {
                        pipeline: PipelineSpec {
                            prefetch_blocks,
                            prefetch_batches,
                            ..sample::spec().pipeline
                        },
                        block_form,
                        batch_form,
                        ..sample::spec()
                    };
                    let loader = loader(&reader, spec);
                    let mut epoch = loader.epoch(0).unwrap();
                    assert_eq!(epoch.by_ref().take(n_taken).map(Result::unwrap).count(), n_taken);
                    drop(epoch);
                    assert_no_thread_reads(&reader, 1);
                }
            }
        }
    });
}

#[test]
fn dropping_waits_for_the_read_under_way_and_no_longer() {
    within_seconds(60, || {
        let reader = ScriptedReader::new(N_ROWS, 4, At::Never);
        reader.allow(1);
        let loader = loader(&reader, sample::spec());
        let mut epoch = loader.epoch(0).unwrap();
        epoch.next().unwrap().unwrap();
        reader.wait_for_reads(2);
        let (dropped, is_dropped) = mpsc::channel();
        let dropping = std::thread::spawn(move || {
            drop(epoch);
            dropped.send(()).ok();
        });
        assert!(
            is_dropped.recv_timeout(Duration::from_millis(50)).is_err(),
            "a read is still under way"
        );
        reader.allow(2);
        dropping.join().unwrap();
        assert_eq!(reader.n_started(), 2);
        assert_no_thread_reads(&reader, 1);
    });
}

#[test]
fn reading_goes_ahead_without_being_asked_but_not_further_than_told() {
    within_seconds(60, || {
        for prefetch_blocks in 0..4 {
            let reader = ScriptedReader::new(N_ROWS, 4, At::Never);
            // At most two batches are made ahead, with fewer rows than a block.
            let spec = LoaderSpec {
                pipeline: PipelineSpec { prefetch_blocks, ..sample::spec().pipeline },
                ..sample::spec()
            };
            let loader = loader(&reader, spec);
            let epoch = loader.epoch(0).unwrap();
            reader.wait_for_reads(1 + prefetch_blocks);
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(reader.n_started(), 1 + prefetch_blocks);
            assert_eq!(epoch.stats().engine.n_batches, 0);
        }
    });
}

#[test]
fn a_slow_consumer_bounds_reading_all_along() {
    let reader = ScriptedReader::new(N_ROWS, 4, At::Never);
    let loader = loader(&reader, sample::spec());
    let mut n_rows = 0;
    for batch in loader.epoch(0).unwrap() {
        n_rows += batch.unwrap().n_rows();
        std::thread::sleep(Duration::from_millis(2));
        // Three batches of 3 rows: delivered, ready and in the making. Then the current block and
        // one ahead.
        let n_cut = (n_rows + 2 * 3) / 8 + 1;
        assert!(reader.n_started() <= n_cut + 1, "{} reads at {n_rows} rows", reader.n_started());
    }
    assert_eq!((n_rows as u64, reader.n_started()), (N_ROWS, 8));
    assert_eq!(reader.threads(), ["somafeed-read"]);
}

#[test]
fn a_failure_comes_once_after_the_batches_before_it() {
    within_seconds(60, || {
        for (block_form, batch_form) in WAYS {
            for (prefetch_blocks, prefetch_batches) in [(0, 0), (1, 1), (2, 0), (3, 4)] {
                for at in 0..8 {
                    let reader = ScriptedReader::new(N_ROWS, 4, At::Fail(at));
                    let spec = LoaderSpec {
                        pipeline: PipelineSpec {
                            prefetch_blocks,
                            prefetch_batches,
                            ..sample::spec().pipeline
                        },
                        block_form,
                        batch_form,
                        ..sample::spec()
                    };
                    let loader = loader(&reader, spec);
                    let mut epoch = loader.epoch(5).unwrap();
                    let n_good = epoch.by_ref().take_while(Result::is_ok).count();
                    assert_eq!(n_good, at * 8 / 3, "whole batches of the blocks before");
                    assert!(epoch.next().is_none() && epoch.next().is_none());
                    assert_no_thread_reads(&reader, 1);
                }
            }
        }
    });
}

#[test]
fn a_failure_says_which_block_and_why() {
    // Without shuffling, the first block is read in two pieces.
    let reader = ScriptedReader::new(N_ROWS, 4, At::Fail(3));
    let loader = loader(
        &reader,
        LoaderSpec {
            pipeline: PipelineSpec { order: loader::Order::InOrder, ..sample::spec().pipeline },
            ..sample::spec()
        },
    );
    let error = loader.epoch(5).unwrap().find_map(Result::err).unwrap();
    assert_eq!(
        error.to_string(),
        "cannot read block 2 of epoch 5 (cells 16 to 23 of experiment 0)"
    );
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.to_string().contains("scripted"), "{source}");
}

#[test]
fn a_panic_of_the_reader_is_an_error() {
    within_seconds(60, || {
        for prefetch_batches in [0, 1] {
            let reader = ScriptedReader::new(N_ROWS, 4, At::Panic(1));
            let loader = loader(
                &reader,
                LoaderSpec {
                    pipeline: PipelineSpec { prefetch_batches, ..sample::spec().pipeline },
                    ..sample::spec()
                },
            );
            let mut epoch = loader.epoch(0).unwrap();
            let error = epoch.find_map(Result::err).unwrap();
            let LoaderError::Pipeline(Engine::Panicked { thread, message }) = &error else {
                panic!("{error:?}")
            };
            assert_eq!((*thread, message.as_str()), ("somafeed-read", "scripted panic"));
            assert!(epoch.next().is_none());
            assert_no_thread_reads(&reader, 1);
        }
    });
}

#[test]
fn what_is_dropped_at_the_end_is_not_read() {
    let reader = ScriptedReader::new(N_ROWS, 4, At::Never);
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            batch_rows: 30,
            remainder: Remainder::Drop,
            ..sample::spec().pipeline
        },
        block_form: BlockForm::ConvertedCsr,
        ..sample::spec()
    };
    // Two batches take 60 rows, 4 of them in the eighth block. One batch of 50 rows takes the
    // first four blocks.
    assert_eq!(loader(&reader, spec.clone()).epoch(0).unwrap().count(), 2);
    assert_eq!(reader.n_started(), 8);
    let reader = ScriptedReader::new(50, 4, At::Never);
    let dataset =
        sample::dataset(Arc::clone(&reader) as _, Cells::Range(0..50), GeneSelection::All);
    assert_eq!(Loader::new(dataset, spec).unwrap().epoch(0).unwrap().count(), 1);
    assert_eq!(reader.n_started(), 4);
}

#[test]
fn a_reader_that_gives_other_rows_is_found_out() {
    for (block_form, batch_form) in WAYS {
        let reader = ScriptedReader::new(N_ROWS, 4, At::Stray(1));
        let loader = loader(&reader, LoaderSpec { block_form, batch_form, ..sample::spec() });
        let mut epoch = loader.epoch(0).unwrap();
        let error = epoch.find_map(Result::err).unwrap();
        let text = error.to_string();
        if block_form == BlockForm::Csr {
            let expect = "reader \"memory\" returned 64 rows x 4 columns for block 1";
            assert!(text.starts_with(expect), "{text}");
        } else {
            assert_eq!(text, "cannot convert the values of block 1 of epoch 0");
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains("but not requested"), "{source}");
        }
        assert!(epoch.next().is_none());
        assert_no_thread_reads(&reader, 1);
    }
}

/// Returns a few buffers, then errors or a panic.
#[derive(Debug)]
struct FewBuffers {
    heap: HeapBuffers,
    left: AtomicUsize,
    panics: bool,
}

impl BatchBuffers for FewBuffers {
    type Buffer = HeapBuffer;

    fn take(&self, n_values: usize, element_type: ElementType) -> Result<HeapBuffer, BufferError> {
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(1), Ordering::SeqCst);
        match left {
            0 if self.panics => panic!("no buffer"),
            0 => Err(BufferError { n_values, source: "no more".into() }),
            _ => self.heap.take(n_values, element_type),
        }
    }
}

#[test]
fn a_failure_to_make_a_batch_comes_once() {
    within_seconds(60, || {
        for (prefetch_batches, panics) in [(0, false), (1, false), (3, false), (1, true)] {
            let reader = ScriptedReader::new(N_ROWS, 4, At::Never);
            let spec = LoaderSpec {
                pipeline: PipelineSpec { prefetch_batches, ..sample::spec().pipeline },
                ..sample::spec()
            };
            let dataset = sample::dataset(
                Arc::clone(&reader) as _,
                Cells::Range(0..N_ROWS),
                GeneSelection::All,
            );
            // Any number of them may be made while the first block is read.
            let n_prepared = if prefetch_batches == 0 { 0 } else { prefetch_batches + 2 };
            let left = AtomicUsize::new(5 + n_prepared);
            let buffers = FewBuffers { heap: HeapBuffers::new(2), left, panics };
            let loader = Loader::with_buffers(dataset, spec, Arc::new(buffers)).unwrap();
            let mut epoch = loader.epoch(0).unwrap();
            let (mut n_made, mut failure) = (0, None);
            while failure.is_none() {
                match epoch.next().unwrap() {
                    Ok(_) => n_made += 1,
                    Err(error) => failure = Some(error),
                }
            }
            assert!((5..=5 + n_prepared).contains(&n_made), "{n_made}");
            match failure.unwrap() {
                LoaderError::Pipeline(Engine::Panicked { thread: "somafeed-batch", message }) => {
                    assert_eq!((message.as_str(), panics), ("no buffer", true));
                }
                LoaderError::Buffer(BufferError { n_values: 12, .. }) => assert!(!panics),
                error => panic!("{error:?}"),
            }
            assert!(epoch.next().is_none());
            assert_no_thread_reads(&reader, 1);
        }
    });
}
