//! Plans, samples, splits and entropy against what they promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alias_table;
mod drawn;
mod entropy;
mod group_batches;
mod hierarchical;
mod listed;
mod plans;
mod row_set;
mod samples;
mod samples_of_groups;
mod splits;
