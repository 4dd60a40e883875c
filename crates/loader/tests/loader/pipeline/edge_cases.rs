//! Edge cases: no cells, one cell, one gene, no values, gaps, duplicates.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use loader::split::{self, Method as SplitMethod};
use loader::{
    AxisQuery, Batch, BatchForm, BlockForm, Cells, Dataset, GeneSelection, Genes, Loader,
    LoaderSpec, Matrix, PipelineSpec, ReaderError, Remainder, Totals, Transform,
};
use soma_io::{CsrBuffers, MemoryReader};

use crate::pipeline::sample::{self, WAYS, dense_rows};
use crate::pipeline::scripted::{At, ScriptedReader};

fn batches(dataset: &Dataset, spec: LoaderSpec) -> Vec<Batch> {
    let loader = Loader::new(dataset.clone(), spec).unwrap();
    loader.epoch(0).unwrap().map(Result::unwrap).collect()
}

#[test]
fn an_empty_selection_gives_no_batches_and_reads_nothing() {
    for cells in [Cells::Range(0..0), Cells::Range(7..7), Cells::List([].into())] {
        for (block_form, batch_form) in WAYS {
            let reader = ScriptedReader::new(20, 3, At::Never);
            let x: Arc<ScriptedReader> = Arc::clone(&reader);
            let dataset = sample::dataset(x, cells.clone(), GeneSelection::All);
            let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
            let loader = Loader::new(dataset, spec).unwrap();
            assert_eq!((loader.n_batches(), loader.epoch(0).unwrap().count()), (0, 0));
            assert_eq!(reader.n_started(), 0);
        }
    }
}

#[test]
fn every_shape_comes_with_two_dimensions() {
    for n_rows in [0, 1, 2, 9] {
        for n_genes in [0, 1, 2, 7] {
            let genes = GeneSelection::List((0..n_genes).collect());
            let x = Arc::new(sample::reader(n_rows, 7));
            let dataset = sample::dataset(x, Cells::Range(0..n_rows), genes);
            for batch_rows in [1, 2, 100] {
                for (block_form, batch_form) in
                    WAYS.into_iter().chain([(BlockForm::Dense, BatchForm::F16)])
                {
                    let spec = LoaderSpec {
                        pipeline: PipelineSpec { batch_rows, ..sample::spec().pipeline },
                        block_form,
                        batch_form,
                        ..sample::spec()
                    };
                    let mut n_seen = 0;
                    for batch in batches(&dataset, spec) {
                        let expected = batch_rows.min(n_rows - n_seen);
                        let shape = (expected as usize, n_genes as usize);
                        assert_eq!(batch.x.shape(), shape, "{block_form} {batch_form}");
                        n_seen += expected;
                        check_converted(batch, shape);
                    }
                    assert_eq!(n_seen, n_rows);
                }
            }
        }
    }
}

