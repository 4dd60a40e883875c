//! A kind of samples, as the commands see it that measure how it is fed.

use std::fmt::Display;

use bench_report::{DataInfo, EpochRecord, GridPoint};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::over_link::LinkAccess;
use crate::secrets::Secrets;
use crate::session::Session;

/// The subcommand of each program that measures a task of its workload; hidden.
pub const POINT: &str = "point";

/// Data of one kind of samples, and what a process can measure on it. The process is this program's
/// subcommand [`POINT`], whose answers have a record for each epoch.
pub trait Workload {
    /// What one process measures: a point of a grid, or a bound beside it.
    type Point: Display;
    /// The order of that process.
    type Task: Serialize;
    /// An answer of that process.
    type Answer: DeserializeOwned;

    /// The order that measures a point.
    fn task(&self, point: &Self::Point) -> Self::Task;

    /// The name of a point in the progress.
    fn point_name(&self, point: &Self::Point) -> String {
        point.to_string()
    }

    /// The settings of a point for a record.
    fn recorded(&self, point: &Self::Point, cache: &str) -> GridPoint;

    /// The record of an answer on a point; `None` if the answer is about something else.
    fn record(&self, point: &Self::Point, answer: Self::Answer) -> Option<EpochRecord>;

    /// The number of records that measuring a point makes.
    fn n_records(&self, point: &Self::Point) -> usize;

    /// The data for all records.
    fn info(&self) -> DataInfo;

    /// The secrets in the data's address.
    fn secrets(&self) -> Secrets;

    /// The link over which the data is read.
    fn link(&self) -> Option<&LinkAccess> {
        None
    }

    /// Brings the page cache into its state before a process; returns the state's name.
    fn page_cache(&self, session: &Session) -> &'static str {
        session.cache
    }

    /// Formats the record of an epoch that ended well, for the progress.
    fn format(record: &EpochRecord) -> String;
}
