//! Compares a slice with tiledbsoma's own selection of the source: every column, category and
//! value.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use example_data::{GenerateSpec, generate};
use experiment_copy::{Error, Genes, SliceSpec, slice};
use serde_json::{Value, json};
use soma_io::{AxisQuery, Experiment, OpenOptions, RowRanges, ValueFilter};

use crate::python;

/// Copies a part that is scattered over the source.
#[track_caller]
fn check(python: &Path, from: &Path, layer: &str, selection: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let filter =
        |name: &str| selection[name].as_str().map(|text| ValueFilter::parse(text).unwrap());
    let joinids = |name: &str| {
        let list: Option<Vec<u64>> = serde_json::from_value(selection[name].clone()).unwrap();
        list
    };
    let genes = AxisQuery {
        value_filter: filter("var_filter"),
        ..joinids("var_joinids").map_or_else(AxisQuery::default, AxisQuery::list)
    };
    let spec = SliceSpec {
        layers: vec![layer.to_owned()],
        joinids: joinids("obs_joinids").map(|list| {
            RowRanges::new(list.into_iter().map(|joinid| joinid..joinid + 1).collect()).unwrap()
        }),
        obs_filter: filter("obs_filter"),
        genes: Genes::Query(genes),
        // A few hundred rows of X at a time.
        memory_bytes: 64 << 20,
        ..SliceSpec::default()
    };
    let [source, target] = [from, &to].map(|path| path.to_str().unwrap());
    let config = soma_io::Config::from([("soma.init_buffer_bytes".into(), "1048576".into())]);
    let experiment =
        Experiment::open(source, &OpenOptions { config, ..OpenOptions::default() }).unwrap();
    let report = slice(&experiment, target, &spec, &mut |_| ControlFlow::Continue(())).unwrap();
    let selection = selection.to_string();
    let found = python::run(python, "check_slice.py", &[source, target, layer, &selection]);
    let expected = json!({ "cells": report.n_cells, "genes": report.n_genes, "nnz": report.nnz });
    assert_eq!(found, expected);
    assert!(report.nnz > 0);
}

fn selection(obs: Option<&str>, var: Option<&str>) -> Value {
    json!({ "obs_filter": obs, "var_filter": var, "obs_joinids": null, "var_joinids": null })
}

#[test]
fn every_type_of_column_that_tiledbsoma_writes() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../soma-io/tests/python/write_experiment.py");
    let output = Command::new(&python)
        .arg(script)
        .arg(&from)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The range contains cells that were never written.
    check(&python, &from, "raw", &selection(None, None));
    let some = selection(Some(r#"level == "low" and int8 < -20"#), Some("uint16 > 9"));
    check(&python, &from, "raw", &some);
    let mut listed = selection(Some(r#"kind != "kind 1 ü""#), None);
    listed["obs_joinids"] =
        (0..3_000).filter(|row| row % 3 == 0 && !(1200..1300).contains(row)).collect();
    listed["var_joinids"] = json!([2, 3, 4, 77, 78, 2047, 2048, 2400]);
    check(&python, &from, "raw", &listed);
    for layer in ["uint16", "int64"] {
        check(&python, &from, layer, &selection(None, None));
    }
    let to = folder.path().join("to");
    let spec = SliceSpec { layers: vec!["raw".into(), "float64".into()], ..SliceSpec::default() };
    let experiment = Experiment::open(from.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let refused =
        slice(&experiment, to.to_str().unwrap(), &spec, &mut |_| ControlFlow::Continue(()));
    assert!(
        matches!(&refused, Err(Error::Soma(soma_io::Error::Inexact { cell: 0, .. }))),
        "{refused:?}"
    );
    assert!(!to.exists());
    // Some values are written twice, in an array without duplicates.
    check(&python, &from, "default", &selection(Some("truth == True"), None));
}

#[test]
fn a_part_of_a_census_shaped_experiment() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let spec = GenerateSpec { n_cells: 2_500, n_genes: 2_200, seed: 4, ..GenerateSpec::default() };
    generate(from.to_str().unwrap(), &spec, &mut |_| {}).unwrap();
    check(&python, &from, "raw", &selection(None, None));
    let some =
        selection(Some("is_primary_data == True and nnz > 40"), Some("feature_length > 900"));
    check(&python, &from, "raw", &some);
}
