//! Everything that writes an experiment, ended at any moment: killed, interrupted, or out of disk. Nothing that is half written opens
//! as if it were whole, and the next run says what it found and starts over.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

#[path = "support/program.rs"]
mod program;

use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};
use tempfile::TempDir;

const N_CELLS: u64 = 3_000;
const N_GENES: u64 = 500;

/// A command that writes an experiment, in a folder with what it needs.
struct Writing {
    folder: TempDir,
    /// The command line; it ends with where the experiment is written.
    arguments: Vec<&'static str>,
    /// Cells, genes, values, and their sum.
    writes: (u64, u64, u64, f64),
    /// How long it takes.
    takes: Duration,
}

const TARGET: &str = "out/data";

impl Writing {
    /// Runs it once to the end.
    fn new(folder: TempDir, arguments: &[&'static str]) -> Self {
        let arguments = arguments.to_vec();
        let mut writing = Self { folder, arguments, writes: (0, 0, 0, 0.0), takes: Duration::ZERO };
        let started = Instant::now();
        let done = writing.run();
        assert!(done.status.success(), "{}", stderr(&done));
        writing.takes = started.elapsed();
        writing.writes = contents(&writing.target()).unwrap();
        writing.clear();
        writing
    }

    fn generate() -> Self {
        let shape = ["--cells", "3000", "--genes", "500"];
        Self::new(tempfile::tempdir().unwrap(), &[&["generate"][..], &shape, &[TARGET]].concat())
    }

    fn import() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tenx = folder.path().join("tenx");
        fs::create_dir(&tenx).unwrap();
        let per_cell = 60;
        let mut matrix = format!(
            "%%MatrixMarket matrix coordinate integer general\n{N_GENES} {N_CELLS} {}\n",
            N_CELLS * per_cell
        );
        for cell in 0..N_CELLS {
            for nth in 0..per_cell {
                let gene = (cell * 7 + nth * 8) % N_GENES;
                writeln!(matrix, "{} {} {}", gene + 1, cell + 1, 1 + nth % 9).unwrap();
            }
        }
        fs::write(tenx.join("matrix.mtx"), matrix).unwrap();
        let lines = |n: u64, line: &dyn Fn(u64) -> String| -> String { (0..n).map(line).collect() };
        let barcodes = lines(N_CELLS, &|cell| format!("cell{cell}-1\n"));
        fs::write(tenx.join("barcodes.tsv"), barcodes).unwrap();
        let features = lines(N_GENES, &|gene| format!("id{gene}\tname{gene}\tGene Expression\n"));
        fs::write(tenx.join("features.tsv"), features).unwrap();
        Self::new(folder, &["import", "tenx", TARGET])
    }

    fn slice() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shape = ["--cells", "3000", "--genes", "500", "-q"];
        let made = program::command(folder.path(), &[&["generate", "from"][..], &shape].concat())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        Self::new(folder, &["slice", "-v", "450", "--memory", "64MiB", "from", TARGET])
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

    /// What lies where the experiment goes.
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

    /// Starts it, and ends it with `signal` after a part of the time that it takes.
    fn end_by(&self, signal: &str, part: f64) -> ExitStatus {
        let mut child = self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(self.takes.mul_f64(part));
        send(signal, &child);
        child.wait().unwrap()
    }

    /// What is there opens only when it is whole, under whichever name.
    #[track_caller]
    fn check_nothing_half(&self) {
        for path in [self.target(), self.partial()] {
            if let Some(found) = contents(&path) {
                assert_eq!(found, self.writes, "{}", path.display());
            }
        }
        assert!(!self.target().exists() || contents(&self.target()).is_some());
    }

    /// The next run says what it found, and starts over.
    #[track_caller]
    fn check_next(&self) {
        let had_leftover = self.partial().exists();
        let done = self.run();
        assert!(done.status.success(), "{}", stderr(&done));
        let told = stderr(&done).contains("had left there is removed");
        assert_eq!(told, had_leftover, "{}", stderr(&done));
        assert_eq!(contents(&self.target()), Some(self.writes));
        assert_eq!(self.beside(), ["data"]);
    }

    #[track_caller]
    fn survives(&self) {
        for (signal, n_times) in [("KILL", 8), ("INT", 4)] {
            for nth in 0..n_times {
                // A moment of each part of the run, and some after it.
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
        // Half-way, so that something is left.
        while !self.partial().exists() {
            self.end_by("KILL", drawn());
            if self.target().exists() {
                self.clear();
            }
        }
        self.check_next();
        self.clear();
        self.refused_by_the_disk();
    }

    /// Files may not grow: what a full disk is to a program, without one.
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
                // Small enough to fit after all.
                assert_eq!(contents(&self.target()), Some(self.writes));
                self.clear();
                continue;
            }
            assert_eq!(done.status.code(), Some(1), "{blocks}: {}", stderr(&done));
            let errors: Vec<String> = stderr(&done)
                .lines()
                .filter(|line| line.starts_with("error: "))
                .map(str::to_owned)
                .collect();
            assert_eq!(errors.len(), 1, "{}", stderr(&done));
            assert!(self.beside().is_empty(), "{blocks}: {:?}", self.beside());
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {}", child.id())])
        .stderr(Stdio::null())
        .status();
    // One that has ended by itself cannot be sent anything.
    assert!(sent.is_ok(), "{sent:?}");
}

/// A number from 0 to 1 that differs from call to call.
fn drawn() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Cells, genes, values and their sum; `None` where nothing opens as an experiment.
fn contents(path: &Path) -> Option<(u64, u64, u64, f64)> {
    let config = soma_io::Config::from([("soma.init_buffer_bytes".into(), "1048576".into())]);
    let experiment =
        Experiment::open(path.to_str().unwrap(), &OpenOptions { config, timestamp: None }).ok()?;
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
fn slice_survives() {
    Writing::slice().survives();
}

#[test]
fn what_is_to_be_replaced_is_there_at_every_moment() {
    let mut writing = Writing::slice();
    // Fewer genes than the new one.
    let old = ["slice", "-v", "40", "from", TARGET];
    let made = program::command(writing.folder.path(), &old).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
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
