//! The `fields` program: builds it in release mode and becomes it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::sweep::{Program, build_program, results_arguments};

/// Passes `arguments` on unparsed; the program checks them.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match build_program("fields")? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) => (name.to_string_lossy().into_owned(), rest),
        None => ("--help".to_owned(), arguments),
    };
    let mut command = program.command(&name)?;
    if matches!(name.as_str(), "sweep" | "queue") {
        command.args(results_arguments());
    }
    command.args(rest);
    Program::exec(command)
}
