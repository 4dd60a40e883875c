//! The `cubes` program: commands on image cubes.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the library of a command line tool: printing is its job"
)]

mod bench;
mod cli;
mod curves;
mod device;
mod figures;
mod published;
mod statistics;
mod summary;
mod sweep_command;
mod sweep_report;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::{Secrets, exit_code, refused_command_line};
use clap::Parser as _;

use cli::{Cli, Command};

/// Runs the program on a command line (program name first) and returns its exit code.
///
/// The code is 0 for success, 1 for a failure, 2 for an invalid command line, and 130 after Ctrl-C.
/// Errors are one line on stderr.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let secrets = Secrets::of_arguments(&arguments, storage::environment_secrets());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refused_command_line(error, &secrets),
    };
    let outcome = match cli.command {
        Command::Sweep(args) => sweep_command::run(&args, &arguments),
        Command::Point => bench::serve().map(|()| ExitCode::SUCCESS),
    };
    exit_code(outcome, &secrets)
}
