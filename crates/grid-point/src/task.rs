//! The task of a process that measures points, and its answers.

use bench_report::EpochRecord;
use serde::{Deserialize, Serialize};

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
    /// An epoch is over. The command adds run and host to the record.
    Epoch(Box<EpochRecord>),
}
