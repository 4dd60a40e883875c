//! `cargo xtask fuzz`: runs the fuzz targets, counts their executions, and keeps inputs that reach
//! new code.
//!
//! `fuzz/corpus` has one file per target with the kept inputs, each with its length (u32,
//! little-endian) in front. libFuzzer needs a folder of files, and adds to it; that folder is below
//! `fuzz/target`, together with logs, failing inputs, and the number of executions of all runs.

mod arguments;
mod corpus;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use self::arguments::Arguments;
use crate::cargo;
use crate::native::Native;
use crate::progress::print_line;

/// Largest length of an input. Short inputs run more often per second.
const MAX_LEN: &str = "-max_len=2048";
/// Seconds after which an execution counts as a hang.
const TIMEOUT: &str = "-timeout=20";
/// The line with libFuzzer's final count.
const COUNT: &str = "stat::number_of_executed_units:";

/// The folders of a fuzzing session.
struct Folders {
    package: PathBuf,
}

/// Builds the targets, then runs one after the other.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let folders = Folders { package: cargo::workspace_root().join("fuzz") };
    let all = corpus::targets(&folders.corpus())?;
    let Arguments { targets, seconds, executions, keep } = arguments::parse(arguments, &all)?;
    let mut build = cargo::cargo(["build", "--release"], &Native::default());
    // The package's own configuration instruments the code, so build from its folder. A user's
    // rustc wrapper would replace the instrumenting one.
    build.current_dir(&folders.package).env_remove("RUSTC_WRAPPER");
    let built = cargo::run(&mut build)?;
    if !built.success() {
        return Ok(cargo::exit_code(built));
    }
    for target in &targets {
        corpus::unpack(&folders.kept(target), &folders.found(target))?;
    }
    loop {
        for target in &targets {
            let n = folders.fuzz(target, seconds)?;
            folders.count(target, n)?;
            print_line(&format!("{target}: {n} executions; {} in all", folders.counted()?));
        }
        if executions.is_none_or(|wanted| folders.counted().is_ok_and(|n| n >= wanted)) {
            break;
        }
    }
    if keep {
        for target in &targets {
            folders.merge(target)?;
            let n_bytes = corpus::pack(&folders.merged(target), &folders.kept(target))?;
            print_line(&format!("{target}: {n_bytes} bytes of inputs are kept"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Folders {
    fn corpus(&self) -> PathBuf {
        self.package.join("corpus")
    }

    fn kept(&self, target: &str) -> PathBuf {
        self.corpus().join(format!("{target}.{}", corpus::EXTENSION))
    }

    fn work(&self) -> PathBuf {
        self.package.join("target/fuzz")
    }

    fn found(&self, target: &str) -> PathBuf {
        self.work().join("found").join(target)
    }

    fn merged(&self, target: &str) -> PathBuf {
        self.work().join("merged").join(target)
    }

    /// The log of a target's latest run.
    fn log(&self, target: &str) -> PathBuf {
        self.work().join(format!("{target}.log"))
    }

    /// The file with one line per run: its target and its executions.
    fn executions(&self) -> PathBuf {
        self.work().join("executions.tsv")
    }

    /// Runs libFuzzer on a target and writes its output to the target's log.
    fn libfuzzer(&self, target: &str, arguments: &[OsString]) -> anyhow::Result<()> {
        let program = self.package.join("target/release/somafeed-fuzz");
        let path = self.log(target);
        let log =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let failures = format!("-artifact_prefix={}/failed-{target}-", self.work().display());
        let mut command = Command::new(&program);
        command.args(arguments).args([&*failures, MAX_LEN, TIMEOUT, "-print_final_stats=1"]);
        command.env("SOMAFEED_FUZZ_TARGET", target).stdout(log.try_clone()?).stderr(log);
        let status =
            command.status().with_context(|| format!("cannot run {}", program.display()))?;
        if !status.success() {
            bail!("{target} failed ({status}): {} has the reason and the input", path.display());
        }
        Ok(())
    }

    /// Fuzzes for `seconds`, and returns the number of executions.
    fn fuzz(&self, target: &str, seconds: u64) -> anyhow::Result<u64> {
        let time = format!("-max_total_time={seconds}");
        let ended = self.libfuzzer(target, &[self.found(target).into(), time.into()]);
        let path = self.log(target);
        // The log may contain inputs, so it need not be UTF-8.
        let log = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ended?;
        number_of_executions(&String::from_utf8_lossy(&log))
            .with_context(|| format!("{} does not end with `{COUNT}`", path.display()))
    }

    /// Selects the fewest inputs, short ones first, that cover the code that the kept and the new
    /// inputs reach.
    fn merge(&self, target: &str) -> anyhow::Result<()> {
        let merged = self.merged(target);
        corpus::empty_folder(&merged)?;
        self.libfuzzer(target, &["-merge=1".into(), merged.into(), self.found(target).into()])
    }

    fn count(&self, target: &str, n: u64) -> anyhow::Result<()> {
        let path = self.executions();
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{target}\t{n}"));
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Executions of all runs so far.
    fn counted(&self) -> anyhow::Result<u64> {
        let path = self.executions();
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        sum(&text).with_context(|| format!("{} is damaged", path.display()))
    }
}

fn number_of_executions(log: &str) -> Option<u64> {
    log.lines().rev().find_map(|line| line.strip_prefix(COUNT)?.trim().parse().ok())
}

fn sum(lines: &str) -> Option<u64> {
    lines.lines().map(|line| line.split_once('\t')?.1.parse::<u64>().ok()).sum()
}

/// The target of `path`, if the file can be a target's inputs.
fn target_of(path: &Path) -> Option<String> {
    let is_one = path.extension().is_some_and(|extension| extension == corpus::EXTENSION);
    let stem = path.file_stem().filter(|_| is_one)?;
    stem.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_counted() {
        let log = "#4\tINITED\nDone 7 runs\nstat::number_of_executed_units: 1234\nstat::x: 5\n";
        assert_eq!(number_of_executions(log), Some(1234));
        assert_eq!(number_of_executions("killed"), None);
        assert_eq!(sum("tile\t5\narray\t7\n"), Some(12));
        assert_eq!(sum("tile 5\n"), None);
    }

    #[test]
    fn targets_are_named_by_their_files() {
        assert_eq!(target_of(Path::new("fuzz/corpus/tile.inputs")), Some("tile".to_owned()));
        assert_eq!(target_of(Path::new("fuzz/corpus/README.md")), None);
    }
}
