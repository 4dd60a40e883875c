//! tiledbsoma reads what this crate writes, and this crate reads what tiledbsoma writes: every
//! column and every value.

use std::collections::BTreeSet;
use std::path::Path;

use arrow_schema::DataType;
use serde_json::{Value, json};
use soma_io::{
    CsrBuffers, Error, Experiment, Extent, GeneSelection, OpenOptions, PackedCsr, ReaderChoice,
    RowRanges, XReader,
};

use crate::deleting;
use crate::described;
use crate::described_x::{self, assert_same};
use crate::python;
use crate::small::Small;

/// The written data, in the form in which experiments are compared.
fn written(small: &Small) -> Value {
    let x = &small.x;
    let cells = (0..x.n_rows()).flat_map(|row| {
        let (columns, values) = x.row(row);
        columns.iter().zip(values).map(move |(column, value)| {
            json!([row, column, format!("bits {}", f64::from(*value).to_bits())])
        })
    });
    let layer = json!({ "shape": [small.spec.n_obs, small.spec.n_var], "type": "float", "cells": cells.collect::<Value>() });
    let layers = small.spec.layers.iter().map(|name| (name.clone(), layer.clone()));
    json!({
        "obs": described::frame(&small.obs),
        "var": described::frame(&small.var),
        "X": layers.collect::<serde_json::Map<_, _>>(),
    })
}

fn check_written(small: &Small) {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment");
    let uri = uri.to_str().unwrap();
    small.write(uri).unwrap();
    assert_same(&python::run(&python, "check_experiment.py", &[uri]), &written(small));
}

#[test]
fn tiledbsoma_reads_an_experiment_with_a_current_domain() {
    let mut small = Small::new(2_300, 2_200, 5);
    // tiledbsoma escapes names with slashes, too.
    small.spec.layers = vec!["raw".into(), "a/twice %2F".into()];
    check_written(&small);
}

#[test]
fn tiledbsoma_reads_an_experiment_with_a_fixed_domain() {
    let mut small = Small::new(2_100, 500, 4);
    small.spec.extent = Extent::FixedDomain;
    check_written(&small);
}

#[test]
fn tiledbsoma_reads_consolidated_fragments() {
    let mut small = Small::new(4_400, 300, 3);
    small.spec.fragment_rows = Some(2_048);
    small.spec.consolidate = true;
    check_written(&small);
}

#[test]
fn tiledbsoma_reads_an_empty_x() {
    check_written(&Small::new(70, 30, 0));
}

fn open(path: &Path, timestamp: Option<u64>) -> Experiment {
    // Small buffers for small layers.
    let config = soma_io::Config::from([("soma.init_buffer_bytes".into(), "1048576".into())]);
    let options = OpenOptions { config, timestamp, ..OpenOptions::default() };
    Experiment::open(path.to_str().unwrap(), &options).unwrap()
}

/// Compares counts, and rows as CSR, with the expected ones.
#[track_caller]
fn check_counts_and_rows(experiment: &Experiment, expected: &Value) {
    let n = |list: &Value| list.as_array().unwrap().len() as u64;
    assert_eq!(experiment.obs().unwrap().n_rows().unwrap(), n(&expected["obs"][0]["values"]));
    let measurement = experiment.measurement("RNA").unwrap();
    for (name, layer) in expected["X"].as_object().unwrap() {
        let x = measurement.x(name).unwrap();
        assert_eq!(x.nnz().unwrap(), n(&layer["cells"]), "the values of layer {name}");
        let rows = RowRanges::new(vec![0..x.shape().0]).unwrap();
        for choice in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
            let mut csr = CsrBuffers::default();
            let reader = x.reader(choice).unwrap();
            reader.read_csr(&rows, &GeneSelection::All, &mut csr).unwrap();
            csr.check().unwrap();
            let found = (0..csr.n_rows()).flat_map(|row| {
                let (columns, values) = csr.row(row);
                columns.iter().zip(values).map(move |(column, value)| (row, *column, *value))
            });
            let expected = layer["cells"].as_array().unwrap().iter().map(cell);
            assert!(found.eq(expected), "the rows of layer {name} by {choice}");
            check_exact(&*reader, &layer["cells"], &csr);
        }
    }
}

