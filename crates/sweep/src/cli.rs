//! Root of the command line.

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
#[cfg(feature = "compare")]
use compare::{
    bench_readers::{self, BenchReadersArgs},
    peers::{self, PeersArgs},
    read_chunks::{self, ReadChunksArgs},
};

use crate::data_commands::{GenerateArgs, ImportArgs};
use crate::demo::DemoArgs;
use crate::grid::SweepArgs;
use crate::growth::GrowthArgs;
use crate::ranks::RanksArgs;
use crate::relayout_command::RelayoutArgs;
use crate::report_command::ReportArgs;
use crate::slice::SliceArgs;
use crate::tune_command::{self, TuneArgs};

/// Measures the loader; writes and imports experiments.
#[derive(Debug, Parser)]
#[command(name = "sweep", bin_name = XTASK, version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the documentation of the arguments calls the program.
const XTASK: &str = "cargo xtask";

impl Cli {
    /// Parses a command line. `called` are the words by which its help calls the program.
    pub(crate) fn parse_as(
        called: &'static str,
        arguments: &[OsString],
    ) -> Result<Self, clap::Error> {
        let mut matches = Self::command_as(called).try_get_matches_from(arguments)?;
        Self::from_arg_matches_mut(&mut matches)
    }

    fn command_as(called: &'static str) -> clap::Command {
        if called == XTASK {
            return Self::command();
        }
        Self::command().name(called).bin_name(called).mut_subcommands(|command| {
            let Some(help) = command.get_after_help() else { return command };
            let help = help.to_string().replace(XTASK, called);
            command.after_help(help)
        })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the loader over a grid of settings, each point in its own process
    Sweep(Box<SweepArgs>),
    /// Write a small experiment and measure it: a first look, in seconds
    Demo(DemoArgs),
    /// Write a Census-shaped experiment
    Generate(GenerateArgs),
    /// Turn a 10x Genomics folder or an AnnData into an experiment
    Import(ImportArgs),
    /// Copy selected cells and genes of an experiment to a new one
    Slice(Box<SliceArgs>),
    /// Rewrite an experiment's X in the order in which training reads it
    Relayout(Box<RelayoutArgs>),
    /// Compare the native reader of X with libtiledb, taking turns on the same rows
    #[cfg(feature = "compare")]
    BenchReaders(BenchReadersArgs),
    /// Compare the loader with others on the same data
    #[cfg(feature = "compare")]
    Peers(Box<PeersArgs>),
    /// Read all rows in tiledbsoma's four ways and with our readers, and check that the values
    /// agree
    #[cfg(feature = "compare")]
    ReadChunks(Box<ReadChunksArgs>),
    /// Generate and sweep experiments of several sizes, and relate time per cell and memory to size
    Growth(GrowthArgs),
    /// Let several ranks load one store at the same time: their rate together, and how much of the
    /// time an accelerator of each would compute
    Ranks(Box<RanksArgs>),
    /// Redraw results, or several side by side: a page, pictures and tables
    Report(ReportArgs),
    /// Propose settings for an amount of memory and a randomness of batches, from a short probe,
    /// and verify them
    Tune(Box<TuneArgs>),
    /// Measure one point: reads the order from stdin, writes events to stdout
    #[command(hide = true, name = grid_point::SUBCOMMAND)]
    Point,
    /// Survey the data for `tune`; same protocol as `point`
    #[command(hide = true, name = tune_command::SUBCOMMAND)]
    TuneTask,
    /// Our side of `peers`; same protocol as `point`
    #[cfg(feature = "compare")]
    #[command(hide = true, name = peers::SUBCOMMAND)]
    PeersTask,
    /// Our ways of `read-chunks`; same protocol as `point`
    #[cfg(feature = "compare")]
    #[command(hide = true, name = read_chunks::SUBCOMMAND)]
    ReadChunksTask,
    /// A reader of `bench-readers`; same protocol as `point`
    #[cfg(feature = "compare")]
    #[command(hide = true, name = bench_readers::SUBCOMMAND)]
    BenchReadersTask,
    /// Serve a folder over a link until stdin closes
    #[command(hide = true, name = bench_run::SERVE_LINK)]
    ServeLink(bench_run::ServeLinkArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_have_the_names_that_other_programs_give_them() {
        assert_eq!(bench_run::unlike_words(&Cli::command()), Vec::<String>::new());
        for earlier in [
            "report x --out y",
            "report x -o y",
            "ranks -n 2 --consumer 1ms --batch-size 8 --num-epochs 2",
            "tune --batch-size 8",
            "sweep --batch-size 8 --num-epochs 2",
        ] {
            Cli::try_parse_from(["sweep"].into_iter().chain(earlier.split(' '))).unwrap();
        }
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["sweep", "sweep", "-M", "novalue"][..],
            &["sweep", "sweep", "-M", "=v"],
            &["sweep", "sweep", "-B", "-1"],
            &["sweep", "sweep", "--order", "random"],
            &["sweep", "sweep", "--consumer", "fixed:-1"],
            &["sweep", "sweep", "positional", "another"],
            &["sweep", "sweep", "place", "--uri", "another"],
            &["sweep", "sweep", "--repeat", "0"],
            &["sweep", "sweep", "--cold=frozen"],
            &["sweep", "sweep", "--resume"],
            &["sweep", "sweep", "--link", "fast"],
            &["sweep", "sweep", "--link-faults", "cut=1/9"],
            &["sweep", "sweep", "--link", "30ms", "--link-faults", "cut"],
            &["sweep", "sweep", "--link", "30ms", "--io-limit", "1MB/s"],
            &["sweep", "sweep", "-V", "2025-11-08", "--uri", "x"],
            &["sweep", "ranks", "-n", "2"],
            &["sweep", "ranks", "-n", "0", "--consumer", "1ms"],
            &["sweep", "ranks", "--consumer", "1ms", "--least-au", "101%"],
            &["sweep", "generate"],
            &["sweep", "import", "folder"],
            &["sweep", "unknown"],
            &["sweep"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
