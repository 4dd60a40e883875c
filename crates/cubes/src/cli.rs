//! Root of the command line.

use clap::{Parser, Subcommand};

use crate::generate_command::GenerateArgs;
use crate::preprocess_command::PreprocessArgs;

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
}
