//! Root of the command line.

use clap::{Parser, Subcommand};

use crate::fill_command::FillArgs;
use crate::generate_command::GenerateArgs;
use crate::import_command::ImportArgs;
use crate::peers_command::PeersArgs;
use crate::stats_command::StatsArgs;
use crate::sweep_command::SweepArgs;
use crate::train_command::TrainArgs;
use crate::tune_command::TuneArgs;
use crate::words_command::WordsArgs;

/// Writes DNA and RNA, imports files of sequences, counts words, and measures feeding them.
#[derive(Debug, Parser)]
#[command(name = "sequences", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a file of random DNA and RNA, or of families of related DNA, from a seed
    Generate(GenerateArgs),
    /// Write the sequences of a file (lines, FASTA or FASTQ, compressed or not) to a store
    Import(ImportArgs),
    /// Count the words of a store
    Words(WordsArgs),
    /// Copy a store to a cluster of Redis or Valkey servers, as far as they do not have it
    Fill(FillArgs),
    /// Show what servers have of a store
    Stats(StatsArgs),
    /// Train Doc2Vec on the words of a store, on the processor
    Train(Box<TrainArgs>),
    /// Measure feeding sequences over a grid of workers, batch sizes, forms of batches and stores
    Sweep(Box<SweepArgs>),
    /// Propose settings for an amount of memory and a randomness of batches, from a short probe,
    /// and verify them
    Tune(Box<TuneArgs>),
    /// Compare with Python's ways to feed sequences: the same words, then speed and memory
    Peers(Box<PeersArgs>),
    /// Measure one point: reads the order from stdin, writes events to stdout
    #[command(hide = true, name = bench_run::POINT)]
    Point,
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
        Cli::try_parse_from(["sequences", "train", "x", "-o", "y", "--safetensors-only"]).unwrap();
    }

    #[test]
    fn commands_in_the_pages_are_taken() {
        let documented = |name| documented_commands(env!("CARGO_MANIFEST_DIR"), name).unwrap();
        let commands = documented("sequences");
        assert!(4 < commands.len(), "{} commands were found", commands.len());
        for words in commands {
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{words:?}: {:?}", parsed.err());
        }
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["sequences"][..],
            &["sequences", "unknown"],
            &["sequences", "generate"],
            &["sequences", "generate", "x", "y"],
            &["sequences", "generate", "x", "--size", "1TB"],
            &["sequences", "generate", "x", "--size", "-1GB"],
            &["sequences", "generate", "x", "--size", "NaNGB"],
            &["sequences", "generate", "x", "--format", "text"],
            &["sequences", "generate", "x", "--compress", "zstd"],
            &["sequences", "generate", "x", "--members", "3"],
            &["sequences", "generate", "x", "--families", "3", "--size", "1GB"],
            &["sequences", "import", "x"],
            &["sequences", "words"],
            &["sequences", "words", "x", "-k", "four"],
            &["sequences", "words", "x", "--unknown", "ignore"],
            &["sequences", "fill", "x"],
            &["sequences", "fill", "x", "--cluster", "3", "--servers", "redis://localhost"],
            &["sequences", "fill", "x", "--servers", "redis://localhost", "--max-memory", "1GB"],
            &["sequences", "stats"],
            &["sequences", "train"],
            &["sequences", "train", "x", "--model", "cbow"],
            &["sequences", "sweep"],
            &["sequences", "sweep", "x", "--form", "strings"],
            &["sequences", "sweep", "x", "--consumer", "torch"],
            &["sequences", "sweep", "x", "-B", "0"],
            &["sequences", "sweep", "x", "--repetitions", "0"],
            &["sequences", "tune"],
            &["sequences", "tune", "x", "--label", "name"],
            &["sequences", "tune", "x", "--memory", "much"],
            &["sequences", "peers", "x"],
            &["sequences", "peers", "x", "--python", "p", "-w", "0"],
            &["sequences", "peers", "x", "--python", "p", "--at-most", "numpy"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
