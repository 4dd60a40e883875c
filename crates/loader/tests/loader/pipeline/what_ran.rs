//! The stats of an epoch, and settings and data that are rejected before any read.

use std::sync::Arc;

use loader::{
    BatchBuffer, BatchBuffers, BatchForm, BlockForm, BufferError, Cells, Dataset, ElementType,
    GeneSelection, HeapBuffers, Loader, LoaderSpec, PipelineSpec, ReadableBuffer, Totals,
    Transform,
};

use crate::pipeline::sample::{self, WAYS};
use crate::pipeline::scripted::{At, ScriptedReader};

#[test]
fn an_epoch_says_what_it_did() {
    let nnz = (0..50).flat_map(|id| (0..6).filter_map(move |gene| sample::value(id, gene))).count()
        as u64;
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let loader = Loader::new(sample::whole(50, 6), spec.clone()).unwrap();
        let mut epoch = loader.epoch(3).unwrap();
        assert_eq!(epoch.size_hint(), (0, Some(17)));
        assert_eq!(epoch.by_ref().map(Result::unwrap).count(), 17);
        let stats = epoch.stats();
        // Lanes were not requested, so the number that ran is recorded.
        let spec =
            LoaderSpec { pipeline: PipelineSpec { lanes: Some(1), ..spec.pipeline }, ..spec };
        assert_eq!((stats.engine.epoch, &stats.spec, stats.reader.as_str()), (3, &spec, "memory"));
        assert_eq!(
            (stats.engine.n_blocks, stats.engine.max_block_rows, stats.n_columns),
            (7, 8, 6)
        );
        assert_eq!(
            (stats.engine.n_batches, stats.engine.max_batch_rows, stats.engine.n_rows),
            (17, 3, 50)
        );
        assert_eq!(stats.engine.read.values, nnz, "{block_form} {batch_form}");
        assert_eq!(stats.engine.wait_secs.len(), 17);
        let waited: f64 = stats.engine.wait_secs.iter().sum();
        let first = stats.engine.first_batch_secs.unwrap();
        assert!(
            stats.engine.wait_secs[0] <= first
                && first <= stats.engine.elapsed_secs
                && waited <= stats.engine.elapsed_secs
        );
        assert!(0.0 < stats.engine.read_secs && 0.0 < stats.engine.batch_secs);
        assert_eq!(stats.engine.convert_secs == 0.0, block_form == BlockForm::Csr);
    }
}

#[test]
fn before_the_first_batch_nothing_is_handed_over() {
    let reader = ScriptedReader::new(20, 3, At::Never);
    reader.allow(0);
    let dataset =
        sample::dataset(Arc::clone(&reader) as _, Cells::Range(0..20), GeneSelection::All);
    let loader = Loader::new(dataset, sample::spec()).unwrap();
    let epoch = loader.epoch(0).unwrap();
    let stats = epoch.stats();
    assert_eq!(
        (stats.engine.n_blocks, stats.engine.n_batches, stats.engine.first_batch_secs),
        (0, 0, None)
    );
    assert_eq!(stats.reader, "memory");
    reader.allow(usize::MAX);
}

#[test]
fn buffers_are_reused_when_batches_are_dropped() {
    let loader = Loader::new(
        sample::whole(60, 6),
        LoaderSpec {
            pipeline: PipelineSpec { prefetch_batches: 1, ..sample::spec().pipeline },
            ..sample::spec()
        },
    )
    .unwrap();
    let mut addresses: Vec<usize> = Vec::new();
    for batch in loader.epoch(0).unwrap() {
        let batch = batch.unwrap();
        addresses.push(batch.x.dense().unwrap().as_ptr() as usize);
    }
    assert_eq!(addresses.len(), 20);
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() <= 4, "{} buffers for one batch at a time", addresses.len());
    let n_free = loader.buffers().n_free();
    assert!((1..=3).contains(&n_free), "{n_free}");
}

#[test]
fn a_pool_keeps_no_more_than_it_may_and_gives_the_length_asked_for() {
    let pool = HeapBuffers::new(2);
    let held: Vec<_> = [5, 3, 9].iter().map(|&n| pool.take(n, ElementType::F32).unwrap()).collect();
    assert_eq!(held.iter().map(|buffer| buffer.elements().len()).collect::<Vec<_>>(), [5, 3, 9]);
    drop(held);
    assert_eq!(pool.n_free(), 2);
    for element_type in
        [ElementType::F16, ElementType::F32, ElementType::U32, ElementType::U16, ElementType::U8]
    {
        for n_values in [4, 0] {
            let mut buffer = pool.take(n_values, element_type).unwrap();
            let elements = buffer.elements_mut();
            let found = (elements.element_type(), elements.as_elements().len());
            assert_eq!(found, (element_type, n_values));
        }
        let refused = pool.take(usize::MAX, element_type);
        assert!(matches!(refused, Err(BufferError { .. })));
    }
}

