//! `cargo xtask wheel`: builds the wheel of the Python package; `cargo xtask pytest`: tests it.

mod tests;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cache::remove;
use crate::cargo;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::interpreter::last_line;
use crate::native::Native;
use crate::progress::print_line;

pub(crate) use tests::run as test;

const MATURIN: &str = include_str!("../requirements/maturin.txt");
const MATURIN_VERSION: &str = "1.16.0";

/// The profile of the wheel for users.
const RELEASE: &str = "wheel";

/// Builds the wheel for users and prints its path.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    match build(RELEASE)? {
        Ok(wheel) => {
            println!("{}", wheel.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(code) => Ok(code),
    }
}

/// Builds the wheel with a profile of cargo and returns its path; the exit code if the build failed
/// and printed why.
fn build(profile: &str) -> anyhow::Result<Result<PathBuf, ExitCode>> {
    let (python, maturin) = maturin()?;
    let root = cargo::workspace_root();
    let folder = root.join("target/wheels").join(profile);
    // Wheels of earlier versions would stand beside the new one.
    remove(&folder)?;
    let mut command = cargo::command(maturin.as_os_str(), &Native::default());
    command.args(["build", "--locked", "--profile", profile]);
    command.arg("--manifest-path").arg(root.join("python/Cargo.toml"));
    command.arg("--interpreter").arg(&python).arg("--out").arg(&folder);
    let status = cargo::run(&mut command)?;
    if !status.success() {
        return Ok(Err(cargo::exit_code(status)));
    }
    wheel_in(&folder).map(Ok)
}

/// A Python, and the program maturin beside its packages.
fn maturin() -> anyhow::Result<(PathBuf, PathBuf)> {
    let environment = Environment {
        folder: format!("python-maturin-{MATURIN_VERSION}"),
        what: format!("maturin {MATURIN_VERSION}"),
        requirements: MATURIN.to_owned(),
        download: "about 10 MB".to_owned(),
        instead: format!(
            "build the wheel by hand: `pip install maturin=={MATURIN_VERSION}`, then `maturin \
             build --profile {RELEASE}` in python/"
        ),
        oldest: OLDEST,
        newest: NEWEST,
    };
    let python = environment.prepare(|python| check(&program(python)?, &["--version"]))?;
    let maturin = program(&python)?;
    Ok((python, maturin))
}

/// Where pip puts maturin if it installs into a folder of packages.
fn program(python: &Path) -> anyhow::Result<PathBuf> {
    let script = "import site; print(site.getsitepackages()[0], end='')";
    let output = Command::new(python).args(["-c", script]).output();
    let output = output.with_context(|| format!("cannot run {}", python.display()))?;
    Ok(Path::new(&String::from_utf8(output.stdout)?).join("bin/maturin"))
}

/// Fails unless the interpreter succeeds with these arguments.
fn check(python: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let ran = Command::new(python).args(arguments).output();
    let output = ran.with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        let reason = last_line(&String::from_utf8_lossy(&output.stderr));
        bail!("`{} {}` failed: {reason}", python.display(), arguments.join(" "));
    }
    Ok(())
}

/// The wheel in a folder that has one.
fn wheel_in(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut wheels = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension() == Some(OsStr::new("whl")));
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => bail!("maturin left no wheel, or several, in {}", folder.display()),
    }
}

/// Puts the wheel for users into the environment of an interpreter, in place of an earlier one.
pub(crate) fn install(python: &Path) -> anyhow::Result<()> {
    let Ok(wheel) = build(RELEASE)? else { bail!("cargo could not build the wheel") };
    let script = "import sysconfig; print(sysconfig.get_path('purelib'), end='')";
    let ran = Command::new(python).args(["-c", script]).output();
    let output = ran.with_context(|| format!("cannot run {}", python.display()))?;
    let packages = String::from_utf8(output.stdout).context("the folder of packages")?;
    remove(&Path::new(&packages).join("somafeed"))?;
    let wheel = wheel.to_str().context("the path of the wheel is not UTF-8")?;
    check(python, &["-m", "zipfile", "-e", wheel, &packages])
}

/// Runs pytest over the tests of the package; `cargo xtask pytest`.
pub(crate) fn pytest(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    print_line("building the wheel for its tests: some minutes at first, later seconds");
    test(arguments)
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn maturin_is_pinned() {
        assert_pinned(MATURIN);
        assert!(MATURIN.contains(&format!("maturin=={MATURIN_VERSION}\n")));
    }

    #[test]
    fn a_folder_has_one_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let error = wheel_in(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no wheel"), "{error}");
        let wheel = folder.path().join("a.whl");
        fs::write(&wheel, "").unwrap();
        fs::write(folder.path().join("a.txt"), "").unwrap();
        assert_eq!(wheel_in(folder.path()).unwrap(), wheel);
        fs::write(folder.path().join("b.whl"), "").unwrap();
        assert!(wheel_in(folder.path()).is_err());
    }
}
