//! The task of a process that measures points, and its answers.

use bench_report::EpochRecord;
use serde::{Deserialize, Serialize};

use crate::cell_digest::CellDigest;
use crate::data::{Data, Opened};
use crate::point::Point;

/// A task and its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointTask {
    /// The data.
    pub data: Data,
    /// Work to do on the data.
    pub work: PointWork,
}

/// Work to do on the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PointWork {
    /// Open the data and check that all points can be loaded, without measuring.
    Check(Vec<Point>),
    /// Measure one point.
    Measure(Box<Point>),
}

/// A result of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PointAnswer {
    /// The data is open.
    Opened(Opened),
    /// The cells that all ranks together have to deliver in an epoch; of rank 0 alone.
    Expected {
        /// Number of the epoch.
        epoch: u64,
        /// The cells.
        cells: CellDigest,
    },
    /// The cells that a rank delivered in an epoch, before the epoch's record.
    Delivered {
        /// Number of the epoch.
        epoch: u64,
        /// The cells, without padding.
        cells: CellDigest,
    },
    /// An epoch is over. The command adds run and host to the record.
    Epoch(Box<EpochRecord>),
}
