//! `peers` as a user runs it, on a small experiment, with a peer that needs only Python.

mod over_link;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bench_report::{EpochRecord, Status, read};
use tempfile::TempDir;

use crate::program;

const WORKS: [&str; 4] = ["--work", "dense-all-8x4", "--work", "csr-50-4x8"];

/// A folder with an experiment and a peer in it.
struct Bed {
    folder: TempDir,
}

impl Bed {
    fn new() -> Self {
        let bed = Self { folder: tempfile::tempdir().unwrap() };
        let generated = bed
            .command(&["generate", "experiment", "--cells", "200", "--genes", "300", "--quiet"])
            .output()
            .unwrap();
        assert!(generated.status.success(), "{}", stderr(&generated));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep/peers/fake.peer.py");
        fs::create_dir(bed.path("scripts")).unwrap();
        fs::copy(script, bed.path("scripts/fake.peer.py")).unwrap();
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        program::command(self.folder.path(), arguments)
    }

    /// Returns a comparison with the peer; `variables` are set for the peer's processes.
    fn peers(&self, variables: &[&str], arguments: &[&str]) -> Command {
        let mut command = self.command(&["peers", "--uri", "experiment", "--results", "out"]);
        command.args([
            "--scripts",
            "scripts",
            "--environment",
            "fake=python3",
            "--copies",
            "copies",
        ]);
        if !arguments.contains(&"--unavailable") {
            command.args(["--peer", "fake"]);
        }
        command.args(["-B", "64", "--config", "soma.init_buffer_bytes=1000000"]);
        let program = format!("SWEEP={}", env!("CARGO_BIN_EXE_sweep"));
        let log = format!("LOG={}", self.path("log").display());
        for variable in [&program, &log].map(String::as_str).iter().chain(variables) {
            command.args(["--peer-variable", variable]);
        }
        command.args(arguments);
        command
    }

    fn rows_if_any(&self) -> usize {
        if self.path("out/epochs.parquet").exists() { self.rows().len() } else { 0 }
    }

    fn rows(&self) -> Vec<EpochRecord> {
        read(&self.path("out")).unwrap()
    }

    /// Removes the results before another comparison.
    fn clear(&self) {
        fs::remove_dir_all(self.path("out")).unwrap();
    }

    fn log(&self) -> Vec<String> {
        fs::read_to_string(self.path("log")).unwrap().lines().map(str::to_owned).collect()
    }

    fn readme(&self) -> String {
        fs::read_to_string(self.path("out/README.md")).unwrap()
    }
}

trait Succeeds {
    /// Runs a command that must succeed and returns its stderr.
    fn output_ok(self) -> String;
}

