//! Compares our loader and readers with others, on the same data. Checks first that all deliver the
//! same values.
//!
//! - [`peers`]: our loader and others, in alternating runs.
//! - [`read_chunks`]: all rows, by tiledbsoma's ways of reading and by our readers.
//! - [`bench_readers`]: the native reader of X and libtiledb on the same rows.
//!
//! `equality` checks that two sides have the same values; a side that fails the check is not
//! compared.

pub mod bench_readers;
mod equality;
pub mod peers;
pub mod read_chunks;
mod script;
