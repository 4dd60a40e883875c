//! `cargo xtask read-chunks`: makes the Python environment with tiledbsoma if a requested way of
//! reading needs it, builds `sweep` and becomes it.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;

use crate::peers::asks_for_help;
use crate::sweep::{Needs, Program};
use crate::{cargo, python, sweep};

/// Passes `arguments` on to `sweep read-chunks`, which parses them and reports whether they need
/// Python.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match sweep::build("sweep", "sweep", &Needs::all(true))? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let script = cargo::workspace_root().join("benches/read-chunks/tiledbsoma_ways.py");
    let command = || -> anyhow::Result<Command> {
        let mut command = program.command("read-chunks")?;
        command.arg("--script").arg(&script);
        Ok(command)
    };
    let mut started = command()?;
    if !asks_for_help(arguments) {
        // Report a wrong argument before a download.
        let mut check = command()?;
        let checked = check
            .arg("--check")
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the program that was built")?;
        if !checked.status.success() {
            return Ok(cargo::exit_code(checked.status));
        }
        if checked.stdout == b"python\n" {
            let python = python::prepare()
                .context("without Python there is --ways native-csr,libtiledb-csr")?;
            started.arg("--python").arg(python);
        }
    }
    started.args(arguments);
    Program::exec(started)
}
