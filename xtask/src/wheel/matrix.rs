//! `cargo xtask test-wheel`: the wheel for users beside the packages that users have, by every
//! Python that is here. The tests of the package use another wheel: of another profile, and linked
//! by another linker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::packaging::Packages;
use super::{RELEASE, Systems, check, tests, unpack};
use crate::UsageError;
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

/// Builds what is uploaded, and checks it, the wheel in each environment. With `--dev` by the
/// profile of the tests and for systems like this one, which takes minutes less.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let (profile, systems) = match arguments {
        [] => (RELEASE, Systems::OfUsers),
        [one] if one == "--dev" => (tests::PROFILE, Systems::LikeThis),
        _ => return Err(UsageError("`cargo xtask test-wheel` takes only --dev".to_owned()).into()),
    };
    let packages = match Packages::build(profile, systems)? {
        Ok(packages) => packages,
        Err(code) => return Ok(code),
    };
    let mut all_pass = packages.pass()?;
    for python in installed(&packages.wheel)? {
        all_pass &= passes(&python, None)?;
    }
    let pythons = beside()?;
    let Some(first) = pythons.first() else { bail!("there is no Python to test the wheel with") };
    let wheel = packages.wheel;
    let Ok(unpacked) = unpack(first, Ok(wheel), "target/python-release")? else {
        bail!("a wheel that is built is unpacked")
    };
    for python in &pythons {
        all_pass &= passes(python, Some(&unpacked))?;
    }
    Ok(if all_pass { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the wheel passes its checks by this interpreter, where it is installed, or unpacked.
/// They print what fails.
fn passes(python: &Path, unpacked: Option<&Path>) -> anyhow::Result<bool> {
    // Without the libraries of the tests: a user has none of them.
    let mut command = cargo::command(python.as_os_str(), &Native::default());
    command.current_dir(cargo::workspace_root().join("python/tests")).arg("check_wheel.py");
    command.env_remove("PYTHONPATH").env("PYTHONDONTWRITEBYTECODE", "1");
    command.envs(unpacked.map(|folder| ("PYTHONPATH", folder)));
    command.env_remove("SOMAFEED_LIBTILEDB");
    Ok(cargo::run(&mut command)?.success())
}

/// An empty environment of each Python that is here, with the wheel and what it requires.
fn installed(wheel: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for minor in OLDEST.1..=NEWEST.1 {
        let environment = bare((OLDEST.0, minor), wheel);
        match environment.prepare_anew(|python| check(python, &["-c", "import somafeed"])) {
            Ok(python) => found.push(python),
            Err(error) => print_line(&format!("without Python 3.{minor}: {error:#}")),
        }
    }
    if found.is_empty() {
        bail!("the wheel could be installed by no Python");
    }
    Ok(found)
}

/// Environments with tiledbsoma, with AnnData, and with torch: by the oldest Python and the newest.
fn beside() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![python::prepare()?];
    found.push(anndata().prepare(|python| check(python, &["-c", "import anndata"]))?);
    found.push(tests::environment_of(OLDEST)?);
    found.push(tests::environment_of(NEWEST)?);
    Ok(found)
}

fn bare(version: (u32, u32), wheel: &Path) -> Environment {
    Environment {
        folder: format!("python-wheel-{}.{}", version.0, version.1),
        what: "the wheel beside numpy alone".to_owned(),
        requirements: format!("{}{}\n", python::pins_of(&["numpy"]), wheel.display()),
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
        let pins = anndata().requirements;
        assert_pinned(&pins);
        assert_eq!(pins.lines().count(), ANNDATA.len());
        let pins = bare(OLDEST, Path::new("/a.whl")).requirements;
        assert!(pins.starts_with("numpy==") && pins.ends_with("\n/a.whl\n"), "{pins}");
    }
}
