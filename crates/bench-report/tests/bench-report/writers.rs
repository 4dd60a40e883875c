//! Several processes write to one results folder, and some of them die or run out of space.
//!
//! A test starts its own executable again as another process: the child gets the folder by its
//! environment.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use bench_report::{EPOCHS_FILE, EpochRecord, Measured, RunInfo, append, read};
use tempfile::TempDir;

const FOLDER: &str = "BENCH_REPORT_TEST_FOLDER";
const WRITER: &str = "BENCH_REPORT_TEST_WRITER";
const APPENDED: &str = "appended";

fn folder_of_child() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// Starts the test `name` in another process.
fn child(name: &str, folder: &Path, writer: usize) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test runs from a file"));
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    command
        .env(FOLDER, folder)
        .env(WRITER, writer.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn record(writer: &str, epoch: u64) -> EpochRecord {
    EpochRecord {
        run: RunInfo { run_id: writer.to_owned(), ..RunInfo::default() },
        measured: Measured {
            epoch: Some(epoch),
            batch_wait_secs: vec![0.25; 50],
            ..Measured::default()
        },
        ..EpochRecord::default()
    }
}

/// Appends `calls` times, two epochs per call, and reports each call.
#[expect(clippy::print_stdout, reason = "how the parent learns of it")]
fn append_as_child(folder: &Path, calls: u64) {
    let writer = env::var(WRITER).expect("set by the parent");
    for call in 0..calls {
        append(folder, &[record(&writer, 2 * call), record(&writer, 2 * call + 1)])
            .expect("an append");
        println!("{APPENDED}");
    }
}

/// The epochs of each writer, in the order of the file.
fn epochs_by_writer(folder: &Path) -> BTreeMap<String, Vec<u64>> {
    let mut epochs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in read(folder).expect("readable epochs") {
        assert_eq!(record.measured.batch_wait_secs, vec![0.25; 50]);
        epochs
            .entry(record.run.run_id)
            .or_default()
            .push(record.measured.epoch.expect("a numbered epoch"));
    }
    epochs
}

#[test]
fn processes_that_append_at_once_lose_and_double_nothing() {
    const CALLS: u64 = 6;
    if let Some(folder) = folder_of_child() {
        return append_as_child(&folder, CALLS);
    }
    let folder = TempDir::new().unwrap();
    let name = "writers::processes_that_append_at_once_lose_and_double_nothing";
    let writers: Vec<_> =
        (0..4).map(|writer| child(name, folder.path(), writer).spawn().unwrap()).collect();
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let expected: Vec<u64> = (0..2 * CALLS).collect();
    let found = epochs_by_writer(folder.path());
    assert_eq!(found, (0..4).map(|writer| (writer.to_string(), expected.clone())).collect());
}

#[test]
fn threads_that_append_at_once_lose_and_double_nothing() {
    let folder = TempDir::new().unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                for epoch in 0..5 {
                    append(folder, &[record(&writer.to_string(), epoch)]).unwrap();
                }
            });
        }
    });
    let found = epochs_by_writer(folder.path());
    assert_eq!(found, (0..4).map(|writer| (writer.to_string(), (0..5).collect())).collect());
}

#[test]
fn a_kill_at_any_moment_leaves_what_was_appended() {
    if let Some(folder) = folder_of_child() {
        return append_as_child(&folder, 10_000);
    }
    let folder = TempDir::new().unwrap();
    let name = "writers::a_kill_at_any_moment_leaves_what_was_appended";
    for writer in 0..10 {
        let mut process = child(name, folder.path(), writer).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let has_appended =
            |line: &Result<String, _>| line.as_ref().is_ok_and(|line| line.ends_with(APPENDED));
        assert!(lines.by_ref().any(|line| has_appended(&line)));
        // Kill each writer at a different moment of its next appends.
        thread::sleep(Duration::from_micros(900 * writer as u64));
        process.kill().unwrap();
        process.wait().unwrap();
        let reported = 1 + lines.filter(has_appended).count();

        let epochs = epochs_by_writer(folder.path()).remove(&writer.to_string()).unwrap();
        // The last append may have finished without being reported.
        assert!(
            (2 * reported..=2 * reported + 2).contains(&epochs.len()),
            "{} epochs, {reported} appends reported",
            epochs.len()
        );
        assert_eq!(epochs, (0..epochs.len() as u64).collect::<Vec<_>>());
    }
}

/// Runs a test of this file with file sizes limited to a few kB. Writing more ends the process, or
/// is an error if the signal is ignored.
fn run_without_space(name: &str, folder: &Path, ignore_signal: bool) -> (bool, String) {
    let trap = if ignore_signal { "trap '' XFSZ; " } else { "" };
    let inner = child(name, folder, 0);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{trap}ulimit -f 64; exec \"$0\" \"$@\""));
    command.arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = command.output().expect("a shell");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn without_space_the_error_is_clear_and_the_old_epochs_stay() {
    if let Some(folder) = folder_of_child() {
        // Numbers without a pattern, which do not compress.
        let noise = (0_u64..50_000)
            .map(|idx| (idx.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64)
            .collect();
        let mut large = record("large", 0);
        large.measured.batch_wait_secs = noise;
        println!("{}", append(&folder, &[large]).unwrap_err());
        return;
    }
    let folder = TempDir::new().unwrap();
    append(folder.path(), &[record("0", 0)]).unwrap();
    let path = folder.path().join(EPOCHS_FILE);
    let before = fs::read(&path).unwrap();
    let name = "writers::without_space_the_error_is_clear_and_the_old_epochs_stay";

    let (success, output) = run_without_space(name, folder.path(), true);
    assert!(success && output.contains("cannot write") && output.contains(EPOCHS_FILE), "{output}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!folder.path().join("epochs.parquet.partial").exists());

    // The same, but the process dies in the middle of the file.
    let (success, output) = run_without_space(name, folder.path(), false);
    assert!(!success && !output.contains("cannot write"), "{output}");
    assert_eq!(fs::read(&path).unwrap(), before);
    append(folder.path(), &[record("0", 1)]).unwrap();
    assert_eq!(epochs_by_writer(folder.path()), [("0".to_owned(), vec![0, 1])].into());
}
