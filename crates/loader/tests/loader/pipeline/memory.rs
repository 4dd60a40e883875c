//! Memory limits: less is read ahead, the batches stay the same, and impossible limits are errors
//! before any read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loader::{
    Budget, Cells, Dataset, GeneSelection, Loader, LoaderError, LoaderSpec, PipelineSpec,
};
use pipeline::Error as Engine;
use soma_io::{CsrBuffers, MemoryReader, XReader};

use crate::pipeline::counted::CountedReader;
use crate::pipeline::sample::{self, WAYS, dense_rows};

const N_ROWS: u64 = 200;

const WORKING_BYTES: u64 = 1 << 40;

fn dataset(x: Arc<dyn XReader>) -> Dataset {
    sample::dataset(x, Cells::Range(0..N_ROWS), GeneSelection::All)
}

/// The smallest limit, from the error.
fn least(dataset: &Dataset, spec: &LoaderSpec) -> u64 {
    let spec = LoaderSpec {
        pipeline: PipelineSpec { memory: Budget::new(0), ..spec.pipeline.clone() },
        ..spec.clone()
    };
    match Loader::new(dataset.clone(), spec) {
        Err(LoaderError::Pipeline(Engine::Memory { limit: 0, least, .. })) => least,
        other => panic!("{other:?}"),
    }
}

#[test]
fn less_is_read_ahead_and_the_same_batches_come() {
    // All rows have equally many values, so that the estimates are exact.
    let csr = CsrBuffers {
        row_offsets: (0..=N_ROWS as usize).map(|row| 2 * row).collect(),
        columns: (0..N_ROWS as u32).flat_map(|row| [row % 3, 3 + row % 2]).collect(),
        values: (1..=2 * N_ROWS as u16).map(f32::from).collect(),
        n_columns: 6,
    };
    let data = dataset(Arc::new(MemoryReader::new(csr).unwrap()));
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec {
            pipeline: PipelineSpec {
                prefetch_blocks: 3,
                prefetch_batches: 2,
                ..sample::spec().pipeline
            },
            block_form,
            batch_form,
            ..sample::spec()
        };
        let rows = |memory| {
            let spec = LoaderSpec {
                pipeline: PipelineSpec { memory, ..spec.pipeline.clone() },
                ..spec.clone()
            };
            let loader = Loader::new(data.clone(), spec).unwrap();
            let mut epoch = loader.epoch(1).unwrap();
            let rows: Vec<_> =
                epoch.by_ref().flat_map(|batch| dense_rows(&batch.unwrap().x)).collect();
            let ran = epoch.stats().spec;
            (rows, (ran.pipeline.prefetch_blocks, ran.pipeline.prefetch_batches))
        };
        let (expected, all) = rows(Budget::unlimited());
        assert_eq!(all, (3, 2));
        let least = least(&data, &spec);
        let mut ahead = Vec::new();
        for more in [0, 300, 600, 1_000, 2_000, 4_000, 1 << 20] {
            let (found, ran) = rows(Budget::new(least + more));
            assert_eq!(
                found, expected,
                "{block_form} {batch_form} with {more} more than the least"
            );
            ahead.push(ran);
        }
        assert_eq!((ahead[0], ahead[6]), ((0, 0), (3, 2)), "{block_form} {batch_form}: {ahead:?}");
        assert!(ahead.is_sorted(), "{block_form} {batch_form}: {ahead:?}");
    }
}

#[test]
fn what_cannot_fit_is_refused_before_it_is_read() {
    let reader = Arc::new(CountedReader::new(sample::reader(N_ROWS, 6), WORKING_BYTES));
    let data = dataset(Arc::clone(&reader) as Arc<dyn XReader>);
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let least = least(&data, &spec);
        assert!(least > WORKING_BYTES);
        let short = LoaderSpec {
            pipeline: PipelineSpec { memory: Budget::new(least - 1), ..spec.pipeline.clone() },
            ..spec.clone()
        };
        let refused = Loader::new(data.clone(), short).unwrap_err().to_string();
        assert!(refused.contains(&format!("allow at least {least}")), "{refused}");
        Loader::new(
            data.clone(),
            LoaderSpec {
                pipeline: PipelineSpec { memory: Budget::new(least), ..spec.pipeline },
                ..spec
            },
        )
        .unwrap();
    }
    assert_eq!(reader.n_started.load(Ordering::SeqCst), 0);
}

#[test]
fn a_block_that_is_denser_than_told_ends_the_epoch() {
    // One cell has all values, millions of them, where a block of 8 rows is estimated to have few.
    let n_columns = 6_000_000;
    let csr = CsrBuffers {
        row_offsets: (0..=N_ROWS).map(|row| if row > 100 { n_columns } else { 0 }).collect(),
        columns: (0..n_columns as u32).collect(),
        values: vec![1.0; n_columns],
        n_columns,
    };
    let data = dataset(Arc::new(MemoryReader::new(csr).unwrap()));
    let spec = LoaderSpec { batch_form: loader::BatchForm::Csr, ..sample::spec() };
    let limited = LoaderSpec {
        pipeline: PipelineSpec { memory: Budget::new(least(&data, &spec)), ..spec.pipeline },
        ..spec
    };
    let loader = Loader::new(data, limited).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let error = epoch.find_map(Result::err).unwrap();
    assert!(
        matches!(error, LoaderError::Pipeline(Engine::BlockMemory { bytes, limit, .. }) if limit < bytes),
        "{error}"
    );
    assert!(epoch.next().is_none());
}

