//! `cargo xtask python`: a Python environment with the pinned tiledbsoma, xarray, cftime, blosc and
//! gensim, for the interoperability tests and for `read-chunks`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::environment::{Environment, NEWEST, OLDEST};
use crate::interpreter::last_line;
use crate::progress::print_line;

const REQUIREMENTS: &str = include_str!("../requirements/tiledbsoma.txt");
const VERSION: &str = "2.3.0";
const XARRAY_VERSION: &str = "2026.9.0";
const CFTIME_VERSION: &str = "1.6.6.1";
const BLOSC_VERSION: &str = "1.11.4";
const GENSIM_VERSION: &str = "4.4.0";
const VARIABLE: &str = "SOMAFEED_PYTHON";

/// The interpreter of the environment, made if missing. One that the user names is preferred if it
/// has the pinned packages.
pub(crate) fn prepare() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check_packages(&named)
            .with_context(|| format!("{VARIABLE}={} cannot be used", named.display()))?;
        print_line(&format!("using {VARIABLE}={}", named.display()));
        return Ok(named);
    }
    let environment = Environment {
        folder: format!("python-tiledbsoma-{VERSION}"),
        what: format!(
            "tiledbsoma {VERSION}, xarray {XARRAY_VERSION}, cftime {CFTIME_VERSION}, blosc \
             {BLOSC_VERSION} and gensim {GENSIM_VERSION}"
        ),
        requirements: REQUIREMENTS.to_owned(),
        download: "about 300 MB".to_owned(),
        instead: format!(
            "set {VARIABLE} to an interpreter that has tiledbsoma {VERSION}, xarray \
             {XARRAY_VERSION}, cftime {CFTIME_VERSION}, blosc {BLOSC_VERSION} and gensim \
             {GENSIM_VERSION}"
        ),
        oldest: OLDEST,
        newest: NEWEST,
    };
    environment.prepare(check_packages)
}

/// The requirements of the environment for these packages alone.
pub(crate) fn pins_of(packages: &[&str]) -> String {
    let is_named =
        |line: &&str| line.split_once("==").is_some_and(|(package, _)| packages.contains(&package));
    REQUIREMENTS.lines().filter(is_named).flat_map(|line| [line, "\n"]).collect()
}

fn check_packages(python: &Path) -> anyhow::Result<()> {
    check_version(python, "tiledbsoma", VERSION)?;
    check_version(python, "xarray", XARRAY_VERSION)?;
    check_version(python, "cftime", CFTIME_VERSION)?;
    check_version(python, "blosc", BLOSC_VERSION)?;
    check_version(python, "gensim", GENSIM_VERSION)
}

/// Checks that an interpreter can import this version of a package.
pub(crate) fn check_version(python: &Path, package: &str, wanted: &str) -> anyhow::Result<()> {
    let output = Command::new(python)
        .args([
            "-c",
            &format!(
                "import {package}, importlib.metadata as all; print(all.version({package:?}))"
            ),
        ])
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        bail!(
            "{} cannot import {package}: {}; install {package} {wanted} for it",
            python.display(),
            last_line(&String::from_utf8_lossy(&output.stderr))
        );
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let found = printed.trim();
    if found != wanted {
        bail!("{} has {package} {found}, needed is {wanted}", python.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn requirements_pin_every_package() {
        let packages = [
            ("tiledbsoma", VERSION),
            ("xarray", XARRAY_VERSION),
            ("cftime", CFTIME_VERSION),
            ("blosc", BLOSC_VERSION),
            ("gensim", GENSIM_VERSION),
        ];
        for (package, version) in packages {
            let pin = format!("{package}=={version}");
            assert!(REQUIREMENTS.lines().any(|line| line == pin), "{pin}");
        }
        assert_pinned(REQUIREMENTS);
    }

    #[test]
    fn a_python_without_the_packages_is_refused() {
        let error = format!("{:#}", check_packages(Path::new("/nonexistent/python")).unwrap_err());
        assert!(error.contains("cannot run /nonexistent/python"), "{error}");
        for package in ["tiledbsoma", "xarray", "blosc", "gensim"] {
            let checked = check_version(Path::new("/bin/false"), package, "1.0");
            let error = format!("{:#}", checked.unwrap_err());
            assert!(error.contains(&format!("cannot import {package}")), "{error}");
            assert!(error.contains(&format!("install {package} 1.0")), "{error}");
        }
        // Prints nothing, which is not a version.
        let error = check_version(Path::new("/bin/true"), "xarray", "1.0").unwrap_err();
        assert!(error.to_string().contains("needed is 1.0"), "{error}");
    }
}
