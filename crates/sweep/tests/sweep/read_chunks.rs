//! `read-chunks` as a user runs it, on a small generated experiment.
//!
//! Some tests use a script that needs only Python, others tiledbsoma.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::program;

/// A folder with an experiment in it.
struct Bed {
    folder: TempDir,
}

const OURS: &str = "native-csr,libtiledb-csr";

impl Bed {
    fn new() -> Self {
        let bed = Self { folder: tempfile::tempdir().unwrap() };
        let arguments = ["generate", "experiment", "--cells", "250", "--genes", "300", "--quiet"];
        let generated = program::command(bed.folder.path(), &arguments).output().unwrap();
        assert!(generated.status.success(), "{}", stderr(&generated));
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program::command(self.folder.path(), &["read-chunks", "experiment"]);
        // Files of joinids are created here.
        command.args(arguments).env("TMPDIR", self.folder.path());
        command
    }

    /// Returns the command with the test script in place of tiledbsoma's.
    fn fake(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep/read_chunks/fake.py");
        command.args(["--python", "python3", "--script"]).arg(script);
        command.env("SWEEP", env!("CARGO_BIN_EXE_sweep")).env("LOG", self.path("log"));
        command.envs(variables.iter().copied());
        command
    }

    /// Returns the files of joinids left behind.
    fn left_behind(&self) -> Vec<OsString> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().file_name());
        files.filter(|name| name.to_string_lossy().starts_with("somafeed")).collect()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must succeed and returns its lines of JSON.
#[track_caller]
fn lines(mut command: Command) -> Vec<Value> {
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that a command fails with this code, a one-line error and no report.
#[track_caller]
fn fails(mut command: Command, code: i32, expect: &str) {
    let output = command.output().unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    let error: Vec<&str> = printed.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(error.len() == 1 && error[0].contains(expect), "{printed}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn our_readers_need_no_python_and_read_the_same_in_every_order() {
    let bed = Bed::new();
    let mut seen = Vec::new();
    for shuffle in [&[][..], &["-s"], &["-ss"]] {
        let arguments = ["-w", OURS, "-c", "64", "--repetitions", "2", "-v", "200"];
        let runs = lines(bed.command(&[&arguments[..], shuffle].concat()));
        let ways: Vec<_> = runs.iter().map(|run| run["way"].as_str().unwrap()).collect();
        assert_eq!(ways, ["native-csr", "libtiledb-csr", "native-csr", "libtiledb-csr"]);
        for run in &runs {
            assert_eq!((&run["n_cells"], &run["n_genes"]), (&250.into(), &200.into()));
            assert!(0.0 < run["secs"].as_f64().unwrap() && 0 < run["max_mem"].as_u64().unwrap());
        }
        seen.push(["n_values", "sum", "checksum"].map(|key| runs[0][key].clone()));
        assert_eq!(runs[3]["shuffle"], ["none", "within-chunks", "global"][seen.len() - 1]);
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2], "{seen:?}");
    assert!(1_000 < seen[0][0].as_u64().unwrap() && 0.0 < seen[0][1].as_f64().unwrap());
    assert_eq!(bed.left_behind(), Vec::<OsString>::new());
}

#[test]
fn ways_run_in_turn_and_the_table_has_a_row_for_each() {
    let bed = Bed::new();
    let output = bed
        .fake(&[], &["-w", "csr,native-csr,table", "-c", "100", "--repetitions", "2", "-S", "1MiB"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let ways: Vec<_> = rows.iter().map(|row| row.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(ways, ["csr", "native-csr", "table"]);
    assert!(table.contains("All read the same"), "{table}");
    let log = fs::read_to_string(bed.path("log")).unwrap();
    let run = |way: &str| format!("{way} soma.init_buffer_bytes=1048576\n");
    assert_eq!(log, [run("csr"), run("table"), run("csr"), run("table")].concat());
}

#[test]
fn a_way_that_reads_something_else_is_refused() {
    let bed = Bed::new();
    for (fault, expect) in [
        ("lost value", "not all ways read the same: coo has"),
        ("other values", "not to exactly the same"),
        ("other places", "but at other places"),
        ("short", "coo: it read 249 cells of 250"),
        ("no time", "took -1 s"),
        ("crash", "coo failed: the process ended with exit code 1: ValueError: no such thing"),
    ] {
        let variables = [("FAULT", fault), ("FAULT_WAY", "coo")];
        let arguments = ["-w", "native-csr,table,coo", "--repetitions", "1"];
        fails(bed.fake(&variables, &arguments), 1, expect);
    }
}

#[test]
fn what_cannot_be_is_told_in_a_line() {
    let bed = Bed::new();
    for (arguments, code, expect) in [
        (&["-w", "csr"][..], 2, "start it by `cargo xtask read-chunks`"),
        (&["-w", "csr", "--python", "python3", "--script", "none.py"], 2, "no script none.py"),
        (&["-w", "arrow"], 2, "'arrow'"),
        (&["-w", OURS, "-sss"], 2, "-s"),
        (&["-w", OURS, "-c", "0"], 2, "-c/--soma-chunk-size must be 1 or more"),
        (&["-w", OURS, "--layer", "other"], 1, "other"),
        (&["-w", OURS, "-S", "much"], 2, "much"),
    ] {
        fails(bed.command(arguments), code, expect);
    }
    let check = bed.command(&["--check"]).output().unwrap();
    assert!(check.status.success() && check.stdout == b"python\n");
    let check = bed.command(&["--check", "-w", OURS]).output().unwrap();
    assert!(check.status.success() && check.stdout.is_empty());
}

#[test]
fn an_interrupt_ends_it_with_the_rounds_that_are_whole() {
    let bed = Bed::new();
    let mut child = bed
        .fake(&[("FAULT", "slow")], &["-w", "native-csr,csr"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !bed.path("log").exists() {
        assert!(start.elapsed() < Duration::from_mins(2), "waited too long");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        sleep(Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted: 0 whole rounds") && output.stdout.is_empty());
    assert_eq!(bed.left_behind(), Vec::<OsString>::new());
}

/// Returns the Python that has tiledbsoma; `None` if it is neither named nor required.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("SOMAFEED_PYTHON").filter(|path| !path.is_empty());
    if python.is_none() {
        let demanded = std::env::var_os("SOMAFEED_REQUIRE_PYTHON").is_some();
        assert!(!demanded, "SOMAFEED_PYTHON names no interpreter with tiledbsoma");
    }
    python.map(PathBuf::from)
}

#[test]
fn tiledbsomas_four_ways_and_ours_read_the_same() {
    let Some(python) = python() else { return };
    let bed = Bed::new();
    for shuffle in [&[][..], &["-s"], &["-ss"]] {
        let arguments = ["-c", "100", "-V", "250", "--repetitions", "1", "-P", "1MiB"];
        let mut command = bed.command(&[&arguments[..], shuffle].concat());
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../benches/read-chunks/tiledbsoma_ways.py");
        command.arg("--python").arg(&python).arg("--script").arg(script);
        let runs = lines(command);
        let ways: Vec<_> = runs.iter().map(|run| run["way"].as_str().unwrap()).collect();
        let all = ["table", "blockwise-table", "coo", "csr", "native-csr", "libtiledb-csr"];
        assert_eq!(ways, all);
        assert!(runs.iter().all(|run| run["checksum"] == runs[0]["checksum"]));
        assert!(runs[0]["versions"]["tiledbsoma"].is_string(), "{}", runs[0]);
    }
}
