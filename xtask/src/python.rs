//! `cargo xtask python`: a Python environment with the pinned tiledbsoma, for the interoperability
//! tests and for `read-chunks`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::environment::{Environment, NEWEST, OLDEST};
use crate::interpreter::last_line;
use crate::progress::print_line;

const REQUIREMENTS: &str = include_str!("../requirements/tiledbsoma.txt");
const VERSION: &str = "2.3.0";
const VARIABLE: &str = "SOMAFEED_PYTHON";

/// The interpreter of the environment, made if missing. One that the user names is preferred if it
/// has the pinned tiledbsoma.
pub(crate) fn prepare() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check_tiledbsoma(&named)
            .with_context(|| format!("{VARIABLE}={} cannot be used", named.display()))?;
        print_line(&format!("using {VARIABLE}={}", named.display()));
        return Ok(named);
    }
    let environment = Environment {
        folder: format!("python-tiledbsoma-{VERSION}"),
        what: format!("tiledbsoma {VERSION}"),
        requirements: REQUIREMENTS.to_owned(),
        download: "about 300 MB".to_owned(),
        instead: format!("set {VARIABLE} to an interpreter that has tiledbsoma {VERSION}"),
        oldest: OLDEST,
        newest: NEWEST,
    };
    environment.prepare(check_tiledbsoma)
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
    let printed = String::from_utf8_lossy(&output.stdout);
    let found = printed.trim();
    if found != VERSION {
        bail!("{} has tiledbsoma {found}, needed is {VERSION}", python.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn requirements_pin_every_package() {
        assert!(REQUIREMENTS.lines().any(|line| line == format!("tiledbsoma=={VERSION}")));
        assert_pinned(REQUIREMENTS);
    }

    #[test]
    fn a_python_without_tiledbsoma_is_refused() {
        let error =
            format!("{:#}", check_tiledbsoma(Path::new("/nonexistent/python")).unwrap_err());
        assert!(error.contains("cannot run /nonexistent/python"), "{error}");
        let error = format!("{:#}", check_tiledbsoma(Path::new("/bin/false")).unwrap_err());
        assert!(error.contains("cannot import tiledbsoma"), "{error}");
    }
}