/// Blocks of 8 rows x 6 genes, with 8 bytes per value and 20 per row.
const BLOCK: u64 = 8 * (6 * 8 + 20);

fn counted() -> (Arc<CountedReader>, Dataset, LoaderSpec) {
    let reader = Arc::new(CountedReader::new(sample::reader(N_ROWS, 6), 0));
    let data = dataset(Arc::clone(&reader) as Arc<dyn XReader>);
    (reader, data, LoaderSpec { batch_form: loader::BatchForm::Csr, ..sample::spec() })
}

#[test]
fn what_blocks_leave_is_for_values_that_are_kept_decoded() {
    let (reader, data, base) = counted();
    // Bytes that the reader may keep in the middle of each of two epochs, and without a loader.
    let allowed = |memory, keep_decoded_bytes| {
        let spec = LoaderSpec {
            pipeline: PipelineSpec {
                memory,
                keep_bytes: keep_decoded_bytes,
                ..base.pipeline.clone()
            },
            ..base.clone()
        };
        let loader = Loader::new(data.clone(), spec).unwrap();
        let in_epochs = [0, 1].map(|epoch| {
            let mut epoch = loader.epoch(epoch).unwrap();
            epoch.next().unwrap().unwrap();
            let in_the_middle = reader.allowed();
            epoch.for_each(|batch| drop(batch.unwrap()));
            in_the_middle
        });
        drop(loader);
        assert_eq!(reader.allowed(), 0, "a loader that is gone keeps nothing");
        in_epochs
    };
    let (least, more) = (least(&data, &base), 1 << 20);
    assert_eq!(allowed(Budget::unlimited(), None), [0, 0]);
    assert_eq!(allowed(Budget::unlimited(), Some(77)), [77, 77]);
    for bytes in allowed(Budget::new(least), None) {
        assert!(bytes < BLOCK / 2, "{bytes}");
    }
    for bytes in allowed(Budget::new(least + more), None) {
        assert!((more - 4 * BLOCK..more).contains(&bytes), "{bytes}");
    }
    assert_eq!(allowed(Budget::new(least + more), Some(77)), [77, 77]);
}

/// Matrices beside X share by their values, or evenly by rows if a reader cannot count them.
#[test]
fn readers_that_do_not_count_their_values_keep_decoded_ones_too() {
    for (x_knows, shares) in [(true, false), (false, true)] {
        let counted = |n_columns, knows_nnz| {
            let mut reader = CountedReader::new(sample::reader(N_ROWS, n_columns), 0);
            reader.knows_nnz = knows_nnz;
            Arc::new(reader)
        };
        let (x, beside) = (counted(6, x_knows), counted(2, true));
        let data = dataset(Arc::clone(&x) as Arc<dyn XReader>);
        let data = data.with_obsm("a", Arc::clone(&beside) as Arc<dyn XReader>).unwrap();
        let spec = LoaderSpec {
            pipeline: PipelineSpec { keep_bytes: Some(1000), ..sample::spec().pipeline },
            ..sample::spec()
        };
        let loader = Loader::new(data, spec).unwrap();
        loader.epoch(0).unwrap().next().unwrap().unwrap();
        assert_eq!((x.allowed(), beside.allowed()) == (500, 500), shares);
        assert!((999..=1000).contains(&(x.allowed() + beside.allowed())));
        assert!(x.allowed() > 0);
    }
}

#[test]
fn loaders_of_one_data_set_do_not_take_what_another_keeps() {
    let (reader, data, base) = counted();
    let keeping = |bytes| {
        let spec = LoaderSpec {
            pipeline: PipelineSpec { keep_bytes: Some(bytes), ..base.pipeline.clone() },
            ..base.clone()
        };
        Loader::new(data.clone(), spec).unwrap()
    };
    let training = keeping(1000);
    let validation = keeping(10);
    for loader in [&training, &validation, &training] {
        loader.epoch(0).unwrap().for_each(|batch| drop(batch.unwrap()));
        assert_eq!(reader.allowed(), 1010);
    }
    drop(validation);
    assert_eq!(reader.allowed(), 1000);
}

#[test]
fn loaders_keep_to_one_budget_together() {
    let (reader, data, base) = counted();
    let least = least(&data, &base);
    let budget = Budget::new(2 * least + 10 * BLOCK);
    let spec =
        LoaderSpec { pipeline: PipelineSpec { memory: budget.clone(), ..base.pipeline }, ..base };
    let [first, second, third] =
        [0, 1, 2].map(|_| Loader::new(data.clone(), spec.clone()).unwrap());
    assert_eq!(budget.leased(), 0);
    let mut one = first.epoch(0).unwrap();
    let mut two = second.epoch(0).unwrap();
    for _ in 0..5 {
        one.next().unwrap().unwrap();
        two.next().unwrap().unwrap();
        assert!(2 * least - 2 * BLOCK <= budget.leased(), "{budget:?}");
        assert!(budget.leased() + reader.allowed() <= budget.limit().unwrap(), "{budget:?}");
    }
    // Both have their minimum; a third does not fit, and its error names the cause.
    let refused = third.epoch(0).unwrap_err();
    assert!(matches!(refused, LoaderError::Pipeline(Engine::Budget { .. })), "{refused}");
    assert!(refused.to_string().contains("other loaders have left"), "{refused}");
    drop(one);
    assert_eq!(third.epoch(0).unwrap().count(), third.n_batches() as usize);
    assert_eq!(two.count(), second.n_batches() as usize - 5);
    assert_eq!(budget.leased(), 0);
}
