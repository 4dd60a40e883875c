//! Root of the command line.

use clap::{Parser, Subcommand};

/// Writes image cubes, and measures feeding them to a device.
#[derive(Debug, Parser)]
#[command(name = "cubes", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {}
