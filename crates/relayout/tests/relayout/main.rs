//! Relaid experiments contain the same data.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bucket;
#[path = "../../../soma-io/tests/support/delete_commit.rs"]
mod delete_commit;
mod failures;
mod killed;
#[path = "../../../soma-io/tests/support/python.rs"]
mod python;
mod same;
mod small;
mod tiledbsoma;
