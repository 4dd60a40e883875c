//! A limit on memory: less is read ahead, the same batches come, and what cannot fit is refused before it is read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loader::{Cells, Dataset, Error, GeneSelection, Loader, LoaderSpec};
use soma_io::{CsrBuffers, MemoryReader, XReader};

use crate::counted::CountedReader;
use crate::sample::{self, WAYS, dense_rows};

const N_ROWS: u64 = 200;

const WORKING_BYTES: u64 = 1 << 40;

fn dataset(x: Arc<dyn XReader>) -> Dataset {
    sample::dataset(x, Cells::Range(0..N_ROWS), GeneSelection::All)
}

/// The least that is allowed, as the error says.
fn least(dataset: &Dataset, spec: &LoaderSpec) -> u64 {
    let spec = LoaderSpec { memory_bytes: Some(0), ..spec.clone() };
    match Loader::new(dataset.clone(), spec) {
        Err(Error::Memory { limit: 0, least, .. }) => least,
        other => panic!("{other:?}"),
    }
}

#[test]
fn less_is_read_ahead_and_the_same_batches_come() {
    // As many values in every row, so that blocks are as large as they are taken to be.
    let csr = CsrBuffers {
        row_offsets: (0..=N_ROWS as usize).map(|row| 2 * row).collect(),
        columns: (0..N_ROWS as u32).flat_map(|row| [row % 3, 3 + row % 2]).collect(),
        values: (1..=2 * N_ROWS as u16).map(f32::from).collect(),
        n_columns: 6,
    };
    let data = dataset(Arc::new(MemoryReader::new(csr).unwrap()));
    for (method, form) in WAYS {
        let spec =
            LoaderSpec { method, form, prefetch_blocks: 3, prefetch_batches: 2, ..sample::spec() };
        let rows = |memory_bytes| {
            let spec = LoaderSpec { memory_bytes, ..spec.clone() };
            let loader = Loader::new(data.clone(), spec).unwrap();
            let mut epoch = loader.epoch(1).unwrap();
            let rows: Vec<_> =
                epoch.by_ref().flat_map(|batch| dense_rows(&batch.unwrap().x)).collect();
            let ran = epoch.stats().spec;
            (rows, (ran.prefetch_blocks, ran.prefetch_batches))
        };
        let (expected, all) = rows(None);
        assert_eq!(all, (3, 2));
        let least = least(&data, &spec);
        let mut ahead = Vec::new();
        for more in [0, 300, 600, 1_000, 2_000, 4_000, 1 << 20] {
            let (found, ran) = rows(Some(least + more));
            assert_eq!(found, expected, "{method} {form} with {more} more than the least");
            ahead.push(ran);
        }
        assert_eq!((ahead[0], ahead[6]), ((0, 0), (3, 2)), "{method} {form}: {ahead:?}");
        assert!(ahead.is_sorted(), "{method} {form}: {ahead:?}");
    }
}

#[test]
fn what_cannot_fit_is_refused_before_it_is_read() {
    let reader = Arc::new(CountedReader::new(sample::reader(N_ROWS, 6), WORKING_BYTES));
    let data = dataset(Arc::clone(&reader) as Arc<dyn XReader>);
    for (method, form) in WAYS {
        let spec = LoaderSpec { method, form, ..sample::spec() };
        let least = least(&data, &spec);
        assert!(least > WORKING_BYTES);
        let short = LoaderSpec { memory_bytes: Some(least - 1), ..spec.clone() };
        let refused = Loader::new(data.clone(), short).unwrap_err().to_string();
        assert!(refused.contains(&format!("allow at least {least}")), "{refused}");
        Loader::new(data.clone(), LoaderSpec { memory_bytes: Some(least), ..spec }).unwrap();
    }
    assert_eq!(reader.n_started.load(Ordering::SeqCst), 0);
}

#[test]
fn a_block_that_is_denser_than_told_ends_the_epoch() {
    // One cell has all values, millions of them; a block of 8 rows is taken to have a few.
    let n_columns = 6_000_000;
    let csr = CsrBuffers {
        row_offsets: (0..=N_ROWS).map(|row| if row > 100 { n_columns } else { 0 }).collect(),
        columns: (0..n_columns as u32).collect(),
        values: vec![1.0; n_columns],
        n_columns,
    };
    let data = dataset(Arc::new(MemoryReader::new(csr).unwrap()));
    let spec = LoaderSpec { form: loader::BatchForm::Csr, ..sample::spec() };
    let limited = LoaderSpec { memory_bytes: Some(least(&data, &spec)), ..spec };
    let loader = Loader::new(data, limited).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let error = epoch.find_map(Result::err).unwrap();
    assert!(matches!(error, Error::BlockMemory { bytes, limit, .. } if limit < bytes), "{error}");
    assert!(epoch.next().is_none());
}

#[test]
fn what_blocks_leave_is_for_values_that_are_kept_decoded() {
    // 8 rows of 6 genes in a block, of 8 bytes a value and 20 a row.
    const BLOCK: u64 = 8 * (6 * 8 + 20);
    let reader = Arc::new(CountedReader::new(sample::reader(N_ROWS, 6), 0));
    let data = dataset(Arc::clone(&reader) as Arc<dyn XReader>);
    let base = LoaderSpec { form: loader::BatchForm::Csr, ..sample::spec() };
    let told = |memory_bytes, keep_decoded_bytes| {
        let spec = LoaderSpec { memory_bytes, keep_decoded_bytes, ..base.clone() };
        let loader = Loader::new(data.clone(), spec).unwrap();
        reader.told_to_keep.lock().unwrap().clear();
        let mut of_epochs = Vec::new();
        for epoch in 0..2 {
            let epoch = loader.epoch(epoch).unwrap();
            epoch.for_each(|batch| drop(batch.unwrap()));
            of_epochs.push(std::mem::take(&mut *reader.told_to_keep.lock().unwrap()));
        }
        of_epochs
    };
    let least = least(&data, &base);
    for epoch in told(None, None) {
        assert!(epoch.is_empty(), "what another loader of the data keeps stays: {epoch:?}");
    }
    for epoch in told(None, Some(77)) {
        assert!(epoch.iter().all(|&told| told == 77), "{epoch:?}");
    }
    for epoch in told(Some(least), None) {
        assert!(epoch.iter().all(|&told| told < BLOCK / 2), "{epoch:?}");
    }
    let more = 1 << 20;
    let [first, second] = told(Some(least + more), None).try_into().unwrap();
    assert!(first.iter().chain(&second).all(|&told| (more - 4 * BLOCK..more).contains(&told)));
    assert_eq!(first.last(), second.first(), "what was learned of blocks stays");
    for epoch in told(Some(least + more), Some(77)) {
        assert!(epoch.iter().all(|&told| told == 77), "{epoch:?}");
    }
}
