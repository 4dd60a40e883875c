//! Commands that write an experiment, ended at any moment: killed, interrupted, or out of disk.
//!
//! Input stays unchanged, a partial output never opens as a complete one, and the next run reports
//! the leftover and starts over.
//!
//! `SOMAFEED_KILLED_ROUNDS=20 cargo xtask test -p sweep --test sweep killed` ends 20 times as many
//! runs.
mod inputs;

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};
use tempfile::TempDir;

use inputs::{entries, files_below, write_tenx};

use crate::program;

/// A command that writes an experiment, in a folder with its input.
struct Writing {
    folder: TempDir,
    /// Command line; its last word is the path of the new experiment.
    arguments: Vec<&'static str>,
    /// Numbers of cells, genes and values of the output, and the sum of the values.
    writes: (u64, u64, u64, f64),
    /// Bytes of all files written.
    n_bytes: u64,
    /// Input files with their content.
    reads: Vec<(PathBuf, Vec<u8>)>,
    /// Output of the complete run.
    stdout: String,
    stderr: String,
    /// Duration of the complete run.
    takes: Duration,
}

const TARGET: &str = "out/data";

impl Writing {
    /// Runs the command once to the end and records its results.
    fn new(folder: TempDir, arguments: &[&'static str]) -> Self {
        let mut writing = Self {
            reads: files_below(folder.path()),
            folder,
            arguments: arguments.to_vec(),
            writes: (0, 0, 0, 0.0),
            n_bytes: 0,
            stdout: String::new(),
            stderr: String::new(),
            takes: Duration::ZERO,
        };
        let started = Instant::now();
        let done = writing.run();
        assert!(done.status.success(), "{}", stderr(&done));
        writing.takes = started.elapsed();
        writing.stderr = stderr(&done);
        writing.stdout = String::from_utf8(done.stdout).unwrap();
        writing.writes = contents(&writing.target()).unwrap();
        let files = files_below(&writing.target());
        writing.n_bytes = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        writing.clear();
        writing
    }

    fn generate() -> Self {
        let shape = ["--cells", "3000", "--genes", "500"];
        Self::new(tempfile::tempdir().unwrap(), &[&["generate"][..], &shape, &[TARGET]].concat())
    }

    fn import() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_tenx(&folder, &entries());
        Self::new(folder, &["import", "tenx", TARGET])
    }

