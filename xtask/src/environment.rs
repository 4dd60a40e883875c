//! A Python environment of pinned packages in the user's cache, made once, in place, and marked
//! when it is complete.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use anyhow::{Context as _, bail};

use crate::cache::{Cache, remove};
use crate::interpreter::search::{candidates, search_path};
use crate::interpreter::{Python, last_line, run_watched};
use crate::progress::{self, Step};

/// The range of Python versions for which most pinned packages have wheels.
pub(crate) const OLDEST: (u32, u32) = (3, 11);
pub(crate) const NEWEST: (u32, u32) = (3, 13);
const MARKER: &str = ".complete";

/// The contents of an environment, and texts about it.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Its folder in the cache.
    pub(crate) folder: String,
    /// Its purpose, like `tiledbsoma 2.3.0 for the tests`.
    pub(crate) what: String,
    /// Packages with their versions, one per line.
    pub(crate) requirements: String,
    /// Size of the download, like `about 300 MB`.
    pub(crate) download: String,
    /// The alternative for the user, like `set SOMAFEED_PYTHON to ...`.
    pub(crate) instead: String,
    /// Oldest Python for which all its packages have wheels.
    pub(crate) oldest: (u32, u32),
    /// Newest such Python.
    pub(crate) newest: (u32, u32),
}

