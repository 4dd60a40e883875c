//! `cargo xtask fields`: builds the program for fields on a grid and becomes it. For its command
//! `peers` it makes the Python environment with the other readers first.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::sweep::{self, Program};
use crate::{cargo, peers};

/// Passes `arguments` on unparsed; the program checks them.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match sweep::build("fields")? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let Some((name, rest)) = arguments.split_first() else {
        return Program::exec(program.command("help")?);
    };
    let mut command = program.command(name)?;
    if matches!(name.to_str(), Some("sweep" | "queue" | "peers")) {
        command.args(sweep::results_arguments());
    }
    if name == "peers" && !peers::asks_for_help(rest) {
        let scripts = cargo::workspace_root().join("benches/peers");
        command.arg("--python").arg(peers::prepare("fields", &scripts)?);
        command.arg("--script").arg(scripts.join("fields.py"));
    }
    command.args(rest);
    Program::exec(command)
}
