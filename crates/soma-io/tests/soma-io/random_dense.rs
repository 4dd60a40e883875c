//! Random dense arrays that tiledbsoma wrote, as layers of X and in obsm: both readers return what
//! it reads.

use arrow_schema::DataType;
use serde_json::Value;
use soma_io::{CsrBuffers, Experiment, Matrix, OpenOptions, ReaderChoice, contract};

use crate::python;

/// The rows in the Python side's form, without zeros.
fn rows(state: &Value) -> CsrBuffers {
    let mut out = CsrBuffers::default();
    for row in state["rows"].as_array().unwrap() {
        let row = row.as_array().unwrap();
        out.n_columns = row.len();
        for (column, value) in (0..).zip(row) {
            let bits = value.as_str().unwrap().strip_prefix("bits ").unwrap();
            let value = f64::from_bits(bits.parse().unwrap()) as f32;
            if value != 0.0 {
                out.columns.push(column);
                out.values.push(value);
            }
        }
        out.row_offsets.push(out.values.len());
    }
    out
}

#[track_caller]
fn check(matrix: &Matrix, state: &Value) {
    let expected = rows(state);
    let n_rows = expected.n_rows() as u64;
    assert_eq!(matrix.shape(), (n_rows, expected.n_columns as u64));
    let type_name = match matrix.data_type().unwrap() {
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        other => other.to_string().to_lowercase(),
    };
    assert_eq!(type_name, state["type"]);
    assert_eq!(matrix.nnz().unwrap(), n_rows * expected.n_columns as u64);
    for choice in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
        let reader = matrix.reader(choice).unwrap();
        contract::check(&*reader, &expected);
    }
}

#[test]
fn dense_arrays_of_tiledbsoma() {
    let Some(python) = python::interpreter() else { return };
    let n_seeds = std::env::var("SOMAFEED_RANDOM_DENSE").ok().and_then(|n| n.parse().ok());
    for seed in 0..n_seeds.unwrap_or(1_u32) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("experiment");
        let arguments = [path.to_str().unwrap(), &seed.to_string(), "12"];
        let holds = python::run(&python, "write_random_dense.py", &arguments);
        for (timestamp, state) in [(None, "latest"), (holds["between"].as_u64(), "earlier")] {
            let config = soma_io::Config::from([
                ("soma.init_buffer_bytes".into(), "65536".into()),
                ("sm.compute_concurrency_level".into(), "2".into()),
            ]);
            let options = OpenOptions { timestamp, config, ..OpenOptions::default() };
            let experiment = Experiment::open(path.to_str().unwrap(), &options).unwrap();
            let measurement = experiment.measurement("RNA").unwrap();
            for name in measurement.layers().unwrap() {
                check(&measurement.x(&name).unwrap(), &holds[state][&name]);
            }
            check(&measurement.obsm("places").unwrap(), &holds[state]["places"]);
        }
    }
}
