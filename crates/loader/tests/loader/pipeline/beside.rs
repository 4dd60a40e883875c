//! Layers, arrays of obsm and modalities beside X: each row of each is that of X's cell, for any
//! settings.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use loader::{
    Batch, BatchForm, BlockForm, Budget, Cells, Dataset, GeneSelection, Loader, LoaderError,
    LoaderSpec, LoaderState, Matrix, PipelineSpec, Remainder, Transform, World,
};
use pipeline::Error as Engine;
use proptest::prelude::*;
use soma_io::{CsrBuffers, MemoryReader};

use crate::pipeline::counted::CountedReader;
use crate::pipeline::sample::{self, WAYS, dense_rows};

/// The names of the layers, and those of the arrays of obsm with their numbers of columns.
const LAYERS: [&str; 2] = ["log", "raw"];
const OBSM: [(&str, u64); 2] = [("X_pca", 5), ("X_umap", 2)];
/// The modalities, each with the genes of its matrix and those that are selected.
const MODALITIES: [(&str, u64, &[u64]); 2] = [("prot", 4, &[0, 1, 2, 3]), ("atac", 9, &[8, 2, 5])];
/// Number of rows of the matrix of `atac`, which has no later cells.
const ATAC_ROWS: u64 = 25;
/// Number of genes in X and in every layer.
const N_GENES: u64 = 6;

/// The value of a matrix that its name identifies, at a joinid and a column: a number of at most
/// ten bits, so that f16 is exact. Some values are negative, about a third are not stored.
fn value(matrix: &str, experiment: u64, joinid: u64, column: u64) -> Option<f32> {
    let name = matrix.bytes().fold(7_u64, |hash, byte| hash * 31 + u64::from(byte));
    if !is_present(matrix, joinid) {
        return None;
    }
    let mut hash = name ^ (experiment << 40) ^ (joinid << 20) ^ column;
    hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 32;
    (!hash.is_multiple_of(3)).then(|| (hash % 1021) as f32 / 4.0 - 100.0)
}

/// Whether a matrix has a cell.
fn is_present(matrix: &str, joinid: u64) -> bool {
    match matrix {
        "prot" => joinid % 4 != 3,
        "atac" => joinid < ATAC_ROWS,
        _ => true,
    }
}

