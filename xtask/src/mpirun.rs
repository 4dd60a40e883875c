//! OpenMPI's `mpirun`, under which a test starts several ranks: the one on the PATH, else Debian's package.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::interpreter::{last_line, run_watched};
use crate::progress::Step;

const PACKAGE: &str = "openmpi-bin";
const BY_HAND: &str =
    "install OpenMPI so that mpirun is on the PATH (Debian, Ubuntu: apt install openmpi-bin)";

/// Makes sure that there is an mpirun.
pub(crate) fn prepare() -> anyhow::Result<()> {
    let mpirun = OsStr::new("mpirun");
    if runs(mpirun, "--version") {
        return Ok(());
    }
    let Some(mut as_root) = become_root() else {
        bail!("the tests start ranks under mpirun, and there is none: {BY_HAND}");
    };
    as_root.push("apt-get");
    install(&as_root)?;
    if !runs(mpirun, "--version") {
        bail!("{PACKAGE} was installed, and still mpirun does not run: {BY_HAND}");
    }
    Ok(())
}

/// What stands before a command that only root may run; `None` where nobody becomes root without a password.
fn become_root() -> Option<Vec<&'static str>> {
    let is_root =
        Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if is_root {
        return Some(Vec::new());
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).stdin(Stdio::null()).output();
    sudo.is_ok_and(|sudo| sudo.status.success()).then(|| vec!["sudo", "-n"])
}

fn install(apt_get: &[&str]) -> anyhow::Result<()> {
    let step =
        Step::start(format!("installing {PACKAGE} for the tests with {}", apt_get.join(" ")));
    let run = |arguments: &[&str]| -> anyhow::Result<Option<String>> {
        let (program, before) = apt_get.split_first().context("apt-get is a program")?;
        let mut command = Command::new(program);
        command
            .args(before)
            .args(arguments)
            .stdin(Stdio::null())
            .env("DEBIAN_FRONTEND", "noninteractive");
        let outcome = run_watched(command, false, || step.still()).context(BY_HAND)?;
        Ok((!outcome.status.success()).then(|| last_line(&outcome.said)))
    };
    let package = ["install", "-y", "--no-install-recommends", PACKAGE];
    if run(&package)?.is_some() {
        // A fresh machine has no lists of packages yet.
        run(&["update"])?;
        if let Some(said) = run(&package)? {
            bail!("cannot install {PACKAGE}: {said}; {BY_HAND}");
        }
    }
    step.done();
    Ok(())
}

fn runs(program: &OsStr, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|ran| ran.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_cannot_be_had_says_what_to_do() {
        let error = format!("{:#}", install(&["false"]).unwrap_err());
        assert!(
            error.contains("cannot install openmpi-bin") && error.contains("apt install"),
            "{error}"
        );
        let error = format!("{:#}", install(&["/nonexistent/apt-get"]).unwrap_err());
        assert!(error.contains("/nonexistent/apt-get") && error.contains("apt install"), "{error}");
        assert!(install(&["true"]).is_ok());
    }

    #[test]
    fn only_what_runs_is_there() {
        assert!(runs(OsStr::new("true"), "--version"));
        assert!(!runs(OsStr::new("/nonexistent/mpirun"), "--version"));
    }
}
