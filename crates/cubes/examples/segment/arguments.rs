//! The command line.

use std::path::PathBuf;

use clap::Parser;
use images::Form;
use torch_feed::DeviceChoice;

/// Trains a small U-Net to segment image cubes.
#[derive(Debug, Clone, Parser)]
#[command(name = "segment", args_override_self = true)]
pub(crate) struct Arguments {
    /// The data set, a folder. `cargo xtask cubes generate <path>` makes one
    pub(crate) data: String,
    /// The stored form to read: dat, raw32, raw16 or zarr
    #[arg(long, default_value = "raw16")]
    pub(crate) form: Form,
    /// Number of times that each training image is seen
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: u64,
    /// Images per batch
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch: u64,
    /// Learning rate of Adam at the beginning; it falls to zero along a cosine
    #[arg(long, default_value_t = 3e-3)]
    pub(crate) learning_rate: f64,
    /// The share of the images to test on, the last ones; no subject is in both parts
    #[arg(long, default_value_t = 0.25)]
    pub(crate) held_out: f64,
    /// Leaves the training images as they are
    #[arg(long)]
    pub(crate) no_augmentation: bool,
    /// Decides the order and the maps of the training images, and the model's first parameters
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// auto, cpu, or cuda:0, cuda:1 and so on; auto is the first GPU, or the CPU if there is none
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Threads that torch computes with on the CPU; the loader has its own
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) threads: i32,
    /// The folder for the picture and the scores
    #[arg(long, default_value = "target/segment")]
    pub(crate) out: PathBuf,
}
