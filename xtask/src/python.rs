//! `cargo xtask python`: a Python environment with the pinned tiledbsoma, against which the interoperability tests run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::cache::{Cache, remove};
use crate::interpreter::{Python, last_line, run_watched};
use crate::progress::{self, Step, say};

const REQUIREMENTS: &str = include_str!("../requirements/tiledbsoma.txt");
const VERSION: &str = "2.3.0";
/// The Python versions that all pinned packages have wheels for.
const OLDEST: (u32, u32) = (3, 11);
const NEWEST: (u32, u32) = (3, 13);
const VARIABLE: &str = "SOMAFEED_PYTHON";
const MARKER: &str = ".complete";

/// The interpreter of the environment, made if it is not there. One that the user names wins, if it has the pinned tiledbsoma.
pub(crate) fn prepare() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check_tiledbsoma(&named)
            .with_context(|| format!("{VARIABLE}={} cannot be used", named.display()))?;
        say(&format!("using {VARIABLE}={}", named.display()));
        return Ok(named);
    }
    let cache = Cache::of_user()?;
    let folder = cache.root().join(format!("python-tiledbsoma-{VERSION}"));
    if is_whole(&folder) {
        return Ok(interpreter(&folder));
    }
    let _lock = cache.lock()?;
    if is_whole(&folder) {
        return Ok(interpreter(&folder));
    }
    let python = Python::on_path()?;
    python.require_pip()?;
    check_version(python.version)?;
    make(&folder, &python)?;
    Ok(interpreter(&folder))
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// The marker is written last and holds the pins; and the interpreter that the environment links to must still be there.
fn is_whole(folder: &Path) -> bool {
    let marked =
        fs::read_to_string(folder.join(MARKER)).is_ok_and(|written| written == REQUIREMENTS);
    marked
        && Command::new(interpreter(folder))
            .args(["-I", "-S", "-c", ""])
            .output()
            .is_ok_and(|ran| ran.status.success())
}

fn check_version(found: (u32, u32)) -> anyhow::Result<()> {
    if found < OLDEST || NEWEST < found {
        bail!(
            "the tests need tiledbsoma {VERSION} with Python {}.{} to {}.{}, python3 is {}.{}: put a fitting python3 first on the PATH, \
             or set {VARIABLE} to an interpreter that has tiledbsoma {VERSION}",
            OLDEST.0,
            OLDEST.1,
            NEWEST.0,
            NEWEST.1,
            found.0,
            found.1
        );
    }
    Ok(())
}

/// An environment cannot be moved, so it is made in place and marked when it is whole.
fn make(folder: &Path, python: &Python) -> anyhow::Result<()> {
    remove(folder)?;
    // Without pip of its own: Debian leaves out what venv needs for that (python3-venv). The user's pip installs into it instead.
    let mut venv = python.command(["-m", "venv", "--without-pip"]);
    venv.arg(folder);
    let outcome = run_watched(venv, false, || {})?;
    if !outcome.status.success() {
        let reason = last_line(&outcome.said);
        bail!(
            "cannot make a Python environment in {}: {reason} (Debian, Ubuntu: apt install python3-venv)",
            folder.display()
        );
    }
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS)
        .with_context(|| format!("cannot write {}", requirements.display()))?;
    install(folder, &requirements, python)?;
    check_tiledbsoma(&interpreter(folder))?;
    fs::write(folder.join(MARKER), REQUIREMENTS)
        .with_context(|| format!("cannot write {}", folder.join(MARKER).display()))
}

fn install(folder: &Path, requirements: &Path, python: &Python) -> anyhow::Result<()> {
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
        "installing tiledbsoma {VERSION} for the tests into {} (about 300 MB of packages)",
        folder.display()
    ));
    let outcome = run_watched(pip, progress::on_terminal(), || step.still())?;
    if !outcome.status.success() {
        bail!(explain(&outcome.said));
    }
    remove(&temporary)?;
    step.done();
    Ok(())
}

fn explain(said: &str) -> String {
    let reason = said.lines().rev().find_map(|line| line.trim().strip_prefix("ERROR: "));
    let reason = reason.map_or_else(|| last_line(said), str::to_owned);
    let advice = if said.contains("No space left on device") {
        "the disk is full: set XDG_CACHE_HOME to a larger one".to_owned()
    } else {
        format!(
            "check the network and pip's settings, or set {VARIABLE} to an interpreter that has tiledbsoma {VERSION}"
        )
    };
    format!("pip could not install tiledbsoma {VERSION}: {reason}; {advice}")
}

fn check_tiledbsoma(python: &Path) -> anyhow::Result<()> {
    let output = Command::new(python)
        .args(["-c", "import tiledbsoma; print(tiledbsoma.__version__)"])
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        bail!(
            "{} cannot import tiledbsoma: {}",
            python.display(),
            last_line(&String::from_utf8_lossy(&output.stderr))
        );
    }
    let told = String::from_utf8_lossy(&output.stdout);
    let found = told.trim();
    if found != VERSION {
        bail!("{} has tiledbsoma {found}, needed is {VERSION}", python.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_pin_every_package() {
        assert!(REQUIREMENTS.lines().any(|line| line == format!("tiledbsoma=={VERSION}")));
        for line in REQUIREMENTS.lines().filter(|line| !line.starts_with('#')) {
            let (name, version) =
                line.split_once("==").unwrap_or_else(|| panic!("not pinned: {line}"));
            assert!(
                !name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()),
                "{line}"
            );
        }
        assert!(!REQUIREMENTS.contains('/'), "a path of one machine");
    }

    #[test]
    fn other_python_versions_are_told_what_helps() {
        check_version((3, 11)).unwrap();
        check_version((3, 13)).unwrap();
        for version in [(3, 10), (3, 14), (2, 7)] {
            let error = check_version(version).unwrap_err().to_string();
            assert!(
                error.contains("Python 3.11 to 3.13") && error.contains("SOMAFEED_PYTHON"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_python_without_tiledbsoma_is_refused() {
        let error =
            format!("{:#}", check_tiledbsoma(Path::new("/nonexistent/python")).unwrap_err());
        assert!(error.contains("cannot run /nonexistent/python"), "{error}");
        let error = format!("{:#}", check_tiledbsoma(Path::new("/bin/false")).unwrap_err());
        assert!(error.contains("cannot import tiledbsoma"), "{error}");
    }

    #[test]
    fn a_half_made_environment_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let python = Python::on_path().unwrap();
        assert!(!is_whole(folder.path()));
        let made =
            python.command(["-m", "venv", "--without-pip"]).arg(folder.path()).output().unwrap();
        assert!(made.status.success());
        assert!(!is_whole(folder.path()), "no marker");
        fs::write(folder.path().join(MARKER), "tiledbsoma==1.0\n").unwrap();
        assert!(!is_whole(folder.path()), "other pins");
        fs::write(folder.path().join(MARKER), REQUIREMENTS).unwrap();
        assert!(is_whole(folder.path()));
        fs::remove_file(interpreter(folder.path())).unwrap();
        assert!(!is_whole(folder.path()), "its interpreter is gone");
    }

    #[test]
    fn pip_failures_are_explained_in_one_line() {
        let told = explain("Collecting\nERROR: No matching distribution found for numpy==2.4.6\n");
        assert!(
            told.contains("numpy==2.4.6")
                && told.contains("SOMAFEED_PYTHON")
                && told.lines().count() == 1,
            "{told}"
        );
        assert!(
            explain("OSError: [Errno 28] No space left on device\n").contains("the disk is full")
        );
    }
}
