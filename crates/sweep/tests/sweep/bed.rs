//! A folder with a small experiment, and the program run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bench_report::{EpochRecord, read};
use tempfile::TempDir;

use crate::program;

pub(crate) const N_CELLS: u64 = 200;

/// Small read buffers: allocating the default ones takes longer than reading this experiment.
pub(crate) const SMALL_BUFFERS: &str = "soma.init_buffer_bytes=1000000";

/// A folder with an experiment in it.
pub(crate) struct Bed {
    folder: TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let bed = Self { folder: tempfile::tempdir().unwrap() };
        let output = bed.run(&[
            "generate",
            "experiment",
            "--cells",
            "200",
            "--genes",
            "300",
            "--seed",
            "5",
            "--quiet",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        bed
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the kernel can drop the folder's files from memory.
    pub(crate) fn is_on_disk(&self) -> bool {
        let found = Command::new("stat").args(["-f", "-c", "%T"]).arg(self.folder.path()).output();
        let kind = String::from_utf8(found.unwrap().stdout).unwrap();
        !["tmpfs", "ramfs"].contains(&kind.trim())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        program::command(self.folder.path(), arguments)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Sweeps the experiment and returns its rows; fails if the sweep does.
    #[track_caller]
    pub(crate) fn sweep(&self, results: &str, arguments: &[&str]) -> Vec<EpochRecord> {
        let mut all =
            vec!["sweep", "--uri", "experiment", "--results", results, "--config", SMALL_BUFFERS];
        all.extend(arguments);
        let output = self.run(&all);
        assert!(output.status.success(), "{}", stderr(&output));
        read(&self.path(results)).unwrap()
    }

    pub(crate) fn start(&self, results: &str, arguments: &[&str]) -> Child {
        let mut all =
            vec!["sweep", "--uri", "experiment", "--results", results, "--config", SMALL_BUFFERS];
        all.extend(arguments);
        self.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Polls `look` until it returns a value; fails after two minutes.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_mins(2), "waited too long for {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Returns the process of the point that a sweep is measuring.
pub(crate) fn child_of(id: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

pub(crate) fn rows(folder: &Path) -> usize {
    read(folder).map_or(0, |records| records.len())
}

pub(crate) fn signal(name: &str, id: u32) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}