    /// Starts over near the end, when a value of the first cell appears.
    fn import_that_sorts() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut entries = entries();
        entries.rotate_left(1);
        write_tenx(&folder, &entries);
        let writing = Self::new(folder, &["import", "tenx", TARGET]);
        assert!(writing.stderr.contains("sorted in memory"), "{}", writing.stderr);
        writing
    }

    /// Reads X in many small reads.
    fn slice() -> Self {
        let folder = tempfile::tempdir().unwrap();
        run_in(&folder, &["generate", "from", "--cells", "3000", "--genes", "500", "-q"]);
        // The least memory depends on the number of decoding threads.
        let little = ["--memory", "38MB", "--config", "sm.compute_concurrency_level=2", "--json"];
        let writing =
            Self::new(folder, &[&["slice", "-v", "450"][..], &little, &["from", TARGET]].concat());
        assert!(writing.report()["reads"].as_u64() > Some(10), "{}", writing.stdout);
        writing
    }

    /// Writes rows to several temporary files repeatedly, and reads obs more than once.
    fn relayout() -> Self {
        let folder = tempfile::tempdir().unwrap();
        run_in(&folder, &["generate", "from", "--cells", "3000", "--genes", "5000", "-q"]);
        let little = ["--shuffle", "5", "--memory", "4MiB", "--codec", "packed,packed", "--json"];
        let writing = Self::new(folder, &[&["relayout"][..], &little, &["from", TARGET]].concat());
        writing.check_spilled();
        assert!(writing.report()["obs_passes"].as_u64() > Some(1), "{}", writing.stdout);
        writing
    }

    /// Starts over when the last cell has a fraction.
    fn relayout_that_begins_anew() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut entries = entries();
        entries.last_mut().unwrap().2 = "0.25".into();
        write_tenx(&folder, &entries);
        run_in(&folder, &["import", "tenx", "from", "-q"]);
        // A storage so slow that size decides the codec, not the time to decode.
        let little = [
            "relayout",
            "--shuffle",
            "5",
            "--memory",
            "4MiB",
            "--storage-rate",
            "1KB",
            "--json",
            "from",
            TARGET,
        ];
        let writing = Self::new(folder, &little);
        assert!(writing.stderr.contains("starting again with codec"), "{}", writing.stderr);
        writing.check_spilled();
        writing
    }

    /// Parses the JSON report of the complete run.
    fn report(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks that temporary files were written before all rows had arrived.
    #[track_caller]
    fn check_spilled(&self) {
        let report = self.report();
        let [n_files, n_writes] =
            ["files", "writes"].map(|name| report["spilled"][name].as_u64().unwrap());
        assert!(1 < n_files && n_files < n_writes, "{report}");
    }

    fn command(&self) -> Command {
        program::command(self.folder.path(), &self.arguments)
    }

    fn run(&self) -> Output {
        self.command().output().unwrap()
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join(TARGET)
    }

    fn partial(&self) -> PathBuf {
        self.folder.path().join(format!("{TARGET}.partial"))
    }

    /// Returns the names in the output folder.
    fn beside(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.folder.path().join("out")) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn clear(&self) {
        fs::remove_dir_all(self.folder.path().join("out")).unwrap();
    }

    /// Starts the command and sends `signal` after `part` of its duration.
    fn end_by(&self, signal: &str, part: f64) -> ExitStatus {
        let mut child = self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(self.takes.mul_f64(part));
        send(signal, &child);
        child.wait().unwrap()
    }

    /// Checks that output opens only if complete, under any name, and that input is unchanged.
    #[track_caller]
    fn check_nothing_half(&self) {
        for (path, bytes) in &self.reads {
            assert!(fs::read(path).unwrap() == *bytes, "{} has changed", path.display());
        }
        for path in [self.target(), self.partial().join("experiment")] {
            if let Some(found) = contents(&path) {
                assert_eq!(found, self.writes, "{}", path.display());
            }
        }
        assert!(!self.target().exists() || contents(&self.target()).is_some());
    }

    /// Checks that the next run reports the leftover and starts over.
    #[track_caller]
    fn check_next(&self) {
        let had_leftover = self.partial().exists();
        let done = self.run();
        assert!(done.status.success(), "{}", stderr(&done));
        let printed = stderr(&done).contains("had left there is removed");
        assert_eq!(printed, had_leftover, "{}", stderr(&done));
        assert_eq!(contents(&self.target()), Some(self.writes));
        assert_eq!(self.beside(), ["data"]);
    }

    #[track_caller]
    fn survives(&self) {
        for (signal, n_times) in [("KILL", 8), ("INT", 4)] {
            let n_times = n_times * rounds();
            for nth in 0..n_times {
                // One moment in each part of the run, and some after its end.
                let part = (f64::from(nth) + drawn()) / f64::from(n_times) * 1.1;
                let status = self.end_by(signal, part);
                self.check_nothing_half();
                if signal == "INT" && status.code() == Some(130) {
                    assert!(self.beside().is_empty(), "{:?}", self.beside());
                }
                if self.target().exists() {
                    assert!(self.beside().len() <= 2, "{:?}", self.beside());
                    self.clear();
                }
            }
        }
        // Ends the run halfway, so that a leftover remains.
        while !self.partial().exists() {
            self.end_by("KILL", drawn());
            if self.target().exists() {
                self.clear();
            }
        }
        self.check_next();
        self.clear();
        self.refused_by_the_disk();
        self.on_a_full_disk();
        self.check_next();
    }

    /// Runs the command on a disk that is too small, in its own mount namespace.
    ///
    /// Skipped with a notice if the system does not allow mounting.
    #[track_caller]
    #[expect(clippy::print_stderr, reason = "a test says what it does not show")]
    fn on_a_full_disk(&self) {
        fs::create_dir_all(self.folder.path().join("out")).unwrap();
        let isolated = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["-rm", "sh", "-c", script]).current_dir(self.folder.path());
            command
        };
        let probe = isolated("mount -t tmpfs none out").output();
        if !probe.is_ok_and(|probe| probe.status.success()) {
            eprintln!("not shown on a full disk: no file system can be mounted here");
            return;
        }
        for part in [0.05, 0.3, 0.6, 0.9] {
            let n_bytes = (self.n_bytes as f64 * part) as u64;
            let script = format!(
                "mount -t tmpfs -o size={n_bytes} none out || exit 99; \
                 \"$0\" \"$@\"; code=$?; ls -A out > listing; exit $code"
            );
            let plain = self.command();
            let done =
                isolated(&script).arg(plain.get_program()).args(plain.get_args()).output().unwrap();
            assert_eq!(done.status.code(), Some(1), "{n_bytes}: {}", stderr(&done));
            check_one_error(&done);
            let listing = fs::read_to_string(self.folder.path().join("listing")).unwrap();
            assert!(listing.is_empty(), "{n_bytes}: {listing}");
            self.check_nothing_half();
        }
    }

    /// Limits the size of files, which simulates a full disk without mounting one.
    #[track_caller]
    fn refused_by_the_disk(&self) {
        for blocks in [8, 64, 200] {
            let limits = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            let plain = self.command();
            let done = Command::new("sh")
                .args(["-c", &limits])
                .arg(plain.get_program())
                .args(plain.get_args())
                .current_dir(self.folder.path())
                .output()
                .unwrap();
            if done.status.success() {
                // All files fit the limit.
                assert_eq!(contents(&self.target()), Some(self.writes));
                self.clear();
                continue;
            }
            assert_eq!(done.status.code(), Some(1), "{blocks}: {}", stderr(&done));
            check_one_error(&done);
            assert!(self.beside().is_empty(), "{blocks}: {:?}", self.beside());
            self.check_nothing_half();
        }
    }
}

