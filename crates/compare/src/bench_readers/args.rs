//! The command line of `bench-readers` as typed.

use bench_run::LinkFlags;
use clap::Args;
use grid_point::DataFlags;

/// Flags of `bench-readers`.
#[derive(Debug, Args)]
pub struct BenchReadersArgs {
    #[command(flatten)]
    pub(super) data: DataFlags,
    /// Kinds of reads, separated by commas: NxSIZE, N random chunks of SIZE rows a read; whole,
    /// every row in order [default: 16x64,256x64,1024x64,1024x1,whole]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(super) reads: Vec<String>,
    /// Repetitions of each, after a first one and a pass over the array that are not counted
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) repetitions: u64,
    /// Seed of the random rows
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) link: LinkFlags,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
}