/// An exact reader returns the rows that `reader` read, or names a value that f32 does not have.
fn check_exact(reader: &dyn XReader, cells: &Value, all: &CsrBuffers) {
    let is_inexact = |cell: &&Value| {
        let value = stored_value(cell);
        !value.is_nan() && f64::from(value as f32) != value
    };
    let place = |cell: &Value| (cell[0].as_u64().unwrap(), cell[1].as_u64().unwrap());
    let inexact: BTreeSet<(u64, u64)> =
        cells.as_array().unwrap().iter().filter(is_inexact).map(place).collect();
    assert!(*reader.data_type() == DataType::Float64 || inexact.is_empty());
    let exact = reader.exact().unwrap();
    let n_rows = all.n_rows() as u64;
    let ranges = [0..n_rows, 7..8, 12..13, 300..420, 1203..1204];
    let genes =
        [GeneSelection::All, GeneSelection::Range(3..1500), GeneSelection::List(vec![9, 4])];
    for (range, genes) in ranges.iter().flat_map(|range| genes.iter().map(move |of| (range, of))) {
        let is_read = |(cell, gene): &&(u64, u64)| {
            let is_selected = match genes {
                GeneSelection::All => true,
                GeneSelection::Range(genes) => genes.contains(gene),
                GeneSelection::List(genes) => genes.contains(gene),
            };
            range.contains(cell) && is_selected
        };
        let wrong: BTreeSet<_> = inexact.iter().filter(is_read).copied().collect();
        let rows = RowRanges::new(vec![range.clone()]).unwrap();
        let (mut csr, mut same) = (CsrBuffers::default(), CsrBuffers::default());
        let mut packed = PackedCsr::default();
        let mut reads = vec![
            exact.read_csr(&rows, genes, &mut csr),
            exact.read_coo(&rows, genes, &mut |piece| {
                assert_eq!(piece.num_columns(), 3);
                Ok(())
            }),
        ];
        if exact.packs(genes) {
            reads.push(exact.read_packed(&rows, genes, &mut packed));
        }
        for read in reads {
            match read {
                Ok(_) => assert!(wrong.is_empty(), "{wrong:?} in {reader:?} were not noticed"),
                Err(Error::Inexact { cell, gene, .. }) => {
                    assert!(wrong.contains(&(cell, gene)), "{cell}, {gene} of {wrong:?}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        if wrong.is_empty() {
            reader.read_csr(&rows, genes, &mut same).unwrap();
            assert_eq!(csr, same);
        }
    }
}

/// The value of a cell in the Python side's form.
fn stored_value(cell: &Value) -> f64 {
    match cell[2].as_str().and_then(|text| text.strip_prefix("bits ")) {
        Some(bits) => f64::from_bits(bits.parse().unwrap()),
        None => cell[2].as_f64().unwrap(),
    }
}

/// A cell in the Python side's form: row, gene, value.
fn cell(cell: &Value) -> (usize, u32, f32) {
    let value = stored_value(cell) as f32;
    (cell[0].as_u64().unwrap() as usize, cell[1].as_u64().unwrap() as u32, value)
}

#[test]
fn an_experiment_of_tiledbsoma_is_read() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let holds = python::run(&python, "write_experiment.py", &[path.to_str().unwrap()]);
    let between = holds["between"].as_u64();
    assert!(between.is_some());
    for (timestamp, state) in [(None, "latest"), (between, "earlier")] {
        let experiment = open(&path, timestamp);
        assert_same(&described_x::experiment(&experiment), &holds[state]);
        check_counts_and_rows(&experiment, &holds[state]);
    }
    merge(&path);
    for (timestamp, state) in [(None, "latest"), (between, "earlier")] {
        let experiment = open(&path, timestamp);
        assert_same(&described_x::experiment(&experiment), &holds[state]);
        check_counts_and_rows(&experiment, &holds[state]);
    }
}

/// Consolidates obs and two layers of X. Merged fragments keep the time of each cell, and the time
/// at which it was deleted.
fn merge(experiment: &Path) {
    let merged = [
        ("sm.consolidation.with_timestamps", "true".to_owned()),
        ("sm.mem.total_budget", (256 << 20).to_string()),
    ];
    let context = tiledb::Context::new(&soma_io::Config::new()).unwrap().with(&merged).unwrap();
    for array in ["obs", "ms/RNA/X/raw", "ms/RNA/X/default"] {
        let uri = experiment.join(array);
        tiledb::Array::consolidate(&context, uri.to_str().unwrap()).unwrap();
        tiledb::Array::vacuum(&context, uri.to_str().unwrap()).unwrap();
    }
}

/// Puts the commits of every array into one file each.
fn merge_commits(experiment: &Path) {
    let mode = [("sm.consolidation.mode", "commits"), ("sm.vacuum.mode", "commits")];
    let mode = mode.map(|(name, value)| (name, value.to_owned()));
    let context = tiledb::Context::new(&soma_io::Config::new()).unwrap().with(&mode).unwrap();
    for array in ["obs", "ms/RNA/var", "ms/RNA/X/raw", "ms/RNA/X/default", "ms/RNA/X/int8"] {
        let uri = experiment.join(array);
        tiledb::Array::consolidate(&context, uri.to_str().unwrap()).unwrap();
        tiledb::Array::vacuum(&context, uri.to_str().unwrap()).unwrap();
        let commits = std::fs::read_dir(uri.join("__commits")).unwrap();
        let names: Vec<_> = commits.map(|entry| entry.unwrap().path()).collect();
        assert!(
            names.iter().all(|name| name.extension().is_none_or(|kind| kind != "del")),
            "{names:?}"
        );
    }
}

/// Compares the experiment with what tiledbsoma read after each deletion, without libtiledb.
#[track_caller]
fn check_deletions(path: &Path, states: &[Value]) {
    for (step, state) in states.iter().enumerate() {
        let experiment = open(path, state["at"].as_u64());
        assert_same(&described_x::experiment(&experiment), &state["holds"]);
        check_counts_and_rows(&experiment, &state["holds"]);
        let measurement = experiment.measurement("RNA").unwrap();
        assert_eq!(experiment.obs().unwrap().why_not_native(), None, "obs after step {step}");
        assert_eq!(measurement.var().unwrap().why_not_native(), None, "var after step {step}");
        for name in measurement.layers().unwrap() {
            let x = measurement.x(&name).unwrap();
            assert_eq!(x.why_not_native(), None, "layer {name} after step {step}");
        }
    }
}

#[test]
fn cells_that_tiledbsoma_deletes_are_gone() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let scripts: [(&str, &[&str]); 2] = [("write_experiment.py", &[]), ("delete_cells.py", &[])];
    let states = deleting::make(&python, &path, &scripts);
    let states = states.as_array().unwrap();
    let n_obs = |state: &Value| state["holds"]["obs"][0]["values"].as_array().unwrap().len();
    assert!(n_obs(&states[states.len() - 1]) + 1000 < n_obs(&states[0]));
    check_deletions(&path, states);
    merge(&path);
    check_deletions(&path, states);
    merge_commits(&path);
    check_deletions(&path, states);
}
