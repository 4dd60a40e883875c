//! Tests on experiments on disk: one written here, and real counts that tiledbsoma wrote.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use loader::{
    AxisQuery, Batch, Cells, Dataset, DatasetSpec, Genes, Loader, LoaderSpec, Matrix, Order,
    PipelineSpec,
};
use soma_io::{ColumnKind, ColumnSpec, Experiment, ExperimentWriter, OpenOptions};

use crate::pipeline::sample::{self, WAYS, check_rows};

const N_OBS: u64 = 70;
const N_VAR: u64 = 9;

/// Writes an experiment with the sample's values and obs.
pub(crate) fn write(uri: &str) {
    let label = ColumnSpec::new("label", ColumnKind::Text);
    let doubled = ColumnSpec::new("doubled", ColumnKind::Int64);
    let spec = sample::experiment_spec((N_OBS, N_VAR), vec![label.clone(), doubled], vec![label]);
    let mut writer = ExperimentWriter::create(uri, spec).unwrap();
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..N_VAR).map(|gene| format!("gene {gene}"))));
    writer.write_var(&RecordBatch::try_from_iter([("label", names)]).unwrap()).unwrap();
    let joinids: Vec<u64> = (0..N_OBS).collect();
    writer.write_obs(&sample::obs(&joinids)).unwrap();
    let csr = sample::csr(N_OBS, N_VAR);
    writer.write_x("raw", &csr.row_offsets, &csr.columns, &csr.values).unwrap();
    writer.finish().unwrap();
}

pub(crate) fn selection() -> DatasetSpec {
    DatasetSpec { obs_columns: vec!["label".into(), "doubled".into()], ..DatasetSpec::default() }
}

pub(crate) fn open(uri: &str) -> Experiment {
    Experiment::open(uri, &OpenOptions::default()).unwrap()
}

/// An error's message with all its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[test]
fn an_experiment_is_loaded_whole_or_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    write(&uri);
    let experiment = open(&uri);
    let selections = [
        (None, AxisQuery::default(), (0..N_VAR).collect()),
        (Some(13..41), AxisQuery::range(2..7), (2..7).collect()),
        (Some(69..70), AxisQuery::list([8, 0, 4]), vec![8, 0, 4]),
        (Some(5..5), AxisQuery::default(), (0..N_VAR).collect::<Vec<u64>>()),
    ];
    for (rows, genes, gene_joinids) in selections {
        let cells =
            Cells::Range(rows.clone().filter(|rows| !rows.is_empty()).unwrap_or(match rows {
                None => 0..N_OBS,
                Some(_) => 0..0,
            }));
        let genes = Genes::Query(genes);
        let selection = DatasetSpec {
            cells: rows.map_or_else(AxisQuery::default, AxisQuery::range),
            genes,
            ..selection()
        };
        let dataset = Dataset::from_experiment(&experiment, &selection).unwrap();
        assert_eq!(dataset.n_rows(), cells.n_rows());
        assert_eq!(dataset.n_columns(), gene_joinids.len());
        for (block_form, batch_form) in WAYS {
            let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
            let loader = Loader::new(dataset.clone(), spec).unwrap();
            let mut seen: Vec<u64> = Vec::new();
            for batch in loader.epoch(1).unwrap() {
                let batch = batch.unwrap();
                // An experiment returns texts as LargeUtf8.
                check_rows(&with_plain_text(batch), &gene_joinids, &mut seen);
            }
            seen.sort_unstable();
            assert_eq!(seen, sample::joinids(&cells), "{block_form} {batch_form}");
        }
    }
}

fn with_plain_text(mut batch: Batch) -> Batch {
    let labels = batch.obs.column_by_name("label").unwrap();
    let labels =
        StringArray::from_iter_values(labels.as_string::<i64>().iter().map(Option::unwrap));
    let doubled = Arc::clone(batch.obs.column_by_name("doubled").unwrap());
    batch.obs =
        RecordBatch::try_from_iter([("label", Arc::new(labels) as ArrayRef), ("doubled", doubled)])
            .unwrap();
    batch
}

#[test]
fn obs_columns_are_those_asked_for_in_that_order() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    write(&uri);
    let experiment = open(&uri);
    for columns in [&[][..], &["soma_joinid"], &["doubled"], &["doubled", "soma_joinid", "label"]] {
        let obs_columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let dataset =
            Dataset::from_experiment(&experiment, &DatasetSpec { obs_columns, ..selection() })
                .unwrap();
        let loader = Loader::new(dataset, sample::spec()).unwrap();
        for batch in loader.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let names: Vec<_> =
                batch.obs.schema().fields().iter().map(|field| field.name().clone()).collect();
            assert_eq!(names, columns);
            assert_eq!(batch.obs.num_rows(), batch.n_rows());
            if let Some(joinids) = batch.obs.column_by_name("soma_joinid") {
                assert_eq!(joinids.as_primitive::<Int64Type>().values(), &batch.joinids[..]);
            }
        }
    }
}

