//! `cargo xtask ci`: all of CI's checks except the tests; ends at the first failure.
//!
//! It builds with the profile and the features of `cargo xtask test`, so only clippy and rustdoc
//! compile anything anew.

use std::process::ExitCode;

use crate::native::{self, Native};
use crate::{cargo, lint, progress, site, tidy};

const DENY_WARNINGS: &str = "-D warnings";

/// Runs the checks, quick ones first.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let nothing = Native::default();
    let format = cargo::cargo(["fmt", "--all", "--check"], &nothing);
    if let Some(failed) = step(format)? {
        return Ok(failed);
    }
    let tidied = tidy::run()?;
    if tidied != ExitCode::SUCCESS {
        return Ok(tidied);
    }
    let linted = lint::run()?;
    if linted != ExitCode::SUCCESS {
        return Ok(linted);
    }
    let native = native::prepare(native::Wanted::Both)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    // As `cargo xtask cubes` and the wheel build them; in the workspace's build their features
    // `torch` are on.
    let mut without_torch = vec!["clippy", "--package", "cubes", "--package", "somafeed-python"];
    without_torch.extend(["--lib", "--bins", "--", "-D", "warnings"]);
    // Each bench runs once, without being measured.
    let benches = ["test", "--workspace", "--bench", "*"];
    let mut documentation = cargo::cargo(["doc", "--workspace", "--no-deps"], &native);
    documentation.env("RUSTDOCFLAGS", DENY_WARNINGS);
    let clippy = cargo::cargo(clippy, &native);
    let without_torch = cargo::cargo(without_torch, &native);
    for command in [clippy, without_torch, documentation, cargo::cargo(benches, &native)] {
        if let Some(failed) = step(command)? {
            return Ok(failed);
        }
    }
    let built = site::build()?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    progress::print_line("all checks passed");
    Ok(ExitCode::SUCCESS)
}

/// The exit code, if the command failed.
fn step(mut command: std::process::Command) -> anyhow::Result<Option<ExitCode>> {
    let status = cargo::run(&mut command)?;
    Ok((!status.success()).then(|| cargo::exit_code(status)))
}
