//! `slice` as a user runs it: its output, and the arguments it rejects.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use soma_io::{Experiment, OpenOptions};
use tempfile::TempDir;

use crate::program;

fn bed() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shape = ["--cells", "300", "--genes", "120", "--seed", "3"];
    let made = run(folder.path(), &[&["generate", "from", "-q"][..], &shape].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    program::command(folder, arguments).output().unwrap()
}

fn slice(folder: &Path, arguments: &[&str]) -> Output {
    run(folder, &[&["slice", "from", "to"], arguments].concat())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the numbers of cells and genes of an experiment.
fn shape(path: &Path) -> (u64, u64) {
    let experiment = Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let var = experiment.measurement("RNA").unwrap().var().unwrap();
    (experiment.obs().unwrap().n_rows().unwrap(), var.n_rows().unwrap())
}

#[test]
fn what_was_taken_is_told_as_text_and_as_json() {
    let folder = bed();
    let folder = folder.path();
    let done = slice(folder, &["-v", "50", "--joinids", "200..250,10,10..20"]);
    assert!(done.status.success() && done.stdout.is_empty());
    let printed = stderr(&done);
    assert!(
        printed.contains("to: 60 cells x 50 genes, ") && printed.contains(" cells/s)"),
        "{printed}"
    );
    assert_eq!(shape(&folder.join("to")), (60, 50));

    fs::write(folder.join("genes"), "SYN7\n\n  SYN3 \nSYN100\n").unwrap();
    let done = slice(folder, &["-f", "-q", "--json", "--genes", "genes", "-S", "-e", "1"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(done.stderr.is_empty(), "{}", stderr(&done));
    let printed: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(printed["uri"], "to");
    assert_eq!((&printed["genes"], &printed["datasets"]), (&3.into(), &1.into()));
    for number in ["cells", "nnz", "bytes", "seconds", "cells_per_second"] {
        assert!(printed[number].as_f64().unwrap() > 0.0, "{printed}");
    }
    assert_eq!(shape(&folder.join("to")), (printed["cells"].as_u64().unwrap(), 3));
}

#[test]
fn bad_command_lines_are_one_line_and_leave_nothing() {
    let folder = bed();
    let folder = folder.path();
    let check = |arguments: &[&str], code: i32, printed: &str| {
        let failed = slice(folder, arguments);
        let error = stderr(&failed);
        assert_eq!(failed.status.code(), Some(code), "{arguments:?}: {error}");
        let last = error.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(printed), "{arguments:?}: {error}");
        assert!(!folder.join("to").exists() && !folder.join("to.partial").exists());
    };
    check(&["-s", "3", "-e", "3"], 2, "leave no data set");
    check(&["-S"], 2, "-S/--sorted-datasets needs");
    check(&["--joinids", "5..5"], 2, "it holds no joinid");
    check(&["--joinids", "x"], 2, "\"x\" is no joinid");
    check(&["--obs-filter", "nnz >"], 2, "--obs-filter: value filter");
    check(&["-v", "5", "--var-filter", "nnz > 5"], 2, "cannot be used with");
    check(&["--gene-column", "feature_id"], 2, "--genes");
    check(&["--layers", "raw,raw"], 2, "names raw twice");
    check(&["--config", "a=1", "--config", "a=2"], 2, "--config a is given twice");
    check(&["--genes", "absent"], 1, "cannot read the genes of absent");
    check(&["--layers", "normalized"], 1, "no layer of X \"normalized\"");
    check(&["--without-obs-columns", "cell"], 1, "no column \"cell\"");
    check(&["-s", "5000"], 1, "data sets 5000 to the last");
    check(&["--memory", "1MB"], 1, "bytes of memory are too few");
    let onto = run(folder, &["slice", "from", "from", "-f"]);
    assert!(stderr(&onto).contains("which is read meanwhile"), "{}", stderr(&onto));
    assert_eq!(shape(&folder.join("from")), (300, 120));
}