fn csr(matrix: &str, experiment: u64, n_rows: u64, n_columns: u64) -> CsrBuffers {
    let mut csr =
        CsrBuffers { row_offsets: vec![0], n_columns: n_columns as usize, ..CsrBuffers::default() };
    for joinid in 0..n_rows {
        for column in 0..n_columns {
            if let Some(value) = value(matrix, experiment, joinid, column) {
                csr.columns.push(column as u32);
                csr.values.push(value);
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

/// A reader that says that it is remote if the number of rows is odd, so that matrices are read
/// at the same time.
fn reader(matrix: &str, experiment: u64, n_rows: u64, n_columns: u64) -> Arc<CountedReader> {
    let reader = MemoryReader::new(csr(matrix, experiment, n_rows, n_columns)).unwrap();
    let mut reader = CountedReader::new(reader, 0);
    reader.is_remote = n_rows % 2 == 1;
    Arc::new(reader)
}

/// An experiment with X alone.
fn x_alone(experiment: u64, n_rows: u64, cells: Cells, genes: GeneSelection) -> Dataset {
    sample::dataset(reader("X", experiment, n_rows, N_GENES), cells, genes)
}

/// An experiment with all matrices, which have more rows than X has cells.
fn with_all(experiment: u64, n_rows: u64, cells: Cells, genes: GeneSelection) -> Dataset {
    let mut dataset = x_alone(experiment, n_rows, cells, genes);
    // One kind between those of the other: the batches have them apart.
    let [log, raw] = LAYERS;
    dataset = dataset.with_layer(log, reader(log, experiment, n_rows + 3, N_GENES)).unwrap();
    for (name, n_columns) in OBSM {
        dataset = dataset.with_obsm(name, reader(name, experiment, n_rows + 1, n_columns)).unwrap();
    }
    let [(prot, n_proteins, _), (atac, n_peaks, peaks)] = MODALITIES;
    let has_proteins = (0..n_rows + 2).map(|joinid| is_present(prot, joinid)).collect();
    let of_prot = reader(prot, experiment, n_rows + 2, n_proteins);
    dataset = dataset.with_modality(prot, of_prot, GeneSelection::All, Some(has_proteins)).unwrap();
    dataset = dataset.with_layer(raw, reader(raw, experiment, n_rows, N_GENES)).unwrap();
    let of_atac = reader(atac, experiment, ATAC_ROWS, n_peaks);
    dataset.with_modality(atac, of_atac, GeneSelection::List(peaks.into()), None).unwrap()
}

fn whole(n_rows: u64) -> Dataset {
    with_all(0, n_rows, Cells::Range(0..n_rows), GeneSelection::All)
}

/// The expected dense row of a matrix.
fn row(matrix: &str, experiment: u32, joinid: i64, columns: &[u64]) -> Vec<f32> {
    let value = |column: &u64| value(matrix, u64::from(experiment), joinid as u64, *column);
    columns.iter().map(|column| value(column).unwrap_or(0.0)).collect()
}

/// Checks all matrices of a batch against the values of its joinids.
fn check(batch: &Batch, form: BatchForm, genes: &[u64]) {
    check_forms(batch, form, form, genes);
}

/// The same, of a batch whose modality `atac` has a form of its own.
fn check_forms(batch: &Batch, form: BatchForm, of_atac: BatchForm, genes: &[u64]) {
    let dense = |matrix: &Matrix| match form {
        BatchForm::F16 => matrix.dense_f16().is_some(),
        _ => matrix.dense().is_some(),
    };
    let is_form = |form: BatchForm, matrix: &Matrix| match matrix {
        Matrix::Csr(_) => matches!(form, BatchForm::Csr | BatchForm::Packed),
        Matrix::Coo(_) => form == BatchForm::Coo,
        matrix if form == BatchForm::F16 => matrix.dense_f16().is_some(),
        matrix => form == BatchForm::Dense && matrix.dense().is_some(),
    };
    let same_form = |matrix: &Matrix| is_form(form, matrix);
    let check = |name: &str, matrix: &Matrix, columns: &[u64]| {
        assert_eq!(matrix.shape(), (batch.n_rows(), columns.len()), "{name}");
        for (idx, found) in dense_rows(matrix).into_iter().enumerate() {
            let (experiment, joinid) = (batch.experiments[idx], batch.joinids[idx]);
            let expected = row(name, experiment, joinid, columns);
            assert_eq!(found, expected, "{name}: cell {joinid} of {experiment}");
        }
    };
    check("X", &batch.x, genes);
    let names: Vec<&str> = batch.layers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, LAYERS);
    for (name, matrix) in &batch.layers {
        assert!(same_form(matrix), "{name}: {matrix:?}");
        check(name, matrix, genes);
    }
    let names: Vec<&str> = batch.obsm.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, OBSM.map(|(name, _)| name));
    for ((name, matrix), (_, n_columns)) in batch.obsm.iter().zip(OBSM) {
        assert!(dense(matrix), "{name}: {matrix:?}");
        check(name, matrix, &(0..n_columns).collect::<Vec<_>>());
    }
    let names: Vec<&str> = batch.modalities.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, MODALITIES.map(|(name, ..)| name));
    for ((name, modality), (_, _, genes)) in batch.modalities.iter().zip(MODALITIES) {
        let form = if name == "atac" { of_atac } else { form };
        assert!(is_form(form, &modality.x), "{name}: {modality:?}");
        check(name, &modality.x, genes);
        let expected = batch.joinids.iter().map(|joinid| is_present(name, *joinid as u64));
        assert_eq!(modality.present, expected.collect::<Vec<_>>(), "{name}");
    }
    assert_eq!(batch.present, vec![true; batch.n_rows()]);
    assert!(batch.modality("log").is_none());
    assert_eq!(batch.modality("atac").unwrap().x.shape(), (batch.n_rows(), 3));
    assert!(batch.layer("X_pca").is_none() && batch.obsm("log").is_none());
    assert_eq!(batch.layer("raw").unwrap().shape(), batch.x.shape());
    assert_eq!(batch.obsm("X_umap").unwrap().shape(), (batch.n_rows(), 2));
}

fn is_dense(form: BatchForm) -> bool {
    matches!(form, BatchForm::Dense | BatchForm::F16)
}

#[derive(Debug, Clone)]
struct Case {
    /// Joinids of each experiment.
    experiments: Vec<Vec<u64>>,
    genes: Vec<u64>,
    spec: LoaderSpec,
    of_atac: BatchForm,
    epoch: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let ids = proptest::collection::btree_set(0_u64..60, 0..40);
    let experiments =
        proptest::collection::vec(ids.prop_map(|ids| ids.into_iter().collect()), 1..4);
    let genes = proptest::sample::subsequence((0..N_GENES).collect::<Vec<_>>(), 1..=6);
    let sizes = (1..12_u64, 1..6_u64, 1..30_u64, 0..3_usize, 0..3_usize);
    let way = (0..=WAYS.len(), 0..5_usize);
    (experiments, genes.prop_shuffle(), sizes, way, any::<u64>(), 0..9_u64).prop_map(
        |(experiments, genes, sizes, (way, of_atac), seed, epoch)| {
            let (chunk_rows, chunks_per_block, batch_rows, prefetch_blocks, prefetch_batches) =
                sizes;
            let f16 = (BlockForm::Csr, BatchForm::F16);
            let (block_form, batch_form) = WAYS.get(way).copied().unwrap_or(f16);
            let forms = [BatchForm::Dense, BatchForm::F16, BatchForm::Csr, BatchForm::Coo];
            let own = forms.get(of_atac).copied();
            let own = own.filter(|form| block_form != BlockForm::Dense || is_dense(*form));
            let modality_forms = own.map(|form| ("atac".to_owned(), form)).into_iter().collect();
            let of_atac = own.unwrap_or(batch_form);
            let spec = LoaderSpec {
                modality_forms,
                pipeline: PipelineSpec {
                    chunk_rows,
                    chunks_per_block,
                    seed,
                    batch_rows,
                    prefetch_blocks,
                    prefetch_batches,
                    ..PipelineSpec::default()
                },
                block_form,
                batch_form,
                ..LoaderSpec::default()
            };
            Case { experiments, genes, spec, of_atac, epoch }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn every_matrix_has_the_rows_of_x(case in case()) {
        let Case { experiments, genes, spec, of_atac, epoch } = case;
        let made = |make: fn(u64, u64, Cells, GeneSelection) -> Dataset| {
            let parts: Vec<Dataset> = (0..)
                .zip(&experiments)
                .map(|(experiment, joinids)| {
                    let cells = Cells::List(joinids.as_slice().into());
                    make(experiment, 60, cells, GeneSelection::List(genes.clone()))
                })
                .collect();
            Dataset::concat(&parts).unwrap()
        };
        let form = spec.batch_form;
        let loader = Loader::new(made(with_all), spec.clone()).unwrap();
        let of_alone = LoaderSpec { modality_forms: BTreeMap::new(), ..spec };
        let alone = Loader::new(made(x_alone), of_alone).unwrap();
        let mut epoch_of_alone = alone.epoch(epoch).unwrap();
        let mut n_rows = 0;
        for batch in loader.epoch(epoch).unwrap() {
            let batch = batch.unwrap();
            check_forms(&batch, form, of_atac, &genes);
            n_rows += batch.n_rows();
            // The order, obs and X are those of X alone.
            let same = epoch_of_alone.next().unwrap().unwrap();
            prop_assert_eq!(&batch.joinids, &same.joinids);
            prop_assert_eq!(&batch.experiments, &same.experiments);
            prop_assert_eq!(&batch.obs, &same.obs);
            prop_assert_eq!(dense_rows(&batch.x), dense_rows(&same.x));
            prop_assert!(same.layers.is_empty() && same.obsm.is_empty());
        }
        prop_assert!(epoch_of_alone.next().is_none());
        prop_assert_eq!(n_rows, experiments.iter().map(Vec::len).sum::<usize>());
    }
}

/// Joinids and the rows of all matrices of one rank's batch.
type Rows = (Vec<i64>, Vec<Vec<Vec<f32>>>);

fn rows(batch: &Batch) -> Rows {
    let beside = batch.layers.iter().chain(&batch.obsm).map(|(_, matrix)| dense_rows(matrix));
    let modalities = batch.modalities.iter().map(|(_, modality)| dense_rows(&modality.x));
    let all = std::iter::once(dense_rows(&batch.x)).chain(beside).chain(modalities);
    (batch.joinids.clone(), all.collect())
}

#[test]
fn ranks_share_them_and_an_epoch_resumes_with_another_number_of_ranks() {
    let spec = |rank, size| LoaderSpec {
        pipeline: PipelineSpec {
            batch_rows: 12 / size,
            world: World { rank, size },
            remainder: Remainder::Drop,
            ..sample::spec().pipeline
        },
        ..sample::spec()
    };
    // The global batches of some steps: the ranks' rows one after another, matrix by matrix.
    let run = |size: u64, from: Option<&LoaderState>, most: usize| {
        let mut steps: Vec<Rows> = Vec::new();
        let mut state = None;
        for rank in 0..size {
            let loader = Loader::new(whole(100), spec(rank, size)).unwrap();
            let mut epoch = match from {
                Some(state) => loader.resume(state).unwrap(),
                None => loader.epoch(2).unwrap(),
            };
            for (step, batch) in epoch.by_ref().take(most).enumerate() {
                let batch = batch.unwrap();
                check(&batch, BatchForm::Dense, &(0..N_GENES).collect::<Vec<_>>());
                let (joinids, matrices) = rows(&batch);
                if rank == 0 {
                    steps.push((joinids, matrices));
                } else {
                    steps[step].0.extend(joinids);
                    for (all, of_rank) in steps[step].1.iter_mut().zip(matrices) {
                        all.extend(of_rank);
                    }
                }
            }
            state = Some(epoch.state());
        }
        (steps, state.unwrap())
    };
    let (all, _) = run(1, None, usize::MAX);
    assert_eq!(all.len(), 8);
    let (mut resumed, state) = run(4, None, 3);
    resumed.extend(run(3, Some(&state), usize::MAX).0);
    // The lanes of four ranks make another order than those of one.
    assert_eq!(resumed, run(4, None, usize::MAX).0);
}

#[test]
fn a_saved_state_of_other_matrices_is_refused() {
    let loader = |dataset| Loader::new(dataset, sample::spec()).unwrap();
    let mut epoch = loader(whole(30)).epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    let state = epoch.state();
    assert!(loader(whole(30)).resume(&state).is_ok());
    let alone = || x_alone(0, 30, Cells::Range(0..30), GeneSelection::All);
    let one_layer = alone().with_layer("log", reader("log", 0, 30, N_GENES)).unwrap();
    let narrow = alone().with_obsm("X_pca", reader("X_pca", 0, 30, 4)).unwrap();
    let wide = alone().with_obsm("X_pca", reader("X_pca", 0, 30, 5)).unwrap();
    let wide_state = loader(wide).epoch(0).unwrap().state();
    let modality = |n| {
        alone().with_modality("X_pca", reader("m", 0, 30, n), GeneSelection::All, None).unwrap()
    };
    let of_modality = loader(modality(5)).epoch(0).unwrap().state();
    for (dataset, state) in [
        (alone(), &state),
        (one_layer, &state),
        (narrow, &wide_state),
        (alone(), &wide_state),
        (modality(5), &wide_state),
        (modality(4), &of_modality),
        (alone(), &of_modality),
    ] {
        let error = loader(dataset).resume(state).unwrap_err();
        assert!(matches!(error, LoaderError::Pipeline(Engine::State { .. })), "{error}");
    }
}

#[test]
fn transforms_change_x_alone_and_the_layer_of_x_may_come_beside_it() {
    let transform = Transform { log1p: true, clip: Some((0.0, 3.0)), ..Transform::default() };
    let dataset = x_alone(0, 40, Cells::Range(0..40), GeneSelection::All);
    let x = Arc::clone(dataset.readers().next().unwrap());
    let dataset = dataset.with_layer("stored", x).unwrap();
    let dataset = dataset.with_obsm("X_pca", reader("X_pca", 0, 40, 5)).unwrap();
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, transform, ..sample::spec() };
        for batch in Loader::new(dataset.clone(), spec).unwrap().epoch(0).unwrap() {
            let batch = batch.unwrap();
            let of_cells = |matrix, n_columns| -> Vec<Vec<f32>> {
                let columns: Vec<u64> = (0..n_columns).collect();
                batch.joinids.iter().map(|joinid| row(matrix, 0, *joinid, &columns)).collect()
            };
            let stored = of_cells("X", N_GENES);
            assert_eq!(dense_rows(batch.layer("stored").unwrap()), stored);
            assert_eq!(dense_rows(batch.obsm("X_pca").unwrap()), of_cells("X_pca", 5));
            let found = dense_rows(&batch.x).into_iter().flatten();
            for (found, value) in found.zip(stored.into_iter().flatten()) {
                let expected = value.ln_1p().clamp(0.0, 3.0);
                let close = (found - expected).abs() < 1e-6 || value <= -1.0;
                assert!(close, "{value} became {found}, not {expected}");
            }
        }
    }
}

#[test]
fn parts_and_concatenations_keep_them() {
    let dataset = whole(50);
    let some: Vec<u64> = (0..50).filter(|row| row % 3 != 1).collect();
    let part = dataset.rows(&some).unwrap();
    assert_eq!(part.layers().collect::<Vec<_>>(), LAYERS);
    assert_eq!(part.obsm().collect::<Vec<_>>(), [("X_pca", 5), ("X_umap", 2)]);
    assert_eq!(part.modalities().collect::<Vec<_>>(), [("prot", 4), ("atac", 3)]);
    let mut seen = Vec::new();
    for batch in Loader::new(part, sample::spec()).unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        check(&batch, BatchForm::Dense, &(0..N_GENES).collect::<Vec<_>>());
        seen.extend(batch.joinids.iter().map(|joinid| *joinid as u64));
    }
    seen.sort_unstable();
    assert_eq!(seen, some);
}

