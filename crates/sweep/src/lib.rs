//! The `sweep` program: command line, grid, and the commands that write experiments.
//!
//! - `grid`, the command `sweep`: measures a grid of loader settings, each point in its own
//!   process;
//! - `ranks`: several ranks load one store at the same time;
//! - `growth`: sweeps several sizes of data; `report_command`: reports on existing rows;
//! - `demo`: a small experiment, measured;
//! - `data_commands`, `slice` and `relayout_command`: write experiments.
//! - `tune_command`: what crate `tune` needs to know of cells.
//!
//! The comparisons (`compare`) are a crate of their own, as are the measured process
//! (`grid-point`) and everything that commands share (`bench-run`). Each point has its own process
//! for three reasons: peak memory is a property of the whole process, a point may be killed for
//! memory, and no point should run in the heap that another one left behind.

mod cli;
mod data_commands;
mod demo;
#[cfg(test)]
mod documented;
mod grid;
mod growth;
mod ranks;
mod relayout_command;
mod report_command;
mod slice;
mod tune_command;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::{Program, Secrets, exit_code, refused_command_line, serve_link};
#[cfg(feature = "compare")]
use compare::{bench_readers, peers, read_chunks};

use cli::{Cli, Command};

/// Runs the program on a command line (program name first) and returns its exit code.
///
/// A caller that is not the executable file of this crate first names itself
/// ([`Program::name`](bench_run::Program::name)).
///
/// The code is 0 for success, 1 for a failure, 2 for an invalid command line, and 130 after Ctrl-C.
/// Errors are one line on stderr.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let secrets = Secrets::of_arguments(&arguments, soma_io::environment_secrets());
    let cli = match Cli::parse_as(Program::called(), &arguments) {
        Ok(cli) => cli,
        Err(error) => return refused_command_line(error, &secrets),
    };
    let outcome = match cli.command {
        Command::Sweep(args) => grid::run(&args, &arguments),
        Command::Demo(args) => demo::run(&args),
        Command::Generate(args) => data_commands::generate(&args),
        Command::Import(args) => data_commands::import(&args),
        Command::Slice(args) => slice::run(&args),
        Command::Relayout(args) => relayout_command::run(&args),
        #[cfg(feature = "compare")]
        Command::BenchReaders(args) => bench_readers::run(&args),
        #[cfg(feature = "compare")]
        Command::Peers(args) => peers::run(&args, &arguments),
        #[cfg(feature = "compare")]
        Command::ReadChunks(args) => read_chunks::run(&args),
        Command::Report(args) => report_command::run(&args),
        Command::Growth(args) => growth::run(&args, &arguments),
        Command::Ranks(args) => ranks::run(&args, &arguments),
        Command::Tune(args) => tune_command::run(&args, &arguments),
        Command::Point => served(grid_point::serve()),
        Command::TuneTask => served(tune_command::serve()),
        #[cfg(feature = "compare")]
        Command::PeersTask => served(peers::serve()),
        #[cfg(feature = "compare")]
        Command::ReadChunksTask => served(read_chunks::serve()),
        #[cfg(feature = "compare")]
        Command::BenchReadersTask => served(bench_readers::serve()),
        Command::ServeLink(args) => served(serve_link(&args)),
    };
    exit_code(outcome, &secrets)
}

fn served(outcome: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    outcome.map(|()| ExitCode::SUCCESS)
}
