//! Slices of experiments, in folders and out of a bucket, and against tiledbsoma.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod anndata;
mod contents;
mod interop;
#[path = "../../../soma-io/tests/support/python.rs"]
mod python;
mod s3;
mod slice;