impl Environment {
    /// Returns its interpreter. Makes the environment if it is missing; `check` must then succeed
    /// once before it counts as complete.
    pub(crate) fn prepare(
        &self,
        check: impl Fn(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        let cache = Cache::of_user()?;
        let folder = cache.root().join(&self.folder);
        if self.is_whole(&folder) {
            return Ok(interpreter(&folder));
        }
        let _lock = cache.lock()?;
        if self.is_whole(&folder) {
            return Ok(interpreter(&folder));
        }
        let python = self.python(&search_path())?;
        self.make(&folder, &python)?;
        check(&interpreter(&folder))?;
        fs::write(folder.join(MARKER), &self.requirements)
            .with_context(|| format!("cannot write {}", folder.join(MARKER).display()))?;
        Ok(interpreter(&folder))
    }

    /// As [`Self::prepare`], but an earlier one is not kept.
    pub(crate) fn prepare_anew(
        &self,
        check: impl Fn(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        remove(&Cache::of_user()?.root().join(&self.folder))?;
        self.prepare(check)
    }

    /// Whether the marker, which is written last, has these pins, and the linked interpreter still
    /// exists.
    fn is_whole(&self, folder: &Path) -> bool {
        let marked = fs::read_to_string(folder.join(MARKER))
            .is_ok_and(|written| written == self.requirements);
        marked
            && Command::new(interpreter(folder))
                .args(["-I", "-S", "-c", ""])
                .output()
                .is_ok_and(|ran| ran.status.success())
    }

    /// The first suitable Python on `path`: a `python3`, or the newest `python3.N`. One that does
    /// not run is passed over. Fails with each candidate's reason.
    fn python(&self, path: &OsStr) -> anyhow::Result<Python> {
        let (major, oldest) = self.oldest;
        let others = (oldest..=self.newest.1).rev().map(|minor| format!("python{major}.{minor}"));
        let mut reasons = Vec::new();
        for name in iter::once("python3".to_owned()).chain(others) {
            for program in candidates(&name, path) {
                match self.suitable(&program) {
                    Ok(python) => return Ok(python),
                    Err(reason) => reasons.push(reason.to_string()),
                }
            }
        }
        bail!(
            "{} needs Python {}.{} to {}.{} with pip: put a fitting python3 or python3.N on the PATH, or {}; {}",
            self.what,
            self.oldest.0,
            self.oldest.1,
            self.newest.0,
            self.newest.1,
            self.instead,
            if reasons.is_empty() { "there is no python3".to_owned() } else { reasons.join("; ") }
        );
    }

    /// Runs `program`. Fails if it is not a Python of a suitable version with a suitable pip.
    fn suitable(&self, program: &Path) -> anyhow::Result<Python> {
        let python = Python::probe(program, Vec::new())?;
        if python.version < self.oldest || self.newest < python.version {
            let (major, minor) = python.version;
            bail!("`{}` is Python {major}.{minor}", program.display());
        }
        python.require_pip()?;
        Ok(python)
    }

    /// Makes the environment in place, because it cannot be moved.
    fn make(&self, folder: &Path, python: &Python) -> anyhow::Result<()> {
        remove(folder)?;
        // Without its own pip: Debian lacks the part of venv that installs it (python3-venv). The
        // user's pip installs into the environment instead.
        let mut venv = python.command(["-m", "venv", "--without-pip"]);
        venv.arg(folder);
        let outcome = run_watched(venv, false, || {})?;
        if !outcome.status.success() {
            let reason = last_line(&outcome.output);
            bail!(
                "cannot make a Python environment in {}: {reason} (Debian, Ubuntu: apt install python3-venv)",
                folder.display()
            );
        }
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, &self.requirements)
            .with_context(|| format!("cannot write {}", requirements.display()))?;
        self.install(folder, &requirements, python)
    }

    fn install(&self, folder: &Path, requirements: &Path, python: &Python) -> anyhow::Result<()> {
        let (major, minor) = python.version;
        let packages = folder.join(format!("lib/python{major}.{minor}/site-packages"));
        let temporary = folder.join("tmp");
        fs::create_dir_all(&temporary)
            .with_context(|| format!("cannot write {}", temporary.display()))?;
        let mut pip = python.command([
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--no-input",
            "--disable-pip-version-check",
        ]);
        pip.args(["--only-binary=:all:", "--no-warn-script-location", "--requirement"])
            .arg(requirements);
        pip.arg("--target").arg(packages);
        // The first two would contradict --target.
        pip.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0").env("TMPDIR", &temporary);
        let step = Step::start(format!(
            "installing {} into {} ({} of packages)",
            self.what,
            folder.display(),
            self.download
        ));
        let outcome = run_watched(pip, progress::on_terminal(), || step.still())?;
        if !outcome.status.success() {
            bail!(self.explain(&outcome.output));
        }
        remove(&temporary)?;
        step.done();
        Ok(())
    }

    fn explain(&self, output: &str) -> String {
        let reason = output.lines().rev().find_map(|line| line.trim().strip_prefix("ERROR: "));
        let reason = reason.map_or_else(|| last_line(output), str::to_owned);
        let advice = if output.contains("No space left on device") {
            "the disk is full: set XDG_CACHE_HOME to a larger one".to_owned()
        } else {
            format!("check the network and pip's settings, or {}", self.instead)
        };
        format!("pip could not install {}: {reason}; {advice}", self.what)
    }
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// Fails unless every line except comments pins one package.
#[cfg(test)]
pub(crate) fn assert_pinned(requirements: &str) {
    // Comments, and options such as packages without a wheel.
    for line in requirements.lines().filter(|line| !line.starts_with(['#', '-'])) {
        let (name, version) = line.split_once("==").unwrap_or_else(|| panic!("not pinned: {line}"));
        assert!(!name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{line}");
        assert!(!line.contains('/'), "a path of one machine: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::search::write_program;

    fn environment() -> Environment {
        Environment {
            folder: "python-x-1.0".into(),
            what: "x 1.0 for the tests".into(),
            requirements: "x==1.0\n".into(),
            download: "about 1 MB".into(),
            instead: "set X to an interpreter that has x 1.0".into(),
            oldest: OLDEST,
            newest: NEWEST,
        }
    }

    #[test]
    fn every_python_on_the_path_is_tried_until_one_fits() {
        let folder = tempfile::tempdir().unwrap();
        let write = |at: &str, name: &str, does: &str| {
            let folder = folder.path().join(at);
            write_program(&folder, name, does);
            folder
        };
        let unfit = [
            write("a", "python3", "echo '3.9|25.0|'"),
            write("b", "python3.13", "echo 'not switched on' >&2; exit 127"),
            write("c", "python3.13", "echo '3.14|25.0|'"),
            write("d", "python3.12", "echo '3.12||'"),
        ];
        let error = environment().python(&std::env::join_paths(&unfit).unwrap()).unwrap_err();
        let error = error.to_string();
        let reasons = ["is Python 3.9", "not switched on", "is Python 3.14", "has no pip"];
        for part in ["Python 3.11 to 3.13", "set X to an interpreter"].iter().chain(&reasons) {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(error.lines().count(), 1);
        let fits = write("e", "python3.12", "echo '3.12|25.0|'");
        let path = std::env::join_paths(unfit.iter().chain([&fits])).unwrap();
        assert_eq!(environment().python(&path).unwrap().version, (3, 12));
        // A suitable python3 goes before a newer python3.N.
        let first = write("f", "python3", "echo '3.11|25.0|'");
        let path = std::env::join_paths([&fits, &first]).unwrap();
        assert_eq!(environment().python(&path).unwrap().version, (3, 11));
        let error = environment().python(OsStr::new("")).unwrap_err().to_string();
        assert!(error.contains("there is no python3"), "{error}");
    }

    #[test]
    fn a_half_made_environment_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let python = Python::on_path().unwrap();
        let is_whole = || environment().is_whole(folder.path());
        assert!(!is_whole());
        let made =
            python.command(["-m", "venv", "--without-pip"]).arg(folder.path()).output().unwrap();
        assert!(made.status.success());
        assert!(!is_whole(), "no marker");
        fs::write(folder.path().join(MARKER), "x==0.9\n").unwrap();
        assert!(!is_whole(), "other pins");
        fs::write(folder.path().join(MARKER), "x==1.0\n").unwrap();
        assert!(is_whole());
        fs::remove_file(interpreter(folder.path())).unwrap();
        assert!(!is_whole(), "its interpreter is gone");
    }

    #[test]
    fn pip_failures_are_explained_in_one_line() {
        let message = environment()
            .explain("Collecting\nERROR: No matching distribution found for numpy==2.4.6\n");
        assert!(
            message.contains("numpy==2.4.6")
                && message.contains("set X to an interpreter")
                && message.lines().count() == 1,
            "{message}"
        );
        assert!(
            environment()
                .explain("OSError: [Errno 28] No space left on device\n")
                .contains("the disk is full")
        );
    }
}
