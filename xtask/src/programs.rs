//! `cargo xtask fields`, `cubes` and `sequences`: builds the program for fields on a grid, image
//! cubes or sequences and becomes it. For its command `peers` it makes the Python environment with
//! the other readers first.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::sweep::{self, Program};
use crate::{cargo, peers};

/// Passes `arguments` on unparsed; the program checks them.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match sweep::build(package(name), name)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let Some((subcommand, rest)) = arguments.split_first() else {
        return Program::exec(program.command("help")?);
    };
    let mut command = program.command(subcommand)?;
    if matches!(subcommand.to_str(), Some("sweep" | "queue" | "peers")) {
        command.args(sweep::results_arguments());
    }
    if subcommand == "peers" && !peers::asks_for_help(rest) {
        let scripts = cargo::workspace_root().join("benches/peers");
        command.arg("--python").arg(peers::prepare(name, &scripts)?);
        command.arg("--script").arg(scripts.join(format!("{name}.py")));
    }
    command.args(rest);
    Program::exec(command)
}

/// The package with a program.
fn package(program: &str) -> &str {
    // `sequences` is the library below it.
    if program == "sequences" { "sequence-bench" } else { program }
}

/// `cargo xtask preprocess`: short for the command of `cubes`.
pub(crate) fn preprocess(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let subcommand = std::iter::once("preprocess".into());
    let arguments: Vec<OsString> = subcommand.chain(arguments.iter().cloned()).collect();
    run("cubes", &arguments)
}