/// Checks that a batch keeps its shape as ndarray, sprs and Arrow, for one cell or gene too.
fn check_converted(batch: Batch, shape: (usize, usize)) {
    let joinids: Vec<u64> = batch.joinids.iter().map(|id| *id as u64).collect();
    let genes: Vec<u64> = (0..shape.1 as u64).collect();
    if !matches!(batch.x, Matrix::Dense { .. }) || batch.x.dense().is_some() {
        sample::check_rows(&batch, &genes, &mut Vec::new());
    }
    assert_eq!(batch.to_arrow().unwrap().num_rows(), shape.0);
    let nnz = joinids
        .iter()
        .flat_map(|id| genes.iter().filter_map(|gene| sample::value(*id, *gene)))
        .count();
    match &batch.x {
        Matrix::Dense { .. } => {
            let dim = batch.x.as_ndarray().map(|matrix| matrix.dim());
            let dim = dim.or_else(|| batch.x.as_ndarray_f16().map(|matrix| matrix.dim()));
            assert_eq!(dim, Some(shape));
        }
        Matrix::Csr(csr) => {
            assert_eq!((csr.row_offsets.len(), csr.nnz()), (shape.0 + 1, nnz));
            let matrix = batch.x.into_sprs_csr().unwrap();
            assert_eq!((matrix.shape(), matrix.nnz()), (shape, nnz));
        }
        Matrix::Coo(_) => {
            let matrix = batch.x.into_sprs_coo().unwrap();
            assert_eq!((matrix.shape(), matrix.nnz()), (shape, nnz));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn cells_without_values_come_as_rows_of_zeros() {
    let nothing = CsrBuffers { row_offsets: vec![0; 31], n_columns: 4, ..CsrBuffers::default() };
    let x = Arc::new(MemoryReader::new(nothing).unwrap());
    let plain = sample::dataset(x, Cells::Range(0..30), GeneSelection::All);
    // A cell without values needs no total.
    let dataset = plain.with_totals(vec![0.0; 30]).unwrap();
    let scaled = Transform { target_sum: Some(1e4), log1p: true, clip: Some((-1.0, 1.0)) };
    for transform in [Transform::default(), scaled] {
        for totals in [Totals::Genes, Totals::Obs] {
            for (block_form, batch_form) in WAYS {
                let spec =
                    LoaderSpec { block_form, batch_form, transform, totals, ..sample::spec() };
                let rows: Vec<Vec<f32>> =
                    batches(&dataset, spec).iter().flat_map(|batch| dense_rows(&batch.x)).collect();
                assert_eq!(rows, vec![vec![0.0; 4]; 30], "{block_form} {batch_form}");
            }
        }
    }
}

/// Cells far apart whose values are `row + column * 1e-4`, with the joinid as an obs column.
#[test]
fn values_obs_and_joinids_are_of_one_cell_in_every_epoch() {
    let joinids: Vec<u64> = (3..90).filter(|id| *id % 4 > 0 && !(40..55).contains(id)).collect();
    let n_genes = 11;
    let mut csr = CsrBuffers { row_offsets: vec![0], n_columns: n_genes, ..CsrBuffers::default() };
    for row in 0..100_u32 {
        for gene in (0..n_genes as u32).filter(|gene| (row + gene) % 3 > 0) {
            csr.columns.push(gene);
            csr.values.push(row as f32 + gene as f32 * 1e-4);
        }
        csr.row_offsets.push(csr.values.len());
    }
    let ids = Int64Array::from_iter_values(joinids.iter().map(|id| *id as i64));
    let obs = RecordBatch::try_from_iter([("soma_joinid", Arc::new(ids) as ArrayRef)]).unwrap();
    let x = Arc::new(MemoryReader::new(csr).unwrap());
    let cells = Cells::List(joinids.clone().into());
    let dataset = Dataset::new(x, cells, obs, GeneSelection::All).unwrap();
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let loader = Loader::new(dataset.clone(), spec).unwrap();
        let mut orders = Vec::new();
        for epoch in 0..3 {
            let mut seen = Vec::new();
            for batch in loader.epoch(epoch).unwrap().map(Result::unwrap) {
                let noted = batch.obs.column(0).as_primitive::<Int64Type>().values();
                assert_eq!(noted.as_ref(), batch.joinids);
                for (row, joinid) in dense_rows(&batch.x).iter().zip(&batch.joinids) {
                    for (gene, value) in row.iter().enumerate() {
                        let stored = !(*joinid as usize + gene).is_multiple_of(3);
                        let expected = *joinid as f32 + gene as f32 * 1e-4;
                        assert_eq!(*value, if stored { expected } else { 0.0 });
                    }
                }
                seen.extend(batch.joinids.iter().map(|id| *id as u64));
            }
            orders.push(seen.clone());
            seen.sort_unstable();
            assert_eq!(seen, joinids, "{block_form} {batch_form}: each once");
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2] && orders[0] != orders[2]);
    }
}

#[test]
fn the_number_of_batches_that_is_announced_comes() {
    for n_rows in [0, 1, 7, 8, 9, 16, 50] {
        for batch_rows in [1, 3, 7, 8, 9, 16, 24, 50, 51] {
            for remainder in [Remainder::Short, Remainder::Drop] {
                for prefetch_batches in [0, 2] {
                    let spec = LoaderSpec {
                        pipeline: PipelineSpec {
                            batch_rows,
                            remainder,
                            prefetch_batches,
                            ..sample::spec().pipeline
                        },
                        ..sample::spec()
                    };
                    let loader = Loader::new(sample::whole(n_rows, 2), spec).unwrap();
                    let n_batches = if remainder == Remainder::Drop {
                        n_rows / batch_rows
                    } else {
                        n_rows.div_ceil(batch_rows)
                    };
                    assert_eq!(loader.n_batches(), n_batches);
                    let mut epoch = loader.epoch(4).unwrap();
                    assert_eq!(epoch.n_batches(), n_batches);
                    for left in (0..n_batches as usize).rev() {
                        epoch.next().unwrap().unwrap();
                        assert_eq!(epoch.size_hint().1, Some(left));
                    }
                    assert!(epoch.next().is_none());
                }
            }
        }
    }
}

#[test]
fn parts_of_a_split_keep_their_cells_in_every_epoch_and_read_no_others() {
    let whole = sample::whole(80, 5);
    let parts = split::by_fraction(80, &[0.7, 0.2, 0.1], SplitMethod::Deterministic, 9).unwrap();
    for rows in parts {
        let nnz = rows
            .iter()
            .flat_map(|row| (0..5).filter_map(move |gene| sample::value(row, gene)))
            .count();
        let loader = Loader::new(whole.part(&rows).unwrap(), sample::spec()).unwrap();
        let mut orders = Vec::new();
        for n_epochs in 0..4 {
            let mut epoch = loader.epoch(n_epochs).unwrap();
            let order: Vec<i64> = epoch.by_ref().flat_map(|batch| batch.unwrap().joinids).collect();
            assert_eq!(epoch.stats().engine.read.values, nnz as u64);
            let mut seen: Vec<u64> = order.iter().map(|id| *id as u64).collect();
            seen.sort_unstable();
            assert!(rows.iter().eq(seen));
            assert!(!orders.contains(&order), "epoch {n_epochs} has an order of its own");
            orders.push(order);
        }
    }
    for fractions in [&[0.5, 0.6][..], &[0.5, 0.4], &[]] {
        assert!(split::by_fraction(80, fractions, SplitMethod::Deterministic, 9).is_err());
    }
}

/// Arrays may allow duplicates, like the Census's.
#[test]
fn of_a_value_that_is_there_twice_dense_batches_have_the_last() {
    let twice = CsrBuffers {
        row_offsets: vec![0, 3, 3, 6],
        columns: vec![1, 1, 2, 0, 0, 0],
        values: vec![1.0, 2.0, 5.0, 3.0, 4.0, 6.0],
        n_columns: 3,
    };
    let x = Arc::new(MemoryReader::new(twice).unwrap());
    let dataset = sample::dataset(x, Cells::Range(0..3), GeneSelection::All);
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec {
            pipeline: PipelineSpec { order: loader::Order::InOrder, ..sample::spec().pipeline },
            block_form,
            batch_form,
            ..sample::spec()
        };
        for batch in batches(&dataset, spec.clone()) {
            match &batch.x {
                Matrix::Dense { .. } => {
                    let expected = [0.0, 2.0, 5.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0];
                    assert_eq!(batch.x.dense().unwrap(), expected, "{block_form}");
                }
                Matrix::Csr(csr) => {
                    let (columns, values) = csr.unpacked().unwrap();
                    assert_eq!(columns, [1, 1, 2, 0, 0, 0], "{block_form}");
                    assert_eq!(values, [1.0, 2.0, 5.0, 3.0, 4.0, 6.0], "{block_form}");
                }
                Matrix::Coo(coo) => {
                    assert_eq!(coo.rows().unwrap(), [0, 0, 0, 2, 2, 2], "{block_form}");
                    assert_eq!(coo.columns().unwrap(), [1, 1, 2, 0, 0, 0], "{block_form}");
                }
                other => panic!("{other:?}"),
            }
        }
        // A value that is not delivered does not count in the total.
        let transform = Transform { target_sum: Some(7.0), ..Transform::default() };
        for batch in batches(&dataset, LoaderSpec { transform, ..spec }) {
            if let Some(values) = batch.x.dense() {
                assert_eq!(values, [0.0, 2.0, 5.0, 0.0, 0.0, 0.0, 7.0, 0.0, 0.0], "{block_form}");
            }
        }
    }
}