impl Succeeds for Command {
    #[track_caller]
    fn output_ok(mut self) -> String {
        let output = self.output().unwrap();
        let printed = stderr(&output);
        assert!(output.status.success(), "{printed}");
        printed
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn loader(record: &EpochRecord) -> &str {
    record.point.loader.as_deref().unwrap()
}

/// All loaders read the same experiment; the first run of each leaves no row.
#[test]
fn loaders_run_in_turn_and_every_epoch_is_a_row() {
    let bed = Bed::new();
    let arguments = ["--repetitions", "2", "--epochs", "2", "--obs-columns", "cell_type"];
    let output = bed
        .peers(&[], &[&WORKS[..], &arguments, &["--consumer", "fixed:0.5"]].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = bed.rows();
    assert_eq!(rows.len(), 2 * 2 * 2 * 2);
    for (idx, row) in rows.iter().enumerate() {
        let measured = &row.measured;
        assert_eq!((measured.status, measured.n_rows), (Status::Ok, Some(200)), "{row:?}");
        assert_eq!(loader(row), if idx / 2 % 2 == 0 { "somafeed" } else { "fake" });
        assert_eq!(
            (measured.repeat, measured.epoch),
            (Some(idx as u64 / 4 % 2 + 1), Some(idx as u64 % 2))
        );
        let (form, genes, chunks) = if idx < 8 { ("dense", 300, 8) } else { ("csr", 50, 4) };
        assert_eq!(
            (row.point.form.as_str(), row.data.n_cols, row.point.chunks_per_block),
            (form, genes, chunks)
        );
        assert_eq!(row.point.consumer.as_deref(), Some("fixed:0.5"));
        assert_eq!(measured.open_secs.is_some(), measured.epoch == Some(0));
        assert!(measured.wait_p99_after_first_secs.is_some());
    }
    assert!(
        0.002 <= rows[0].measured.consume_secs.unwrap(),
        "four batches, half a millisecond each"
    );
    assert_eq!(rows[2].measured.max_mem, Some(10_000_000_000));
    assert_eq!(rows[2].versions.peer.as_deref(), Some("fake 1.0, Python 3"));
    // The equality gate, the warm-up run, then the recorded runs.
    let run = |task: &str, form: &str| format!("{task} {form} cell_type 0.5");
    let of_work = |form| {
        [run("tally", form), run("measure", form), run("measure", form), run("measure", form)]
    };
    assert_eq!(bed.log(), [of_work("dense"), of_work("csr")].concat());

    let readme = bed.readme();
    for expect in [
        "- command: cargo xtask peers --uri experiment",
        "fake 1.0, Python 3",
        "| dense-all-8x4, epoch 2 |",
        "| ours     | over |",
        "| somafeed | fake |",
        "csr-50-4x8",
    ] {
        assert!(readme.contains(expect), "{expect}: {readme}");
    }
    assert!(!readme.contains("--environment") && !readme.contains("--scripts"), "{readme}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("| over |") && printed.contains("out/README.md"), "{printed}");
}

#[test]
fn what_delivers_other_cells_or_values_is_not_compared() {
    let bed = Bed::new();
    for (fault, expect) in [
        ("FAULT=lost cell", "fake delivered 199 cells, 200 of them different"),
        ("FAULT=other values", "at other places or in other parts"),
    ] {
        let of_dense = [fault, "FAULT_FORM=dense"];
        let output = bed.peers(&of_dense, &[&WORKS[..], &["--repetitions", "1"]].concat());
        let printed = fails(output, expect);
        assert!(printed.contains("missing: dense-all-8x4: fake: not compared"), "{printed}");
        // The other work is compared.
        let forms: Vec<_> = bed.rows().into_iter().map(|row| row.point.form).collect();
        assert_eq!(forms, ["csr", "csr"]);
        assert!(bed.readme().contains("- missing: dense-all-8x4: fake: not compared"));
        bed.clear();
    }
}

/// Checks that a comparison fails with exit code 1 and `expect`; returns its stderr.
#[track_caller]
fn fails(mut comparison: Command, expect: &str) -> String {
    let output = comparison.output().unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains(expect), "{printed}");
    printed
}

#[test]
fn a_peer_that_is_killed_is_a_row_and_the_rest_goes_on() {
    let bed = Bed::new();
    let of_dense = ["FAULT=killed", "FAULT_FORM=dense"];
    let comparison = bed.peers(&of_dense, &[&WORKS[..], &["--repetitions", "1", "-q"]].concat());
    fails(comparison, "dense-all-8x4: fake failed: killed (signal 9)");
    let rows = bed.rows();
    let ends: Vec<_> = rows.iter().map(|row| (loader(row), row.measured.status)).collect();
    let expect = [("fake", Status::Oom), ("somafeed", Status::Ok), ("fake", Status::Ok)];
    assert_eq!(ends, expect);
    assert!(bed.readme().contains("- missing: dense-all-8x4: fake failed"));
}

#[test]
fn every_way_of_failing_has_its_status() {
    let bed = Bed::new();
    for (fault, status, expect) in [
        ("FAULT=crash", Status::Crashed, "exit code 1: ValueError: no such thing"),
        ("FAULT=memory", Status::Oom, "MemoryError: no more"),
        ("FAULT=short", Status::Error, "it delivered 136 cells of 200"),
    ] {
        let comparison = bed.peers(&[fault], &[&WORKS[..2], &["--repetitions", "1"]].concat());
        fails(comparison, expect);
        let ends: Vec<_> = bed.rows().iter().map(|row| row.measured.status).collect();
        assert_eq!(ends, [status], "{fault}");
        bed.clear();
    }
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let bed = Bed::new();
    let mut child = bed
        .peers(&["FAULT=slow", "FAULT_FORM=csr"], &[&WORKS[..], &["--repetitions", "1"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !bed.path("log").exists() || !bed.log().iter().any(|run| run.starts_with("measure csr")) {
        assert!(start.elapsed() < Duration::from_mins(2), "waited too long");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        sleep(Duration::from_millis(10));
    }
    let asked = Instant::now();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(bed.rows().len(), 2);
    assert!(bed.readme().contains("dense-all-8x4"));
    assert!(asked.elapsed() < Duration::from_mins(5), "the peer's process was waited for");
}

const CONVERTS: &str = "CONVERTS=1";
const CSR_WORKS: [&str; 6] =
    ["--work", "csr-all-8x4", "--work", "csr-all-4x8", "--work", "csr-50-8x4"];

/// The peer's copy is made once, and our loader also runs on a copy by `relayout`.
///
/// Work that the peer cannot do is skipped with a reason.
#[test]
fn a_peer_that_converts_is_measured_at_its_own_settings_too() {
    let bed = Bed::new();
    let arguments = [&CSR_WORKS[..], &["--repetitions", "1"]].concat();
    let output = bed.peers(&[CONVERTS], &arguments).output().unwrap();
    let printed = stderr(&output);
    assert!(output.status.success(), "{printed}");
    let rows = bed.rows();
    let sides: Vec<(&str, &str, u64)> = rows
        .iter()
        .map(|row| (loader(row), row.point.chunk_method.as_str(), row.point.chunk_size))
        .collect();
    // somafeed, somafeed relaid, then the peer at both settings; the peer's own settings run once
    // for both works, and not with a part of the genes.
    let (own, ours, documented) =
        (("somafeed", "csr", 4), ("fake", "fake", 4), ("fake", "fake documented", 16));
    let own_8 = ("somafeed", "csr", 8);
    assert_eq!(
        sides,
        [own, own, ours, documented, own_8, own_8, ("fake", "fake", 8), own, own],
        "{printed}"
    );
    assert!(rows[1].data.uri.contains("copies/somafeed-relaid-"), "{}", rows[1].data.uri);
    assert!(rows.iter().all(|row| row.measured.n_rows == Some(200)), "{printed}");
    let readme = bed.readme();
    for expect in [
        "- skipped: csr-all-4x8: fake documented: its settings are its own, measured with csr-all-8x4",
        "- skipped: csr-50-8x4: fake: it cannot take a part of the genes",
        "a file that names it",
        "relayout, chunks of 64 rows, not shuffled",
        "2.00",
    ] {
        assert!(readme.contains(expect), "{expect}: {readme}");
    }
    assert!(bed.path("out/copies.json").is_file());
    assert_eq!(bed.log().iter().filter(|run| run.starts_with("convert")).count(), 1);

    bed.clear();
    let again =
        bed.peers(&[CONVERTS], &[&CSR_WORKS[..2], &["--repetitions", "1", "--no-relaid"]].concat());
    assert!(again.output_ok().contains("fake: has its copy: 1.5 s"));
    assert_eq!(bed.log().iter().filter(|run| run.starts_with("convert")).count(), 1);
    assert_eq!(bed.rows().len(), 3);
}

#[test]
fn a_copy_that_cannot_be_made_ends_that_peer_alone() {
    let bed = Bed::new();
    let arguments = [&CSR_WORKS[..2], &["--repetitions", "1"]].concat();
    let fault = "FAULT=conversion";
    fails(bed.peers(&[CONVERTS, fault], &arguments), "fake: OSError: no space left");
    assert_eq!(bed.rows_if_any(), 0);
    // An unfinished copy is not used later.
    let whole = bed.peers(&[CONVERTS], &arguments).output_ok();
    assert!(whole.contains("fake: made its copy"), "{whole}");
}

/// An unavailable peer is not a failure unless it was named.
#[test]
fn a_peer_that_cannot_be_had_is_skipped_and_said() {
    let bed = Bed::new();
    for name in ["fake", "third"] {
        fs::write(bed.path(&format!("scripts/{name}.txt")), "x==1\n").unwrap();
    }
    fs::copy(bed.path("scripts/fake.peer.py"), bed.path("scripts/third.peer.py")).unwrap();
    let arguments =
        [&CSR_WORKS[..2], &["--repetitions", "1", "--unavailable", "third=needs Python 3.99"]]
            .concat();
    let printed = bed.peers(&[], &arguments).output_ok();
    assert!(
        printed.contains("skipped: third: its environment could not be made: needs Python 3.99"),
        "{printed}"
    );
    assert_eq!(bed.rows().len(), 2);
    assert!(bed.readme().contains("- skipped: third: "));
}

#[test]
fn a_conversion_that_is_killed_is_made_again() {
    let bed = Bed::new();
    let arguments = [&CSR_WORKS[..2], &["--repetitions", "1"]].concat();
    let mut child = bed
        .peers(&[CONVERTS, "FAULT=slow conversion"], &arguments)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !bed.path("log").exists() || !bed.log().iter().any(|run| run.starts_with("convert")) {
        assert!(start.elapsed() < Duration::from_mins(2), "waited too long");
        sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let printed = bed.peers(&[CONVERTS], &arguments).output_ok();
    assert!(printed.contains("fake: made its copy"), "{printed}");
}

#[test]
fn what_cannot_be_is_told_in_a_line_before_anything_runs() {
    let bed = Bed::new();
    let base =
        ["peers", "--work", "dense-all-8x4", "--scripts", "scripts", "--results", "out", "--peers"];
    for (arguments, code, expect) in [
        (&["fake", "--uri", "nowhere", "--environment", "fake=python3"][..], 1, "nowhere"),
        (&["other", "--uri", "experiment"], 2, "there is no script scripts/other.peer.py"),
        (
            &["fake", "--uri", "experiment"],
            2,
            "fake has no environment: start it by `cargo xtask peers`",
        ),
        (
            &["fake", "--uri", "experiment", "--unavailable", "fake=no Python 3.99"],
            1,
            "its environment could not be made: no Python 3.99",
        ),
        (&["fake", "--uri", "experiment", "--work", "dense"], 2, "FORM-GENES-NxSIZE"),
        (&["fake", "--uri", "experiment", "--work", "csr-400-8x4"], 1, "csr-400-8x4"),
        (&["fake", "--uri", "experiment", "--repetitions", "0"], 2, "--repetitions"),
        (&["fake", "--uri", "experiment", "--layer", "none", "--check"], 1, "none"),
    ] {
        let output = bed.command(&[&base[..], arguments].concat()).output().unwrap();
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(expect) && printed.lines().count() == 1, "{printed}");
        assert!(!bed.path("out/epochs.parquet").exists() && !bed.path("log").exists());
    }
    let output = bed
        .command(&[&base[..], &["fake", "--uri", "experiment", "--check"]].concat())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fake\n");
}
