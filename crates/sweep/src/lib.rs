//! The composition: a grid of loader settings, each point measured by a process of its own, results kept after every epoch.
//!
//! The parts, in the order in which a sweep passes them:
//! - `args` with `original_flags`, the command line as typed; `config`, what it means; [`grid`], the grammar of block specifications;
//! - `sweep_command`, what comes before anything is measured: `results_folder`, `example` (the data where none is named),
//!   `io_limit` (the rate that reading is held to), `page_cache`, `conditions` (all that a measurement depends on) and `found` (what
//!   need not be measured again);
//! - `sweep_loop`, the loop over the grid, with `process` to run a point under its `memory_limit` and tell how it ended, `display` and
//!   `summary`;
//! - `secrets`, what keeps credentials out of records, messages and command lines;
//! - `point`, the other end: what runs in that process, with `consumer` for what takes the batches, `label_entropy` for how random
//!   they are and `point_settings` for what is noted of the settings. `job` is what the two say to each other;
//! - `peers`, the comparison with other loaders, whose processes say the same to it;
//! - `read_chunks`, all rows in tiledbsoma's ways of reading and in ours;
//! - `growth`, sweeps of several sizes of data;
//! - `report_command`, the report of results that are there;
//! - `tune`, which proposes settings from a few measured points and a model of their cost;
//! - `data_commands`, `slice` and `relayout_command`, the subcommands that write experiments; `readers_command`, which compares the
//!   readers of X on the rows that
//!   `readers` picks.
//!
//! A point has its own process because peak memory is a mark of the whole process, because a point may be killed for memory, and so
//! that none is measured in the heap that another one left behind.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the library of a command line tool: printing is its job"
)]

mod args;
mod conditions;
mod config;
mod consumer;
mod control_group;
mod data_commands;
mod display;
#[cfg(test)]
mod documented;
mod example;
mod found;
pub mod grid;
mod growth;
mod interrupt;
mod io_limit;
mod job;
mod label_entropy;
mod memory_limit;
mod original_flags;
mod page_cache;
mod peers;
mod point;
mod point_settings;
mod process;
mod process_tree;
mod read_chunks;
mod readers;
mod readers_command;
mod relayout_command;
mod report_command;
mod results_folder;
mod secrets;
mod slice;
mod summary;
mod sweep_command;
mod sweep_loop;
mod tune;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};

use args::{Cli, Command};
use secrets::Secrets;

/// Runs the program on its command line, its name first, and returns its exit code: 0, 1 for a failure, 2 for a command line that
/// cannot be, 130 after Ctrl-C. Errors are one line on stderr.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let secrets = Secrets::of_arguments(&arguments);
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return told_by_clap(error, &secrets),
    };
    let outcome = match cli.command {
        Command::Sweep(args) => sweep_command::run(&args, &arguments),
        Command::Generate(args) => data_commands::generate(&args),
        Command::Import(args) => data_commands::import(&args),
        Command::Slice(args) => slice::run(&args),
        Command::Relayout(args) => relayout_command::run(&args),
        Command::BenchReaders(args) => readers_command::run(&args),
        Command::Peers(args) => peers::run(&args, &arguments),
        Command::ReadChunks(args) => read_chunks::run(&args),
        Command::Report(args) => report_command::run(&args),
        Command::Growth(args) => growth::run(&args, &arguments),
        Command::Tune(args) => tune::run(&args, &arguments),
        Command::Point => point::run().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", secrets.hide(&one_line(&told(&error))));
        if error.is::<config::UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// Help goes to stdout as it is; of an error the first paragraph, in one line and without secrets.
fn told_by_clap(mut error: clap::Error, secrets: &Secrets) -> ExitCode {
    if !error.use_stderr() {
        // In color on a terminal, plain elsewhere.
        return error.print().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let is_setting = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(flag)) if flag.contains("KEY=VALUE")
    );
    if is_setting {
        error.insert(ContextKind::InvalidValue, ContextValue::String(secrets::HIDDEN.to_owned()));
    }
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    if text.starts_with("error:") {
        eprintln!("{}; see --help", secrets.hide(&one_line(paragraph)));
    } else {
        // A command without its subcommand: clap shows the help instead of an error.
        eprint!("{text}");
    }
    ExitCode::from(2)
}

/// What went wrong and why, without what an error has already said of its cause.
fn told(error: &anyhow::Error) -> String {
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
    use super::told;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no such file").context("cannot open x: no such file");
        assert_eq!(
            told(&error.context("the sweep ends")),
            "the sweep ends: cannot open x: no such file"
        );
    }
}
