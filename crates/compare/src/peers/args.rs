//! The command line of `peers` as typed.

use std::path::PathBuf;

use bench_run::{LinkFlags, OutputFlags, key_value};
use bytesize::ByteSize;
use clap::Args;
use grid_point::{Consumer, DataFlags, ReaderFlag};

use super::work::Work;

/// Flags of `peers`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct PeersArgs {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    /// Which loader to compare with, may be given several times, or several separated by commas
    /// [default: all that can be had]
    #[arg(long = "peer", alias = "peers", value_name = "NAME", value_delimiter = ',')]
    pub(crate) peers: Vec<String>,
    /// Work to compare on, may be given several times; see below
    #[arg(long = "work", value_name = "WORK", default_values = Work::DEFAULT)]
    pub(crate) works: Vec<Work>,
    /// Pairs of runs of each work, after a first pair that is not counted
    #[arg(long, alias = "repeat", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repetitions: u64,
    /// Epochs of each run, one after the other in its process
    #[arg(short = 'E', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: u64,
    /// Rows of a batch
    #[arg(short = 'B', long = "batch", alias = "batch-size", value_name = "ROWS", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: u64,
    /// obs columns that come with each batch beside soma_joinid, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) obs_columns: Vec<String>,
    /// Seed of the shuffled order
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=0xffff_ffff))]
    pub(crate) seed: u64,
    /// Consumer of the batches: none, which drops them at once, or fixed:MILLIS, which sleeps for
    /// that time per batch
    #[arg(long, value_name = "CONSUMER", default_value = "none")]
    pub(crate) consumer: Consumer,
    /// Reader of X in our loader
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(crate) reader: ReaderFlag,
    /// Blocks that our loader reads ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) prefetch_blocks: usize,
    /// Batches that our loader makes ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) prefetch_batches: usize,
    /// Memory limit of our loader, like 2GiB; the part that it does not need keeps decoded values
    /// for later blocks [default: no limit, none kept]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// An environment variable for the peers' processes, may be given several times; see below
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) peer_variable: Vec<(String, String)>,
    /// Something to note with each row of the results, may be given several times
    #[arg(short = 'M', long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Do not measure our loader on a copy that `relayout` makes too, beside loaders that convert
    /// the data
    #[arg(long)]
    pub(crate) no_relaid: bool,
    /// Folder for the copies that loaders make of the data, once [default: in the user's cache]
    #[arg(
        long,
        value_name = "FOLDER",
        overrides_with = "copies",
        default_value = "peer-copies",
        hide_default_value = true
    )]
    pub(crate) copies: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    /// Look at the command line and the experiment, print the peers' names and end
    #[arg(long, hide = true)]
    pub(crate) check: bool,
    /// Folder of the peers' scripts
    #[arg(long, hide = true, default_value = "benches/peers")]
    pub(crate) scripts: PathBuf,
    /// The Python that a peer is run by
    #[arg(long, hide = true, value_name = "NAME=PYTHON", value_parser = key_value)]
    pub(crate) environment: Vec<(String, String)>,
    /// A peer that cannot be had, and why
    #[arg(long, hide = true, value_name = "NAME=REASON", value_parser = key_value)]
    pub(crate) unavailable: Vec<(String, String)>,
}

const EXAMPLE: &str = "\
Works are written FORM-GENES-NxSIZE: dense or csr batches, of the first so many genes or of all, from blocks of N chunks of SIZE rows.

A loader that reads a format of its own gets a copy of the data, which is made once and kept, with its time, size and memory printed. Where
there is such a one, ours is measured on a copy by `cargo xtask relayout` too. Each loader is measured at the work's chunks and blocks,
and at the settings that its documentation advises.

The peers' memory: glibc gives the memory of a freed batch back and faults it in anew for the next. To let them keep it:
  --peer-variable MALLOC_MMAP_MAX_=0 --peer-variable MALLOC_TRIM_THRESHOLD_=68719476736

Example:
  cargo xtask generate x --cells 200000 --genes 60000 --fragment-rows 20480 --consolidate
  cargo xtask peers --uri x --repetitions 5
  cargo xtask peers --uri x --peer annbatch --work csr-all-256x32";
