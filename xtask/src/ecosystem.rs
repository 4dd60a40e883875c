//! `cargo xtask test-ecosystem`: the Python package in the frameworks that people train with. Their
//! packages take gigabytes, so `test` does not include it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::environment::Environment;
use crate::{cargo, native, wheel};

const REQUIREMENTS: &str = include_str!("../requirements/ecosystem.txt");
/// Imports each framework, so that a missing library is found at once.
const CHECK: &str =
    "import accelerate, dask, lightning, nbclient, pytest, ray.train, scvi, tiledbsoma_ml";
/// Prints the versions for the record of a run.
const VERSIONS: &str = "\
from importlib.metadata import version
import platform
names = ['torch', 'lightning', 'scvi-tools', 'ray', 'accelerate', 'tiledbsoma', 'tiledbsoma-ml']
print('Python', platform.python_version(), *(f'{name} {version(name)}' for name in names), sep=', ')";
/// scvi-tools 1.5 needs Python 3.12, and tiledbsoma 2.3 has wheels up to 3.13. The pins were
/// resolved with the former.
const PYTHON: (u32, u32) = (3, 12);
const VARIABLE: &str = "SOMAFEED_PYTHON_ECOSYSTEM";

/// Builds the wheel, unpacks it, and runs pytest on `python/tests_ecosystem`; `arguments` go to
/// pytest.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let native = native::prepare(native::Wanted::Both)?;
    let python = environment()?;
    let installed = match wheel::unpacked(&python)? {
        Ok(installed) => installed,
        Err(code) => return Ok(code),
    };
    let mut versions = cargo::command(python.as_os_str(), &native);
    cargo::run(versions.args(["-c", VERSIONS]))?;
    let mut command = cargo::command(python.as_os_str(), &native);
    command.current_dir(cargo::workspace_root().join("python/tests_ecosystem"));
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(arguments);
    command.env("PYTHONPATH", &installed).env("PYTHONDONTWRITEBYTECODE", "1");
    // Processes that train at the same time would fight for the cores.
    command.env("OMP_NUM_THREADS", "1");
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

/// Python with the frameworks. One that the user names is preferred.
pub(crate) fn environment() -> anyhow::Result<PathBuf> {
    let check = |python: &Path| wheel::check(python, &["-c", CHECK]);
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check(&named).with_context(|| format!("{VARIABLE}={} cannot be used", named.display()))?;
        return Ok(named);
    }
    let environment = Environment {
        folder: "python-ecosystem-1.5.1".to_owned(),
        what: "scvi-tools, lightning, ray and accelerate for their tests".to_owned(),
        requirements: REQUIREMENTS.to_owned(),
        download: "about 1.2 GB".to_owned(),
        instead: format!("set {VARIABLE} to an interpreter that has these packages"),
        oldest: PYTHON,
        newest: PYTHON,
    };
    environment.prepare(|python| {
        wheel::check(python, &["-c", wheel::CPU_TORCH])?;
        check(python)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn every_package_is_pinned() {
        assert_pinned(REQUIREMENTS);
        for package in ["torch==2.11.0", "scvi-tools==1.5.1", "lightning==2.6.6", "ray==2.60.0"] {
            assert!(REQUIREMENTS.contains(&format!("\n{package}\n")), "{package}");
        }
    }
}
