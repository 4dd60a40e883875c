//! The command `peers`, with a stand-in for the script that runs the readers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use bench_report::{EpochRecord, Status, read};

use crate::write;
use fields::generate::Layout;

/// Reads uncompressed stores of one chunk a sample as the layout of `generate` says, with Python's
/// standard library. `wrong` changes a value, `dead` ends without a word, `silent` reports nothing,
/// `late` dies when it is measured.
const STAND_IN: &str = r#"
import json, os, sys, zlib
reader = sys.argv[sys.argv.index("--reader") + 1]
task = json.load(sys.stdin)["task"]
assert task["threads"] == 1 and task["seed"] == 7, task
def event(event):
    print(json.dumps(event), flush=True)
def values(array, sample):
    with open(f"{task['store']}/{array}/c/{sample}/0/0/0", "rb") as file:
        return file.read()
if reader == "dead" or reader == "late" and not task["check"]:
    sys.exit("no more")
if reader == "silent":
    task["batches"] = []
for batch in task["batches"] if task["check"] else []:
    for sample in batch:
        sums = [zlib.crc32(values(array, sample)) for array in task["arrays"]]
        sums[-1] += reader == "wrong" and sample == batch[-1]
        event({"Answer": {"Checksum": {"sample": sample, "crc32": sums}}})
if not task["check"]:
    event({"Answer": {"Read": {
        "open_secs": 0.1, "versions": {"stand-in": "1.0"},
        "batches": [[2.0, 0.0, len(batch)] for batch in task["batches"]],
        "n_bytes": 1, "start_time": 0.0, "end_time": 1.0, "cpu_user_secs": 0.5,
        "cpu_system_secs": 0.5, "start_mem_bytes": 1000, "max_mem": 3000000000}}})
event("Done")
"#;

/// Compares `readers` of the stand-in with our loader on a small store.
fn peers(folder: &Path, readers: &str) -> Output {
    write(&folder.join("store"), Layout::default()).unwrap();
    fs::write(folder.join("stand_in.py"), STAND_IN).unwrap();
    Command::new(env!("CARGO_BIN_EXE_fields"))
        .current_dir(folder)
        .args(["peers", "store", "--python", "python3", "--script", "stand_in.py", "-d", "out"])
        .args([
            "--repetitions",
            "2",
            "--batches",
            "5",
            "--check-batches",
            "3",
            "-B",
            "2",
            "-t",
            "1",
            "--seed",
            "7",
        ])
        .args(["-q", "--readers", readers])
        .output()
        .unwrap()
}

fn records(folder: &Path, loader: &str) -> Vec<EpochRecord> {
    let records = read(&folder.join("out")).unwrap();
    records.into_iter().filter(|record| record.point.loader.as_deref() == Some(loader)).collect()
}

#[test]
fn a_reader_of_the_same_values_is_measured_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let output = peers(folder.path(), "right");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    // 5 batches of 2 samples of 4 x 6 x 22 values in 2 s each are below 0.5 MB/s.
    for part in ["| ours |", "| ours, 1 worker, queue 1 |", "| plain-read |"] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    assert!(
        shown.contains("| right | 0 (0 to 0) | 0 (0 to 0) | 2.000 | 1.00 | 3.00 | "),
        "{shown}"
    );
    let theirs = records(folder.path(), "right");
    assert_eq!(theirs.len(), 2);
    for (record, repeat) in theirs.iter().zip(0..) {
        let measured = &record.measured;
        assert_eq!((measured.status, measured.repeat), (Status::Ok, Some(repeat)));
        assert_eq!((measured.n_batches, measured.n_rows), (Some(5), Some(10)));
        assert_eq!(record.point.workload.as_deref(), Some("fields"));
        assert_eq!(record.versions.peer.as_deref(), Some("stand-in 1.0"));
    }
    // An epoch of 5 samples has 2 batches: a run goes through several.
    let ours = records(folder.path(), "somafeed");
    assert_eq!(ours.len(), 2 * 3);
    assert!(ours.iter().all(|record| record.measured.n_batches == Some(5)), "{ours:?}");
    let page = fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    assert!(page.contains("| right |") && page.contains("Versions: stand-in 1.0."), "{page}");
}

#[test]
fn readers_that_differ_or_die_are_named_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let output = peers(folder.path(), "wrong,dead,silent,right");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for part in [
        "- wrong is not measured: it delivers other values of targets in sample ",
        "- dead is not measured: the process ended with exit code 1: no more",
        "- silent is not measured: it does not deliver sample ",
    ] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    assert!(!shown.contains("| wrong |") && shown.contains("| right |"), "{shown}");
    assert!(records(folder.path(), "wrong").is_empty());
    assert_eq!(records(folder.path(), "right").len(), 2);
}

#[test]
fn a_run_that_dies_is_a_failed_row() {
    let folder = tempfile::tempdir().unwrap();
    let output = peers(folder.path(), "late,right");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("| late | failed | failed |"), "{shown}");
    let late = records(folder.path(), "late");
    assert_eq!(late.len(), 2);
    assert!(late.iter().all(|record| record.measured.status == Status::Crashed), "{late:?}");
    assert_eq!(records(folder.path(), "right").len(), 2);
}

#[test]
fn a_store_elsewhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fields"))
        .current_dir(folder.path())
        .args(["peers", "s3://bucket/store", "--python", "python3"])
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("take a store on a local disk"), "{message}");
}
