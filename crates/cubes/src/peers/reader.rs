//! The order for a reader's process, and the settings of its records.

use std::path::PathBuf;

use bench_report::GridPoint;
use serde::{Deserialize, Serialize};

use crate::bench::Point;

/// The task of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReaderTask {
    /// The folder of the data set.
    pub(crate) data: PathBuf,
    /// The form of the cubes.
    pub(crate) format: String,
    /// The samples of each epoch, in their order.
    pub(crate) epochs: Vec<Vec<u64>>,
    /// Samples of a batch.
    pub(crate) batch: u64,
    /// Processes or, for some readers, threads.
    pub(crate) workers: usize,
    /// Threads of blosc in each of them; `None` leaves that to python-blosc.
    pub(crate) codec_threads: Option<usize>,
    /// Whether cubes are augmented on the CPU.
    pub(crate) augment: bool,
    pub(crate) seed: u64,
    /// Whether to report checksums instead of times.
    pub(crate) check: bool,
}

/// Settings that other readers do not have.
const OURS: [&str; 8] = [
    "strategy",
    "batch_memory",
    "slot_release",
    "sharing",
    "slots",
    "n_threads",
    "prefetch_batches",
    "prefetch_blocks",
];

/// The settings for the record of a reader that feeds the epochs of `point`.
pub(crate) fn recorded(reader: &str, point: &Point, cache: &str) -> GridPoint {
    let mut row = point.recorded(cache);
    row.settings.remove(&OURS);
    row.settings.set("read_threads", point.settings.workers);
    GridPoint {
        loader: Some(reader.to_owned()),
        chunk_method: reader.to_owned(),
        reader: reader.to_owned(),
        ..row
    }
}
