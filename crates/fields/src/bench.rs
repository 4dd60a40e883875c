//! Measurements of reading fields: each point of a grid in its own process, rows in a results
//! folder.

mod chained;
mod far;
mod label;
mod measure;
mod plain_read;
mod point;
mod run;
mod task;

pub(crate) use far::{FarAccess, FarFlags, sentence};
pub(crate) use label::FieldLabel;
pub(crate) use measure::serve;
pub(crate) use point::{PART, Point, Strategy, THREADS};
pub(crate) use run::{BenchFlags, DataFlags, Fields, delivered_bytes, megabytes_per_second};
pub(crate) use task::FieldData;
