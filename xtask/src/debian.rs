//! Programs that tests start, installed from Debian's packages if missing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};

use crate::interpreter::{last_line, run_watched};
use crate::progress::Step;

/// The flag of every command that may install a program.
pub(crate) const NO_INSTALL: &str = "--no-install";
static IS_LEFT_TO_USER: AtomicBool = AtomicBool::new(false);

/// From now on nothing is installed: a program that is missing is an error.
pub(crate) fn install_nothing() {
    IS_LEFT_TO_USER.store(true, Ordering::Relaxed);
}

/// A program that tests need.
#[derive(Debug)]
pub(crate) struct Needed {
    /// Their use, like `the tests start ranks under mpirun`.
    pub(crate) purpose: &'static str,
    /// The package that contains it.
    pub(crate) package: &'static str,
    /// Advice if it cannot be installed.
    pub(crate) by_hand: &'static str,
    /// The service that the package starts, now and with the machine. The tests start the program
    /// themselves, so it is switched off.
    pub(crate) service: Option<&'static str>,
}

/// Exists if systemd runs the machine. It does not in a container.
const SYSTEMD: &str = "/run/systemd/system";

impl Needed {
    /// Installs the package unless `find` finds the program.
    pub(crate) fn prepare<T>(&self, find: impl Fn() -> Option<T>) -> anyhow::Result<T> {
        if let Some(found) = find() {
            return Ok(found);
        }
        let Self { purpose, package, by_hand, .. } = self;
        if IS_LEFT_TO_USER.load(Ordering::Relaxed) {
            bail!("{purpose}, there is none, and {NO_INSTALL} leaves it to you: {by_hand}");
        }
        let Some(mut as_root) = become_root() else {
            bail!("{purpose}, and there is none: {by_hand}");
        };
        // sudo passes no variables on. In run level 1 installing starts no service.
        let apt_get = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get"];
        self.install(&[&as_root[..], &apt_get].concat())?;
        as_root.push("systemctl");
        self.switch_service_off(&as_root, Path::new(SYSTEMD))?;
        find().with_context(|| {
            format!("{package} was installed, and still it does not run: {by_hand}")
        })
    }

    fn install(&self, apt_get: &[&str]) -> anyhow::Result<()> {
        let Self { purpose, package, by_hand, .. } = *self;
        let step = Step::start(format!(
            "{purpose}, and there is none: installing {package} with {} ({NO_INSTALL} leaves it to you)",
            apt_get.join(" ")
        ));
        let run = |arguments: &[&str]| -> anyhow::Result<Option<String>> {
            let (program, before) = apt_get.split_first().context("apt-get is a program")?;
            let mut command = Command::new(program);
            command.args(before).args(arguments).stdin(Stdio::null());
            let outcome = run_watched(command, false, || step.still()).context(by_hand)?;
            Ok((!outcome.status.success()).then(|| last_line(&outcome.output)))
        };
        let install = ["install", "-y", "--no-install-recommends", package];
        if run(&install)?.is_some() {
            // A fresh machine has no package lists yet.
            run(&["update"])?;
            if let Some(reason) = run(&install)? {
                bail!("cannot install {package}: {reason}; {by_hand}");
            }
        }
        step.done();
        Ok(())
    }

    /// Stops the service of a package that was just installed: systemd does not know run levels.
    fn switch_service_off(&self, systemctl: &[&str], systemd: &Path) -> anyhow::Result<()> {
        let (Some(service), true) = (self.service, systemd.exists()) else { return Ok(()) };
        let (program, before) = systemctl.split_first().context("systemctl is a program")?;
        let mut command = Command::new(program);
        command.args(before).args(["disable", "--now", service]).stdin(Stdio::null());
        let output = command.output().with_context(|| format!("cannot stop {service}"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            bail!("cannot stop the service {service}: {}", reason.trim());
        }
        Ok(())
    }
}

/// The prefix of a command that needs root; `None` if root needs a password.
fn become_root() -> Option<Vec<&'static str>> {
    let is_root =
        Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if is_root {
        return Some(Vec::new());
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).stdin(Stdio::null()).output();
    sudo.is_ok_and(|sudo| sudo.status.success()).then(|| vec!["sudo", "-n"])
}

/// Whether `program --version` runs.
pub(crate) fn runs(program: &std::ffi::OsStr) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    const NEEDED: Needed = Needed {
        purpose: "tests need it",
        package: "a-package",
        by_hand: "apt install it",
        service: Some("a-service"),
    };

    #[test]
    fn a_package_that_cannot_be_had_says_what_to_do() {
        let error = format!("{:#}", NEEDED.install(&["false"]).unwrap_err());
        assert!(
            error.contains("cannot install a-package") && error.contains("apt install"),
            "{error}"
        );
        let error = format!("{:#}", NEEDED.install(&["/nonexistent/apt-get"]).unwrap_err());
        assert!(error.contains("/nonexistent/apt-get") && error.contains("apt install"), "{error}");
        assert!(NEEDED.install(&["true"]).is_ok());
    }

    #[test]
    fn a_service_is_switched_off_where_systemd_runs() {
        let absent = Path::new("/nonexistent/systemd");
        NEEDED.switch_service_off(&["false"], absent).unwrap();
        let present = Path::new("/");
        NEEDED.switch_service_off(&["true"], present).unwrap();
        let error = NEEDED.switch_service_off(&["false"], present).unwrap_err().to_string();
        assert!(error.contains("a-service"), "{error}");
        Needed { service: None, ..NEEDED }.switch_service_off(&["false"], present).unwrap();
    }

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(NEEDED.prepare(|| Some(7)).unwrap(), 7);
    }

    #[test]
    fn nothing_is_installed_if_the_user_says_so() {
        install_nothing();
        let error = NEEDED.prepare(|| None::<()>).unwrap_err().to_string();
        assert!(error.contains(NO_INSTALL) && error.contains("apt install it"), "{error}");
    }

    #[test]
    fn only_what_runs_is_there() {
        assert!(runs(OsStr::new("true")));
        assert!(!runs(OsStr::new("/nonexistent/mpirun")));
    }
}
