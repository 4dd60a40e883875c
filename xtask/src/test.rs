//! `cargo xtask test`: every test of the workspace, with the native libraries, Python's tiledbsoma,
//! mpirun, a Redis server and a browser in place.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::{cargo, chromium, gpu, mpirun, native, python, redis, wheel};

/// Runs `cargo test` on the workspace, or on the packages that the arguments name, including
/// documentation tests; then the tests of the Python package, unless the arguments choose others;
/// with everything else the checks for a GPU, on the CPU.
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
    let status = cargo::run(&mut command)?;
    if !status.success() || !tests_python(arguments) {
        return Ok(cargo::exit_code(status));
    }
    let tested = wheel::test(&[])?;
    if tested != ExitCode::SUCCESS || !arguments.is_empty() {
        return Ok(tested);
    }
    gpu::test(&native)
}

/// Whether the tests of the Python package are asked for: with everything else, or by its name.
fn tests_python(arguments: &[OsString]) -> bool {
    arguments.is_empty() || arguments.iter().any(|argument| argument == "somafeed-python")
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
    fn the_python_package_is_tested_with_everything_or_by_name() {
        let check = |arguments: &[&str]| {
            tests_python(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
        };
        assert!(check(&[]) && check(&["-p", "somafeed-python"]));
        assert!(!check(&["-p", "loader"]) && !check(&["some_name"]));
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
