//! Measurements of reading fields: each point of a grid in its own process, rows in a results
//! folder.

mod chained;
mod far;
mod measure;
mod plain_read;
mod point;
mod run;
mod task;

pub(crate) use far::sentence;
pub(crate) use measure::serve;
pub(crate) use point::{PART, Point, Strategy, THREADS};
pub(crate) use run::{BenchFlags, DataFlags, Job, Measuring, megabytes_per_second};
pub(crate) use task::FieldData;

/// The subcommand that measures a point; hidden.
pub(crate) const SUBCOMMAND: &str = "point";
