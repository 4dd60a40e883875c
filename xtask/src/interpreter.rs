//! Python on the user's machine: its location and versions, and commands whose output is kept for
//! messages.

pub(crate) mod search;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::progress::HEARTBEAT;
use search::{candidates, search_path};

/// Other sources of the libraries, for messages about Python.
pub(crate) const BY_HAND: &str =
    "or set LIBTORCH (or LIBTORCH_USE_PYTORCH=1) and SOMAFEED_LIBTILEDB to libraries that you have";

/// The first pip that supports platform tags by glibc version, such as manylinux_2_28.
const OLDEST_PIP: Version = (20, 3);

const PROBE: &str = "
import os, sys
try:
    import pip
    version = pip.__version__
except ImportError:
    version = ''
try:
    libc = os.confstr('CS_GNU_LIBC_VERSION') or ''
except (ValueError, OSError):
    libc = ''
print('%d.%d|%s|%s' % (sys.version_info[0], sys.version_info[1], version, libc))
";

/// A working Python interpreter and its versions.
#[derive(Debug, Clone)]
pub(crate) struct Python {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    pub(crate) version: Version,
    /// Version of pip; empty if there is none.
    pip: String,
    /// Version of glibc, like `(2, 36)`; `None` for another C library.
    pub(crate) glibc: Option<Version>,
}

impl Python {
    /// The first `python3` on the PATH that runs. Fails with the first one's error if none does.
    pub(crate) fn on_path() -> anyhow::Result<Self> {
        Self::first_that_runs(candidates("python3", &search_path()))
    }

    fn first_that_runs(programs: Vec<PathBuf>) -> anyhow::Result<Self> {
        let mut failure = None;
        for program in programs {
            match Self::probe(&program, Vec::new()) {
                Ok(python) => return Ok(python),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // Without a candidate, this says what to install.
        failure.map_or_else(|| Self::probe(Path::new("python3"), Vec::new()), Err)
    }

    /// Runs `program` once with `environment` added to ours, to learn its versions.
    pub(crate) fn probe(
        program: &Path,
        environment: Vec<(OsString, OsString)>,
    ) -> anyhow::Result<Self> {
        let ran =
            Command::new(program).args(["-c", PROBE]).envs(environment.iter().cloned()).output();
        let output = match ran {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "no `{}` found: install Python 3 with pip (Debian, Ubuntu: apt install python3 python3-pip), {BY_HAND}",
                program.display()
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot run `{}`", program.display()));
            }
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        let Some((version, pip, glibc)) = parse_probe(&printed).filter(|_| output.status.success())
        else {
            let reason = last_line(&String::from_utf8_lossy(&output.stderr));
            bail!("`{}` does not run as a Python interpreter: {reason}", program.display());
        };
        Ok(Self { program: program.to_owned(), environment, version, pip, glibc })
    }

    /// Fails with advice if pip is missing, or too old for the platform tags of current wheels.
    pub(crate) fn require_pip(&self) -> anyhow::Result<()> {
        let program = self.program.display();
        let (major, minor) = self.version;
        if self.pip.is_empty() {
            bail!(
                "`{program}` (Python {major}.{minor}) has no pip: install it (Debian, Ubuntu: apt install python3-pip; elsewhere: \
                 {program} -m ensurepip), {BY_HAND}"
            );
        }
        if parse_pair(&self.pip).is_some_and(|found| found < OLDEST_PIP) {
            bail!(
                "the pip of `{program}` (Python {major}.{minor}) is {}, needed is {}.{} or newer: {program} -m pip install --upgrade \
                 pip, {BY_HAND}",
                self.pip,
                OLDEST_PIP.0,
                OLDEST_PIP.1
            );
        }
        Ok(())
    }

    /// A command that runs this interpreter. Its stdin is closed, so it cannot wait for input.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).envs(self.environment.iter().cloned()).stdin(Stdio::null());
        command
    }
}

/// Major and minor version.
type Version = (u32, u32);

/// Parses the probe's output: the versions of Python, pip (empty if missing) and glibc.
fn parse_probe(output: &str) -> Option<(Version, String, Option<Version>)> {
    let mut parts = output.trim().split('|');
    let version = parse_pair(parts.next()?)?;
    let pip = parts.next()?.to_owned();
    let glibc = parts.next()?.strip_prefix("glibc ").and_then(parse_pair);
    Some((version, pip, glibc))
}

/// Parses `3.11.2` as `(3, 11)`.
fn parse_pair(text: &str) -> Option<Version> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Exit status and output of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    /// stdout and stderr, one after the other.
    pub(crate) output: String,
}

