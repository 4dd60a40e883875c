//! `cargo xtask test-wheel`: the wheel for users beside the packages that users have, by every
//! Python that is here. The tests of the package use another wheel: of another profile, and linked
//! by another linker.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::{check, tests, unpacked_release};
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::native::Native;
use crate::progress::print_line;
use crate::{cargo, python};

/// AnnData, and the packages that it needs; the versions are those of the tests with tiledbsoma.
const ANNDATA: [&str; 20] = [
    "anndata",
    "array-api-compat",
    "donfig",
    "google-crc32c",
    "h5py",
    "legacy-api-wrap",
    "natsort",
    "numcodecs",
    "numpy",
    "packaging",
    "pandas",
    "python-dateutil",
    "pytz",
    "PyYAML",
    "scipy",
    "scverse-misc",
    "session-info2",
    "typing_extensions",
    "tzdata",
    "zarr",
];

/// Builds the wheel, and checks it in each environment.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let pythons = environments()?;
    let Some(first) = pythons.first() else { bail!("there is no Python to test the wheel with") };
    let installed = match unpacked_release(first)? {
        Ok(installed) => installed,
        Err(code) => return Ok(code),
    };
    let mut code = ExitCode::SUCCESS;
    for python in &pythons {
        if !passes(python, &installed)? {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Whether the wheel passes its checks by this interpreter. They print what fails.
fn passes(python: &Path, installed: &Path) -> anyhow::Result<bool> {
    // Without the libraries of the tests: a user has none of them.
    let mut command = cargo::command(python.as_os_str(), &Native::default());
    command.current_dir(cargo::workspace_root().join("python/tests")).arg("check_wheel.py");
    command.env("PYTHONPATH", installed).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env_remove("SOMAFEED_LIBTILEDB");
    Ok(cargo::run(&mut command)?.success())
}

/// numpy alone by each Python that is here; tiledbsoma, AnnData and torch by one.
fn environments() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for minor in OLDEST.1..=NEWEST.1 {
        match bare((OLDEST.0, minor)).prepare(|python| check(python, &["-c", "import numpy"])) {
            Ok(python) => found.push(python),
            Err(error) => print_line(&format!("without Python 3.{minor}: {error:#}")),
        }
    }
    found.push(python::prepare()?);
    found.push(anndata().prepare(|python| check(python, &["-c", "import anndata"]))?);
    found.push(tests::environment()?);
    Ok(found)
}

fn bare(version: (u32, u32)) -> Environment {
    Environment {
        folder: format!("python-bare-{}.{}", version.0, version.1),
        what: "numpy, to test the wheel beside nothing else".to_owned(),
        requirements: python::pins_of(&["numpy"]),
        download: "about 20 MB".to_owned(),
        instead: "test the wheel by other versions of Python".to_owned(),
        oldest: version,
        newest: version,
    }
}

fn anndata() -> Environment {
    Environment {
        folder: "python-anndata".to_owned(),
        what: "AnnData, to test the wheel beside it".to_owned(),
        requirements: python::pins_of(&ANNDATA),
        download: "about 80 MB".to_owned(),
        instead: "leave this test out".to_owned(),
        oldest: OLDEST,
        newest: NEWEST,
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn every_package_has_a_pin() {
        for (environment, n) in [(bare(OLDEST), 1), (anndata(), ANNDATA.len())] {
            assert_pinned(&environment.requirements);
            assert_eq!(environment.requirements.lines().count(), n);
        }
    }
}
