//! `report` from end to end: results folders, the command's outcome, and the page in a browser.
mod browser;
mod page;

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::program;

/// Returns a folder with an experiment and two sweeps of it.
///
/// `first` sweeps a grid twice; `second` has another method and a consumer.
pub(crate) fn swept() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = program::command(folder.path(), arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["generate", "experiment", "--cells", "600", "--genes", "300", "--seed", "5", "--quiet"]);
    let sweep = |results: &str, further: &[&str]| {
        let mut all = vec!["sweep", "--uri", "experiment", "--results", results, "-B", "16"];
        all.extend(["--config", "soma.init_buffer_bytes=1000000"]);
        all.extend(further);
        run(&all);
    };
    sweep("first", &["-b", "128 / [1,16]", "-b", "64x2", "-m", "native,np.array", "--repeat", "2"]);
    sweep("second", &["-b", "128 / [4,16]", "-m", "scipy.csr", "--consumer", "fixed:1"]);
    folder
}

fn report(folder: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["report"];
    all.extend(arguments);
    program::command(folder, &all).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn files_are_told_and_what_was_there_stays() {
    let folder = swept();
    let readme = fs::read_to_string(folder.path().join("first/README.md")).unwrap();
    let output = report(folder.path(), &["first", "--format", "html,md,csv", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let files: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let formats: Vec<_> = files.iter().map(|file| file["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["html", "md", "csv"]);
    assert_eq!(files[0]["path"], "first/report.html");
    assert_eq!(fs::read_to_string(folder.path().join("first/README.md")).unwrap(), readme);

    let output = report(folder.path(), &["first", "second", "--out", "both", "--format", "svg"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let paths = text(&output.stdout);
    assert!(
        paths.contains("both/speed-vs-memory.svg\n") && paths.contains("both/busy-share.svg\n")
    );
    for path in paths.lines() {
        assert!(folder.path().join(path).is_file(), "{path}");
    }
}

#[track_caller]
fn check_refused(folder: &Path, arguments: &[&str], code: i32, expect: &str) {
    let output = report(folder, arguments);
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    assert!(printed.starts_with("error: ") && printed.lines().count() == 1, "{printed}");
    assert!(printed.contains(expect), "{printed}");
}

#[test]
fn what_cannot_be_reported_on_is_told_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["empty", "damaged", "other"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("damaged/epochs.parquet"), b"PAR1 and no more").unwrap();
    fs::write(folder.path().join("file"), b"").unwrap();
    check_refused(folder.path(), &["absent"], 1, "no such folder of results: absent");
    check_refused(folder.path(), &["file"], 1, "no such folder of results: file");
    check_refused(folder.path(), &["empty"], 1, "empty has no epochs to report on");
    check_refused(
        folder.path(),
        &["damaged"],
        1,
        "damaged/epochs.parquet is not a readable Parquet",
    );
    check_refused(folder.path(), &["empty", "other"], 2, "--results");
    check_refused(folder.path(), &[], 2, "required");
    check_refused(folder.path(), &["empty", "--format", "pdf"], 2, "pdf");
    let kept: Vec<_> = fs::read_dir(folder.path().join("empty")).unwrap().collect();
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn help_has_an_example() {
    let folder = tempfile::tempdir().unwrap();
    let output = report(folder.path(), &["--help"]);
    assert!(output.status.success());
    let printed = text(&output.stdout);
    assert!(
        printed.contains("cargo xtask report results/before results/after --results"),
        "{printed}"
    );
}
