//! The `sweep` program: command line, grid, and the commands that write experiments.
//!
//! - `grid`, the command `sweep`: measures a grid of loader settings, each point in its own
//!   process;
//! - `growth`: sweeps several sizes of data; `report_command`: reports on existing rows;
//! - `data_commands`, `slice` and `relayout_command`: write experiments.
//!
//! `tune` and the comparisons (`compare`) are crates of their own, as are the measured process
//! (`grid-point`) and everything that commands share (`bench-run`). Each point has its own process
//! for three reasons: peak memory is a property of the whole process, a point may be killed for
//! memory, and no point should run in the heap that another one left behind.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the library of a command line tool: printing is its job"
)]

mod cli;
mod data_commands;
#[cfg(test)]
mod documented;
mod grid;
mod growth;
mod relayout_command;
mod report_command;
mod slice;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::{HIDDEN, Secrets, UsageError};
use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};
use compare::{bench_readers, peers, read_chunks};

use cli::{Cli, Command};

/// Runs the program on a command line (program name first) and returns its exit code.
///
/// The code is 0 for success, 1 for a failure, 2 for an invalid command line, and 130 after Ctrl-C.
/// Errors are one line on stderr.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let secrets = Secrets::of_arguments(&arguments, soma_io::environment_secrets());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(error, &secrets),
    };
    let outcome = match cli.command {
        Command::Sweep(args) => grid::run(&args, &arguments),
        Command::Generate(args) => data_commands::generate(&args),
        Command::Import(args) => data_commands::import(&args),
        Command::Slice(args) => slice::run(&args),
        Command::Relayout(args) => relayout_command::run(&args),
        Command::BenchReaders(args) => bench_readers::run(&args),
        Command::Peers(args) => peers::run(&args, &arguments),
        Command::ReadChunks(args) => read_chunks::run(&args),
        Command::Report(args) => report_command::run(&args),
        Command::Growth(args) => growth::run(&args, &arguments),
        Command::Tune(args) => tune::run(&args, &arguments),
        Command::Point => served(grid_point::serve()),
        Command::TuneTask => served(tune::serve()),
        Command::PeersTask => served(peers::serve()),
        Command::ReadChunksTask => served(read_chunks::serve()),
        Command::BenchReadersTask => served(bench_readers::serve()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", secrets.hide(&one_line(&with_causes(&error))));
        if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

fn served(outcome: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Prints help to stdout unchanged, or the first paragraph of an error to stderr.
///
/// The error is one line without secrets.
fn print_clap_error(mut error: clap::Error, secrets: &Secrets) -> ExitCode {
    if !error.use_stderr() {
        // Clap uses color on a terminal only.
        return error.print().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let is_setting = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(flag)) if flag.contains("KEY=VALUE")
    );
    if is_setting {
        error.insert(ContextKind::InvalidValue, ContextValue::String(HIDDEN.to_owned()));
    }
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    if text.starts_with("error:") {
        eprintln!("{}; see --help", secrets.hide(&one_line(paragraph)));
    } else {
        // The subcommand is missing: clap shows the help instead of an error.
        eprint!("{text}");
    }
    ExitCode::from(2)
}

/// Joins an error and its causes, leaving out repeated text.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for part in error.chain().map(ToString::to_string) {
        if !text.contains(&part) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&part);
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::with_causes;

    #[test]
    fn a_cause_is_printed_once() {
        let error = anyhow::anyhow!("no such file").context("cannot open x: no such file");
        assert_eq!(
            with_causes(&error.context("the sweep ends")),
            "the sweep ends: cannot open x: no such file"
        );
    }
}
