//! Root of the command line.

use clap::{Parser, Subcommand};

use crate::generate_command::GenerateArgs;
use crate::peers_command::PeersArgs;
use crate::preprocess_command::PreprocessArgs;
use crate::sweep_command::SweepArgs;
use crate::tune_command::TuneArgs;

/// Writes image cubes, and measures feeding them to a device.
#[derive(Debug, Parser)]
#[command(name = "cubes", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a data set of image cubes with labels, from a seed
    Generate(GenerateArgs),
    /// Write the cubes of Tivita's files in other forms; does what an earlier run left to do
    Preprocess(PreprocessArgs),
    /// Measure feeding cubes to a device: htc's five strategies, two more, and any combination
    Sweep(Box<SweepArgs>),
    /// Propose settings for an amount of memory and a randomness of batches, from a short probe,
    /// and verify them
    Tune(Box<TuneArgs>),
    /// Compare with Python's ways to feed cubes: the same values, then speed and memory
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
    }

    #[test]
    fn commands_in_the_pages_are_taken() {
        let documented = |name| documented_commands(env!("CARGO_MANIFEST_DIR"), name).unwrap();
        let mut commands = documented("cubes");
        for words in documented("preprocess") {
            commands.push(["cubes".to_owned()].into_iter().chain(words).collect());
        }
        assert!(4 < commands.len(), "{} commands were found", commands.len());
        for words in commands {
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{words:?}: {:?}", parsed.err());
        }
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["cubes"][..],
            &["cubes", "unknown"],
            &["cubes", "generate"],
            &["cubes", "generate", "x", "y"],
            &["cubes", "generate", "x", "--size", "480"],
            &["cubes", "generate", "x", "--formats", "npy"],
            &["cubes", "generate", "x", "--formats", ""],
            &["cubes", "generate", "x", "--normalize", "l3"],
            &["cubes", "preprocess"],
            &["cubes", "preprocess", "x"],
            &["cubes", "preprocess", "x", "--to", "raw64"],
            &["cubes", "preprocess", "x", "--to", "raw16", "--zarr-codec", "zstd:23"],
            &["cubes", "sweep"],
            &["cubes", "sweep", "x", "--strategies", "fastest"],
            &["cubes", "sweep", "x", "--form", "png"],
            &["cubes", "sweep", "x", "--io-limit", "fast"],
            &["cubes", "sweep", "x", "--io-limit-by", "auto"],
            &["cubes", "sweep", "x", "--consumer", "tpu"],
            &["cubes", "sweep", "x", "--consumer", "cpu", "--model-width", "0"],
            &["cubes", "sweep", "x", "--step-ms", "-1"],
            &["cubes", "sweep", "x", "--repetitions", "0"],
            &["cubes", "sweep", "x", "--warm", "--cold", "drop"],
            &["cubes", "sweep", "x", "-B", "0"],
            &["cubes", "tune"],
            &["cubes", "tune", "x", "--label", "organ"],
            &["cubes", "peers", "x"],
            &["cubes", "peers", "x", "--python", "p", "-w", "0"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn every_setting_of_a_sweep_has_a_flag() {
        let all = "cubes sweep x --strategies original,event-ring --form raw16,zarr --augment none,cpu \
                   --memory ring --release sync,event --copies beside --gapless true,false \
                   --mode collaborative -w 1,2 -t 0,4 --prefetch 1 --slots 9 --element f32 \
                   --io-limit none,1000MiB/s --consumer none --warm --published";
        Cli::try_parse_from(all.split_whitespace()).unwrap();
    }
}
