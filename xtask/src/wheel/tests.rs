//! Tests of the Python package: the wheel is built, unpacked, and tested by pytest.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use super::{Systems, build, check, unpack};
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::interpreter::Python;
use crate::{cargo, native, python};

const REQUIREMENTS: &str = include_str!("../../requirements/package-tests.txt");
/// Makes torch work without most of CUDA, and checks that it does.
pub(crate) const CPU_TORCH: &str = include_str!("cpu_torch.py");
/// What tests without torch need.
const CHECK: &str = "import numpy, pandas, pyarrow, pytest, scipy, torch, torchdata";
/// The profile of the tests: most of it is built for the tests of the workspace, too.
pub(super) const PROFILE: &str = "dev";
/// The folder of the unpacked wheel, below the workspace.
pub(crate) const UNPACKED: &str = "target/python-package";
const VARIABLE: &str = "SOMAFEED_PYTHON_PACKAGE_TESTS";

/// Builds the wheel, unpacks it, and runs pytest on `python/tests`; `arguments` go to pytest.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let native = native::prepare(native::Wanted::Both)?;
    let with_tiledbsoma = python::prepare()?;
    let python = environment()?;
    let installed = match unpacked(&python)? {
        Ok(installed) => installed,
        Err(code) => return Ok(code),
    };
    let mut command = cargo::command(python.as_os_str(), &native);
    // Elsewhere, Python would find the sources instead of the wheel.
    command.current_dir(cargo::workspace_root().join("python/tests"));
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(arguments);
    command.env("PYTHONPATH", &installed).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("SOMAFEED_PYTHON", &with_tiledbsoma);
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

/// Builds the wheel of the tests and returns the folder in which it is unpacked; the exit code if
/// the build failed and printed why.
pub(crate) fn unpacked(python: &Path) -> anyhow::Result<Result<PathBuf, ExitCode>> {
    unpack(python, build(PROFILE, Systems::LikeThis)?, UNPACKED)
}

/// Python with the packages of the tests. One that the user names is preferred.
pub(crate) fn environment() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check(&named, &["-c", CHECK])
            .with_context(|| format!("{VARIABLE}={} cannot be used", named.display()))?;
        return Ok(named);
    }
    pinned("python-package-tests-2.11.0", OLDEST, NEWEST)
}

/// Python of a version with the packages of the tests.
pub(super) fn environment_of(version: (u32, u32)) -> anyhow::Result<PathBuf> {
    let usual = environment()?;
    if Python::probe(&usual, Vec::new())?.version == version {
        return Ok(usual);
    }
    let folder = format!("python-package-tests-2.11.0-{}.{}", version.0, version.1);
    pinned(&folder, version, version)
}

fn pinned(folder: &str, oldest: (u32, u32), newest: (u32, u32)) -> anyhow::Result<PathBuf> {
    let environment = Environment {
        folder: folder.to_owned(),
        what: "numpy, scipy, pandas, pyarrow and torch for the tests of the Python package"
            .to_owned(),
        requirements: REQUIREMENTS.to_owned(),
        download: "about 700 MB".to_owned(),
        instead: format!("set {VARIABLE} to an interpreter that has these packages"),
        oldest,
        newest,
    };
    environment.prepare(|python| {
        check(python, &["-c", CPU_TORCH])?;
        check(python, &["-c", CHECK])
    })
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn every_package_is_pinned() {
        assert_pinned(REQUIREMENTS);
        assert!(REQUIREMENTS.contains("\ntorch==2.11.0\n"));
    }
}
