//! Root of the command line.

use clap::{Parser, Subcommand};

use crate::bench;
use crate::generate_command::GenerateArgs;
use crate::peers_command::PeersArgs;
use crate::preprocess_command::PreprocessArgs;
use crate::sweep_command::SweepArgs;

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
    /// Compare with Python's ways to feed cubes: the same values, then speed and memory
    Peers(Box<PeersArgs>),
    /// Measure one point: reads the order from stdin, writes events to stdout
    #[command(hide = true, name = bench::SUBCOMMAND)]
    Point,
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
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["cubes"][..],
            &["cubes", "sweep"],
            &["cubes", "sweep", "x", "--strategies", "fastest"],
            &["cubes", "sweep", "x", "--form", "png"],
            &["cubes", "sweep", "x", "--io-limit", "fast"],
            &["cubes", "sweep", "x", "--io-limit-by", "auto"],
            &["cubes", "sweep", "x", "--consumer", "tpu"],
            &["cubes", "sweep", "x", "--step-ms", "-1"],
            &["cubes", "sweep", "x", "--repetitions", "0"],
            &["cubes", "sweep", "x", "--warm", "--cold", "drop"],
            &["cubes", "sweep", "x", "-B", "0"],
            &["cubes", "peers", "x"],
            &["cubes", "peers", "x", "--python", "p", "-w", "0"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
        let all = "cubes sweep x --strategies original,codec --form raw16,zarr --augment none,cpu \
                   --memory ring --release sync,event --copies beside --gapless true,false \
                   --mode collaborative -w 1,2 -t 0,4 --prefetch 1 --slots 9 --element f32 \
                   --io-limit none,1000MiB/s --consumer none --warm --published";
        Cli::try_parse_from(all.split_whitespace()).unwrap();
    }
}
