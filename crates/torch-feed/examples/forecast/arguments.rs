//! The command line.

use std::path::PathBuf;

use clap::Parser;
use torch_feed::DeviceChoice;

/// Trains a model that forecasts fields one step ahead, and compares it with persistence: the
/// forecast that nothing changes.
#[derive(Debug, Clone, Parser)]
#[command(name = "forecast", args_override_self = true)]
pub(crate) struct Arguments {
    /// The store, a folder. `cargo xtask fields generate <path>` makes one
    pub(crate) store: String,
    /// Number of times that each training sample is seen
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: u64,
    /// Samples per batch, and per block
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch: u64,
    /// Learning rate of Adam at the beginning; it falls to zero along a cosine
    #[arg(long, default_value_t = 3e-3)]
    pub(crate) learning_rate: f64,
    /// Number of channels to forecast: the first ones of the targets
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) channels: u64,
    /// The share of the samples to test on, the last ones
    #[arg(long, default_value_t = 0.2)]
    pub(crate) held_out: f64,
    /// Decides the order of the training samples, and the model's first parameters
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// auto, cpu, or cuda:0, cuda:1 and so on; auto is the first GPU, or the CPU if there is none
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Threads that torch computes with on the CPU; the loader has its own. Errors are equal only
    /// for equal numbers
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) threads: i32,
    /// The folder for the picture and the errors
    #[arg(long, default_value = "target/forecast")]
    pub(crate) out: PathBuf,
}
