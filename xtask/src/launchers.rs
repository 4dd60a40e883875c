//! `cargo xtask test-launchers`: sweeps under real launchers, with mpirun, Slurm and HyperQueue in
//! place. It installs daemons, so `test` does not include it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::debian::{Needed, runs};
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::{cargo, mpirun, native, python};

const MUNGE: Needed = Needed {
    purpose: "the tests start a Slurm, whose daemons trust each other by munge",
    package: "munge",
    by_hand: "install munge so that munged is on the PATH (Debian, Ubuntu: apt install munge)",
    service: Some("munge"),
};
/// Its services start only where the machine has a configuration of Slurm.
const SLURM: Needed = Needed {
    purpose: "the tests start a Slurm",
    package: "slurm-wlm",
    by_hand: "install Slurm so that slurmctld, slurmd and sbatch are on the PATH (Debian, Ubuntu: apt install slurm-wlm)",
    service: None,
};

const HYPERQUEUE: &str = include_str!("../requirements/hyperqueue.txt");
const HYPERQUEUE_VERSION: &str = "0.27.0";
/// The variable with which the test finds an interpreter that has HyperQueue.
const HYPERQUEUE_PYTHON: &str = "SOMAFEED_PYTHON_HYPERQUEUE";

/// Installs what is missing and runs the tests.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let native = native::prepare(native::Wanted::Both)?;
    mpirun::prepare()?;
    MUNGE.prepare(|| runs(OsStr::new("munged")).then_some(()))?;
    SLURM.prepare(|| is_on_path("slurmctld").then_some(()))?;
    let arguments = ["test", "-p", "sweep", "--test", "sweep", "launchers::", "--", "--ignored"];
    let mut command = cargo::cargo(arguments.map(OsStr::new), &native);
    command.env(HYPERQUEUE_PYTHON, hyperqueue()?);
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

/// The interpreter of an environment with HyperQueue, made if missing. One that the user names is
/// preferred.
fn hyperqueue() -> anyhow::Result<PathBuf> {
    let check = |python: &Path| python::check_version(python, "hyperqueue", HYPERQUEUE_VERSION);
    if let Some(named) = env::var_os(HYPERQUEUE_PYTHON).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check(&named)
            .with_context(|| format!("{HYPERQUEUE_PYTHON}={} cannot be used", named.display()))?;
        return Ok(named);
    }
    let environment = Environment {
        folder: format!("python-hyperqueue-{HYPERQUEUE_VERSION}"),
        what: format!("hyperqueue {HYPERQUEUE_VERSION} for the tests"),
        requirements: HYPERQUEUE.to_owned(),
        download: "about 15 MB".to_owned(),
        instead: format!(
            "set {HYPERQUEUE_PYTHON} to an interpreter that has hyperqueue {HYPERQUEUE_VERSION}"
        ),
        oldest: OLDEST,
        newest: NEWEST,
    };
    environment.prepare(check)
}

/// Slurm's daemons have no `--version`.
fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn hyperqueue_is_pinned() {
        assert_pinned(HYPERQUEUE);
        assert!(HYPERQUEUE.contains(&format!("\nhyperqueue=={HYPERQUEUE_VERSION}\n")));
    }

    #[test]
    fn programs_are_looked_for_on_the_path() {
        assert!(is_on_path("sh") && !is_on_path("slurmctld-that-nobody-has"));
    }
}