#[track_caller]
fn check_refused(dataset: Result<Dataset, impl Display>, expected: &str) {
    let Err(error) = dataset else { panic!("{expected:?} is accepted") };
    let message = error.to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let alone = || x_alone(0, 20, Cells::Range(0..20), GeneSelection::All);
    let reader = |n_rows, n_columns| reader("any", 0, n_rows, n_columns);
    check_refused(alone().with_layer("log", reader(20, 5)), "has 5 columns, X has 6");
    check_refused(alone().with_layer("log", reader(19, N_GENES)), "layer \"log\" has 19 rows");
    check_refused(
        alone().with_obsm("X_pca", reader(7, 2)),
        "joinid 7, but obsm array \"X_pca\" has 7",
    );
    let both = alone().with_obsm("a", reader(20, 2)).unwrap();
    // A layer may have the name of an array of obsm.
    let both = both.with_layer("a", reader(20, N_GENES)).unwrap();
    check_refused(
        both.clone().with_obsm("a", reader(20, 3)),
        "obsm array \"a\" is already beside X",
    );
    check_refused(both.clone().with_layer("a", reader(20, N_GENES)), "layer \"a\" is already");
    let modality = |dataset: Dataset, n_columns| {
        dataset.with_modality("a", reader(20, n_columns), GeneSelection::All, None)
    };
    check_refused(modality(modality(alone(), 2).unwrap(), 2), "modality \"a\" is already beside X");
    check_refused(
        alone().with_modality("a", reader(20, 2), GeneSelection::List(vec![2]), None),
        "the columns cannot be read from modality \"a\", which has 2",
    );
    check_refused(
        Dataset::concat(&[modality(alone(), 2).unwrap(), modality(alone(), 3).unwrap()]),
        "data set 1 has modality \"a\" of 3 columns; the first has modality \"a\" of 2",
    );
    let two = Dataset::concat(&[both.clone(), both.clone()]).unwrap();
    check_refused(modality(two.clone(), 2), "modality \"a\" has the cells of one experiment");
    check_refused(two.with_obsm("b", reader(20, 3)), "the data set has 2");

    let wider = alone().with_obsm("a", reader(20, 3)).unwrap();
    let narrower = alone().with_obsm("a", reader(20, 2)).unwrap();
    let message = "data set 1 has obsm array \"a\" of 3 columns; the first has none";
    check_refused(Dataset::concat(&[alone(), wider.clone()]), message);
    let message =
        "data set 2 has obsm array \"a\" of 3 columns; the first has obsm array \"a\" of 2";
    check_refused(Dataset::concat(&[narrower.clone(), narrower.clone(), wider]), message);
    check_refused(
        Dataset::concat(&[both, narrower]),
        "the first has obsm array \"a\" of 2 columns, layer",
    );
}