#[test]
fn what_an_experiment_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    write(&uri);
    let experiment = open(&uri);
    let check = |spec: DatasetSpec, expect: &[&str]| {
        let error = causes(&Dataset::from_experiment(&experiment, &spec).unwrap_err());
        assert!(expect.iter().all(|expect| error.contains(expect)), "{error}");
    };
    check(DatasetSpec { measurement: Some("ATAC".into()), ..selection() }, &["ATAC", "RNA"]);
    check(DatasetSpec { layer: Some("normalized".into()), ..selection() }, &["normalized", "raw"]);
    check(
        DatasetSpec { obs_columns: vec!["age".into()], ..selection() },
        &["age", "label, doubled"],
    );
    check(DatasetSpec { cells: AxisQuery::range(60..80), ..selection() }, &["60..80", "70"]);
    check(
        DatasetSpec { genes: Genes::Query(AxisQuery::range(3..12)), ..selection() },
        &["3..12", "9"],
    );
}

/// Real counts, written by Python tiledbsoma.
fn visium() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/visium-2898x19465/soma").to_owned()
}

/// Sum and number of the values of each row.
fn row_sums(x: &Matrix) -> Vec<(f64, i64)> {
    let of_row = |values: &[f32]| {
        (
            values.iter().copied().map(f64::from).sum(),
            values.iter().filter(|value| **value != 0.0).count() as i64,
        )
    };
    sample::dense_rows(x).iter().map(|row| of_row(row)).collect()
}

#[test]
fn real_counts_come_through_every_method_form_and_order() {
    let uri = visium();
    let columns = ["raw_sum", "nnz", "soma_joinid"].map(str::to_owned).to_vec();
    let dataset =
        Dataset::from_experiment(&open(&uri), &DatasetSpec { obs_columns: columns, ..selection() })
            .unwrap();
    assert_eq!((dataset.n_rows(), dataset.n_columns()), (2898, 19465));
    for (block_form, batch_form) in WAYS {
        for order in [Order::Shuffled, Order::InOrder] {
            let spec = LoaderSpec {
                pipeline: PipelineSpec {
                    chunk_rows: 64,
                    chunks_per_block: 16,
                    batch_rows: 100,
                    order,
                    ..sample::spec().pipeline
                },
                block_form,
                batch_form,
                ..sample::spec()
            };
            let loader = Loader::new(dataset.clone(), spec).unwrap();
            let mut times: HashMap<i64, usize> = HashMap::new();
            let (mut sum, mut nnz) = (0.0, 0);
            let mut epoch = loader.epoch(0).unwrap();
            for batch in epoch.by_ref() {
                let batch = batch.unwrap();
                let noted = |name: &str| Arc::clone(batch.obs.column_by_name(name).unwrap());
                let noted_sums =
                    arrow_cast::cast(&noted("raw_sum"), &arrow_schema::DataType::Float64).unwrap();
                let noted_nnz =
                    arrow_cast::cast(&noted("nnz"), &arrow_schema::DataType::Int64).unwrap();
                let noted_joinids: Int64Array =
                    noted("soma_joinid").as_primitive::<Int64Type>().clone();
                assert_eq!(noted_joinids.values(), &batch.joinids[..]);
                for (row, (row_sum, row_nnz)) in row_sums(&batch.x).into_iter().enumerate() {
                    assert_eq!(row_sum, noted_sums.as_primitive::<Float64Type>().value(row));
                    assert_eq!(row_nnz, noted_nnz.as_primitive::<Int64Type>().value(row));
                    sum += row_sum;
                    nnz += row_nnz;
                }
                batch.joinids.iter().for_each(|joinid| *times.entry(*joinid).or_default() += 1);
            }
            assert_eq!((nnz, sum), (1_069_459, 3_085_005.0), "{block_form} {batch_form} {order:?}");
            assert_eq!(times.len(), 2898);
            assert!(times.values().all(|n_times| *n_times == 1));
            assert_eq!(
                (epoch.stats().engine.read.values, epoch.stats().engine.n_blocks),
                (1_069_459, 3)
            );
        }
    }
}
