//! The command line of `read-chunks` as typed; its letters are those of arrayloader-benchmarks'
//! `alb read-chunks`.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{Args, ValueEnum as _};
use grid_point::DataFlags;

use super::order::Shuffle;
use super::way::Way;

/// Flags of `read-chunks`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ReadChunksArgs {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    /// Cells that are read at once
    #[arg(short = 'c', long, value_name = "CELLS", default_value_t = 10_000)]
    pub(crate) soma_chunk_size: u64,
    /// Once: cells in random order within their chunk; twice: chunks of cells from anywhere
    #[arg(short = 's', long = "shuffle", action = clap::ArgAction::Count, value_parser = clap::value_parser!(u8).range(..=2))]
    shuffles: u8,
    /// Seed of the random order
    #[arg(long, alias = "rng-seed", short_alias = 'r', value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// py.init_buffer_bytes, as 1GiB: handed to tiledbsoma, of which the pinned version reads X
    /// without it
    #[arg(short = 'P', long, value_name = "SIZE")]
    pub(crate) py_buffer_size: Option<ByteSize>,
    /// soma.init_buffer_bytes, as 1GiB: a column's buffer in tiledbsoma and our reader through
    /// libtiledb [default: each one's own]
    #[arg(short = 'S', long, value_name = "SIZE")]
    pub(crate) soma_buffer_size: Option<ByteSize>,
    /// Read the first N genes, or as many as there are; 0 is all
    #[arg(
        short = 'V',
        visible_short_alias = 'v',
        long,
        visible_alias = "n_vars",
        value_name = "N",
        default_value_t = 20_000
    )]
    pub(crate) n_vars: u64,
    /// Ways of reading, separated by commas [default: all]
    #[arg(short = 'w', long = "ways", value_name = "WAYS", value_enum, value_delimiter = ',')]
    ways: Vec<Way>,
    /// Runs of each way, in turn, each in a process of its own
    #[arg(long, alias = "repeat", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repetitions: u64,
    /// Print each run as an object of JSON in a line of its own, in place of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    /// Look at the command line, print `python` where Python is needed, and end
    #[arg(long, hide = true)]
    pub(crate) check: bool,
    /// The Python that has tiledbsoma
    #[arg(long, hide = true)]
    pub(crate) python: Option<PathBuf>,
    /// The script that it runs
    #[arg(long, hide = true, default_value = "benches/read-chunks/tiledbsoma_ways.py")]
    pub(crate) script: PathBuf,
}

impl ReadChunksArgs {
    pub(crate) fn shuffle(&self) -> Shuffle {
        match self.shuffles {
            0 => Shuffle::None,
            1 => Shuffle::WithinChunks,
            _ => Shuffle::Global,
        }
    }

    /// The ways, each once, in the order of the command line.
    pub(crate) fn ways(&self) -> Vec<Way> {
        if self.ways.is_empty() {
            return Way::value_variants().to_vec();
        }
        let mut ways = Vec::new();
        for way in &self.ways {
            if !ways.contains(way) {
                ways.push(*way);
            }
        }
        ways
    }
}

const EXAMPLE: &str = "\
tiledbsoma's ways read a chunk by its list of joinids, in the chunk's order: as one Arrow table, as tables of a blockwise read, as \
scipy's COO and CSR, whose rows come in that order. Our two readers give CSR with rows in the same order.

Nothing is reported unless all runs read the same number of values, the same exact sum, and the same values at the same places.

Example:
  cargo xtask read-chunks ~/data/example -ss -c 10000 --repetitions 3
  cargo xtask read-chunks ~/data/example -s -w csr,native-csr --json";