/// Runs `command` to its end and keeps stderr, and stdout unless `show_stdout`, which sends stdout
/// to our stderr (for pip's progress bar). Calls `beat` every few seconds.
pub(crate) fn run_watched(
    mut command: Command,
    show_stdout: bool,
    mut beat: impl FnMut(),
) -> anyhow::Result<Outcome> {
    let stdout = if show_stdout { Stdio::from(std::io::stderr()) } else { Stdio::piped() };
    command.stdout(stdout).stderr(Stdio::piped());
    let program = command.get_program().display().to_string();
    let mut child = command.spawn().with_context(|| format!("cannot run `{program}`"))?;
    let readers = readers(&mut child);
    let mut last_beat = Instant::now();
    let status = loop {
        if let Some(status) =
            child.try_wait().with_context(|| format!("cannot wait for `{program}`"))?
        {
            break status;
        }
        if HEARTBEAT <= last_beat.elapsed() {
            beat();
            last_beat = Instant::now();
        }
        thread::sleep(Duration::from_millis(50));
    };
    let output = readers.into_iter().filter_map(|reader| reader.join().ok()).collect();
    Ok(Outcome { status, output })
}

fn readers(child: &mut Child) -> Vec<thread::JoinHandle<String>> {
    fn drain(mut from: impl std::io::Read + Send + 'static) -> thread::JoinHandle<String> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // If the pipe breaks, keep the output read so far.
            let _read = from.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    stdout.into_iter().chain(stderr).collect()
}

/// The last non-empty line, for a one-line message.
pub(crate) fn last_line(text: &str) -> String {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.unwrap_or("no output").to_owned()
}

#[cfg(test)]
mod tests {
    use super::search::write_program;
    use super::*;

    #[test]
    fn probe_is_read() {
        assert_eq!(
            parse_probe("3.11|23.2.1|glibc 2.36\n"),
            Some(((3, 11), "23.2.1".into(), Some((2, 36))))
        );
        assert_eq!(parse_probe("3.9||\n"), Some(((3, 9), String::new(), None)));
        assert_eq!(parse_probe("hello"), None);
        assert_eq!(parse_probe(""), None);
    }

    #[test]
    fn a_missing_interpreter_says_what_to_install() {
        let error =
            Python::probe(Path::new("/nonexistent/python3"), Vec::new()).unwrap_err().to_string();
        assert!(
            error.contains("install Python 3 with pip") && error.contains("SOMAFEED_LIBTILEDB"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn a_python_that_does_not_run_is_not_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let shim = "echo 'no such version' >&2; exit 127";
        let shim = write_program(&folder.path().join("a"), "python3", shim);
        let works = "echo '3.12|25.0|glibc 2.36'";
        let works = write_program(&folder.path().join("b"), "python3", works);
        let found = Python::first_that_runs(vec![shim.clone(), works.clone()]).unwrap();
        assert_eq!((found.program, found.version), (works, (3, 12)));
        let error = Python::first_that_runs(vec![shim]).unwrap_err().to_string();
        assert!(error.contains("no such version"), "{error}");
    }

    #[test]
    fn a_program_that_is_no_python_is_named() {
        let error = Python::probe(Path::new("/bin/true"), Vec::new()).unwrap_err().to_string();
        assert!(
            error.contains("/bin/true") && error.contains("does not run as a Python"),
            "{error}"
        );
    }

    #[test]
    fn a_python_without_a_fitting_pip_says_how_to_get_it() {
        let mut python = Python::on_path().unwrap();
        python.pip = String::new();
        let error = python.require_pip().unwrap_err().to_string();
        assert!(error.contains("has no pip") && error.contains("python3 -m ensurepip"), "{error}");
        python.pip = "18.1".into();
        let error = python.require_pip().unwrap_err().to_string();
        assert!(
            error.contains("is 18.1, needed is 20.3") && error.contains("install --upgrade pip"),
            "{error}"
        );
        python.pip = "25.0.1".into();
        python.require_pip().unwrap();
    }

    #[test]
    fn watched_run_keeps_both_streams_and_the_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let outcome = run_watched(command, false, || {}).unwrap();
        assert_eq!((outcome.status.code(), outcome.output.as_str()), (Some(3), "out\nerr\n"));
        assert_eq!(last_line(&outcome.output), "err");
        assert_eq!(last_line(" \n"), "no output");
    }
}
