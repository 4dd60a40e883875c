//! Root of the command line.

use bench_run::ServeLinkArgs;
use clap::{Parser, Subcommand};

use crate::generate_command::GenerateArgs;
use crate::peers_command::PeersArgs;
use crate::queue_command::QueueArgs;
use crate::relayout_command::RelayoutArgs;
use crate::sweep_command::SweepArgs;
use crate::tune_command::TuneArgs;

/// Writes weather-like data, and measures reading it.
#[derive(Debug, Parser)]
#[command(name = "fields", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a Zarr store of weather-like inputs and targets
    Generate(GenerateArgs),
    /// Copy a Zarr store to one with other chunks, shards, codec or types, as training reads it
    Relayout(Box<RelayoutArgs>),
    /// Measure reading batches: one read for each, one for each sample, and the floor
    Sweep(Box<SweepArgs>),
    /// Measure how a queue of batches drains, by its depth and the number of workers
    Queue(Box<QueueArgs>),
    /// Propose settings for an amount of memory and a randomness of batches, from a short probe,
    /// and verify them
    Tune(Box<TuneArgs>),
    /// Compare with other readers of such stores: the same values, then speed and memory
    Peers(Box<PeersArgs>),
    /// Measure one point: reads the order from stdin, writes events to stdout
    #[command(hide = true, name = bench_run::POINT)]
    Point,
    /// Serve a folder over a link until stdin closes: the process that `--link` starts
    #[command(hide = true, name = bench_run::SERVE_LINK)]
    ServeLink(ServeLinkArgs),
}

#[cfg(test)]
mod tests {
    use bench_run::{documented_commands, unlike_words};
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_have_the_names_that_other_programs_give_them() {
        assert_eq!(unlike_words(&Cli::command()), Vec::<String>::new());
    }

    #[test]
    fn commands_in_the_pages_are_taken() {
        let documented = |name| documented_commands(env!("CARGO_MANIFEST_DIR"), name).unwrap();
        let commands = documented("fields");
        assert!(4 < commands.len(), "{} commands were found", commands.len());
        for words in commands {
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{words:?}: {:?}", parsed.err());
        }
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["fields"][..],
            &["fields", "unknown"],
            &["fields", "generate"],
            &["fields", "generate", "x", "y"],
            &["fields", "generate", "x", "--samples", "many"],
            &["fields", "generate", "x", "--zarr", "4"],
            &["fields", "generate", "x", "--codec", "lz77"],
            &["fields", "generate", "x", "--codec", "zstd:fast"],
            &["fields", "generate", "x", "--element", "f64"],
            &["fields", "relayout", "x"],
            &["fields", "relayout", "x", "y", "--chunks", "time"],
            &["fields", "relayout", "x", "y", "--chunks", "time=0"],
            &["fields", "relayout", "x", "y", "--shards", "=3"],
            &["fields", "relayout", "x", "y", "--isel", "time=a"],
            &["fields", "relayout", "x", "y", "--dtype", "int8"],
            &["fields", "sweep"],
            &["fields", "sweep", "x", "--strategies", "slow"],
            &["fields", "queue", "x", "--depth", "-1"],
            &["fields", "queue", "x", "--link", "fast"],
            &["fields", "sweep", "x", "--link", "1ms", "--cache-size", "1GiB"],
            &["fields", "peers", "x", "--python", "p", "--link", "1ms"],
            &["fields", "tune", "x", "--label", "place"],
            &["fields", "tune", "x", "--entropy", "much"],
            &["fields", "peers", "x"],
            &["fields", "peers", "x", "--python", "p", "--repetitions", "0"],
            &["fields", "peers", "x", "--python", "p", "-B", "0"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
