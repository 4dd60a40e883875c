//! Other readers of the same store: a script reads with each of them, in a process of its own.
//!
//! A reader is measured only if it delivers the values that our loader delivers, which both sides
//! show as a checksum for each sample and array.

mod checksums;
mod table;

pub(crate) use checksums::{batches, n_epochs, ours};
pub(crate) use table::table;