/// Runs the program; it must succeed.
#[track_caller]
fn run_in(folder: &TempDir, arguments: &[&str]) {
    let done = program::command(folder.path(), arguments).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
}

/// Checks that stderr has exactly one error line.
#[track_caller]
fn check_one_error(output: &Output) {
    let stderr = stderr(output);
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{stderr}");
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {}", child.id())])
        .stderr(Stdio::null())
        .status();
    // The exit status does not matter: the process may have ended by itself.
    assert!(sent.is_ok(), "{sent:?}");
}

/// Returns the factor on the number of ended runs, from `SOMAFEED_KILLED_ROUNDS`; 1 by default.
fn rounds() -> u32 {
    std::env::var("SOMAFEED_KILLED_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap())
}

/// Returns a random number from 0 to 1.
fn drawn() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns cells, genes, values and their sum; `None` if no experiment opens.
fn contents(path: &Path) -> Option<(u64, u64, u64, f64)> {
    let config = soma_io::Config::from([("soma.init_buffer_bytes".into(), "1048576".into())]);
    let experiment =
        Experiment::open(path.to_str().unwrap(), &OpenOptions { config, ..OpenOptions::default() })
            .ok()?;
    let measurement = experiment.measurement("RNA").unwrap();
    let obs = experiment.obs().unwrap().read(None, None).unwrap();
    let var = measurement.var().unwrap().read(None, None).unwrap();
    let reader = measurement.x("raw").unwrap().reader(ReaderChoice::Libtiledb).unwrap();
    let rows = RowRanges::new(vec![0..reader.n_rows()]).unwrap();
    let mut x = CsrBuffers::default();
    reader.read_csr(&rows, &GeneSelection::All, &mut x).unwrap();
    let sum = x.values.iter().map(|value| f64::from(*value)).sum();
    Some((obs.num_rows() as u64, var.num_rows() as u64, x.nnz() as u64, sum))
}

#[test]
fn generate_survives() {
    Writing::generate().survives();
}

#[test]
fn import_survives() {
    Writing::import().survives();
}

#[test]
fn import_that_sorts_survives() {
    Writing::import_that_sorts().survives();
}

#[test]
fn slice_survives() {
    Writing::slice().survives();
}

#[test]
fn relayout_survives() {
    Writing::relayout().survives();
}

#[test]
fn relayout_that_begins_anew_survives() {
    Writing::relayout_that_begins_anew().survives();
}

#[test]
fn what_is_to_be_replaced_is_there_at_every_moment() {
    let mut writing = Writing::slice();
    // The existing experiment has fewer genes than the new one.
    run_in(&writing.folder, &["slice", "-v", "40", "from", TARGET]);
    let before = contents(&writing.target()).unwrap();
    assert_ne!(before, writing.writes);
    writing.arguments.insert(1, "-f");
    for nth in 0..8 {
        writing.end_by("KILL", (f64::from(nth) + drawn()) / 8.0 * 1.1);
        let found = contents(&writing.target()).unwrap();
        assert!([before, writing.writes].contains(&found), "{found:?}");
    }
    let done = writing.run();
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(contents(&writing.target()), Some(writing.writes));
    assert_eq!(writing.beside(), ["data"]);
}
