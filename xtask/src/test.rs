//! `cargo xtask test`: every test of the workspace, with the native libraries, Python's tiledbsoma,
//! mpirun, a Redis server and a browser in place.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::{cargo, chromium, mpirun, native, python, redis};

/// Runs `cargo test` on the workspace, or on the packages that the arguments name, including
/// documentation tests.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let native = native::prepare(native::Wanted::Both)?;
    let python = python::prepare()?;
    mpirun::prepare()?;
    redis::prepare()?;
    let chromium = chromium::prepare()?;
    let mut command = cargo::cargo([OsStr::new("test")], &native);
    if !names_packages(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments).env("SOMAFEED_PYTHON", python).env("SOMAFEED_CHROMIUM", chromium);
    // Without one of these, a test that needs it fails instead of being skipped.
    for needed in ["PYTHON", "MPIRUN", "BROWSER", "REDIS"] {
        command.env(format!("SOMAFEED_REQUIRE_{needed}"), "1");
    }
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

/// Whether cargo's part of the arguments, before `--`, selects packages.
fn names_packages(arguments: &[OsString]) -> bool {
    let of_cargo = arguments.iter().take_while(|argument| *argument != "--");
    of_cargo.filter_map(|argument| argument.to_str()).any(|argument| {
        argument.starts_with("-p")
            || argument == "--package"
            || argument.starts_with("--package=")
            || argument == "--workspace"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expect: bool) {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        assert_eq!(names_packages(&arguments), expect);
    }

    #[test]
    fn packages_are_recognised() {
        check(&[], false);
        check(&["--release", "some_name"], false);
        check(&["-p", "loader"], true);
        check(&["-ploader"], true);
        check(&["--package=loader"], true);
        check(&["--workspace"], true);
        check(&["--", "-p"], false);
    }
}
