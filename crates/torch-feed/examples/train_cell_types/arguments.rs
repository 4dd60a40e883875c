//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use loader::{LoaderSpec, Order, PipelineSpec, Transform};
use torch_feed::DeviceChoice;

/// Trains a linear classifier of cell types on the same cells in several orders, and shows the loss
/// of each.
#[derive(Debug, Clone, Parser)]
#[command(name = "train_cell_types", args_override_self = true)]
pub(crate) struct Arguments {
    /// The experiment. `cargo xtask generate <path>` makes one
    pub(crate) experiment: String,
    /// The measurement to train on
    #[arg(long, default_value = "RNA")]
    pub(crate) measurement: String,
    /// The layer of X: counts
    #[arg(long, default_value = "raw")]
    pub(crate) layer: String,
    /// The obs column to predict from the counts
    #[arg(long, default_value = "cell_type")]
    pub(crate) label: String,
    /// The orders of the cells, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "in-order,chunks,full")]
    pub(crate) orders: Vec<RowOrder>,
    /// Seeds, separated by commas: each gives a run per order, and decides which cells are held out
    /// and how cells are shuffled
    #[arg(long, value_delimiter = ',', default_value = "0,1,2")]
    pub(crate) seeds: Vec<u64>,
    /// Number of times that each cell is trained on
    #[arg(long, default_value_t = 1)]
    pub(crate) epochs: u64,
    /// Cells per batch
    #[arg(long, default_value_t = 128)]
    pub(crate) batch_rows: u64,
    /// Consecutive cells that are read together, in the order `chunks`
    #[arg(long, default_value_t = 64)]
    pub(crate) chunk_rows: u64,
    /// Chunks that are shuffled together, in the order `chunks`
    #[arg(long, default_value_t = 64)]
    pub(crate) chunks_per_block: u64,
    /// Learning rate of Adam
    #[arg(long, default_value_t = 1e-3)]
    pub(crate) learning_rate: f64,
    /// The share of each label's cells to hold out for scoring
    #[arg(long, default_value_t = 0.2)]
    pub(crate) held_out: f64,
    /// auto, cpu, or cuda:0, cuda:1 and so on; auto is the first GPU, or the CPU if there is none
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Threads that torch computes with on the CPU; the loader has its own. Losses are equal only
    /// for equal numbers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) threads: i32,
    /// Send stored values to the device, and make dense batches there
    #[arg(long)]
    pub(crate) densify_on_device: bool,
    /// The folder for the picture and the losses
    #[arg(long, default_value = "target/train-cell-types")]
    pub(crate) out: PathBuf,
    /// The folder for checkpoints, one file for each order and seed
    #[arg(long)]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Steps between two checkpoints of a run
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_every: u64,
    /// Resume from existing checkpoints; finished runs are not repeated
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
}

/// The order of the training cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowOrder {
    /// As stored
    InOrder,
    /// Chunks of consecutive cells drawn at random, shuffled together in blocks
    Chunks,
    /// Any order of all cells: all are in memory
    Full,
}

impl RowOrder {
    /// The name on the command line, in file names and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InOrder => "in-order",
            Self::Chunks => "chunks",
            Self::Full => "full",
        }
    }
}

impl Arguments {
    /// Counts per 10,000, then log1p.
    pub(crate) fn transform() -> Transform {
        Transform { target_sum: Some(1e4), log1p: true, ..Transform::default() }
    }

    /// The loader's settings for `n_rows` cells in this order.
    pub(crate) fn loader_spec(&self, order: RowOrder, seed: u64, n_rows: u64) -> LoaderSpec {
        let (chunk_rows, chunks_per_block) = match order {
            RowOrder::InOrder | RowOrder::Chunks => (self.chunk_rows, self.chunks_per_block),
            // One block over everything, so that every row is drawn independently.
            RowOrder::Full => (1, n_rows.max(1)),
        };
        LoaderSpec {
            pipeline: PipelineSpec {
                chunk_rows,
                chunks_per_block,
                order: if order == RowOrder::InOrder { Order::InOrder } else { Order::Shuffled },
                seed,
                batch_rows: self.batch_rows,
                ..PipelineSpec::default()
            },
            transform: Self::transform(),
            ..LoaderSpec::default()
        }
    }
}
