//! Real counts, written by tiledbsoma: 2,898 spots of a Visium slide by 19,465 genes.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};

use crate::cells::{all_rows, cells_of, read_coo, read_csr};
use crate::described;
use crate::python;

const SHAPE: (u64, u64) = (2_898, 19_465);
const NNZ: u64 = 1_069_459;
const SUM: f64 = 3_085_005.0;

fn experiment() -> (PathBuf, Experiment) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/visium-2898x19465/soma");
    let experiment = Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    (path, experiment)
}

#[test]
fn every_count_comes() {
    let (_, experiment) = experiment();
    let measurement = experiment.measurement("RNA").unwrap();
    assert_eq!(measurement.layers().unwrap(), ["raw"]);
    let x = measurement.x("raw").unwrap();
    assert_eq!((x.shape(), x.nnz().unwrap()), (SHAPE, NNZ));
    let reader = x.reader(ReaderChoice::Auto).unwrap();
    let rows = all_rows(&*reader);
    let csr = read_csr(&*reader, &rows, &GeneSelection::All).unwrap();
    let sum: f64 = csr.values.iter().copied().map(f64::from).sum();
    assert_eq!((csr.nnz() as u64, sum), (NNZ, SUM));
    assert_eq!(read_coo(&*reader, &rows, &GeneSelection::All).unwrap(), cells_of(&csr));
    check_obs(&experiment, &csr);
}

/// obs contains the sum and the number of each spot's counts.
fn check_obs(experiment: &Experiment, csr: &CsrBuffers) {
    let obs = experiment.obs().unwrap();
    assert_eq!(obs.n_rows().unwrap(), SHAPE.0);
    let obs = obs.read(Some(&["raw_sum", "nnz", "is_primary_data"]), None).unwrap();
    let numbers = |column_idx: usize| {
        let numbers = arrow_cast::cast(obs.column(column_idx), &DataType::Int64).unwrap();
        numbers.as_primitive::<Int64Type>().values().to_vec()
    };
    let (sums, counts) = (numbers(0), numbers(1));
    for row in 0..csr.n_rows() {
        let (_, values) = csr.row(row);
        assert_eq!(values.iter().sum::<f32>(), sums[row] as f32, "the sum of row {row}");
        assert_eq!(values.len() as i64, counts[row], "the values of row {row}");
    }
    assert_eq!(obs.column(2).as_boolean().true_count() as u64, SHAPE.0);
}

#[test]
fn parts_equal_the_whole() {
    let (_, experiment) = experiment();
    let reader = experiment
        .measurement("RNA")
        .unwrap()
        .x("raw")
        .unwrap()
        .reader(ReaderChoice::Auto)
        .unwrap();
    let whole = read_csr(&*reader, &all_rows(&*reader), &GeneSelection::All).unwrap();
    let ranges = vec![5..64, 1_000..1_001, 2_040..2_060, 2_890..2_898];
    let rows = RowRanges::new(ranges).unwrap();
    let genes: Vec<u64> = (0..SHAPE.1).rev().step_by(37).collect();
    let part = read_csr(&*reader, &rows, &GeneSelection::List(genes.clone())).unwrap();
    for (position, row) in rows.iter().enumerate() {
        let (columns, values) = whole.row(row as usize);
        let expected = genes.iter().zip(0_u32..).filter_map(|(gene, column)| {
            let at = columns.binary_search(&(*gene as u32)).ok()?;
            Some((column, values[at]))
        });
        let (columns, values) = part.row(position);
        assert!(columns.iter().copied().zip(values.iter().copied()).eq(expected), "row {row}");
    }
}

#[test]
fn frames_are_as_tiledbsoma_reads_them() {
    let (path, experiment) = experiment();
    let columns = ["soma_joinid", "barcode", "cluster", "in_depth_half", "raw_sum", "nnz"];
    let obs = experiment.obs().unwrap();
    for column in columns {
        assert!(obs.schema().field_with_name(column).is_ok(), "obs has no column {column}");
    }
    let Some(python) = python::interpreter() else { return };
    let arguments = [path.to_str().unwrap(), "--frames"];
    let expected = python::run(&python, "check_experiment.py", &arguments);
    described::assert_same_frames(&described::frames(&experiment), &expected);
}