#[test]
fn a_query_that_selects_nothing_of_an_experiment_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    crate::pipeline::experiment::write(&uri);
    let experiment = crate::pipeline::experiment::open(&uri);
    let none = || AxisQuery::filter("label == 'nobody'").unwrap();
    for (cells, genes, shape) in [
        (none(), AxisQuery::default(), (0, 9)),
        (AxisQuery::list([]), AxisQuery::range(2..5), (0, 3)),
        (AxisQuery::range(3..8), none(), (5, 0)),
        (AxisQuery::range(3..8), AxisQuery::range(5..5), (5, 0)),
        (none(), none(), (0, 0)),
    ] {
        let spec = loader::DatasetSpec {
            cells,
            genes: Genes::Query(genes),
            ..crate::pipeline::experiment::selection()
        };
        let dataset = Dataset::from_experiment(&experiment, &spec).unwrap();
        assert_eq!((dataset.n_rows(), dataset.n_columns()), shape);
        for (block_form, batch_form) in WAYS {
            let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
            let n_rows: usize = batches(&dataset, spec).iter().map(Batch::n_rows).sum();
            assert_eq!(n_rows as u64, shape.0, "{block_form} {batch_form}");
        }
    }
}

#[test]
fn python_gets_the_same_order() {
    // As in python/tests/test_native_epochs.py.
    let dataset =
        sample::dataset(Arc::new(sample::reader(12, 2)), Cells::Range(0..12), GeneSelection::All);
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            seed: 7,
            chunk_rows: 2,
            chunks_per_block: 2,
            batch_rows: 5,
            ..PipelineSpec::default()
        },
        ..LoaderSpec::default()
    };
    let loader = Loader::new(dataset, spec).unwrap();
    let joinids: Vec<Vec<i64>> =
        loader.epoch(3).unwrap().map(|batch| batch.unwrap().joinids).collect();
    assert_eq!(joinids, [vec![6, 7, 9, 8, 1], vec![3, 2, 0, 11, 4], vec![10, 5]]);
}

#[test]
fn a_data_set_takes_other_readers_of_the_same_x() {
    let x = |n_rows, n_columns| -> Arc<dyn soma_io::XReader> {
        Arc::new(sample::reader(n_rows, n_columns))
    };
    let dataset =
        sample::dataset(Arc::new(sample::reader(12, 2)), Cells::Range(2..9), GeneSelection::All);
    let other = dataset.with_readers(vec![vec![x(12, 2)]]).unwrap();
    let joinids = |dataset: &Dataset| -> Vec<_> {
        batches(dataset, sample::spec()).into_iter().map(|batch| batch.joinids).collect()
    };
    assert_eq!(joinids(&other), joinids(&dataset));
    let error = dataset.with_readers(Vec::new()).unwrap_err();
    assert!(matches!(error, ReaderError::Count { found: 0, expected: 1 }), "{error}");
    let error = dataset.with_readers(vec![vec![x(12, 3)]]).unwrap_err();
    assert!(error.to_string().contains("12 x 3"), "{error}");
}