#[test]
fn batches_that_are_kept_stay_as_they_are() {
    let loader = Loader::new(sample::whole(60, 6), sample::spec()).unwrap();
    let kept: Vec<_> = loader.epoch(0).unwrap().map(Result::unwrap).collect();
    assert_eq!(loader.epoch(1).unwrap().map(Result::unwrap).count(), 20);
    for batch in &kept {
        sample::check_rows(batch, &[0, 1, 2, 3, 4, 5], &mut Vec::new());
    }
}

#[track_caller]
fn check_refused(spec: LoaderSpec, expect: &str) {
    let reader = ScriptedReader::new(20, 3, At::Never);
    let dataset =
        sample::dataset(Arc::clone(&reader) as _, Cells::Range(0..20), GeneSelection::All);
    let error = Loader::new(dataset, spec).unwrap_err();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    assert!(text.contains(expect), "{text}");
    assert_eq!(reader.n_started(), 0);
}

#[test]
fn settings_that_no_data_fit_are_refused() {
    check_refused(
        LoaderSpec {
            pipeline: PipelineSpec { batch_rows: 0, ..sample::spec().pipeline },
            ..sample::spec()
        },
        "batches of 0 rows",
    );
    check_refused(
        LoaderSpec {
            pipeline: PipelineSpec { chunk_rows: 0, ..sample::spec().pipeline },
            ..sample::spec()
        },
        "chunk",
    );
    check_refused(
        LoaderSpec {
            pipeline: PipelineSpec { chunks_per_block: 0, ..sample::spec().pipeline },
            ..sample::spec()
        },
        "block",
    );
    for batch_form in [BatchForm::Csr, BatchForm::Coo] {
        let dense_sparse =
            LoaderSpec { block_form: BlockForm::Dense, batch_form, ..sample::spec() };
        check_refused(dense_sparse, "blocks of form np.array are dense");
    }
    let transformed = |transform| LoaderSpec { transform, ..sample::spec() };
    let scaled = Transform { target_sum: Some(1e4), ..Transform::default() };
    check_refused(LoaderSpec { totals: Totals::Obs, ..transformed(scaled) }, "raw_sum");
    check_refused(transformed(Transform { target_sum: Some(0.0), ..scaled }), "not above 0");
    check_refused(transformed(Transform { clip: Some((1.0, 2.0)), ..scaled }), "zeros");
    let huge = LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: u64::MAX,
            chunks_per_block: 2,
            ..sample::spec().pipeline
        },
        ..sample::spec()
    };
    check_refused(huge, "plan");
    let error = "numpy".parse::<BlockForm>().unwrap_err().to_string();
    assert_eq!(error, "no form of blocks is called \"numpy\": take np.array, scipy.csr or csr");
    for name in ["csr", BlockForm::NATIVE] {
        assert_eq!(name.parse::<BlockForm>().unwrap(), BlockForm::Csr);
    }
    let error = "sparse".parse::<BatchForm>().unwrap_err().to_string();
    assert_eq!(
        error,
        "no form of batches is called \"sparse\": take dense, f16, csr, coo or packed"
    );
}

#[track_caller]
fn check_no_dataset(cells: Cells, n_obs: u64, genes: GeneSelection, expect: &str) {
    let obs = sample::obs(&(0..n_obs).collect::<Vec<_>>());
    let error = Dataset::new(Arc::new(sample::reader(20, 3)), cells, obs, genes).unwrap_err();
    assert!(error.to_string().contains(expect), "{error}");
}

#[test]
fn cells_and_genes_outside_x_are_refused() {
    let all = GeneSelection::All;
    check_no_dataset(
        Cells::Range(0..21),
        21,
        all.clone(),
        "a cell with joinid 20, but X has 20 rows",
    );
    check_no_dataset(
        Cells::Range(30..32),
        2,
        all.clone(),
        "a cell with joinid 30, but X has 20 rows",
    );
    check_no_dataset(
        Cells::List([3, 19, 25, 70].into()),
        4,
        all.clone(),
        "a cell with joinid 25, but",
    );
    check_no_dataset(
        Cells::List([3, 5, 5].into()),
        3,
        all.clone(),
        "row 2 has 5, the row before it 5",
    );
    check_no_dataset(
        Cells::List([5, 3].into()),
        2,
        all.clone(),
        "row 1 has 3, the row before it 5",
    );
    check_no_dataset(Cells::Range(0..4), 3, all, "4 cells are selected, but obs has 3 rows");
    let outside = GeneSelection::List(vec![1, 3]);
    check_no_dataset(Cells::Range(0..4), 4, outside, "cannot be applied to X, which has 3 columns");
}

#[test]
fn a_data_set_says_its_sizes() {
    let dataset = sample::whole(20, 3);
    assert_eq!((dataset.n_rows(), dataset.n_columns()), (20, 3));
    assert!(20 * 8 <= dataset.cell_memory().obs);
    assert_eq!(dataset.cells(0), Some(&Cells::Range(0..20)));
}