#[test]
fn their_memory_counts_and_is_reused() {
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let least = |dataset: Dataset| {
            let spec = LoaderSpec {
                pipeline: PipelineSpec { memory: Budget::new(0), ..spec.pipeline.clone() },
                ..spec.clone()
            };
            match Loader::new(dataset, spec) {
                Err(LoaderError::Pipeline(Engine::Memory { least, .. })) => least,
                other => panic!("{other:?}"),
            }
        };
        let alone = || x_alone(0, 60, Cells::Range(0..60), GeneSelection::All);
        let of_modality = alone()
            .with_modality("wide", reader("wide", 0, 60, 500), GeneSelection::All, None)
            .unwrap();
        let wide = alone().with_obsm("wide", reader("wide", 0, 60, 500)).unwrap();
        // A batch of obsm is dense, and the block has at least a quarter of the values.
        let batch = 3 * 500 * 4;
        let more = least(wide.clone()) - least(alone());
        assert!(more > batch + 8 * 500, "{block_form} {batch_form}: {more} bytes more");

        if is_dense(batch_form) {
            assert_eq!(least(of_modality), least(wide.clone()), "{block_form} {batch_form}");
        }

        let limited = LoaderSpec {
            pipeline: PipelineSpec { memory: Budget::new(least(wide.clone())), ..spec.pipeline },
            ..spec
        };
        let loader = Loader::new(wide, limited).unwrap();
        let mut addresses = Vec::new();
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let array = batch.obsm("wide").unwrap();
            assert_eq!(
                dense_rows(array)[0],
                row("wide", 0, batch.joinids[0], &(0..500).collect::<Vec<_>>())
            );
            addresses.push(array.dense().unwrap().as_ptr() as usize);
        }
        addresses.sort_unstable();
        addresses.dedup();
        assert!(addresses.len() <= 4, "{} buffers for one batch at a time", addresses.len());
    }
}

