//! `cargo xtask test-launchers`: sweeps under real launchers, with mpirun and Slurm in place. It
//! installs daemons, so `test` does not include it.

use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;

use crate::debian::{Needed, runs};
use crate::{cargo, mpirun, native};

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
/// Installs what is missing and runs the tests.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let native = native::prepare(native::Wanted::Both)?;
    mpirun::prepare()?;
    MUNGE.prepare(|| runs(OsStr::new("munged")).then_some(()))?;
    SLURM.prepare(|| is_on_path("slurmctld").then_some(()))?;
    let arguments = ["test", "-p", "sweep", "--test", "sweep", "launchers::", "--", "--ignored"];
    let mut command = cargo::cargo(arguments.map(OsStr::new), &native);
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

/// Slurm's daemons have no `--version`.
fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_on_the_path() {
        assert!(is_on_path("sh") && !is_on_path("slurmctld-that-nobody-has"));
    }
}
