//! Reads all of an experiment into memory.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};

/// The contents of an experiment.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    pub(crate) obs: RecordBatch,
    pub(crate) var: RecordBatch,
    pub(crate) x: CsrBuffers,
}

pub(crate) fn read(path: &Path) -> Contents {
    let experiment = Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let rna = experiment.measurement("RNA").unwrap();
    let obs = experiment.obs().unwrap().read(None, None).unwrap();
    let var = rna.var().unwrap().read(None, None).unwrap();
    let mut x = CsrBuffers::default();
    let layer = rna.x("raw").unwrap();
    assert_eq!(layer.shape(), (obs.num_rows() as u64, var.num_rows() as u64));
    let rows = RowRanges::new(vec![0..obs.num_rows() as u64]).unwrap();
    layer.reader(ReaderChoice::Auto).unwrap().read_csr(&rows, &GeneSelection::All, &mut x).unwrap();
    x.check().unwrap();
    Contents { obs, var, x }
}

impl Contents {
    /// Number of values in each row of X.
    pub(crate) fn row_nnz(&self) -> Vec<i64> {
        (0..self.x.n_rows()).map(|row| self.x.row(row).0.len() as i64).collect()
    }

    /// Sum of each row of X.
    pub(crate) fn row_sums(&self) -> Vec<f64> {
        let sum = |row| self.x.row(row).1.iter().map(|value| f64::from(*value)).sum();
        (0..self.x.n_rows()).map(sum).collect()
    }

    /// Number of values in each column of X.
    pub(crate) fn column_nnz(&self) -> Vec<i64> {
        let mut nnz = vec![0; self.x.n_columns];
        for column in &self.x.columns {
            nnz[*column as usize] += 1;
        }
        nnz
    }
}

pub(crate) fn integers(frame: &RecordBatch, column: &str) -> Vec<i64> {
    frame.column_by_name(column).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

pub(crate) fn floats(frame: &RecordBatch, column: &str) -> Vec<f64> {
    frame.column_by_name(column).unwrap().as_primitive::<Float64Type>().values().to_vec()
}

/// A column of strings, plain or categorical.
pub(crate) fn texts(frame: &RecordBatch, column: &str) -> Vec<String> {
    let array = frame.column_by_name(column).unwrap();
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = dictionary.values().as_string::<i64>();
        let keys = dictionary.normalized_keys();
        return keys.iter().map(|key| values.value(*key).to_owned()).collect();
    }
    array.as_string::<i64>().iter().map(|text| text.unwrap().to_owned()).collect()
}

/// Names of the entries of a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