#[test]
fn an_epoch_counts_their_values() {
    let alone = x_alone(0, 50, Cells::Range(0..50), GeneSelection::All);
    let nnz_of = |dataset: Dataset| {
        let loader = Loader::new(dataset, sample::spec()).unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        epoch.by_ref().for_each(|batch| drop(batch.unwrap()));
        epoch.stats().engine.read.values
    };
    let stored = |matrix, n_columns| csr(matrix, 0, 50, n_columns).nnz() as u64;
    let of_genes = |matrix, genes: &[u64]| {
        let of_cell =
            |joinid| genes.iter().filter(move |gene| value(matrix, 0, joinid, **gene).is_some());
        (0..50).flat_map(of_cell).count() as u64
    };
    let beside = LAYERS.map(|name| stored(name, N_GENES)).iter().sum::<u64>()
        + OBSM.map(|(name, n_columns)| stored(name, n_columns)).iter().sum::<u64>()
        + MODALITIES.map(|(name, _, genes)| of_genes(name, genes)).iter().sum::<u64>();
    assert_eq!(nnz_of(whole(50)), nnz_of(alone) + beside);
}

#[test]
fn an_arrow_batch_has_their_columns() {
    let of_csr = ["genes", "values", "genes_log", "values_log", "genes_raw", "values_raw"];
    let dense = ["prot_x", "prot_present", "atac_x", "atac_present"];
    let sparse = ["prot_genes", "prot_values", "prot_present"];
    let sparse = [sparse, ["atac_genes", "atac_values", "atac_present"]].concat();
    for (batch_form, expected, modalities) in [
        (BatchForm::Dense, &["x", "x_log", "x_raw"][..], &dense[..]),
        (BatchForm::Csr, &of_csr[..], &sparse[..]),
    ] {
        let spec = LoaderSpec { batch_form, ..sample::spec() };
        let loader = Loader::new(whole(20), spec).unwrap();
        let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
        let arrow: RecordBatch = batch.to_arrow().unwrap();
        let names: Vec<&str> =
            arrow.schema_ref().fields().iter().map(|field| field.name().as_str()).skip(4).collect();
        assert_eq!(names, [expected, &["obsm_X_pca", "obsm_X_umap"], modalities].concat());
    }
}

