//! Command line of `growth`, as typed.

use std::path::PathBuf;

use bench_run::OutputFlags;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct GrowthArgs {
    /// Numbers of cells, separated by commas
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "100000,300000,1000000"
    )]
    pub(crate) cells: Vec<u64>,
    /// Number of genes
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    pub(crate) genes: u64,
    /// Seed of the data
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Cells per fragment of X; 0 writes one fragment
    #[arg(long, value_name = "CELLS", default_value_t = 20_480)]
    pub(crate) fragment_rows: u64,
    /// Consolidate the fragments of X into one
    #[arg(long)]
    pub(crate) consolidate: bool,
    /// Folder for the experiments
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
    /// Keep the experiments for another run instead of removing each after its sweep
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    /// Arguments of each sweep
    #[arg(last = true, value_name = "SWEEP")]
    pub(crate) sweep: Vec<String>,
}

const EXAMPLE: &str = "\
Each size is generated, swept by `cargo xtask sweep` with what stands behind --, and removed. The table has time per cell and peak
memory against the number of cells, and the straight line through each.

Example:
  cargo xtask growth --data /scratch --cells 100000,300000,1000000 --genes 60000 -- -b 1024x64 -b 128x64 -m csr";
