//! Comparisons: other loaders and readers beside ours, on the same data, checked for equality
//! first.
//!
//! - [`peers`]: our loader and others, side by side.
//! - [`read_chunks`]: all rows in tiledbsoma's ways of reading and by our readers.
//! - [`bench_readers`]: the native reader of X and libtiledb on the same rows.
//!
//! `equality` is the gate that all pass: nothing is compared that did not deliver the same values.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the library of a command line tool: printing is its job"
)]

pub mod bench_readers;
mod equality;
pub mod peers;
pub mod read_chunks;
mod script;