#[test]
fn a_form_of_a_modality_that_is_not_there_is_refused() {
    let forms = |name: &str, form| BTreeMap::from([(name.to_owned(), form)]);
    let spec = LoaderSpec { modality_forms: forms("rna", BatchForm::Csr), ..sample::spec() };
    let error = Loader::new(whole(20), spec.clone()).unwrap_err().to_string();
    assert!(error.contains(r#"modality "rna", but the data set has ["prot", "atac"]"#), "{error}");
    let modality_forms = forms("prot", BatchForm::Csr);
    let spec = LoaderSpec { block_form: BlockForm::Dense, modality_forms, ..spec };
    let error = Loader::new(whole(20), spec).unwrap_err();
    assert!(matches!(error, LoaderError::SparseFromDense), "{error}");
}

/// X and two modalities are columns of one matrix: its rows are read once for all.
#[test]
fn one_read_serves_all_columns_of_a_matrix() {
    let genes: [&[u64]; 3] = [&[4, 0], &[1, 3], &[5]];
    for n_experiments in [1, 3] {
        let readers: Vec<Arc<CountedReader>> = (0..n_experiments)
            .map(|experiment| {
                let all = MemoryReader::new(csr("X", experiment, 40, N_GENES)).unwrap();
                let mut reader = CountedReader::new(all, 1000);
                reader.reads_whole_rows = true;
                Arc::new(reader)
            })
            .collect();
        let parts: Vec<Dataset> = readers
            .iter()
            .map(|reader| {
                let [x, prot, atac] = genes.map(|genes| GeneSelection::List(genes.into()));
                let same = || Arc::<CountedReader>::clone(reader);
                let dataset = sample::dataset(same(), Cells::Range(0..40), x);
                let dataset = dataset.with_modality("prot", same(), prot, None).unwrap();
                dataset.with_modality("atac", same(), atac, None).unwrap()
            })
            .collect();
        let dataset = Dataset::concat(&parts).unwrap();
        let n_started = || readers.iter().map(|one| one.n_started.load(Ordering::SeqCst)).sum();
        for (block_form, batch_form) in WAYS {
            let before: usize = n_started();
            let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
            let loader = Loader::new(dataset.clone(), spec).unwrap();
            let mut epoch = loader.epoch(0).unwrap();
            for batch in epoch.by_ref() {
                let batch = batch.unwrap();
                let matrices = std::iter::once(&batch.x)
                    .chain(batch.modalities.iter().map(|(_, modality)| &modality.x));
                for (matrix, genes) in matrices.zip(genes) {
                    for (idx, found) in dense_rows(matrix).into_iter().enumerate() {
                        let (experiment, joinid) = (batch.experiments[idx], batch.joinids[idx]);
                        assert_eq!(found, row("X", experiment, joinid, genes));
                    }
                }
            }
            let n_blocks = epoch.stats().engine.n_blocks as usize;
            let n_reads = n_started() - before;
            if block_form == BlockForm::Csr && n_experiments == 1 {
                assert_eq!(n_reads, n_blocks);
            } else if block_form != BlockForm::Csr {
                assert!(n_reads >= 3 * n_blocks, "{n_reads} reads of {n_blocks} blocks");
            }
        }
    }
}
